"""Each target takes any bytes, does with them what a user would, and returns in a word what became of them.

An error of the library's own is an outcome; any other exception is a finding and passes through.
"""

import asyncio
import atexit
import csv
import io
import json
import math
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import urllib3

from dpoutlier import Category, Client, DPForest, DPMarginals, Ledger
from dpoutlier.cli.files import csv_points as csv_tables
from dpoutlier.cli.model_source import _key as key_of_file
from dpoutlier.cli.points import Points, points_writer
from dpoutlier.client import client as client_module
from dpoutlier.client import connection as connection_module
from dpoutlier.client import served as served_module
from dpoutlier.client import transport as transport_module
from dpoutlier.detectors.fitted import FittedDetector
from dpoutlier.detectors.frames import batch_scorer, feature_columns
from dpoutlier.exceptions import DpoutlierError, ReferenceDataError, SecretError, ServerError
from dpoutlier.features.bounds import Bounds
from dpoutlier.ledger.anchor import Head, heads_in
from dpoutlier.ledger.budgets import Book
from dpoutlier.ledger.export import as_csv, as_json
from dpoutlier.ledger.store import read_entries
from dpoutlier.model.file import load_model, save_model
from dpoutlier.noise.sources import SystemBytes, UnsafeSeededBytes
from dpoutlier.scoring.nearest_cells import NearestCells
from dpoutlier.server import logs
from dpoutlier.server.audit_log import AuditLog, verify
from dpoutlier.server.keys import KeyRing, day, read_keys
from dpoutlier.tables.csv import csv_header, csv_stream
from dpoutlier.tables.files import file_table
from dpoutlier.trusted.reference import UNREADABLE

from .guards import Finding, reading

MEGABYTE = 1 << 20
ROWS, BYTES = 500, 100_000
"""The limits of the server that is asked."""
MAX_WALK, MAX_DEPTH, MAX_SCORED = 200_000, 1000, 200
"""Accepted models with longer walks or more features score no point: that takes as long as they say."""
ARROW = "application/vnd.apache.arrow.stream"
KINDS = ("application/json", "text/csv", ARROW)


@dataclass(frozen=True)
class Target:
    """What is fuzzed, and its limits."""

    run: Callable[[bytes], str]
    seconds: float
    """Processor time for one small input; for each 256 KB as much more."""
    base: int
    per_byte: int
    """An input of n bytes may take ``base + per_byte * n`` bytes of memory."""


@cache
def folder():
    """Where inputs are written to."""
    # A campaign removes its own folder, whatever ends its children.
    shared = Path(os.environ.get("DPOUTLIER_FUZZ_FOLDER", "/dev/shm"))
    made = Path(tempfile.mkdtemp(prefix="dpoutlier-fuzz-", dir=shared if os.access(shared, os.W_OK) else None))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def _written(name, data):
    path = folder() / name
    path.write_bytes(data)
    return path


def _refused(error):
    return f"{type(error).__name__}: {error}"


@cache
def _rows():
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "age": rng.uniform(0, 100, 60),
            "sex": rng.choice(["f", "m"], 60),
            "stage": rng.integers(1, 4, 60),
            "crp": [None if i % 9 == 0 else float(x) for i, x in enumerate(rng.uniform(0, 1, 60))],
        }
    )


def _declared():
    return {
        "features": {"age": (0, 100), "crp": (0, 1)},
        "categories": {"sex": Category(["f", "m"]), "stage": Category([1, 2, 3], ordered=True)},
        "missing": ["crp"],
    }


@cache
def _detectors():
    """One that knows names, with features of all kinds, and one that knows none. Fitted on made-up rows."""
    seeded = UnsafeSeededBytes(1)
    with mock.patch.multiple(SystemBytes, read=lambda _, n: seeded.read(n)):
        named = DPMarginals(1, bins=4, target_fpr=0.1, **_declared()).fit(_rows())
        nameless = DPForest(1, features=(0, 1), n_trees=3, depth=4).fit(np.random.default_rng(0).uniform(size=(60, 2)))
    return [FittedDetector(one.model_, 1) for one in (named, nameless)]


# Model files --------------------------------------------------------------------------------------------------------------


