"""The file of the audit log while a server runs: what becomes of it is noticed at the next query, by every worker."""

import json
import multiprocessing
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

import dpoutlier.server
from dpoutlier.server.audit_log import CANNOT, CUT, MOVED, AuditChangedError, AuditLog, verify
from server_process import call, fitted, kill, loaded_app, running_server, until

JSON = {"Content-Type": "application/json"}
ONE = b'{"points":[{"x":0.25,"y":0.5}]}'
ASK = {"headers": JSON, "body": ONE}


# What may become of a file: each takes the path, and says which fault it is -------------------------------------------------


def removed(path):
    path.unlink()
    return MOVED


def moved(path):
    path.rename(path.with_name("audit.1"))
    return MOVED


def replaced_by_an_empty_file(path):
    moved(path)
    path.touch()
    return MOVED


def replaced_by_a_copy(path):
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").replace(path)
    return MOVED


def folder_moved(path):
    path.parent.rename(path.parent.with_name("elsewhere"))
    return MOVED


def emptied(path):
    os.truncate(path, 0)
    return CUT


def last_entry_cut(path):
    os.truncate(path, path.stat().st_size - len(path.read_bytes().splitlines(keepends=True)[-1]))
    return CUT


def torn(path):
    os.truncate(path, path.stat().st_size - 5)
    return CUT


def emptied_and_written_again_by_another_server(path):
    """Longer than it was, and a chain that verifies."""
    size = path.stat().st_size
    os.truncate(path, 0)
    other = AuditLog(path)
    while path.stat().st_size < 2 * size:
        other.append("query", request_id="0" * 16)
    other.close()
    verify(path)
    return CUT


def last_entry_changed(path):
    content = path.read_bytes()
    with path.open("r+b") as file:
        file.write(content[:-10] + b"0123456" + content[-3:])
    return CUT


CHANGES = [
    removed,
    moved,
    replaced_by_an_empty_file,
    replaced_by_a_copy,
    folder_moved,
    emptied,
    last_entry_cut,
    torn,
    emptied_and_written_again_by_another_server,
    last_entry_changed,
]
EACH_CHANGE = pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs" / "audit.jsonl"


@pytest.fixture
def model(tmp_path):
    return fitted(tmp_path, "a.dpo")


@EACH_CHANGE
def test_a_log_that_is_not_as_it_was_left_is_not_written(path, tmp_path, change):
    """By nobody: not by who wrote last, not by who has not written for long, not by a worker that starts now."""
    first, second = AuditLog(path, str(tmp_path)), AuditLog(path, str(tmp_path))
    second.append("query")
    for _ in range(5):
        first.append("query")
    fault = change(path)
    left = {one.name: one.read_bytes() for one in tmp_path.rglob("audit*") if one.is_file() and one.parent != tmp_path}
    for log in (first, second, AuditLog(path, str(tmp_path))):
        for use in (lambda log=log: log.append("query"), log.check, log.check_and_sync):
            with pytest.raises((AuditChangedError, FileNotFoundError)):
                use()
            assert log.reasons() == [fault]
    now = {one.name: one.read_bytes() for one in tmp_path.rglob("audit*") if one.is_file() and one.parent != tmp_path}
    assert now == left


