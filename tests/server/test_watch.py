"""What a worker checks while it answers: no failed check ends it, hides another, or leaves it ready."""

import ast
import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import urllib3

import dpoutlier.server
from dpoutlier.server import logs
from dpoutlier.server.app import create_app
from dpoutlier.server.authentication import MAX_AGE, Guard
from dpoutlier.server.error_responses import Refusal
from dpoutlier.server.keys import create_key, revoke_key
from dpoutlier.server.metrics import Tally, tally
from dpoutlier.server.models import LoadedModel
from dpoutlier.server.settings import Settings
from dpoutlier.server.watch import PeriodicCheck
from server_process import ServerProcess, called, fitted, loaded_app, until

JSON = {"Content-Type": "application/json"}
ONE = b'{"points":[{"x":0.25,"y":0.5}]}'
PARTS = ("keys", "models", "drift", "refused requests", "audit log", "metrics", "lines of the log", "parent process")
SERVER = Path(dpoutlier.server.__file__).parent


# A real server without files to open ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_after_too_many_files_keys_and_models_are_checked_again(tmp_path):
    """Connections take all files that the server may open; meanwhile its first metrics are written, keys and a model change."""
    keys = tmp_path / "keys.json"
    fitted(tmp_path, "a.dpo")
    fitted(tmp_path, "b.dpo", 1)
    old, stays = create_key(keys, ["*"]), create_key(keys, ["*"])
    arguments = [tmp_path / "a.dpo", tmp_path / "b.dpo", "--keys", keys, "--header-seconds", 60]
    arguments += ["--audit", tmp_path / "audit.jsonl"]
    server = ServerProcess(tmp_path, *arguments, most_files=64).start(ask=False)
    try:
        with contextlib.ExitStack() as held:
            open_ones = []
            for _ in range(150):
                with contextlib.suppress(OSError):
                    open_ones.append(
                        held.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=5))
                    )
            time.sleep(0.5)
            open_ones[0].sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b" 200 " in open_ones[0].recv(4096)
            revoke_key(keys, old.split("_")[1])
            new = create_key(keys, ["*"])
            fitted(tmp_path, "other.dpo", 7).replace(tmp_path / "b.dpo")
            time.sleep(2)
            open_ones[0].sendall(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b" 503 " in open_ones[0].recv(4096)

        def status(key, path="/v1/models"):
            with contextlib.suppress(urllib3.exceptions.HTTPError):  # while the last connections are still being closed
                return server.request("GET", path, key=key).status

        assert until(lambda: status(new) == 200)
        assert {status(old) for _ in range(12)} == {401}
        assert status(stays) == 200
        fresh = LoadedModel.load("b", str(tmp_path / "b.dpo"), Settings(())).release
        assert until(lambda: json.loads(server.request("GET", "/v1/models/b", key=new).data)["release"] == fresh)
        assert until(lambda: status(None, "/readyz") == 200)
        assert server.request("POST", "/v1/models/a/score", key=new, headers=JSON, body=ONE).status == 200
        assert any(one["event"] == "check-failed" for one in server.log())  # else nothing was tried here
    finally:
        server.stop()


# Each part fails -----------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def living(tmp_path):
    """An application whose lifespan has begun, with all parts, in this process."""
    keys = tmp_path / "keys.json"
    create_key(keys, ["*"])
    fitted(tmp_path, "a.dpo")
    settings = {"models": (("a", str(tmp_path / "a.dpo")),), "keys": str(keys), "audit": str(tmp_path / "audit.jsonl")}
    app = create_app(Settings(**settings))
    received, sent = asyncio.Queue(), asyncio.Queue()
    running = asyncio.create_task(app({"type": "lifespan", "state": {}}, received.get, sent.put))
    await received.put({"type": "lifespan.startup"})
    assert (await sent.get())["type"] == "lifespan.startup.complete"
    try:
        yield app
    finally:
        await received.put({"type": "lifespan.shutdown"})
        assert (await sent.get())["type"] == "lifespan.shutdown.complete"
        await running


async def readiness(app):
    status, _, answer = await called(app, "GET", "/readyz")
    return status, json.loads(answer).get("reasons", [])


def counting(part, errors):
    """Let a check raise these errors, one after the other, and then do its work. Returns a list that grows with each call."""
    real, calls = part.check, []

    def check():
        calls.append(part.name)
        if errors:
            raise errors[0] if len(errors) == 1 and errors[0].args else errors.pop()
        real()

    part.check = check
    return calls


FOR_EVER = OSError(24, "for ever")


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize(
    "kind", [OSError, *(pytest.param(own, marks=pytest.mark.slow) for own in (ValueError, RuntimeError, MemoryError))]
)
def test_a_check_that_fails_once_is_repeated_and_the_others_go_on(tmp_path, monkeypatch, name, kind):
    monkeypatch.setattr("dpoutlier.server.watch.INTERVAL", 0.02)

    async def all_of_it():
        async with living(tmp_path) as app:
            assert {part.name for part in app.state.worker.watch.checks} == set(PARTS)
            broken = next(part for part in app.state.worker.watch.checks if part.name == name)
            others = [part for part in app.state.worker.watch.checks if part is not broken]
            rest = [counting(part, []) for part in others]
            calls = counting(broken, [kind()])
            seen = []
            for _ in range(400):
                seen.append(await readiness(app))
                if len(calls) > 2 and all(len(own) > 2 for own in rest):
                    break
                await asyncio.sleep(0.005)
            assert len(calls) > 2
            assert all(len(own) > 2 for own in rest)
            assert (503, [f"checking the {name} failed ({kind.__name__})"]) in seen
            await asyncio.sleep(0.05)
            assert await readiness(app) == (200, [])

    asyncio.run(all_of_it())


@pytest.mark.parametrize("name", PARTS)
def test_a_check_that_always_fails_leaves_the_worker_not_ready_and_the_others_go_on(tmp_path, monkeypatch, capfd, name):
    monkeypatch.setattr("dpoutlier.server.watch.INTERVAL", 0.02)

    async def all_of_it():
        async with living(tmp_path) as app:
            broken = next(part for part in app.state.worker.watch.checks if part.name == name)
            rest = [counting(part, []) for part in app.state.worker.watch.checks if part is not broken]
            calls = counting(broken, [FOR_EVER])
            for _ in range(1000):
                await asyncio.sleep(0.01)
                if len(calls) >= 20 and all(len(own) > 5 for own in rest):
                    break
            assert len(calls) >= 20
            assert all(len(own) > 5 for own in rest)
            assert await readiness(app) == (503, [f"checking the {name} failed (OSError)"])

    asyncio.run(all_of_it())
    logged = [line for line in capfd.readouterr().err.splitlines() if "check-failed" in line]
    assert len(logged) in {1, 2}  # once, and once more at the end if there is something left to do


def test_while_a_check_hangs_the_worker_is_not_ready_and_accepts_no_key(tmp_path, monkeypatch):
    """As on a network disk that does not answer."""
    key = create_key(tmp_path / "keys.json", ["a"])
    guard = Guard(str(tmp_path / "keys.json"))
    guard.refresh()
    headers = [(b"authorization", f"Bearer {key}".encode())]
    assert guard.key_of(headers).models == ("a",)
    part = PeriodicCheck("keys", guard.refresh)
    assert part.reason() is None
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + MAX_AGE + 1)
    assert part.reason() == f"the last check of the keys was {MAX_AGE + 1:.0f} seconds ago"
    with pytest.raises(Refusal) as caught:
        guard.key_of(headers)
    assert caught.value.code == "unavailable"
    guard.refresh()
    assert guard.key_of(headers).models == ("a",)