def model_file(data):
    """Load, and what is accepted must score, explain, state and be written again as the same model."""
    path = _written("input.secret.dpo", data)
    try:
        with reading(path):
            model = load_model(path, secret=True)
    except DpoutlierError as error:
        return _refused(error)
    if not model.publishable:
        try:
            load_model(path)
        except SecretError:
            pass
        else:
            raise Finding("a secret model was opened as if it were publishable")
    text = str(model.privacy_statement())
    if not text.isascii() and not all(line.isprintable() for line in text.split("\n")):
        raise Finding("the statement holds what cannot be printed")
    again = save_model(model, folder() / "again", overwrite=True)
    with reading(again):
        second = load_model(again, secret=True)
    if second.privacy_statement() != model.privacy_statement():
        raise Finding("written again, the model states something else")
    scorer, domain = model.scorer, model.domain
    if (isinstance(scorer, NearestCells) and _is_long(scorer)) or domain.n_features > MAX_SCORED:
        return "accepted"
    points, (first, other) = _points_of(domain), (FittedDetector(one, 1) for one in (model, second))
    scores = first.outlier_scores(points)
    if np.isnan(scores).any() or not (scores == other.outlier_scores(points)).all():
        raise Finding("a score is not a number, or it changed after the model was written again")
    explanation = first.explain(points[:2])
    if not np.isfinite(explanation.contributions).all() or not np.isfinite(explanation.typical_score):
        raise Finding("an explanation is not finite")
    explanation.note(0)
    explanation.counterfactual(0)
    return "accepted"


def _is_long(scorer):
    """Whether the model itself asks for walks that take long."""
    deep = scorer.exhausted == "as-printed" and scorer.max_depth is not None and scorer.max_depth > MAX_DEPTH
    return deep or scorer.max_cells > MAX_WALK


def _points_of(domain):
    """The middle, both ends and past them; where there are levels, some of them."""

    def value(j, share):
        category = domain.category(j)
        if category is None:
            return domain.lower[j] + share * (domain.upper[j] - domain.lower[j])
        return category.levels[min(int(abs(share) * len(category.levels)), len(category.levels) - 1)]

    return np.array([[value(j, share) for j in range(domain.n_features)] for share in (0.5, 0, 1, -0.5)], object)


# Features files -----------------------------------------------------------------------------------------------------------


def features_toml(data):
    return _features(_written("features.toml", data))


def features_json(data):
    return _features(_written("features.json", data))


def _features(path):
    try:
        with reading(path):
            bounds = Bounds.from_file(path)
            domain = bounds.domain(len(bounds.names), list(bounds.names))
    except DpoutlierError as error:
        return _refused(error)
    if not all(math.isfinite(low) and low < high for low, high in zip(domain.lower, domain.upper)):
        raise Finding("a range is none")
    return "accepted"


# CSV ----------------------------------------------------------------------------------------------------------------------


def csv_points(data):
    """What ``dpoutlier score`` does, with a model that knows names and with one that does not."""
    path, found = _written("points.csv", data), []
    for detector in _detectors():
        for missing in ("null", "error"):
            try:
                found.append(_scored(path, detector, missing))
            except DpoutlierError as error:
                found.append(_refused(error))
    return "; ".join(found)


def _scored(path, detector, missing):
    scorer, domain, rows = batch_scorer(detector, missing=missing), detector._fitted_domain(), 0
    with reading(path):
        source = Points([path], domain)
        features = feature_columns(list(source.schema.names), scorer, where=str(path))
        schema = pa.schema([*source.schema, *scorer.fields()])
        with points_writer(io.BytesIO(), ".csv", schema, []) as write:
            for batch in source:
                columns = scorer.arrays(batch.table.select(features), batch.first)
                scores = np.asarray(columns[0].drop_null())
                if np.isnan(scores).any() or len(columns[0]) != len(batch.table):
                    raise Finding("a score is not a number, or there is not one for each point")
                table = batch.table
                for field, values in zip(scorer.fields(), columns):
                    table = table.append_column(field, [values])
                write(table)
                rows += len(batch.table)
    return f"{rows} scored"


def csv_reference(data):
    """A fit. What is said of the file may depend on its first line, and on nothing else."""
    path, head = _written("rows.csv", data), _written("head.csv", _first_line(data))
    found = []
    for person in (None, "id"):
        said = [_fitted(one, person) for one in (path, head)]
        if said[0] != said[1] and UNREADABLE not in said[0]:
            raise Finding(f"what is said of the rows depends on them: {said}")
        found.append(said[0])
    return "; ".join(found)