@EACH_CHANGE
def test_queries_are_refused_and_readiness_says_why(path, model, change, capfd):
    app = loaded_app(models=(("a", str(model)),), audit=str(path))
    assert call(app, "POST", "/v1/models/a/score", **ASK)[0] == 200
    fault = change(path)
    status, _, answer = call(app, "POST", "/v1/models/a/score", **ASK)
    assert status == 503
    assert json.loads(answer)["error"]["code"] == "unavailable"
    assert b"outlier_score" not in answer
    status, _, answer = call(app, "GET", "/readyz")
    assert (status, json.loads(answer)["reasons"]) == (503, [fault])
    assert str(path) not in answer.decode()
    for _ in range(3):
        call(app, "POST", "/v1/models/a/score", **ASK)
    told = [json.loads(line) for line in capfd.readouterr().err.splitlines() if '"audit-failed"' in line]
    assert len(told) == 1
    assert str(path) in told[0]["message"]
    assert re.search("[Ss]top the server", told[0]["message"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [removed, moved, emptied, emptied_and_written_again_by_another_server],
    ids=lambda change: change.__name__,
)
def test_every_worker_of_a_real_server_notices(path, model, tmp_path, change):
    """Also one that is started afterwards, and none begins at 1 again."""
    with running_server(tmp_path, model, "--open", "--workers", 2, "--audit", path) as server:

        def statuses(n=12):
            return {server.request("POST", "/v1/models/a/score", **ASK).status for _ in range(n)}

        assert statuses() == {200}
        before = path.read_bytes()
        fault = change(path)
        left = path.read_bytes() if path.exists() else None
        assert statuses() == {503}
        assert until(lambda: json.loads(server.request("GET", "/readyz").data)["reasons"][0] == fault)
        old = server.workers()
        kill(old[0])
        assert until(lambda: len(server.workers()) == 2 and old[0] not in server.workers(), 60)
        assert statuses() == {503}
        assert (path.read_bytes() if path.exists() else None) == left
        if change is moved:
            path.with_name("audit.1").rename(path)  # put back: all goes on, and the log says that it stood still
            assert until(lambda: server.request("GET", "/readyz").status == 200)
            assert until(lambda: statuses(4) == {200})
            assert path.read_bytes().startswith(before)
            assert b'"event":"resumed"' in path.read_bytes()
    if change is moved:
        assert verify(path).entries > len(before.splitlines())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_refuses_queries_and_an_emptier_one_answers_again(path, model):
    disk = path.parent
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.decode()}")
    try:
        app = loaded_app(models=(("a", str(model)),), audit=str(path))
        assert call(app, "POST", "/v1/models/a/score", **ASK)[0] == 200
        with pytest.raises(OSError), (disk / "ballast").open("wb", buffering=0) as ballast:
            while True:
                ballast.write(bytes(4096))
        answered = 1

        def stuck():
            nonlocal answered
            answered += call(app, "POST", "/v1/models/a/score", **ASK)[0] == 200
            try:
                app.state.worker.audit.check_and_sync()  # an entry that says that it goes on is short, and may still find its place
            except OSError:
                return True
            return False

        assert until(stuck, 20, 0)
        assert call(app, "POST", "/v1/models/a/score", **ASK)[0] == 503
        assert json.loads(call(app, "GET", "/readyz")[2])["reasons"] == [CANNOT]
        entries = verify(path).entries  # whole lines, one for each answer
        assert path.read_text().count('"event":"query"') == answered
        (disk / "ballast").unlink()
        app.state.worker.audit.check_and_sync()  # which no query need wait for
        assert call(app, "GET", "/readyz")[0] == 200
        assert call(app, "POST", "/v1/models/a/score", **ASK)[0] == 200
        assert verify(path).entries == entries + 2
        app.state.worker.audit.close()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_two_servers_may_share_a_log(path, tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
    one, other = AuditLog(path, str(tmp_path / "a")), AuditLog(path, str(tmp_path / "b"))
    for log in (one, other, one, one, other):
        log.append("query")
    assert verify(path).entries == 5


def _append(path, shared, number):
    log = AuditLog(path, shared)
    for i in range(100):
        log.append("query", request_id=f"{number}-{i}")
        log.check_and_sync()


def test_processes_and_threads_write_one_chain(path, tmp_path):
    shared = str(tmp_path)
    log = AuditLog(path, shared)
    workers = [multiprocessing.get_context("spawn").Process(target=_append, args=(path, shared, i)) for i in range(2)]
    threads = [threading.Thread(target=lambda: [log.append("query") for _ in range(200)]) for _ in range(3)]
    for one in (*workers, *threads):
        one.start()
    for one in (*workers, *threads):
        one.join()
    assert verify(path).entries == 800


def test_nothing_else_of_the_server_appends_to_a_file():
    """A relative would be a file that is kept open for writing, and may be gone without a word."""
    package = Path(dpoutlier.server.__file__).parent
    writers = {path.name for path in package.glob("*.py") if re.search(r"O_RDWR|O_WRONLY|O_APPEND", path.read_text())}
    assert writers == {"audit_log.py", "audit_mark.py", "keys.py", "rate_limits.py", "run.py"}
    # audit_mark, limits and run write into the private folder of the server; keys.py opens a lock.
