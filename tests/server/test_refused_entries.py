"""Who was turned away is in the audit log: with the names that the custodian gave, and nothing that a client made up."""

import json
import re
import threading
import time
from collections import Counter

import pytest
from typer.testing import CliRunner

from dpoutlier.cli.app import app as program
from dpoutlier.server.audit_log import AuditLog, verify
from dpoutlier.server.envelope import MAX_PARAMETERS
from dpoutlier.server.keys import create_key, read_keys, revoke_key
from dpoutlier.server.refused_entries import MAX_REFUSED, REFUSED_SECONDS, RefusedEntries
from server_process import call, fitted, loaded_app, running_server

JSON = {"Content-Type": "application/json"}
ONE = b'{"points":[{"x":0.25,"y":0.5}]}'
ROUTES = {
    "/v1/models/{model}/score": ("POST", "/v1/models/a/score"),
    "/v1/models/{model}/explain": ("POST", "/v1/models/a/explain"),
    "/v1/models/{model}": ("GET", "/v1/models/a"),
    "/v1/models": ("GET", "/v1/models"),
    "/metrics": ("GET", "/metrics"),
}
ENTRY_FIELDS = {
    "seq",
    "time",
    "event",
    "request_id",
    "key",
    "model",
    "release",
    "route",
    "rows",
    "status",
    "previous",
    "hash",
}


@pytest.fixture
def keys(tmp_path):
    return tmp_path / "keys.json"


@pytest.fixture
def log(tmp_path):
    return tmp_path / "audit.jsonl"


@pytest.fixture
def good(keys):
    return create_key(keys, ["a"])


@pytest.fixture
def app(tmp_path, keys, log, good):
    paths = {name: str(fitted(tmp_path, f"{name}.dpo")) for name in ("a", "b")}
    return loaded_app(models=tuple(paths.items()), keys=str(keys), audit=str(log))


def ask(app, method, path, key=None, query=""):
    headers = JSON if key is None else {**JSON, "Authorization": f"Bearer {key}"}
    return call(app, method, path, headers=headers, body=ONE, query=query)[0]


