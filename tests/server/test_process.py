"""A real server on loopback: what it bounds, what it logs, how it reloads, loses workers, and stops."""

import contextlib
import gzip
import json
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import urllib3

from dpoutlier import load
from dpoutlier.counts.constant_time import ConstantTimeCounts
from dpoutlier.model.release_id import release_id
from dpoutlier.server.audit_log import verify
from dpoutlier.server.models import LoadedModel
from dpoutlier.server.settings import Settings
from server_process import ServerProcess, fitted, kill, make_key, running_server

JSON = {"Content-Type": "application/json"}
ONE = b'{"points":[{"x":0.25,"y":0.5}]}'
POINT = np.array([[0.25, 0.5]])
MAX_BYTES = 4 << 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    fitted(folder, "a.dpo", target_fpr=0.1)
    fitted(folder, "b.dpo", 1)
    return folder


@pytest.fixture(scope="module")
def key(folder):
    return make_key(folder / "keys.json", "*", "--metrics")


@pytest.fixture(scope="module")
def server(folder, key):
    arguments = [folder / "a.dpo", folder / "b.dpo", "--keys", folder / "keys.json", "--audit", folder / "audit.jsonl"]
    arguments += [
        "--workers",
        2,
        "--max-bytes",
        MAX_BYTES,
        "--body-seconds",
        1,
        "--header-seconds",
        1,
        "--connections",
        60,
    ]
    with running_server(folder, *arguments) as server:
        yield server
    text = server.log_text()
    assert "Traceback" not in text
    assert "failed" not in {one["event"] for one in server.log()}


def most_resident(pid):
    """The most memory that a process ever had, in bytes."""
    return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[1])


