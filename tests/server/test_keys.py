"""Keys: made, listed, revoked, checked in constant time; and who may ask for what."""

import json
import stat
import statistics
import threading
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from dpoutlier import DPMarginals
from dpoutlier.cli.app import app as program
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.server import keys as keys_module
from dpoutlier.server.keys import KeyRing, create_key, read_keys, revoke_key
from server_process import call, loaded_app


@pytest.fixture
def file(tmp_path):
    return tmp_path / "keys.json"


def test_a_key_is_shown_once_and_stored_as_a_hash(file):
    key = create_key(file, ["a"], label="clinic")
    _, name, secret = key.split("_", 2)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert secret not in file.read_text()
    (found,) = read_keys(file)
    assert (found.id, found.label, found.models, found.metrics) == (name, "clinic", ("a",), False)
    assert 89 * 86_400 < found.expires - time.time() <= 90 * 86_400
    assert KeyRing(read_keys(file)).check(key) == found


def test_a_link_to_the_file_is_as_good_as_the_file(file, tmp_path):
    """Else the link would be replaced by a file of its own, and a server that reads the file would go on with revoked keys."""
    key = create_key(file, ["a"])
    link = tmp_path / "etc" / "keys"
    link.parent.mkdir()
    link.symlink_to(file)
    revoke_key(link, key.split("_")[1])
    assert link.is_symlink()
    assert KeyRing(read_keys(file)).check(key) is None
    other = create_key(link, ["a"])
    assert KeyRing(read_keys(file)).check(other) is not None


def test_the_command_line_makes_lists_and_revokes(file):
    runner = CliRunner()
    made = runner.invoke(program, ["keys", "create", str(file), "--models", "a,b", "--days", "3", "--metrics"])
    assert made.exit_code == 0, made.output
    name = made.stdout.split("_")[1]
    listed = runner.invoke(program, ["keys", "list", str(file)], env={"COLUMNS": "200"})
    assert name in listed.stdout
    assert "a, b" in listed.stdout
    assert "valid" in listed.stdout
    assert runner.invoke(program, ["keys", "revoke", str(file), name]).exit_code == 0
    assert "revoked" in runner.invoke(program, ["keys", "list", str(file)], env={"COLUMNS": "200"}).stdout
    for bad in (
        ["--models", ""],
        ["--models", "a/b"],
        ["--models", "a", "--days", "0"],
        ["--models", "a", "--label", "\n"],
    ):
        refused = runner.invoke(program, ["keys", "create", str(file), *bad])
        assert refused.exit_code == 2, bad
        assert f"{bad[-2]} must be" in refused.stderr
    assert runner.invoke(program, ["keys", "revoke", str(file), "nobody"]).exit_code == 2
    assert runner.invoke(program, ["keys", "list", str(file.with_name("none"))]).exit_code == 2
    file.write_text("{}")
    assert "not a key file" in runner.invoke(program, ["keys", "list", str(file)]).stderr


def test_keys_made_at_once_are_all_there(file):
    threads = [threading.Thread(target=create_key, args=(file, ["a"])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({key.id for key in read_keys(file)}) == 8


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one.update(id="../../etc/x"),
        lambda one: one.update(hash="00"),
        lambda one: one.update(models=["a/b"]),
        lambda one: one.update(expires="never"),
        lambda one: one.update(metrics="yes"),
        lambda one: one.update(more=1),
        lambda one: one.pop("revoked"),
        lambda one: one.pop("hash"),
    ],
)
def test_a_damaged_file_is_refused(file, change):
    create_key(file, ["a"])
    content = json.loads(file.read_text())
    change(content["keys"][0])
    file.write_text(json.dumps(content))
    try:
        read_keys(file)
    except InvalidParameterError:
        return
    assert "revoked" not in content["keys"][0]  # which has a default