def test_keys_that_could_not_be_read_are_read_at_the_next_check(tmp_path, monkeypatch):
    """Too many files are open at the moment when the file is replaced: until it can be read no key is valid, then it is read."""
    from dpoutlier.server import authentication as module

    file, real = tmp_path / "keys.json", module.read_keys
    old = create_key(file, ["a"])
    guard = Guard(str(file))

    def valid(key):
        with contextlib.suppress(Refusal):
            return guard.key_of([(b"authorization", f"Bearer {key}".encode())]) is not None
        return False

    def full(_):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(module, "read_keys", full)
    guard.refresh()
    assert valid(old)  # nothing has changed, so nothing need be read
    revoke_key(file, old.split("_")[1])
    new = create_key(file, ["a"])
    guard.refresh()
    assert (valid(old), valid(new)) == (False, False)
    monkeypatch.setattr(module, "read_keys", real)
    guard.refresh()
    assert (valid(old), valid(new)) == (False, True)


ENDS = {
    "by an error that is no Exception": "def broken(models): raise SystemExit(0)\nworker.check_models = broken",
    "by itself": "async def broken(self): pass\nwatch.PeriodicCheck.run_forever = broken",
    "by being cancelled": (
        "real = watch.PeriodicCheck.run_forever\n"
        "async def broken(self):\n"
        "    if self.name == 'models': asyncio.current_task().cancel()\n"
        "    await real(self)\n"
        "watch.PeriodicCheck.run_forever = broken"
    ),
    "by a bug in its report": (
        "def broken(self, error): raise KeyError\n"
        "watch.PeriodicCheck._report = broken\n"
        "def broken_check(models): raise OSError\n"
        "worker.check_models = broken_check"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("cause", ENDS)
def test_a_worker_ends_if_one_of_its_tasks_ends(tmp_path, cause):
    """A real server, in which a task ends: the process is gone at once, with an error."""
    fitted(tmp_path, "a.dpo")
    program = f"import asyncio\nfrom dpoutlier.server import watch, worker\n{ENDS[cause]}\n{ServerProcess.program}"
    command = [sys.executable, "-c", program, "serve", str(tmp_path / "a.dpo"), "--open", "--port", "0"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        assert until(lambda: process.poll() is not None, 60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1
    assert '"watch-ended"' in (tmp_path / "log").read_text()


# Relatives -----------------------------------------------------------------------------------------------------------------

LONG_LIVED = {"create_task", "ensure_future", "Thread", "Timer", "ThreadPoolExecutor", "ProcessPoolExecutor"}
LONG_LIVED |= {"run_in_executor", "call_later", "call_soon", "call_at", "add_done_callback", "add_reader", "submit"}
KNOWN = {
    ("watch.py", "run_in_executor"): "awaited by the check that it belongs to",
    ("watch.py", "create_task"): "its end ends the worker",
    ("watch.py", "add_done_callback"): "ends the worker",
    ("app.py", "run_in_executor"): "loads models before the worker is ready; a failure ends it",
    ("threads.py", "ThreadPoolExecutor"): "a thread goes on after any error of its work, which the request gets",
    ("threads.py", "run_in_executor"): "awaited by the request",
    ("protocol.py", "call_later"): "of one connection, and once: refuses or closes it",
}


def test_all_that_lives_longer_than_a_request_is_known():
    """A new task, thread or timer of the server needs an answer to: who notices that it died?"""
    found = set()
    for path in sorted(SERVER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name in LONG_LIVED:
                    found.add((path.name, name))
    assert found == set(KNOWN)


def test_files_are_compared_in_one_place_only():
    """Whoever compares times by themselves overlooks a change of owner or mode."""
    users = {path.name for path in SERVER.glob("*.py") if "st_mtime" in path.read_text(encoding="utf-8")}
    assert users == {"stamps.py"}


@pytest.mark.parametrize("value", ["\ud800", object(), {1: {2}}, float("nan"), b"\xff"])
def test_a_line_of_the_log_never_raises(capfd, value):
    logs.log("odd", value=value, message="text")
    (line,) = capfd.readouterr().err.splitlines()
    assert json.loads(line)["event"] == "odd"


def test_a_log_that_cannot_be_written_never_raises():
    program = (
        "import os; os.dup2(os.open('/dev/full', os.O_WRONLY), 2)\nfrom dpoutlier.server.logs import log; log('x')\n"
    )
    program += "os.close(2); log('y'); print('on')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "on\n"


def test_what_could_not_be_counted_is_counted_later(monkeypatch):
    from dpoutlier.server import metrics

    monkeypatch.delenv(metrics.FOLDER, raising=False)  # a test of a start may have left it
    counted, real = Tally(), metrics.SECONDS.labels
    for _ in range(3):
        counted.answered("/watched", 200, 0.3)
    counted.loaded("watched", well=True)

    def full(*_):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(metrics.SECONDS, "labels", full)
    for _ in range(3):
        with pytest.raises(OSError):
            counted.write()
    monkeypatch.setattr(metrics.SECONDS, "labels", real)
    counted.write()
    shown = metrics.page().decode()
    for line in (
        'dpoutlier_requests_total{route="/watched",status="200"} 3.0',
        'dpoutlier_request_seconds_bucket{le="0.5",route="/watched"} 3.0',
        'dpoutlier_request_seconds_sum{route="/watched"} 0.89',
        'dpoutlier_model_loads_total{model="watched",result="loaded"} 1.0',
    ):
        assert line in shown


def test_no_request_writes_metrics(tmp_path, monkeypatch):
    """Thousands of answers while files cannot be opened: none of them fails for it."""
    app = loaded_app(models=())
    monkeypatch.setattr(Tally, "write", lambda _: pytest.fail("a request wrote metrics"))

    async def ask():
        return {(await called(app, "GET", "/healthz"))[0] for _ in range(2500)}

    assert asyncio.run(ask()) == {200}
    assert len(tally.answers) < 100


@pytest.mark.parametrize("error", [OSError(24, "Too many open files"), MemoryError(), RuntimeError("no thread")])
def test_a_model_that_could_not_be_loaded_is_tried_again(tmp_path, monkeypatch, error):
    from dpoutlier.server import models as module

    fitted(tmp_path, "a.dpo")
    models, real = loaded_app(models=(("a", str(tmp_path / "a.dpo")),)).state.worker.models, LoadedModel.load
    before = models.served["a"].release
    fitted(tmp_path, "a.dpo", 5)

    def failing(*_):
        raise error

    monkeypatch.setattr(LoadedModel, "load", failing)
    assert models.refresh("a", str(tmp_path / "a.dpo")) is error
    assert models.refresh("a", str(tmp_path / "a.dpo")) is None
    monkeypatch.setattr(LoadedModel, "load", real)
    assert models.refresh("a", str(tmp_path / "a.dpo")) is None  # not at every check
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + module.RETRY + 1)
    assert models.refresh("a", str(tmp_path / "a.dpo")) == module.LOADED
    assert models.served["a"].release != before


def test_a_supervisor_that_cannot_start_a_worker_tries_again(monkeypatch, capfd):
    from uvicorn import Config
    from uvicorn.supervisors.multiprocess import Multiprocess

    from dpoutlier.server.supervisor import Supervisor

    def full(_):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("signal.signal", lambda *_: None)
    supervisor = Supervisor(Config("x", workers=2), sockets=[])
    monkeypatch.setattr(Multiprocess, "keep_subprocess_alive", full)
    supervisor.keep_subprocess_alive()
    assert "worker-not-started" in capfd.readouterr().err