def raw(server, *pieces, wait=0.0, seconds=8):
    """What comes back for bytes on a connection, until it is closed."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=seconds) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(wait)
        except OSError:
            pass  # the server has closed it
        found = b""
        try:
            while piece := connection.recv(65536):
                found += piece
        except OSError:
            pass
        return found


def test_workers_give_the_same_scores(server, key):
    seen = {server.request("POST", "/v1/models/a/score", key=key, headers=JSON, body=ONE).data for _ in range(20)}
    assert len(seen) == 1
    assert len(server.workers()) == 2


def test_no_value_is_logged(server, key, folder):
    mark = "zqsentinelqz"
    number = "31415926.53589793"
    bodies = {
        "application/json": [
            f'{{"points":[{{"x":"{mark}","y":{number}}}]}}',
            f'{{"points":[{{"{mark}":1,"y":{number}}}]}}',
            f'{{"{mark}":1}}',
            f'{{"points":[[{number},"{mark}"]]}}',
            f'{{"points":[{{"x":{number},"y":2,"{mark}":"{mark}"}}]}}',
        ],
        "text/csv": [f"x,y,{mark}\n{number},2,{mark}\n", f"{mark},y\n{number},2\n", f"x,y\n{mark},{number}\n"],
        "application/vnd.apache.arrow.stream": [mark],
        mark: [mark],
    }
    statuses = set()
    for kind, each in bodies.items():
        for body in each:
            for route in ("score", "explain"):
                answer = server.request(
                    "POST",
                    f"/v1/models/a/{route}",
                    key=key,
                    headers={"Content-Type": kind, "X-Request-Id": mark, "User-Agent": mark, "Cookie": mark},
                    body=body,
                )
                statuses.add(answer.status)
    for path in (
        f"/v1/models/{mark}",
        f"/{mark}?{mark}={mark}",
        f"/v1/models/a/score?{mark}={number}",
        f"/static/{mark}",
    ):
        statuses.add(server.request("GET", path, key=key).status)
        statuses.add(server.request("POST", path, key=key, headers=JSON, body=ONE).status)
    statuses.add(server.request("GET", "/v1/models", key=f"dpo_{mark}_{mark}").status)
    raw(server, f"GET /{mark} HTTP/1.1\r\n{mark}\r\n\r\n".encode())
    raw(server, f"{mark}\r\n\r\n".encode())
    raw(server, f"GET /é{mark} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert statuses == {200, 400, 401, 404, 405, 415}
    time.sleep(1.2)
    shown = server.request("GET", "/metrics", key=key).data.decode()
    everything = server.log_text() + (folder / "audit.jsonl").read_text() + shown
    assert "/v1/models/{model}/score" in everything
    for planted in (mark, "31415926", "535897"):
        assert planted not in everything
    assert key.split("_", 2)[2] not in everything


def test_metrics(server, key):
    server.request("POST", "/v1/models/a/score", key=key, headers=JSON, body=b'{"points":[[0.1,0.1],[0.2,0.2]]}')
    time.sleep(1.2)
    shown = server.request("GET", "/metrics", key=key).data.decode()
    for part in (
        'dpoutlier_requests_total{route="/v1/models/{model}/score",status="200"}',
        'dpoutlier_rows_scored_total{model="a"}',
        'dpoutlier_model_loads_total{model="a",result="loaded"} 2.0',
        "dpoutlier_request_seconds_bucket",
        "dpoutlier_in_flight",
    ):
        assert part in shown


def test_slow_and_large_heads_are_refused(server):
    begin = time.monotonic()
    assert b" 408 " in raw(server, b"GET / HTTP/1.1\r\nHost: x\r\n", b"X-A: 1\r\n", wait=0.6)
    assert b" 408 " in raw(server)  # says nothing at all
    assert time.monotonic() - begin < 6
    for head in (b"X-A: " + b"a" * 100_000, b"".join(b"X-%d: 1\r\n" % i for i in range(200)) + b"\r\n\r\n"):
        assert b" 431 " in raw(server, b"GET / HTTP/1.1\r\nHost: x\r\n" + head)
    assert b" 431 " in raw(server, b"GET /" + b"a" * 50_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b" 400 " in raw(server, b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n")
    first = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"  # and the second on a connection is answered as well
    for second, status in (
        (b"Host: a\r\nHost: b", b" 400 "),
        (b"X-A: 1\r\n" * 200, b" 431 "),
        (b"X-A: 1\r\n", b" 408 "),
    ):
        end = b"" if status == b" 408 " else b"\r\n\r\n"
        answers = raw(server, first, b"GET / HTTP/1.1\r\n" + second + end, wait=0.2)
        assert b" 200 " in answers
        assert status in answers
    answer = raw(server, b"rubbish\r\n\r\n")
    assert b" 400 " in answer
    assert b'"malformed-request"' in answer
    assert b"x-content-type-options: nosniff" in answer


@pytest.mark.slow
def test_trailers_are_not_headers_and_are_bounded(server, key):
    head = b"POST /v1/models/a/score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    secret, body = b"Authorization: Bearer %s\r\n" % key.encode(), b"%x\r\n%s\r\n0\r\n" % (len(ONE), ONE)
    close = b"Connection: close\r\n"
    # Sent at once the request is whole before it is worked on, and in pieces it is not.
    assert b" 401 " in raw(server, head + close + b"\r\n" + body + secret + b"\r\n")
    assert b" 401 " in raw(server, head + close + b"\r\n", body + secret + b"\r\n", wait=0.2)
    assert b" 200 " in raw(server, head + secret + close + b"\r\n" + body + b"X-Sum: 1\r\n\r\n")
    assert b" 431 " in raw(server, head + secret + b"\r\n" + body + b"a: b\r\n" * 200 + b"\r\n")
    assert b" 431 " in raw(server, head + secret + b"\r\n", body, b"a: " + b"b" * 40_000 + b"\r\n\r\n", wait=0.2)
    assert b" 431 " in raw(server, head + secret + b"\r\n", body + b"a: ", *[b"b" * 8_000] * 9, wait=0.05)  # never ends
    begin = time.monotonic()
    assert b" 408 " in raw(server, head + secret + b"\r\n", body, *[b"a: b\r\n"] * 5, wait=0.4)
    assert raw(server, head + b"\r\n", body, *[b"a: b\r\n"] * 5, wait=0.4).count(b" 401 ") == 1  # answered, then closed
    assert time.monotonic() - begin < 8
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
        sent = 0
        connection.sendall(head + b"\r\n0\r\n")
        with contextlib.suppress(OSError):
            for _ in range(2_000):
                sent += connection.send(b"a: b\r\n" * 2_000)
    assert sent < 16 << 20  # what lies in the buffers of the system
    whole = raw(
        server, head + secret + close + b"\r\n" + b"".join(b"1\r\n%c\r\n" % byte for byte in ONE) + b"0\r\n\r\n"
    )
    assert b" 200 " in whole


@pytest.mark.slow
def test_slow_bodies_are_refused(server, key):
    head = f"POST /v1/models/a/score HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
    slow = (head + "Content-Length: 100\r\n\r\n").encode()
    begin = time.monotonic()
    answer = raw(server, slow, *[b" "] * 4, wait=0.4)
    assert b" 408 " in answer
    assert b"connection: close" in answer
    assert time.monotonic() - begin < 4
    chunked = (head + "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n").encode()
    whole = b"%x\r\n%s\r\n0\r\n\r\n" % (len(ONE), ONE)
    assert b" 200 " in raw(server, chunked + whole)
    endless = b"%x\r\n%s\r\n" % (1 << 20, b" " * (1 << 20))
    assert b" 413 " in raw(server, chunked, *[endless] * 6)
    # A body that is too large need not come.
    declared = (head + f"Content-Length: {MAX_BYTES + 1}\r\n\r\n").encode()
    assert b" 413 " in raw(server, declared)
    large = server.request("POST", "/v1/models/a/score", key=key, headers=JSON, body=b" " * (2 * MAX_BYTES))
    assert large.status == 413  # and not a connection that breaks
    waiting = (head + "Content-Length: 31\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n").encode()
    answer = raw(server, waiting, ONE, wait=0.2)
    assert b" 100 " in answer
    assert b" 200 " in answer


@pytest.mark.slow
def test_bombs_are_refused_in_bounded_memory(server, key):
    import pyarrow as pa

    bomb = gzip.compress(b" " * (1 << 28), 9)
    wide = pa.table({"x": np.zeros(1000), "y": np.zeros(1000), "z": ["a" * 100_000] * 1000})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, wide.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(wide)
    burst = sink.getvalue().to_pybytes()
    assert len(burst) < MAX_BYTES
    before = max(most_resident(pid) for pid in server.workers())

    def many(kind, headers, body, wanted):
        """One alone is refused for what it is; of many at once some may be too slow, too many, or cut off."""
        found = []

        def one():
            try:
                found.append(
                    server.request(
                        "POST", "/v1/models/a/score", key=key, headers={"Content-Type": kind, **headers}, body=body
                    ).status
                )
            except urllib3.exceptions.HTTPError:  # closed while the body was still being sent
                found.append(None)

        one()
        assert found == [wanted]
        threads = [threading.Thread(target=one) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(found) <= {wanted, 408, 503, None}

    many("application/json", {"Content-Encoding": "gzip"}, bomb, 413)
    many("application/vnd.apache.arrow.stream", {}, burst, 413)
    many("application/json", {}, b"[" * MAX_BYTES, 413)
    many("text/csv", {}, b"x,y\n" + b"," * (MAX_BYTES - 10), 400)
    after = max(most_resident(pid) for pid in server.workers())
    assert after - before < 150 << 20
    assert server.request("POST", "/v1/models/a/score", key=key, headers=JSON, body=ONE).status == 200


@pytest.mark.slow
def test_too_many_connections(server):
    held, refused = [], 0
    try:
        for _ in range(200):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=5)
            held.append(connection)
        time.sleep(0.3)
        for connection in held:
            connection.setblocking(False)
            with contextlib.suppress(OSError):
                refused += b" 503 " in connection.recv(4096)
    finally:
        for connection in held:
            connection.close()
    assert 80 - 10 <= refused <= 200
    time.sleep(0.3)
    assert server.request("GET", "/healthz").status == 200


@pytest.mark.slow
def test_a_revoked_key_is_out_within_two_seconds(server, folder):
    spare = make_key(folder / "keys.json", "a")
    until = time.monotonic() + 2
    while server.request("GET", "/v1/models", key=spare).status != 200:
        assert time.monotonic() < until
        time.sleep(0.05)
    from dpoutlier.server.keys import revoke_key

    revoke_key(folder / "keys.json", spare.split("_")[1])
    time.sleep(2)
    assert {server.request("GET", "/v1/models", key=spare).status for _ in range(10)} == {401}


class Load:
    """Threads that ask without pause, and their answers."""

    def __init__(self, server, key, model="b", n=4):
        self.server, self.key, self.model = server, key, model
        self.answers, self.failures, self.going = [], [], True
        self.threads = [threading.Thread(target=self._ask) for _ in range(n)]

    def _ask(self):
        while self.going:
            try:
                answer = self.server.request(
                    "POST", f"/v1/models/{self.model}/score", key=self.key, headers=JSON, body=ONE, timeout=10
                )
                self.answers.append((answer.status, answer.data))
            except urllib3.exceptions.HTTPError as error:
                self.failures.append(error)
                time.sleep(0.02)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.going = False
        for thread in self.threads:
            thread.join()


@pytest.mark.slow
def test_a_replaced_model_is_loaded_and_no_request_fails(server, key, folder):
    old = server.request("POST", "/v1/models/b/score", key=key, headers=JSON, body=ONE)
    other = fitted(folder, "other.dpo", 7)
    with Load(server, key) as load:
        time.sleep(0.3)
        other.replace(folder / "b.dpo")
        time.sleep(2.5)
    new = {server.request("POST", "/v1/models/b/score", key=key, headers=JSON, body=ONE).data for _ in range(10)}
    assert not load.failures
    assert {status for status, _ in load.answers} == {200}
    assert {answer for _, answer in load.answers} == {old.data, *new}
    assert len(new) == 1
    assert json.loads(old.data)["release"] != json.loads(next(iter(new)))["release"]
    # A file that cannot be loaded: the model before it goes on, and metrics tell.
    (folder / "broken").write_bytes(b"no model")
    (folder / "broken").replace(folder / "b.dpo")
    time.sleep(2)
    assert server.request("POST", "/v1/models/b/score", key=key, headers=JSON, body=ONE).data in new
    assert server.request("GET", "/readyz").status == 200
    shown = server.request("GET", "/metrics", key=key).data.decode()
    assert 'dpoutlier_model_current{model="b"} 0.0' in shown
    assert 'dpoutlier_model_loads_total{model="b",result="failed"} 2.0' in shown
    fitted(folder, "b.dpo", 1)


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_no_answer_is_wrong(server, key, folder):
    time.sleep(1)
    right = server.request("POST", "/v1/models/a/score", key=key, headers=JSON, body=ONE).data
    before = server.workers()
    with Load(server, key, "a") as load:
        time.sleep(0.5)
        kill(before[0])
        time.sleep(1.5)
        until = time.monotonic() + 30
        while len(server.workers()) < 2 and time.monotonic() < until:
            time.sleep(0.1)
    assert len(server.workers()) == 2
    assert before[0] not in server.workers()
    died = [(one["worker"], one["exit_code"]) for one in server.log() if one["event"] == "worker-died"]
    assert died == [(before[0], -signal.SIGKILL)]
    assert len(load.answers) > 200
    assert set(load.answers) == {(200, right)}
    assert len(load.failures) < 50  # those that were under way
    assert verify(folder / "audit.jsonl").entries > len(load.answers)


@pytest.mark.slow
def test_gauges_of_workers_that_a_signal_replaced_go(folder, tmp_path):
    with running_server(tmp_path, folder / "a.dpo", "--open", "--workers", 2) as server:
        time.sleep(1)
        before = server.workers()
        environment = Path(f"/proc/{before[0]}/environ").read_bytes().decode().split("\0")
        (gauges,) = (Path(one.partition("=")[2]) for one in environment if one.startswith("PROMETHEUS_MULTIPROC_DIR="))
        names = [f"gauge_live*_{pid}.db" for pid in before]
        assert all([*gauges.glob(name)] for name in names)
        server.process.send_signal(signal.SIGHUP)
        until = time.monotonic() + 30
        while any([*gauges.glob(name)] for name in names) and time.monotonic() < until:
            time.sleep(0.1)
        assert not any([*gauges.glob(name)] for name in names)
        assert not set(before) & set(server.workers())


@pytest.mark.slow
def test_a_stop_finishes_what_is_under_way(folder, tmp_path):
    server = ServerProcess(
        tmp_path, folder / "a.dpo", "--open", "--workers", 2, "--audit", tmp_path / "audit.jsonl"
    ).start()
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        head = b"POST /v1/models/a/score HTTP/1.1\r\nHost: [::1]\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        connection.sendall(head % len(ONE) + ONE[:10])
        time.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.7)
        connection.sendall(ONE[10:])
        answer = connection.recv(65536)
    assert b" 200 " in answer
    assert server.stop() == 0
    events = [json.loads(line)["event"] for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert events == ["start", "query", "stop"]
    assert verify(tmp_path / "audit.jsonl").entries == 3


@pytest.mark.slow
def test_a_killed_server_leaves_no_workers_and_starts_again(folder, tmp_path):
    arguments = [folder / "a.dpo", "--open", "--workers", 2, "--audit", tmp_path / "audit.jsonl"]
    server = ServerProcess(tmp_path, *arguments).start()
    right = server.request("POST", "/v1/models/a/score", headers=JSON, body=ONE).data
    workers = server.children()
    server.process.kill()
    server.process.wait()
    until = time.monotonic() + 10
    while any(Path(f"/proc/{pid}/stat").exists() for pid in workers) and time.monotonic() < until:
        time.sleep(0.1)
    left = [pid for pid in workers if Path(f"/proc/{pid}/stat").exists()]
    for pid in left:
        kill(pid)
    assert not left
    with (tmp_path / "audit.jsonl").open("ab") as log:
        log.write(b'{"seq":')  # as a crash of the machine might leave it
    with running_server(tmp_path, *arguments) as again:
        assert again.request("POST", "/v1/models/a/score", headers=JSON, body=ONE).data == right
    found = verify(tmp_path / "audit.jsonl")
    assert found.repairs == 1


@pytest.mark.slow
def test_one_worker_over_tls(folder, tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate with")
    cert, private = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=127.0.0.1",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            private,
            "-out",
            cert,
        ],
        check=True,
        capture_output=True,
    )
    with running_server(
        tmp_path, folder / "a.dpo", "--open", "--tls-cert", cert, "--tls-key", private, ca=cert
    ) as server:
        assert server.url.startswith("https://")
        answer = server.request("POST", "/v1/models/a/score", headers=JSON, body=ONE)
        assert answer.status == 200
        assert "server" not in answer.headers
    assert server.process.returncode == 0


@pytest.mark.slow
def test_a_keyed_model_answers_with_counts_that_take_the_same_time(tmp_path):
    keyed = fitted(tmp_path, "k.secret.dpo", detector="DPGridKNN", counts="keyed")
    served = LoadedModel.load("k", str(keyed), Settings((("k", str(keyed)),), secret_models=True))
    assert type(served.model.counts) is ConstantTimeCounts
    assert type(served.scorer().detector.model_.counts) is ConstantTimeCounts
    assert type(served.detector.model_.counts) is ConstantTimeCounts
    assert served.release == release_id(load(keyed, secret=True).model_)


@pytest.mark.slow
def test_a_keyed_model_is_served_if_that_is_meant(tmp_path):
    keyed = fitted(tmp_path, "k.secret.dpo", detector="DPGridKNN", counts="keyed")
    with running_server(tmp_path, keyed, "--open", "--secret-models") as server:
        answer = json.loads(server.request("GET", "/v1/models").data)
        assert [(one["id"], one["publishable"]) for one in answer["models"]] == [("k", False)]
        answer = server.request("POST", "/v1/models/k/score", headers=JSON, body=ONE)
        assert json.loads(answer.data)["outlier_score"] == load(keyed, secret=True).outlier_scores(POINT).tolist()
        assert b"process_" not in server.request("GET", "/metrics").data  # memory follows the number of occupied cells
