"""A server on loopback beside scoring in as many processes: throughput of 1,000-row requests, and how long one row takes.

python bench/server.py [workers]
"""

import json
import multiprocessing
import os
import socket
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from dpoutlier import DPForest, load
from dpoutlier.detectors.frames import batch_scorer, score_frame
from server_process import make_key, running_server

NAMES = [f"f{j}" for j in range(8)]
SECONDS = 4.0
ARROW = "application/vnd.apache.arrow.stream"


def points(n, seed=1):
    return pa.table(list(np.random.default_rng(seed).normal(0.5, 0.2, (8, n))), NAMES)


def in_process(path, way, queue):
    """Calls a second, and processor seconds for each."""
    detector, table = load(path, n_jobs=1), points(1000)
    scorer = batch_scorer(detector)
    score = {"score_frame": lambda: score_frame(table, scorer), "BatchScorer": lambda: scorer.arrow(table)}[way]
    for _ in range(100):
        score()
    calls, begin, processor = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - begin < SECONDS:
        score()
        calls += 1
    queue.put((calls / (time.perf_counter() - begin), (time.process_time() - processor) / calls))


def asking(port, request, seconds, pause, what, queue):
    """Times of requests over one connection, one after the other."""
    times, wrong = [], 0
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        first, begin = None, time.perf_counter()
        while (start := time.perf_counter()) - begin < seconds:
            connection.sendall(request)
            head, body = answer(connection)
            times.append(time.perf_counter() - start)
            first = body if first is None else first
            wrong += not head.startswith(b"HTTP/1.1 200") or body != first
            if pause:
                time.sleep(pause)
    queue.put((what, times, wrong))


def answer(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(1 << 18)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    pieces, got = [body], len(body)
    while got < length:
        pieces.append(connection.recv(1 << 18))
        got += len(pieces[-1])
    return head, b"".join(pieces)


def together(targets):
    """What processes put into a queue, all started at once."""
    queue = multiprocessing.Queue()
    started = [multiprocessing.Process(target=target, args=(*arguments, queue)) for target, *arguments in targets]
    for one in started:
        one.start()
    found = [queue.get() for _ in started]
    for one in started:
        one.join()
    return found


def request(port, key, kind, body):
    head = f"POST /v1/models/m/score HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n"
    return f"{head}Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def processor(pids):
    ticks = os.sysconf("SC_CLK_TCK")
    return (
        sum(sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13])) for pid in pids)
        / ticks
    )


def main():
    workers = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = points(20_000, 0)
        model = (
            DPForest(1, bounds=dict.fromkeys(NAMES, (0, 1)), n_hint=20_000, target_fpr=0.05)
            .fit(rows)
            .save(folder / "m")
        )
        key = make_key(folder / "keys.json")
        alone = {way: together([(in_process, model, way)] * workers) for way in ("score_frame", "BatchScorer")}
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(points(1000))
        one = json.dumps({"points": points(1).to_pylist()}).encode()
        with running_server(folder, model, "--keys", folder / "keys.json", "--workers", workers) as server:
            many = request(server.port, key, ARROW, sink.getvalue().to_pybytes())
            single = request(server.port, key, "application/json", one)
            together([(asking, server.port, many, 1.0, 0, "many")] * 4 * workers)
            before = processor(server.workers())
            found = together([(asking, server.port, many, SECONDS, 0, "many")] * 4 * workers)
            calls = sum(len(times) for _, times, _ in found)
            each = (processor(server.workers()) - before) / calls
            quiet = together([(asking, server.port, single, SECONDS, 0.002, "one")])
            loaded = together(
                [(asking, server.port, single, SECONDS, 0.002, "one")] * 4
                + [(asking, server.port, many, SECONDS, 0.01, "many")] * 4
            )
            wrong = sum(one[2] for one in (*found, *quiet, *loaded))
    print(
        f"{workers} workers, forest, 8 features, 1,000 rows in Arrow: {calls / SECONDS:.0f} requests a second, {wrong} wrong"
    )
    for way, results in alone.items():
        rate, cost = sum(one[0] for one in results), np.mean([one[1] for one in results])
        print(
            f"  {way} in {workers} processes: {rate:.0f} a second; the server has {100 * calls / SECONDS / rate:.0f} % of it, "
            f"{100 * cost / each:.0f} % by processor time ({1e6 * cost:.0f} and {1e6 * each:.0f} microseconds)"
        )
    for what, results in (("alone", quiet), ("beside 1,000-row requests", loaded)):
        times = 1000 * np.concatenate([times for kind, times, _ in results if kind == "one"])
        print(f"  one row in JSON, {what}: median {np.median(times):.2f} ms, p99 {np.quantile(times, 0.99):.2f} ms")


if __name__ == "__main__":
    main()