def test_the_matrix_of_keys(file, tmp_path):
    rows = np.random.default_rng(0).uniform(0, 1, (200, 2))
    paths = [DPMarginals(1, features=(0, 1), bins=3).fit(rows).save(tmp_path / name) for name in "ab"]
    good, other, everything = create_key(file, ["a"]), create_key(file, ["b"]), create_key(file, ["*"])
    watcher, late, gone = create_key(file, [], metrics=True), create_key(file, ["a"], days=1), create_key(file, ["a"])
    revoke_key(file, gone.split("_")[1])
    content = json.loads(file.read_text())
    next(one for one in content["keys"] if one["id"] == late.split("_")[1])["expires"] = int(time.time()) - 1
    file.write_text(json.dumps(content))
    app = loaded_app(models=(("a", str(paths[0])), ("b", str(paths[1]))), keys=str(file))

    def ask(path, key=None, scheme="Bearer ", method="GET"):
        headers = {} if key is None else {"Authorization": scheme + key}
        headers["Content-Type"] = "application/json"
        return call(app, method, path, headers=headers, body=b'{"points":[[0.5,0.5]]}')

    score = "/v1/models/a/score"
    for key in (good, everything):
        assert ask(score, key, method="POST")[0] == 200
        assert ask(score, key, "bearer ", method="POST")[0] == 200
    wrong = [
        None,
        "",
        "x",
        "dpo_",
        good[:-1],
        good + "A",
        good.replace("dpo_", "dpx_"),
        late,
        gone,
        "dpo_aaaaaaaaaa_" + "A" * 43,
    ]
    wrong += [f"dpo_{other.split('_')[1]}_{good.split('_', 2)[2]}", "é" * 20, "A" * 10_000]
    answers = set()
    for key in wrong:
        status, headers, answer = ask(score, key, method="POST")
        assert (status, headers["www-authenticate"]) == (401, "Bearer"), key
        answers.add(answer)
    assert ask(score, good, "Basic ", method="POST")[2] in answers
    assert len(answers) == 1  # nobody learns what was wrong
    assert ask(score, other, method="POST")[::2] == ask("/v1/models/none/score", good, method="POST")[::2]
    assert ask(score, other, method="POST")[0] == 404
    assert ask("/v1/models/a", other)[::2] == ask("/v1/models/none", good)[::2]
    assert [one["id"] for one in json.loads(ask("/v1/models", good)[2])["models"]] == ["a"]
    assert [one["id"] for one in json.loads(ask("/v1/models", everything)[2])["models"]] == ["a", "b"]
    assert ask("/metrics", everything)[0] == 403
    assert ask("/metrics")[0] == 401
    assert ask("/metrics", watcher)[0] == 200
    assert ask(score, watcher, method="POST")[0] == 404
    for path in ("/", "/healthz", "/readyz", "/openapi.json"):
        assert ask(path)[0] == 200, path
    # A revoked key is out as soon as the file is read again, and a file that cannot be read holds no key.
    revoke_key(file, good.split("_")[1])
    app.state.worker.guard.refresh()
    assert ask(score, good, method="POST")[0] == 401
    assert ask(score, everything, method="POST")[0] == 200
    file.write_text("not a key file")
    app.state.worker.guard.refresh()
    assert ask(score, everything, method="POST")[0] == 401


def test_a_rate_is_one_for_all_workers(file, tmp_path):
    rows = np.random.default_rng(0).uniform(0, 1, (200, 2))
    path = DPMarginals(1, features=(0, 1), bins=3).fit(rows).save(tmp_path / "a")
    first, second = create_key(file, ["a"]), create_key(file, ["a"])
    settings = {"models": (("a", str(path)),), "keys": str(file), "rate": 3.0, "shared": str(tmp_path)}
    workers = [loaded_app(**settings), loaded_app(**settings)]
    begin, statuses = time.monotonic(), []
    for i in range(20):
        status, headers, _ = call(workers[i % 2], "GET", "/v1/models", headers={"Authorization": f"Bearer {first}"})
        statuses.append(status)
        if status == 429:
            assert int(headers["retry-after"]) >= 1
    passed = 3 + 3 * (time.monotonic() - begin)
    assert statuses[:3] == [200] * 3
    assert statuses.count(200) <= passed + 1
    assert statuses.count(429) >= 20 - passed - 1
    assert call(workers[0], "GET", "/v1/models", headers={"Authorization": f"Bearer {second}"})[0] == 200
    time.sleep(0.4)
    assert call(workers[1], "GET", "/v1/models", headers={"Authorization": f"Bearer {first}"})[0] == 200