def _first_line(data):
    """The first record, as it stands in the file."""
    lines = []
    path = _written("whole.csv", data)

    def kept(stream):
        for line in stream:
            lines.append(line)
            yield line

    with csv_stream(path, "surrogateescape") as stream:
        next(csv.reader(kept(stream)), None)
    bom = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    return bom + "".join(lines).encode("utf-8", "surrogateescape")


def _fitted(path, person):
    detector = DPMarginals(1, bins=4, person=person, rows_per_person=2 if person else 1, **_declared())
    with warnings.catch_warnings(record=True) as warned, reading(path):
        warnings.simplefilter("always")
        try:
            names = ("age", "sex", "stage", "crp")
            detector.fit(file_table(path, names, person))
            said = "fitted"
        except ReferenceDataError as error:
            said = _refused(error)
            if str(error) != UNREADABLE or error.__context__ is not None:
                raise Finding("the text for rows that cannot be read is not the fixed one") from error
        except DpoutlierError as error:
            said = _refused(error).replace(str(path), "the file")
    return said + "".join(str(one.message) for one in warned)


# The server ---------------------------------------------------------------------------------------------------------------


@cache
def _server():
    from dpoutlier.server.app import create_app
    from dpoutlier.server.settings import Settings

    models = [
        (name, str(save_model(one.model_, folder() / name, overwrite=True))) for name, one in zip("ab", _detectors())
    ]
    app = create_app(Settings(models=tuple(models), max_bytes=BYTES, max_rows=ROWS, explain_rows=5))
    app.state.worker.models.load_all()
    app.state.worker.started = True
    loop = asyncio.new_event_loop()
    atexit.register(loop.close)
    return app, loop