def entries(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


def name_of(key):
    return key.split("_")[1]


@pytest.mark.parametrize("route", ROUTES)
def test_a_refused_key_is_entered_on_every_route(app, log, route):
    assert ask(app, *ROUTES[route], "dpo_aaaaaaaaaa_" + "A" * 43) == 401
    assert ask(app, *ROUTES[route]) == 401
    for entry in entries(log):
        assert set(entry) == ENTRY_FIELDS
        assert [entry[name] for name in ("event", "route", "status", "key", "model")] == [
            "refused",
            route,
            401,
            None,
            None,
        ]
    assert len(entries(log)) == 2
    assert verify(log).refusals == 2


def test_every_route_that_asks_for_a_key_is_here(app, log):
    """A relative would be a new route that refuses without an entry."""
    asked = 0
    for path, methods in json.loads(call(app, "GET", "/openapi.json")[2])["paths"].items():
        for method in methods:
            asked += call(app, method.upper(), path.replace("{model}", "a"))[0] == 401
    assert asked == len(ROUTES)
    assert {entry["route"] for entry in entries(log)} == set(ROUTES)


def test_the_id_of_a_key_is_entered_only_if_there_is_such_a_key(app, keys, log, good):
    gone = create_key(keys, ["a"])
    revoke_key(keys, name_of(gone))
    app.state.worker.guard.refresh()
    assert ask(app, "GET", "/v1/models", gone) == 401  # revoked
    assert ask(app, "GET", "/v1/models", good[:-1]) == 401  # a wrong secret
    for unknown in ("dpo_bbbbbbbbbb_" + "A" * 43, "dpo_", "zzz", f"dpo_{name_of(good)}x_", "dpo_*_x", "A" * 1000):
        assert ask(app, "GET", "/v1/models", unknown) == 401
    assert [entry["key"] for entry in entries(log)] == [name_of(gone), name_of(good), *[None] * 6]


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/models/{}/score"), ("POST", "/v1/models/{}/explain")])
def test_a_query_for_a_forbidden_model_has_its_name(app, log, good, method, path):
    forbidden, unknown = path.format("b"), path.format("zqunknownqz")
    assert {ask(app, method, forbidden, good), ask(app, method, unknown, good)} == {404}
    first, second = entries(log)
    assert [first[name] for name in ("event", "status", "model", "key", "release")] == [
        *("query", 404, "b"),
        name_of(good),
        None,
    ]
    assert (second["event"], second["status"], second["model"]) == ("query", 404, None)
    assert "zqunknownqz" not in log.read_text()


def test_other_probes_with_a_valid_key_are_entered(app, log, good):
    assert ask(app, "GET", "/v1/models/b", good) == 404
    assert ask(app, "GET", "/metrics", good) == 403
    assert ask(app, "GET", "/v1/models/none", good) == 404  # of no model: nothing is probed
    assert ask(app, "GET", "/v1/models/a", good) == 200
    found = [(entry["event"], entry["status"], entry["model"], entry["key"]) for entry in entries(log)]
    assert found == [("refused", 404, "b", name_of(good)), ("refused", 403, None, name_of(good))]


def test_the_answers_tell_as_little_as_before(app, good):
    """A forbidden model answers as one that does not exist: body and headers, except the id of the request."""
    responses = []
    for path in ("/v1/models/b/score", "/v1/models/none/score", "/v1/models/b", "/v1/models/none"):
        method = "POST" if path.endswith("score") else "GET"
        headers = {**JSON, "Authorization": f"Bearer {good}"}
        status, names, body = call(app, method, path, headers=headers, body=ONE)
        responses.append((status, body, {name: value for name, value in names.items() if name != "x-request-id"}))
    assert responses[0] == responses[1]
    assert responses[2] == responses[3]


# Floods --------------------------------------------------------------------------------------------------------------------


def test_a_flood_is_counted_and_does_not_fill_the_disk(app, log, good):
    for _ in range(40):
        for route in ROUTES.values():
            assert ask(app, *route, good[:-1]) == 401
    size = log.stat().st_size
    assert len(entries(log)) == MAX_REFUSED
    for _ in range(200):
        assert ask(app, "GET", "/v1/models") == 401
    assert log.stat().st_size == size
    assert ask(app, "GET", "/v1/models/b", good) == 404  # who has a key is still entered
    assert entries(log)[-1]["status"] == 404
    app.state.worker.refused.close()
    last = entries(log)[-1]
    assert (last["event"], last["count"], last["keys"]) == ("refused-more", 400 - MAX_REFUSED, [name_of(good)])
    assert verify(log).refusals == 401
    shown = CliRunner().invoke(program, ["audit-log", "verify", str(log)])
    assert shown.exit_code == 0
    assert re.search(r"^refused  401 ", shown.stdout, re.MULTILINE)


def test_the_rule_holds_over_time(log, monkeypatch):
    """An hour of a flood: a fixed number of entries of each kind a minute, and one that counts; nothing is lost."""
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    refused, sent = RefusedEntries(AuditLog(log)), 0
    for second in range(3600):
        for _ in range(3):
            refused.enter(valid=False, key=None, status=401)
            sent += 1
        now += 1
        if second % 7 == 0:
            refused.write_counts()
    refused.close()
    kinds = Counter(entry["event"] for entry in entries(log))
    minutes = 3600 / REFUSED_SECONDS
    assert kinds["refused"] <= (minutes + 1) * MAX_REFUSED
    assert kinds["refused-more"] <= minutes + 1
    assert verify(log).refusals == sent
    now += 10 * REFUSED_SECONDS
    refused.enter(valid=False, key=None, status=401)
    assert entries(log)[-1]["event"] == "refused"


def test_what_was_counted_waits_for_a_log_that_works(tmp_path, log):
    audit = AuditLog(log)
    refused = RefusedEntries(audit)
    for _ in range(MAX_REFUSED + 5):
        refused.enter(valid=False, key=None, status=401)
    log.rename(tmp_path / "away")
    with pytest.raises((OSError, ValueError)):
        refused.close()
    refused.enter(valid=False, key=None, status=401)  # and no error of its own
    (tmp_path / "away").rename(log)
    refused.close()
    assert verify(log).refusals == MAX_REFUSED + 6


def test_odd_entries_count_nothing(log):
    """Whoever can write to the log can write a valid chain of anything."""
    audit = AuditLog(log)
    for event, fields in ((["refused"], {}), ("refused-more", {"count": "many"}), ("refused-more", {"count": -3})):
        audit.append(event, **fields)
    audit.append("refused", count=7)
    assert verify(log).refusals == 1


def test_a_refusal_is_one_whether_or_not_it_can_be_entered(app, log):
    log.unlink()
    assert ask(app, "GET", "/v1/models") == 401
    assert call(app, "GET", "/readyz")[0] == 503


# Nothing that was sent -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_secret_and_no_value_of_a_query_is_ever_in_the_log(tmp_path, keys, log, good):
    """A real server, asked in all ways with marked values, marked keys and marked names, by many at once."""
    mark, number = "zqsentinelqz", "31415926.53589793"
    gone = create_key(keys, ["a"])
    revoke_key(keys, name_of(gone))
    secrets = [key.split("_", 2)[2] for key in (good, gone)]
    wrong = [good[:-1], gone, f"dpo_{name_of(good)}_{mark}", f"dpo_{mark}_{mark}", mark, f"dpo_{mark}"]
    bodies = [f'{{"points":[{{"x":"{mark}","y":{number}}}]}}', f'{{"points":[{{"x":{number},"y":0.5}}]}}', mark]
    fitted(tmp_path, "a.dpo")
    fitted(tmp_path, "b.dpo")
    arguments = [tmp_path / "a.dpo", tmp_path / "b.dpo", "--keys", keys, "--audit", log, "--workers", 2]
    statuses = Counter()
    with running_server(tmp_path, *arguments) as server:

        def send():
            for key in (good, None, *wrong):
                for model in ("a", "b", mark, f"a%20{mark}", "..", f"..%2f{mark}"):
                    for body in bodies:
                        for route in ("/score", "/explain", f"/score?threshold={number}", f"/score?{mark}=1"):
                            path = f"/v1/models/{model}{route}"
                            statuses[server.request("POST", path, key=key, headers=JSON, body=body).status] += 1
                    statuses[server.request("GET", f"/v1/models/{model}", key=key).status] += 1
                statuses[server.request("GET", f"/metrics?{mark}", key=key, headers={"X-Real-Ip": mark}).status] += 1

        threads = [threading.Thread(target=send) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert set(statuses) == {200, 400, 401, 403, 404}
    found = verify(log)
    text = log.read_text()
    for planted in (mark, "31415926", "535897", *secrets, *(key.hash for key in read_keys(keys))):
        assert planted not in text
    kinds = Counter(entry["event"] for entry in entries(log))
    assert set(kinds) == {"start", "query", "refused", "refused-more", "stop"}
    assert found.refusals == statuses[401] + statuses[403] + 2  # and twice the description of b
    known = {name_of(good), name_of(gone), None}
    assert {entry["key"] for entry in entries(log)} <= known
    assert {entry["model"] for entry in entries(log)} <= {"a", "b", None}


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/models/a/score"), ("GET", "/v1/models")])
def test_too_many_parameters_are_refused_after_the_key_the_rate_and_the_entry(
    app, log, good, method, path, monkeypatch
):
    taken = []
    monkeypatch.setattr(app.state.worker.rate, "take", taken.append)
    many = "&".join(f"p{i}=1" for i in range(MAX_PARAMETERS + 1))
    assert ask(app, method, path, query=many) == 401
    assert taken == []
    assert ask(app, method, path, good, many) == 400
    assert taken == [name_of(good)]
    queries = [(entry["status"], entry["key"]) for entry in entries(log) if entry["event"] == "query"]
    assert queries == [(400, name_of(good))] * (method == "POST")