LARGE = 0.1
"""Difference of medians of 3000 times each, in turns. Their standard errors are below a hundredth, so this is over ten of them."""


def _difference(check, one, other, n=3000):
    """How much longer one call takes than the other, as a share; taken in turns, so that what else runs meets both."""
    times = ([], [])
    for i in range(n):
        for which in (0, 1) if i % 2 else (1, 0):
            token = (one, other)[which]
            begin = time.perf_counter_ns()
            for _ in range(4):
                check(token)
            times[which].append(time.perf_counter_ns() - begin)
    first, second = map(statistics.median, times)
    return first / second - 1


@pytest.mark.slow
def test_the_time_of_a_check_tells_nothing(file, monkeypatch):
    key = create_key(file, ["a"])
    ring = KeyRing(read_keys(file))
    _, name, secret = key.split("_", 2)
    digest = keys_module._hash(secret)
    wanted = (text for text in (f"{i:043d}" for i in range(10**6)))
    near = next(text for text in wanted if keys_module._hash(text)[:3] == digest[:3])
    far = next(text for text in wanted if keys_module._hash(text)[0] != digest[0])
    wrong, closer, unknown = f"dpo_{name}_{far}", f"dpo_{name}_{near}", f"dpo_aaaaaaaaaa_{far}"
    assert not any(ring.check(token) for token in (wrong, closer, unknown))
    assert abs(_difference(ring.check, wrong, closer)) < LARGE
    assert abs(_difference(ring.check, wrong, unknown)) < LARGE

    # Planted: what must not be, and must be caught.
    def hasty(token):
        return ring.check(token) if token.split("_")[1] in ring.keys else None

    assert _difference(hasty, wrong, unknown, 500) > LARGE

    def early(one, other):  # ends at the first difference
        for a, b in zip(one, other):
            if a != b:
                return False
            for _ in range(20):
                pass
        return len(one) == len(other)

    monkeypatch.setattr(keys_module.hmac, "compare_digest", early)
    assert _difference(ring.check, closer, wrong, 500) > LARGE


def test_an_unknown_id_is_hashed_and_compared_as_a_known_one_is(monkeypatch):
    ring = KeyRing([])
    seen = []
    real = keys_module.hmac.compare_digest
    monkeypatch.setattr(
        keys_module.hmac, "compare_digest", lambda one, other: seen.append((one, other)) or real(one, other)
    )
    for token in ("dpo_aaaaaaaaaa_x", "", "x", "dpo__"):
        assert ring.check(token) is None
    assert len(seen) == 4
    assert all(len(one) == len(other) == 64 for one, other in seen)


def test_slots_of_the_rates_do_not_cluster():
    import random

    from dpoutlier.server.rate_limits import RateLimit

    rng, rate = random.Random(0), RateLimit(1, None)
    ids = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz234567", k=10)).encode() for _ in range(5_000)]
    assert len({rate._place(one) for one in ids}) > 4_000


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *[
            (name + port, 200)
            for name in ("localhost", "127.0.0.1", "[::1]", "LOCALHOST", "127.0.0.2")
            for port in ("", ":81")
        ],
        *[
            (name, 421)
            for name in ("evil.example", "evil.example:8765", "localhost.evil.example", "127.0.0.1.evil.example", "")
        ],
    ],
)
def test_an_open_server_on_loopback_answers_for_its_own_names_only(host, status, tmp_path, file):
    create_key(file, "*")
    for where, keys, wanted in (
        ("127.0.0.1", None, status),
        ("localhost", None, status),
        ("::1", None, status),
        ("0.0.0.0", None, 200),
        ("127.0.0.1", str(file), 200),
    ):
        app = loaded_app(models=(), host=where, keys=keys)
        for path in ("/", "/healthz"):
            found, _, answer = call(app, "GET", path, headers={"Host": host})
            assert found == wanted
            assert found == 200 or json.loads(answer)["error"]["code"] == "wrong-host"
    assert call(loaded_app(models=()), "GET", "/healthz")[0] == 200  # no browser
