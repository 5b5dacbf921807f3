"""A server of four workers on this machine: right answers under load and under fire, its pace beside scoring here, its latency.

Alone: ``python bench/server.py [--quick]``. Every score is compared with that of the model here; a difference is an error.
"""

import argparse
import csv
import http.client
import io
import json
import multiprocessing
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))  # server_process

import numpy as np
import pyarrow as pa
import pyarrow.csv

WORKERS, CALLERS = 4, 2
SIZES = (1, 10, 100, 1000)
TYPES = {"json": "application/json", "csv": "text/csv", "arrow": "application/vnd.apache.arrow.stream"}
SPAWN = multiprocessing.get_context("spawn")
FEATURES = 10
NAMES = [f"f{j}" for j in range(FEATURES)]


# Models and questions -----------------------------------------------------------------------------------------------------


def made_models(folder):
    """Model files of three kinds, by their ids."""
    from dpoutlier import DPForest, DPGridKNN, DPMarginals

    rng = np.random.default_rng(0)
    rows = pa.table({name: rng.beta(2, 5, 20_000) for name in NAMES})
    bounds = dict.fromkeys(NAMES, (0, 1))
    few = NAMES[:3]
    made = {
        "forest": DPForest(1, features=bounds, n_rows_hint=20_000, target_fpr=0.05).fit(rows),
        "grid": DPGridKNN(1, features=dict.fromkeys(few, (0, 1)), n_rows_hint=20_000, bins=8, k=20).fit(
            rows.select(few)
        ),
        "marginals": DPMarginals(1, features=bounds, target_fpr=0.05).fit(rows),
    }
    return {name: detector.save(folder / name, overwrite=True) for name, detector in made.items()}


def points(model, n, seed):
    rng = np.random.default_rng(seed)
    return pa.table({name: rng.uniform(-0.1, 1.1, n) for name in (NAMES[:3] if model == "grid" else NAMES)})


def body_of(kind, table):
    if kind == "json":
        return json.dumps({"points": table.to_pylist()}).encode()
    if kind == "csv":
        sink = pa.BufferOutputStream()
        pa.csv.write_csv(table, sink)
        return sink.getvalue().to_pybytes()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()


class Case(NamedTuple):
    """A question, and its right answer."""

    model: str
    kind: str
    body: bytes
    scores: list
    outside: list
    predictions: list | None

    def agrees(self, answer):
        """Whether an answer is the right one, to the bit."""
        if self.kind == "json":
            content = json.loads(answer)
            found = content["outlier_score"], content["outside_bounds"], content["prediction"]
        elif self.kind == "csv":
            rows = list(csv.DictReader(io.StringIO(answer.decode())))
            more = [int(row["prediction"]) for row in rows] if "prediction" in rows[0] else None
            found = (
                [float(row["outlier_score"]) for row in rows],
                [row["outside_bounds"] == "true" for row in rows],
                more,
            )
        else:
            table = pa.ipc.open_stream(answer).read_all().to_pydict()
            found = table["outlier_score"], table["outside_bounds"], table.get("prediction")
        return found == (self.scores, self.outside, self.predictions)


def cases_of(paths, sizes=SIZES, variants=3):
    """Questions of all models, kinds of bodies and sizes."""
    from dpoutlier import load

    found = []
    for name, path in paths.items():
        detector = load(path)
        for n in sizes:
            for variant in range(variants):
                table = points(name, n, 1000 * n + variant)
                scored = detector.score_frame(table).to_pydict()
                right = scored["outlier_score"], scored["outside_bounds"], scored.get("prediction")
                found += [Case(name, kind, body_of(kind, table), *right) for kind in TYPES]
    return found


@contextmanager
def served(folder, paths, *more, workers=WORKERS, port=0):
    """A server with a key for all models."""
    from server_process import ServerProcess, make_key

    keys = folder / "keys.json"
    key = make_key(keys) if not keys.exists() else (folder / "key.txt").read_text()
    (folder / "key.txt").write_text(key)
    server = ServerProcess(folder, *paths.values(), "--keys", keys, "--workers", workers, *more).start(port=port)
    server.key = key
    try:
        until = time.monotonic() + 60
        while len(server.workers()) < workers and time.monotonic() < until:
            time.sleep(0.05)
        yield server
    finally:
        server.stop()


def in_processes(function, arguments):
    """What a function gives for each of the arguments, each in a process of its own."""
    with SPAWN.Pool(len(arguments)) as pool:
        return pool.starmap(function, arguments, chunksize=1)


def connect(port):
    return http.client.HTTPConnection("127.0.0.1", port, timeout=60)


