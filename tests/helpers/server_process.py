"""Real ``dpoutlier serve`` processes on a free loopback port, for tests."""

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import urllib3

import dpoutlier

START_SECONDS = 120
PROGRAM = "from dpoutlier.cli.app import main; main()"


class ServerProcess:
    """A server with its log. ``url`` is where it listens; ``request`` asks it."""

    def __init__(self, folder, *arguments, environment=None, ca=None, wrapped=None, most_files=None):
        """``wrapped`` makes another command line of that of the server; ``most_files`` is how many it may have open."""
        self.wrapped = wrapped or (lambda command: command)
        self.most_files = most_files
        self.folder, self.arguments = Path(folder), [str(one) for one in arguments]
        self.log_file = self.folder / f"server-{time.monotonic_ns()}.log"
        self.environment = {**os.environ, **(environment or {})}
        self.port = None
        self.process = None
        self.pool = urllib3.PoolManager(maxsize=8, retries=False, ca_certs=None if ca is None else str(ca))

    program = PROGRAM

    def start(self, *, port=0, ask=True):
        with self.log_file.open("ab") as log:
            command = [sys.executable, "-c", self.program, "serve", *self.arguments, "--port", str(port)]
            self.process = subprocess.Popen(
                self.wrapped(command),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=self.environment,
                start_new_session=True,
            )
        if self.most_files is not None:
            resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, (self.most_files, self.most_files))
        try:
            self.wait_until_ready(ask=ask)
        except BaseException:
            self.stop()
            raise
        return self

    def wait_until_ready(self, *, ask=True):
        """Until /readyz says so, if it may be asked, and all workers are there."""
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}: {self.log_text()}")
            listening = next((one for one in reversed(self.log()) if one["event"] == "listening"), None)
            if listening is not None:
                self.port, self.scheme = listening["port"], listening["scheme"]
                try:
                    ready = not ask or self.request("GET", "/readyz", timeout=2).status == 200
                    if ready and len(self.workers()) >= listening["workers"]:
                        return
                except urllib3.exceptions.HTTPError:
                    pass
            time.sleep(0.05)
        raise RuntimeError(f"the server was not ready in time: {self.log_text()}")

    @property
    def url(self):
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def request(self, method, path, *, key=None, headers=None, body=None, timeout=30, **named):
        """An answer of urllib3, with .status, .headers and .data."""
        headers = dict(headers or {})
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        return self.pool.request(method, self.url + path, headers=headers, body=body, timeout=timeout, **named)

    def log_text(self):
        return self.log_file.read_text("utf-8", "replace")

    def log(self):
        """The lines of the log that are whole."""
        found = []
        for line in self.log_text().splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
        return [one for one in found if isinstance(one, dict) and "event" in one]

    def workers(self):
        """Process ids of those that answer: children that are ready, or the process itself."""
        there = {*self.children(), self.process.pid}
        return sorted({one["pid"] for one in self.log() if one["event"] == "ready"} & there)

    def children(self):
        """Process ids of all children that are there."""
        found = []
        for status in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = status.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z" and int(fields[1]) == self.process.pid:
                found.append(int(status.parent.name))
        return found

    def stop(self, *, seconds=40):
        """As a service manager stops it; the exit code."""
        if self.process is None:
            return None
        children = self.children() if self.process.poll() is None else []
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            for pid in children:
                kill(pid)
            self.process.wait(10)
            raise
        finally:
            self.pool.clear()


def until(true, seconds=10, step=0.1):
    """Wait until something holds; whether it did in time."""
    end = time.monotonic() + seconds
    while not (found := true()) and time.monotonic() < end:
        time.sleep(step)
    return bool(found)


def kill(pid, number=signal.SIGKILL):
    """End a process, if it is still there."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


@contextmanager
def running_server(folder, *arguments, **named):
    """A server that is ready, and stopped in the end. Arguments as on the command line, without --port."""
    server = ServerProcess(folder, *arguments, **named).start()
    try:
        yield server
    finally:
        server.stop()


def make_key(file, models="*", *more):
    """A new key in a file, made by the command line."""
    command = [sys.executable, "-c", PROGRAM, "keys", "create", str(file), "--models", models, *map(str, more)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def call(app, method, path, **named):
    """One request to an application in this process: (status, headers, body)."""
    return asyncio.run(called(app, method, path, **named))


async def called(app, method, path, *, headers=None, body=b"", query=""):
    """The same for tests that have a loop."""
    sent = []
    pieces, whole = [body] if isinstance(body, bytes) else list(body), []

    async def receive():
        if whole:
            await asyncio.get_running_loop().create_future()  # the client stays, and sends nothing more
        piece = pieces.pop(0) if pieces else b""
        whole.extend([] if pieces else [True])
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()],
    }
    await app(scope, receive, send)
    names = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], names, b"".join(message.get("body", b"") for message in sent[1:])


def loaded_app(**settings):
    """An application in this process, with its models loaded."""
    from dpoutlier.server.app import create_app
    from dpoutlier.server.settings import Settings

    app = create_app(Settings(**settings))
    app.state.worker.models.load_all()
    app.state.worker.started = True
    return app


def fitted(folder, name, seed=0, detector="DPMarginals", **more):
    """The file of a model of 300 rows of two features, x and y."""
    rows = np.random.default_rng(seed).uniform(0, 1, (300, 2))
    bounds = {"x": (0, 1), "y": (0, 1)}
    table = pa.table({"x": rows[:, 0], "y": rows[:, 1]})
    return (
        getattr(dpoutlier, detector)(1, features=bounds, bins=4, **more).fit(table).save(folder / name, overwrite=True)
    )
