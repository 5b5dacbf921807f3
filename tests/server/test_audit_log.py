"""The audit log: what was written cannot be changed unnoticed, and a crash leaves it whole."""

import json
import multiprocessing
import os

import pytest
from typer.testing import CliRunner

from dpoutlier.cli.app import app as program
from dpoutlier.server.audit_log import FIRST, AuditError, AuditLog, verify


@pytest.fixture
def path(tmp_path):
    return tmp_path / "audit.jsonl"


@pytest.fixture
def written(path):
    log = AuditLog(path)
    for i in range(6):
        log.append("query", request_id=f"{i:x}", key="k", model="m", rows=i, status=200)
    log.close()
    return path


def test_entries_follow_each_other(written):
    found = verify(written)
    entries = [json.loads(line) for line in written.read_text().splitlines()]
    assert found.entries == 6
    assert [entry["seq"] for entry in entries] == [1, 2, 3, 4, 5, 6]
    assert entries[0]["previous"] == FIRST
    assert [entry["previous"] for entry in entries[1:]] == [entry["hash"] for entry in entries[:-1]]
    assert found.head == entries[-1]["hash"]
    assert set(entries[0]) == {
        *(
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
        )
    }
    AuditLog(written).append("stop")
    assert verify(written, found.head).entries == 7


def _edit(lines):
    lines[2] = lines[2].replace('"rows":2', '"rows":3')
    return 3


def _edit_and_hash(lines):
    from dpoutlier.server.audit_log import _hash

    entry = json.loads(lines[2]) | {"rows": 99}
    lines[2] = json.dumps(entry | {"hash": _hash(entry)}, separators=(",", ":"))
    return 4


def _delete(lines):
    del lines[3]
    return 4


def _swap(lines):
    lines[1], lines[2] = lines[2], lines[1]
    return 2


def _delete_first(lines):
    del lines[0]
    return 1


def _insert(lines):
    lines.insert(2, lines[1])
    return 3


def _rubbish(lines):
    lines[4] = "rubbish"
    return 5


@pytest.mark.parametrize("change", [_edit, _edit_and_hash, _delete, _swap, _delete_first, _insert, _rubbish])
def test_a_change_is_found_at_its_line(written, change):
    lines = written.read_text().splitlines()
    bad = change(lines)
    written.write_text("\n".join(lines) + "\n")
    with pytest.raises(AuditError) as caught:
        verify(written)
    assert caught.value.line == bad
    ran = CliRunner().invoke(program, ["audit-log", "verify", str(written)])
    assert ran.exit_code == 1
    assert f"line {bad}" in ran.stderr


def test_a_cut_end_is_found_by_a_head_that_was_noted(written):
    head = verify(written).head
    lines = written.read_text().splitlines()
    written.write_text("\n".join(lines[:-1]) + "\n")
    assert verify(written).entries == 5
    with pytest.raises(AuditError):
        verify(written, head)
    runner = CliRunner()
    assert runner.invoke(program, ["audit-log", "verify", str(written), "--head", head]).exit_code == 1
    right = runner.invoke(program, ["audit-log", "verify", str(written), "--head", verify(written).head])
    assert right.exit_code == 0
    assert "entries  5" in right.stdout


@pytest.mark.parametrize("kept", [1, 30, 200])
def test_a_torn_line_is_marked_and_the_chain_goes_on(written, kept):
    whole = written.read_bytes()
    last = whole.splitlines(keepends=True)[-1]
    written.write_bytes(whole[: len(whole) - len(last) + kept])
    with pytest.raises(AuditError, match="incomplete"):
        verify(written)
    AuditLog(written).append("start")
    found = verify(written)
    assert (found.entries, found.repairs) == (7, 1)
    repair = json.loads(written.read_text().splitlines()[5])
    assert (repair["event"], repair["torn"]) == ("repair", last[:kept].decode())


@pytest.mark.parametrize("torn", [b"", b'{"seq":3,"x":"' + b"a" * 70_000])
def test_long_lines_are_read_back(written, torn):
    log = AuditLog(written)
    log.append("start", models=["m" * 60 + str(i) for i in range(1_000)])
    with written.open("ab") as file:
        file.write(torn)
    AuditLog(written).append("query")
    log.append("query")
    assert verify(written) == verify(written)._replace(entries=9 + bool(torn), repairs=int(bool(torn)))


@pytest.mark.parametrize("text", ["hello", "hello\n", "{}\n", "[1]\n", "{\n"])
def test_a_file_that_is_not_a_log_is_not_changed(path, text):
    path.write_text(text)
    log = AuditLog(path)
    for use in (log.check, lambda: log.append("start")):
        with pytest.raises((ValueError, KeyError, TypeError)):
            use()
    assert path.read_text() == text


def test_a_torn_first_line(path):
    path.write_bytes(b'{"seq":1,')
    AuditLog(path).append("start")
    assert verify(path).repairs == 1


def _append(path, number):
    log = AuditLog(path)
    for i in range(100):
        log.append("query", request_id=f"{number}-{i}")


def test_processes_write_one_chain(path):
    workers = [multiprocessing.get_context("spawn").Process(target=_append, args=(path, i)) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert verify(path).entries == 300
    assert len({json.loads(line)["request_id"] for line in path.read_text().splitlines()}) == 300


def test_a_full_disk_is_an_error_and_leaves_whole_lines(written, monkeypatch):
    log, real = AuditLog(written), os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[: len(data) // 2]))
    with pytest.raises(OSError):
        log.append("query")
    monkeypatch.undo()
    log.append("query")
    found = verify(written)
    assert (found.entries, found.repairs) == (7, 0)


def test_no_answer_without_an_entry(tmp_path):
    import numpy as np

    from dpoutlier import DPMarginals
    from server_process import call, loaded_app

    path = DPMarginals(1, features=(0, 1), bins=3).fit(np.zeros((50, 1))).save(tmp_path / "a")
    app = loaded_app(models=(("a", str(path)),), audit=str(tmp_path / "audit.jsonl"))
    ask = {"headers": {"Content-Type": "application/json"}, "body": b'{"points":[[0.5]]}'}
    assert call(app, "POST", "/v1/models/a/score", **ask)[0] == 200
    assert call(app, "POST", "/v1/models/b/score", **ask)[0] == 404
    entries = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [(entry["status"], entry["model"], entry["rows"]) for entry in entries] == [(200, "a", 1), (404, None, None)]
    app = loaded_app(models=(("a", str(path)),), audit="/dev/full")
    assert call(app, "GET", "/readyz")[0] == 200
    status, _, answer = call(app, "POST", "/v1/models/a/score", **ask)
    assert (status, json.loads(answer)["error"]["code"]) == (503, "unavailable")
    assert b"outlier_score" not in answer
    assert call(app, "GET", "/readyz")[0] == 503


def test_what_the_rate_refuses_is_not_audited(tmp_path):
    import numpy as np

    from dpoutlier import DPMarginals
    from server_process import call, loaded_app

    path = DPMarginals(1, features=(0, 1), bins=3).fit(np.zeros((50, 1))).save(tmp_path / "a")
    app = loaded_app(models=(("a", str(path)),), audit=str(tmp_path / "audit.jsonl"), rate=0.01)
    ask = {"headers": {"Content-Type": "application/json"}, "body": b'{"points":[[0.5]]}'}
    assert [call(app, "POST", "/v1/models/a/score", **ask)[0] for _ in range(5)] == [200] + [429] * 4
    assert verify(tmp_path / "audit.jsonl").entries == 1