def sent(connection, key, model, kind, body):
    """The status and the body of the answer to one request for scores."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": TYPES[kind]}
    connection.request("POST", f"/v1/models/{model}/score", body, headers)
    response = connection.getresponse()
    return response.status, response.read()


def sent_well(*arguments):
    status, _ = sent(*arguments)
    if status != 200:
        raise AssertionError(f"status {status}")


# Right answers ------------------------------------------------------------------------------------------------------------


def asked(port, key, cases, n, seed):
    """Counts of n questions in a random order on one connection: right, wrong, and what else happened."""
    chance, found, connection = random.Random(seed), Counter(), connect(port)
    for _ in range(n):
        case = chance.choice(cases)
        try:
            status, content = sent(connection, key, case.model, case.kind, case.body)
        except (OSError, http.client.HTTPException) as error:
            found[type(error).__name__] += 1
            connection.close()
            continue
        if status != 200:
            found[f"status {status}"] += 1
        else:
            found["right" if case.agrees(content) else "wrong"] += 1
    return found


def mixed(server, cases, n, callers=CALLERS):
    """Counts of n questions from several processes, and the seconds that they took."""
    start = time.perf_counter()
    arguments = [(server.port, server.key, cases, n // callers, seed) for seed in range(callers)]
    return sum(in_processes(asked, arguments), Counter()), time.perf_counter() - start


# Pace ---------------------------------------------------------------------------------------------------------------------


class Rate(NamedTuple):
    """Requests or calls a second, and what each takes of the processors."""

    per_second: float
    cpu: float
    """Seconds, without those of who asks."""


def scored_here(path, table, pipe, seconds):
    """What this process scores in a fixed time after each signal: as a user does, or only the call for a batch."""
    from dpoutlier import load
    from dpoutlier.detectors.frames import batch_scorer

    detector = load(path, n_jobs=1)
    ways = {"frame": detector.score_frame, "batch": batch_scorer(detector).arrays}
    for way in ways.values():
        way(table)
    pipe.send("ready")
    while way := ways.get(pipe.recv()):
        calls, cpu, start = 0, time.process_time(), time.perf_counter()
        while (taken := time.perf_counter() - start) < seconds:
            way(table)
            calls += 1
        pipe.send((calls / taken, (time.process_time() - cpu) / calls))


class Here:
    """As many processes as the server has workers, that score by themselves."""

    def __init__(self, path, table, seconds, processes=WORKERS):
        self.pipes, self.processes = [], []
        for _ in range(processes):
            here, there = SPAWN.Pipe()
            process = SPAWN.Process(target=scored_here, args=(path, table, there, seconds), daemon=True)
            process.start()
            self.pipes.append(here)
            self.processes.append(process)
        for pipe in self.pipes:
            pipe.recv()

    def rate(self, way):
        """All of them together."""
        for pipe in self.pipes:
            pipe.send(way)
        found = [pipe.recv() for pipe in self.pipes]
        return Rate(sum(rate for rate, _ in found), statistics.mean(cpu for _, cpu in found))

    def stop(self):
        for pipe, process in zip(self.pipes, self.processes, strict=True):
            pipe.send("stop")
            process.join()


def cpu_of(processes):
    """Seconds of the processors that processes have used."""
    used = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13] for pid in processes)
    return sum(int(ticks) for both in used for ticks in both) / os.sysconf("SC_CLK_TCK")


LUA = """
wrk.method = "POST"
local file = io.open("{body}", "rb")
wrk.body = file:read("*a")
file:close()
wrk.headers["Authorization"] = "Bearer {key}"
wrk.headers["Content-Type"] = "{kind}"
"""


def flooded(port, key, model, kind, body, seconds):
    """Answers a second on one connection."""
    connection, calls, start = connect(port), 0, time.perf_counter()
    while (taken := time.perf_counter() - start) < seconds:
        sent_well(connection, key, model, kind, body)
        calls += 1
    return calls / taken


class Flood:
    """Requests as fast as they are answered: by wrk if there is one, else by processes of Python."""

    def __init__(self, server, folder, model, kind, table, connections=2 * WORKERS):
        self.server, self.model, self.kind, self.connections = server, model, kind, connections
        self.body, self.script = body_of(kind, table), folder / f"{model}-{kind}.lua"
        (folder / f"{model}-{kind}.body").write_bytes(self.body)
        values = {"body": folder / f"{model}-{kind}.body", "key": server.key, "kind": TYPES[kind]}
        self.script.write_text(LUA.format(**values))

    @staticmethod
    def name():
        return "wrk" if shutil.which("wrk") else f"{CALLERS} processes of Python"

    def rate(self, seconds):
        """Answers a second. An error response raises."""
        workers = self.server.workers()
        before = cpu_of(workers)
        found = self._rate(seconds)
        return Rate(found, (cpu_of(workers) - before) / (found * seconds))

    def _rate(self, seconds):
        if shutil.which("wrk") is None:
            one = (self.server.port, self.server.key, self.model, self.kind, self.body, seconds)
            return sum(in_processes(flooded, [one] * CALLERS))
        url = f"{self.server.url}/v1/models/{self.model}/score"
        command = ["wrk", "-t1", f"-c{self.connections}", f"-d{seconds}s", "-s", str(self.script), url]
        printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=seconds + 60).stdout
        if "Non-2xx" in printed or "Socket errors" in printed:
            raise AssertionError(printed)
        return float(printed.split("Requests/sec:")[1].split()[0])


def pace(server, folder, paths, seconds, rounds):
    """For each model: requests of 1,000 points here and by the server, for each way and kind of body; medians of all rounds."""
    found = {}
    for model, path in paths.items():
        table = points(model, 1000, 7)
        here = Here(path, table, seconds)
        floods = {kind: Flood(server, folder, model, kind, table) for kind in ("arrow", "csv", "json")}
        rates = {name: [] for name in ("frame", "batch", *floods)}
        for turn in range(rounds):
            for way in ("frame", "arrow", "batch", *(("csv", "json") if turn == 0 else ())):
                rates[way].append(floods[way].rate(seconds) if way in floods else here.rate(way))
        here.stop()
        found[model] = {
            way: Rate(*(statistics.median(values) for values in zip(*each, strict=True))) for way, each in rates.items()
        }
    return found


# Latency ------------------------------------------------------------------------------------------------------------------


def latencies(port, key, model, n):
    """Milliseconds of n requests of one point in JSON, one after the other on one connection."""
    body, connection, taken = body_of("json", points(model, 1, 3)), connect(port), []
    for _ in range(n):
        start = time.perf_counter()
        sent_well(connection, key, model, "json", body)
        taken.append(1000 * (time.perf_counter() - start))
    return taken


def latency(server, folder, n, seconds):
    """(p50, p99) of the forest alone, and under a flood of requests of 1,000 points."""
    alone = latencies(server.port, server.key, "forest", n)
    flood = Flood(server, folder, "forest", "arrow", points("forest", 1000, 7))
    thread = threading.Thread(target=flood.rate, args=(seconds,))
    thread.start()
    time.sleep(0.5)
    loaded, until = [], time.monotonic() + seconds - 1
    while time.monotonic() < until and len(loaded) < n:
        loaded += latencies(server.port, server.key, "forest", 20)
    thread.join()
    return [tuple(np.percentile(found, (50, 99))) for found in (alone, loaded)]


# Under fire ---------------------------------------------------------------------------------------------------------------


def persisted(url, key, model, path, folder, seed):
    """Counts of calls of a client until the file "stop" exists, and the longest that one took."""
    from dpoutlier import Client, load
    from dpoutlier.exceptions import ServerError

    client, local = Client(url, model, key=key, timeout=60), load(path)
    tables = [points(model, n, seed + n) for n in (1, 100, 1000)]
    right = [local.outlier_scores(table) for table in tables]
    found, longest, i = Counter(), 0.0, 0
    (folder / f"asking-{model}").touch()
    while not (folder / "stop").exists():
        start = time.perf_counter()
        try:
            scores = client.outlier_scores(tables[i % 3])
        except ServerError as error:
            found[f"error {error.status}"] += 1
        else:
            found["right" if (scores == right[i % 3]).all() else "wrong"] += 1
        longest, i = max(longest, time.perf_counter() - start), i + 1
    return found, longest


class Fire(NamedTuple):
    """What happened while processes were killed."""

    answers: Counter
    longest: float
    """Seconds that a call took at most."""
    killed: int
    restarts: list
    """Seconds until the server answered again after all of it was killed."""
    entries: int
    """Number of entries of the audit log, whose chain is whole."""


def under_fire(folder, paths, seconds, kills_of_all=1, workers=WORKERS):
    """Clients that keep asking while a worker is killed every second, and in the end the whole server."""
    from dpoutlier.server.audit_log import verify
    from server_process import kill

    audit, chance, killed, restarts, found = folder / "audit.jsonl", random.Random(0), 0, [], []
    with served(folder, paths, "--audit", audit, workers=workers) as server:
        arguments = [
            (server.url, server.key, model, path, folder, seed) for seed, (model, path) in enumerate(paths.items())
        ]
        callers = threading.Thread(target=lambda: found.extend(in_processes(persisted, arguments)))
        callers.start()
        while not all((folder / f"asking-{model}").exists() for model in paths):
            time.sleep(0.05)
        time.sleep(1)
        for _ in range(seconds):
            for pid in chance.sample(there, 1) if (there := server.workers()) else ():
                kill(pid)
                killed += 1
            time.sleep(1)
        for _ in range(kills_of_all):
            restarts.append(restarted(server))
            time.sleep(2)
        (folder / "stop").touch()
        callers.join()
    answers = sum((counts for counts, _ in found), Counter())
    entries = sum(json.loads(line).get("route") is not None for line in audit.read_text().splitlines())
    verify(audit)
    if answers["right"] > entries:
        raise AssertionError(f"{answers['right']} answers, and {entries} of them in the audit log")
    return Fire(answers, max(longest for _, longest in found), killed, restarts, entries)


def restarted(server):
    """Kill all of a server at once, start it again on its port, and wait for an answer: seconds."""
    children, port = server.children(), server.port
    start = time.perf_counter()
    server.process.kill()
    for child in children:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    server.process.wait()
    server.pool.clear()
    server.log_file.unlink()
    server.start(port=port)
    return time.perf_counter() - start


# ----------------------------------------------------------------------------------------------------------------------------


def rows_of(rates, figure, share):
    """A row for each model: the figure of each way, and the share of the server's of that of each way here."""
    rows = []
    for model, rate in rates.items():
        figures = {way: figure(rate[way]) for way in ("frame", "batch", "arrow", "csv", "json")}
        shares = (share(figures[way], figures["arrow"]) for way in ("frame", "batch"))
        rows.append([model, *(f"{value:,.0f}" for value in figures.values()), *(f"{value:.0%}" for value in shares)])
    return rows