def _asked(app, loop, path, headers, query, body):
    sent, pieces = [], [body]

    async def receive():
        return {"type": "http.request", "body": pieces.pop() if pieces else b"", "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "http_version": "1.1", "method": "POST", "path": path, "raw_path": path.encode()}
    scope |= {"root_path": "", "query_string": query, "headers": headers}
    with mock.patch.multiple(logs, flush=logs._waiting.clear), reading():  # else a line for every input
        loop.run_until_complete(app(scope, receive, send))
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


def server_body(data):
    """The first byte says what the others are sent as: type, gzip, route, model, parameters."""
    app, loop = _server()
    how, body = data[0] if data else 0, data[1:]
    kind, name = how % 4 % 3, "ab"[how >> 4 & 1]
    zipped, explain, nulls = how & 4, how & 8, how & 32
    headers = [(b"host", b"localhost"), (b"content-type", KINDS[kind].encode()), (b"accept", b"application/json")]
    headers += [(b"content-encoding", b"gzip")] * bool(zipped)
    path, query = (
        f"/v1/models/{name}/{'explain' if explain else 'score'}",
        b"missing=null" if nulls and not explain else b"",
    )
    status, answer = _asked(app, loop, path, headers, query, body)
    content = json.loads(answer)
    if app.state.worker.bodies.held:
        raise Finding("the server still counts the body as held")
    if status != 200:
        if not 400 <= status < 500 or len(answer) > 8000:
            raise Finding(f"answered {status}: {answer[:300]!r}")
        return f"{status} {content['error']['code']}"
    if not explain:
        body = _inflated(body) if zipped else body
        _check_scores(content, body, kind, _detectors()["ab".index(name)], nulls=bool(nulls))
    return "200"


def _inflated(body):
    import zlib

    return zlib.decompressobj(wbits=31).decompress(body, BYTES + 1)


def _check_scores(content, body, kind, detector, *, nulls):
    """A right answer: the scores that the library gives for the same points."""
    scores = [math.nan if one is None else one for one in content["outlier_score"]]
    if len(scores) != content["n"] or (not all(map(math.isfinite, scores)) and not nulls):
        raise Finding("the answer has not a score for each point")
    domain = detector._fitted_domain()
    if kind == 0:
        points = json.loads(body)["points"]
        rows = [[p[name] for name in domain.labels] if isinstance(p, dict) else p for p in points]
        table = pa.table([_text([row[j] for row in rows]) for j in range(domain.n_features)], list(domain.labels))
        if any(type(value) in {bool, int, float} for row in rows for value in row):
            return  # numbers and truth values as levels differ by their type: tests/server/test_scores.py
    elif kind == 1:
        path = _written("posted.csv", body)
        found = csv_header(path)
        table = pa.concat_tables(
            [pa.table([[]] * len(found), found).cast(_texts(found)), *(t for t, _ in csv_tables(path, found))]
        )
        table = table if domain.names is None else table.select(list(domain.names))
    else:
        return
    if len(table) != len(scores):
        raise Finding("the answer has not as many scores as there are points")
    if len(table):
        scores_here = batch_scorer(detector, missing="null").arrays(table.rename_columns(list(domain.labels)))[0]
        wanted = np.array(scores_here.fill_null(math.nan))
        if not np.array_equal(wanted, np.array(scores), equal_nan=True):
            raise Finding("the server's scores are not the library's")


def _text(values):
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _texts(names):
    return pa.schema([(name, pa.string()) for name in names])


# The client ---------------------------------------------------------------------------------------------------------------


class _Clock:
    """Time that passes when it is read, and during a sleep."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        self.now += 0.01
        return self.now

    time = monotonic

    def sleep(self, seconds):
        self.now += max(seconds, 0.01)


class _Socket:
    """A connection on which an answer lies already."""

    def __init__(self, answer):
        self.answer = answer

    def makefile(self, *_, **__):
        return io.BufferedReader(io.BytesIO(self.answer))

    def gettimeout(self):
        return 5.0

    def settimeout(self, seconds):
        pass

    sendall = setsockopt = shutdown = settimeout

    def close(self):
        pass


def _answering(answers):
    """A pool of connections that gives these answers, one for each request, and then always the last one."""

    class Answering(transport_module._HTTPConnection):
        def _new_conn(self):
            return _Socket(answers.pop(0) if len(answers) > 1 else answers[0])

    class Pool(transport_module.HTTPPool):
        ConnectionCls = Answering

        def _get_conn(self, timeout=None):  # noqa: ARG002 - as its parent has it
            return self._new_conn()

        def _put_conn(self, conn):
            if conn is not None:
                conn.close()

    return Pool("127.0.0.1", 1)


def _ok(body, kind="application/json"):
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@cache
def _description():
    app, _ = _server()
    return app.state.worker.models.served["a"].detail


def client_answer(data):
    """The first byte says what the client asked for, and whether the others are a whole answer or its body."""
    how, body = data[0] if data else 0, data[1:]
    raw, what = how & 8, how % 8 % 5
    hostile = body if raw else _ok(body, ARROW if what == 2 else "application/json")
    honest = _ok(_description())
    answers = [hostile, honest] if what == 0 else [hostile] if what == 1 else [honest, hostile]
    clock, pool = _Clock(), _answering(answers)
    try:
        with ExitStack() as stack:
            for module in (connection_module, client_module, served_module, transport_module, urllib3.util.retry):
                stack.enter_context(mock.patch.multiple(module, time=clock))
            stack.enter_context(mock.patch.multiple(connection_module.Connection, _opened=lambda _: pool))
            stack.enter_context(warnings.catch_warnings())
            stack.enter_context(reading())
            warnings.simplefilter("error")
            return _used(Client("http://127.0.0.1:1", None if what == 0 else "a", timeout=2, key="dpo_made_up"), what)
    except DpoutlierError as error:
        text = _refused(error)
        if "dpo_made_up" in text or not text.isprintable():
            raise Finding(f"the message shows the key, or what cannot be printed: {text[:200]!r}") from error
        return text


def _used(client, what):
    """What a user does with a client and the answers that it got."""
    repr(client)
    statement = client.privacy_statement()
    statement.to_dict()
    str(statement)
    points = _points_of(client._fitted_domain())[:3]
    if what == 4:
        client.set_threshold(target_fpr=0.2)
        return "threshold"
    if what == 3:
        explanation = client.explain(points)
        for i in range(len(explanation)):
            explanation.ranking(i)
            explanation.note(i)
            explanation.to_table(i)
            str(explanation.counterfactual(i))
        return "explained"
    if what in {0, 1}:
        with suppress(ServerError):
            client.outlier_scores(points)
        return "described"
    scores = client.outlier_scores(points)
    if scores.shape != (3,) or np.isnan(scores).any():
        raise Finding("the client took something for scores")
    return "scored"


# Ledgers, keys, logs ------------------------------------------------------------------------------------------------------


def _anchor_of(path):
    """The file that a ledger names as its anchor."""
    try:
        with reading(path):
            named = Book.of(read_entries(path)).anchor
    except DpoutlierError:
        return []
    return [] if named is None else [Path(named)]


def ledger_file(data):
    """All that is read of a ledger. It may name its anchor, which is asked as well if another is given, and no other file."""
    path = _written("input.ledger", data)
    place = _written("input.anchor", b"")
    found = []
    for anchor in (None, place):
        ledger = Ledger(path, anchor=anchor)
        try:
            with reading(path, place, *_anchor_of(path)):
                entries = ledger.entries()
                balances = ledger.balances()
                ledger.spendings()
                ledger.anchor_changes()
                ledger.verify()
        except DpoutlierError as error:
            found.append(_refused(error))
            continue
        if any(one.left > one.total for one in balances):
            raise Finding("more is left than there was")
        as_csv(entries)
        as_json(entries)
        found.append("accepted")
    return "; ".join(found)


def anchor_file(data):
    path = _written("input.anchor", data)
    try:
        with reading(path):
            heads = heads_in(path)
    except DpoutlierError as error:
        return _refused(error)
    if not all(isinstance(head, Head) and len(head.hash) == 64 for head in heads):
        raise Finding("a head is none")
    return f"{len(heads)} heads"


def keys_file(data):
    """The server's file of keys, as it reads them and as ``dpoutlier keys list`` shows them."""
    path = _written("keys.json", data)
    try:
        with reading(path):
            keys = read_keys(path)
    except DpoutlierError as error:
        return _refused(error)
    ring = KeyRing(keys)
    if ring.check("dpo_abcdefghij_x") is not None or ring.check("") is not None:
        raise Finding("a key was accepted that is not in the file")
    for key in keys:
        shown = (key.id, key.label, *key.models, day(key.created), day(key.expires), key.state(0.0))
        if not all(isinstance(text, str) and text.isprintable() for text in shown):
            raise Finding("a key has what cannot be printed")
        key.may_use("m")
        key.valid(0.0)
    return f"{len(keys)} keys"


def key_file(data):
    """A client's key, as the command line takes it; no message shows it."""
    path = _written("key.txt", data)
    try:
        with reading(path):
            key = key_of_file(path)
            connection_module.Connection("http://127.0.0.1:1", key=key, ca=None, timeout=1)
    except DpoutlierError as error:
        return _refused(error)
    return "taken"


def audit_log(data):
    """What checks a log, and what a server does that goes on with it."""
    path, found = _written("audit.jsonl", data), []
    try:
        with reading(path):
            found.append(f"{verify(path).entries} entries")
    except DpoutlierError as error:
        found.append(_refused(error))
    log = AuditLog(path)
    try:
        with reading(path):
            log.append("start")
        found.append("gone on")
    except (OSError, ValueError, KeyError, TypeError) as error:  # what the envelope makes a refusal of
        found.append(type(error).__name__)
    finally:
        log.close()
    return "; ".join(found)


TARGETS = {
    "model_file": Target(model_file, 8, 128 * MEGABYTE, 64),
    "features_toml": Target(features_toml, 2, 16 * MEGABYTE, 256),
    "features_json": Target(features_json, 2, 16 * MEGABYTE, 256),
    "csv_points": Target(csv_points, 2, 32 * MEGABYTE, 512),
    "csv_reference": Target(csv_reference, 2, 32 * MEGABYTE, 512),
    "server_body": Target(server_body, 2, 32 * MEGABYTE, 256),
    "client_answer": Target(client_answer, 2, 32 * MEGABYTE, 256),
    "ledger_file": Target(ledger_file, 5, 16 * MEGABYTE, 64),
    "anchor_file": Target(anchor_file, 1, 8 * MEGABYTE, 64),
    "keys_file": Target(keys_file, 1, 8 * MEGABYTE, 128),
    "key_file": Target(key_file, 1, 8 * MEGABYTE, 16),
    "audit_log": Target(audit_log, 1, 8 * MEGABYTE, 64),
}