def server(report, folder):
    """All of it, as sections of the report."""
    paths = made_models(folder)
    n, seconds, rounds = (2000, 1, 1) if report.quick else (100_000, 3, 5)
    with served(folder, paths) as running:
        counts, taken = mixed(running, cases_of(paths), n)
        rates = pace(running, folder, paths, seconds, rounds)
        alone, loaded = latency(running, folder, 200 if report.quick else 5000, 3 if report.quick else 20)
    wrong = sum(counts.values()) - counts["right"]
    report.target(f"wrong answers of {sum(counts.values()):,} from a server", wrong, 0, at_most=True, unit="")
    for model, rate in rates.items():
        share = 100 * rate["arrow"].per_second / rate["frame"].per_second
        report.target(f"requests of 1,000 points, {model}: server against score_frame here", share, 70, unit="%")
    report.section(
        "A server",
        f"{WORKERS} workers on the same machine as who asks. {sum(counts.values()):,} requests of {', '.join(map(str, SIZES))} "
        f"points in JSON, CSV and Arrow to three models from {CALLERS} processes: {wrong} errors or wrong scores, "
        f"{sum(counts.values()) / taken:,.0f} requests a second. Below: requests of 1,000 points a second, asked by "
        f"{Flood.name()}; score_frame: {WORKERS} processes here that score the same Arrow table; batch: what it calls for each "
        f"batch, and nothing else. Medians of {rounds} rounds.",
        ["model", "score_frame", "batch", "Arrow", "CSV", "JSON", "Arrow / score_frame", "Arrow / batch"],
        rows_of(rates, lambda rate: rate.per_second, lambda own, arrow: arrow / own),
    )
    report.section(
        "What a request of a server costs",
        "The same, in microseconds of the processors for each request, without those of who asks: it is less disturbed by what "
        "else runs on a machine.",
        ["model", "score_frame", "batch", "Arrow", "CSV", "JSON", "score_frame / Arrow", "batch / Arrow"],
        rows_of(rates, lambda rate: 1e6 * rate.cpu, lambda own, arrow: own / arrow),
    )
    report.section(
        "Latency of a server",
        "One point in JSON to the forest, one request after the other on one connection: milliseconds, alone and while others ask "
        "for 1,000 points at a time, as fast as they are answered.",
        ["", "p50", "p99"],
        [["alone", *(f"{ms:.2f}" for ms in alone)], ["under load", *(f"{ms:.2f}" for ms in loaded)]],
    )
    fire = under_fire(folder, paths, 4 if report.quick else 25, 1 if report.quick else 3)
    bad = sum(fire.answers.values()) - fire.answers["right"]
    report.target(
        f"wrong answers or errors of {sum(fire.answers.values()):,} under fire", bad, 0, at_most=True, unit=""
    )
    report.section(
        "A server under fire",
        "Three clients keep asking while a random worker is killed every second, and then the whole server, which is started "
        "again. Each answer is compared; the audit log holds together, and has every answer.",
        ["answers", "wrong or errors", "workers killed", "longest call, s", "back after, s", "in the audit log"],
        [
            [
                f"{sum(fire.answers.values()):,}",
                bad,
                fire.killed,
                f"{fire.longest:.1f}",
                ", ".join(f"{seconds:.1f}" for seconds in fire.restarts),
                f"{fire.entries:,}",
            ]
        ],
    )


if __name__ == "__main__":
    from report import Report

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small run, to see that everything works")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        server(Report(Path(made), quick=options.quick), Path(made))
