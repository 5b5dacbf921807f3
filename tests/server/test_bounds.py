"""Bodies that are too large, too many, damaged or made to burst are refused, with an answer and in bounded memory."""

import csv
import gzip
import io
import json
import random
import struct
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpoutlier import Category, DPMarginals
from dpoutlier.features.domain import Domain
from dpoutlier.server.csv_points import csv_points
from dpoutlier.server.error_responses import Refusal
from dpoutlier.server.json_points import json_points
from dpoutlier.tables.arrow_message import batch_of
from dpoutlier.tables.csv import CsvPoints
from server_process import call, loaded_app

ARROW = "application/vnd.apache.arrow.stream"
BYTES, ROWS = 100_000, 500


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    rows = pa.table({"x": np.linspace(0, 1, 50), "c": ["f", "m"] * 25})
    detector = DPMarginals(1, features={"x": (0, 1)}, categories={"c": Category(["f", "m"])}).fit(rows)
    path = detector.save(tmp_path_factory.mktemp("bounds") / "a")
    return loaded_app(models=(("a", str(path)),), max_bytes=BYTES, max_rows=ROWS)


def ask(app, kind, body, **more):
    headers = {"Content-Type": kind, **more.pop("headers", {})}
    status, _, answer = call(app, "POST", "/v1/models/a/score", headers=headers, body=body, **more)
    code = None if status == 200 else json.loads(answer)["error"]["code"]
    if code is not None:
        assert len(answer) < 3000
        assert b"Traceback" not in answer
    return status, code


def stream(table, **options):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def points(n):
    return pa.table({"x": np.zeros(n), "c": ["f"] * n})


def test_limits_are_limits(app):
    small = json.dumps({"points": [[0.5, "f"]] * ROWS}).encode()
    assert ask(app, "application/json", small) == (200, None)
    assert ask(app, "application/json", json.dumps({"points": [[0.5, "f"]] * (ROWS + 1)}).encode()) == (
        413,
        "too-many-rows",
    )
    assert ask(app, "text/csv", b"x,c\n" + b"1,f\n" * ROWS) == (200, None)
    assert ask(app, "text/csv", b"x,c\n" + b"1,f\n" * (ROWS + 1)) == (413, "too-many-rows")
    assert ask(app, ARROW, stream(points(ROWS))) == (200, None)
    assert ask(app, ARROW, stream(points(ROWS + 1))) == (413, "too-many-rows")
    assert ask(app, "application/json", b" " * (BYTES - len(small)) + small) == (200, None)
    assert ask(app, "application/json", b" " * (BYTES - len(small) + 1) + small) == (413, "too-large")
    pieces = [b" " * 10_000] * 11
    assert ask(app, "application/json", pieces) == (413, "too-large")
    declared = {"Content-Length": str(BYTES + 1)}
    assert ask(app, "application/json", small, headers=declared) == (413, "too-large")
    assert ask(app, "application/json", small, headers={"Content-Length": "9" * 30}) == (413, "too-large")


def test_gzip_is_inflated_within_the_limit(app):
    small = json.dumps({"points": [[0.5, "f"]] * ROWS}).encode()
    packed, gz = gzip.compress(small), {"Content-Encoding": "gzip"}
    assert ask(app, "application/json", packed, headers=gz) == (200, None)
    assert ask(app, "application/json", [packed[:7], packed[7:9], packed[9:]], headers=gz) == (200, None)
    exact = gzip.compress(b" " * (BYTES - len(small)) + small)
    assert ask(app, "application/json", exact, headers=gz) == (200, None)
    bomb = gzip.compress(b" " * (200 << 20))
    assert len(bomb) > BYTES
    assert ask(app, "application/json", [bomb[:90_000]], headers=gz) == (413, "too-large")
    assert ask(app, "application/json", packed[:-5], headers=gz) == (400, "malformed-body")
    assert ask(app, "application/json", packed + b"x", headers=gz) == (400, "malformed-body")
    assert ask(app, "application/json", small, headers=gz) == (400, "malformed-body")
    assert ask(app, "application/json", b"", headers=gz) == (400, "malformed-body")
    assert ask(app, "application/json", packed, headers={"Content-Encoding": "br"}) == (415, "unsupported-type")
    for kind in ("", "application/xml", "text/csv; charset=latin-1", "application/json; charset=utf-16"):
        assert ask(app, kind, small) == (415, "unsupported-type")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"\xff\xfe",
        b'{"points": 1}',
        b'{"points": [1]}',
        b'{"points": [[1, "f"], {"x": 1, "c": "f"}]}',
        b'{"points": [[1]]}',
        b'{"points": [[[1], "f"]]}',
        b'{"points": [{"x": {"y": 1}, "c": "f"}]}',
        b"[" * 1_900,
        b'{"points":' * 1_900,
        b'{"points": [[1' + b"0" * 5000 + b', "f"]]}',
        b'{"points": [["\\ud800", "f"]]}',
    ],
)
def test_malformed_json(app, body):
    status, code = ask(app, "application/json", body)
    assert status == 400
    assert code in {"malformed-body", "missing-value"}


def test_odd_but_right_json(app):
    assert ask(app, "application/json", b'{"points": []}') == (200, None)
    assert ask(app, "application/json", b'{"points": [{"x": 1e400, "c": "f", "id": [1]}]}') == (200, None)
    assert ask(app, "application/json", b'{"points": [{"x": 1}]}') == (400, "no-such-column")
    assert ask(app, "application/json", b'{"points": [[NaN, "f"]]}') == (400, "missing-value")


def test_parameters_do_not_go_into_the_body(app):
    for key, value, hint in (
        ("threshold", 2.5, "?threshold=2.5."),
        ("target_fpr", 0.1, "?target_fpr=0.1."),
        ("missing", "null", "?missing=null."),
        ("threshold", "x", "?threshold=1."),
        ("z" * 1000, 1, "?threshold=1."),
    ):
        body = json.dumps({"points": [[0.5, "f"]], key: value}).encode()
        assert ask(app, "application/json", body) == (400, "bad-parameter")
        answer = call(app, "POST", "/v1/models/a/score", headers={"Content-Type": "application/json"}, body=body)[2]
        message = json.loads(answer)["error"]["message"]
        assert message.startswith(f"unknown key {key!r}"[:80])
        assert message.endswith(hint)
        assert len(message) < 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\n",
        b"x,c\n1\n",
        b"x,c\n1,f,2\n",
        b'x,c\n"' + b"a" * 99_000,
        b"x,c\n" + b"1" * 90_000 + b",f,\n",
        b"x,c,x\n1,f,2\n",
        b",".join(b"%d" % i for i in range(20_001))[:99_000],
        b"\0\0\0",
    ],
)
def test_malformed_csv(app, body):
    status, code = ask(app, "text/csv", body)
    assert (status, code) in {(400, "malformed-body"), (400, "no-such-column"), (400, "missing-value")}


COMMAS = {
    "header": b"," * (4 << 20),
    "one line": b"x,c\n" + b"," * (4 << 20),
    "quotes that close and open again at each end of line": b'x,c\n"' + b'\n","' * (1 << 20) + b'"',
}


@pytest.mark.parametrize("where", COMMAS)
def test_csv_of_commas_is_refused_before_it_becomes_a_list(where):
    """A record of n commas is a list of 8 n bytes, and as much again while it grows."""
    domain, body = Domain((0.0, 0.0), (1.0, 1.0), ("x", "c")), COMMAS[where]
    tracemalloc.start()
    try:
        with pytest.raises(Refusal) as refused:
            csv_points(body, domain, None, ROWS)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert refused.value.code == "malformed-body"
    assert peak < 4 * len(body)


CSV_BYTES = st.sampled_from([b"1", b",", b"\n", b"\r", b'"', b"\xef\xbb\xbf", b"\xc3", b"\xa9", b"\0"])


@given(st.lists(CSV_BYTES, max_size=60).map(b"".join), st.integers(0, 3))
def test_records_of_csv_are_those_of_one_decoded_text(body, shift):
    """Also where a read of 8,192 bytes ends within a character or a line end, and with a bound on commas or without."""
    for text in (body, b"1" * (8190 + shift) + body):
        wanted = list(csv.reader(io.StringIO(text.decode("utf-8-sig", "replace"), newline="")))
        for most_commas in (None, 100):
            stream = io.TextIOWrapper(io.BytesIO(text), "utf-8-sig", "replace", newline="")
            found = CsvPoints(stream, most_commas)
            assert [found.header, *found._all()] == (wanted or [[]])


def test_arrow_that_would_burst(app):
    wide = pa.table({"x": np.zeros(ROWS), "c": ["f"] * ROWS, "more": ["a" * 10_000] * ROWS})
    for codec in ("lz4", "zstd"):
        packed = stream(wide, compression=codec)
        assert len(packed) < BYTES
        assert ask(app, ARROW, packed) == (413, "too-large")
        assert ask(app, ARROW, stream(points(ROWS), compression=codec)) == (200, None)
    empty = pa.table({"x": pa.nulls(10**9), "c": pa.nulls(10**9)})  # a billion rows in no bytes
    assert len(stream(empty)) < BYTES
    assert ask(app, ARROW, stream(empty)) == (413, "too-many-rows")
    many = pa.Table.from_batches(points(1).to_batches() * (ROWS + 1))
    assert ask(app, ARROW, stream(many)[:BYTES])[0] in {400, 413}


def test_a_long_text_in_a_dictionary_is_read_once(app):
    long = pa.DictionaryArray.from_arrays(pa.array(np.zeros(ROWS, np.int8)), pa.array(["z" * 90_000]))
    for table in (pa.table({"x": np.zeros(ROWS), "c": long}), pa.table({"x": long, "c": ["f"] * ROWS})):
        body, own = stream(table), pa.default_memory_pool()
        counting = pa.proxy_memory_pool(own)
        tracemalloc.start()
        pa.set_memory_pool(counting)
        try:
            assert ask(app, ARROW, body, query="missing=null") == (200, None)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            pa.set_memory_pool(own)
            tracemalloc.stop()
        assert peak < 3 << 20
        assert counting.max_memory() < 3 << 20


def test_explanations_of_long_texts_are_bounded(tmp_path):
    rows = pa.table({"c": ["f", "m"] * 25})
    detector = DPMarginals(1, categories={"c": Category(["f", "m"], other=True)}).fit(rows)
    app = loaded_app(models=(("a", str(detector.save(tmp_path / "a"))),), max_bytes=BYTES)
    for n, status in ((1, 200), (2, 413)):
        text = pa.DictionaryArray.from_arrays(pa.array([0] * n), pa.array(["z" * 90_000]))
        body = stream(pa.table({"c": text}))
        assert call(app, "POST", "/v1/models/a/explain", headers={"Content-Type": ARROW}, body=body)[0] == status


def test_columns_of_dictionaries_score_as_plain_ones(app):
    def scores(table):
        headers = {"Content-Type": ARROW, "Accept": "application/json"}
        found = call(app, "POST", "/v1/models/a/score", headers=headers, body=stream(table), query="missing=null")
        assert found[0] == 200, found[2]
        return json.loads(found[2])["outlier_score"]

    texts = pa.array(["m", None, "f", "q", "f", "m", "m"])
    for values in (pa.array(["0.5", "x", None, "7", "0.25", " 1", "1e400"]), pa.array([1, 0, None, 3, 4, 5, 2**60])):
        plain = pa.table({"x": values, "c": texts})
        coded = pa.table({"x": values.dictionary_encode(), "c": texts.dictionary_encode(null_encoding="encode")})
        wanted = scores(plain)
        assert scores(coded) == wanted
        parts = pa.Table.from_batches(
            [coded.slice(0, 3).combine_chunks().to_batches()[0], *coded.slice(3).to_batches()]
        )
        assert scores(parts) == wanted
    empty = pa.table({"x": pa.array([], pa.float64()), "c": texts.dictionary_encode()[:0]})
    assert scores(empty) == []
    past = pa.DictionaryArray.from_arrays(pa.array([0, 5], pa.int8()), pa.array(["f", "m"]), safe=False)
    assert ask(app, ARROW, stream(pa.table({"x": [0.5, 0.5], "c": past}))) == (400, "malformed-body")


def test_a_dictionary_comes_once_and_whole(app):
    kind = pa.schema([("x", pa.float64()), ("c", pa.dictionary(pa.int32(), pa.string()))])
    texts, more = pa.array(["f", "m"]), pa.array(["f", "m", "q"])
    for deltas, second, wanted in (
        (True, more, (400, "malformed-body")),
        (False, more, (400, "malformed-body")),
        (True, texts, (200, None)),
    ):
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, kind, options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)) as writer:
            for one in (texts, second):
                column = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), one)
                writer.write_batch(pa.record_batch([pa.array([0.5]), column], schema=kind))
        assert ask(app, ARROW, sink.getvalue()) == wanted


def test_buffers_that_columns_share_are_refused(tmp_path):
    rows = pa.table({"x": np.linspace(0, 1, 50), "y": np.linspace(0, 1, 50)})
    path = DPMarginals(1, features={"x": (0, 1), "y": (0, 1)}).fit(rows).save(tmp_path / "a")
    app = loaded_app(models=(("a", str(path)),))
    body = stream(pa.table({"x": ["0.5"], "y": ["0.5" * 300]}))
    message = next(one for one in pa.ipc.MessageReader.open_stream(io.BytesIO(body)) if one.type == "record batch")
    buffers = batch_of(message.metadata).buffers
    half = len(buffers) // 2
    listed, shared = (
        b"".join(struct.pack("<qq", *one) for one in each) for each in (buffers, buffers[half:] + buffers[half:])
    )
    assert body.count(listed) == 1
    assert ask(app, ARROW, body, query="missing=null") == (200, None)
    assert ask(app, ARROW, body.replace(listed, shared), query="missing=null") == (400, "malformed-body")


@pytest.mark.parametrize("kind", [pa.decimal128(5, -3), pa.decimal128(5, 100), pa.decimal256(9, 2**31 - 1)])
def test_decimals_of_an_odd_scale(app, kind):
    column = pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(b"\5" + bytes(kind.byte_width - 1))])
    assert ask(app, ARROW, stream(pa.table({"x": column, "c": ["f"]}))) == (400, "malformed-body")
    half = pa.array([1], pa.decimal128(5, 2))
    assert ask(app, ARROW, stream(pa.table({"x": half, "c": ["f"]}))) == (200, None)


def test_arrow_types_that_hold_no_values(app):
    n = 3
    good = pa.table({"x": [1, 2, 3], "c": pa.array(["f", "m", "f"]).dictionary_encode()})
    assert ask(app, ARROW, stream(good)) == (200, None)
    for column in (
        pa.array([[1.0]] * n),
        pa.array([{"a": 1}] * n),
        pa.array([1, 2, 3], pa.timestamp("s")),
        pa.array([b"1"] * n),
        pa.RunEndEncodedArray.from_arrays([3], [1.0]),
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16] * n, pa.binary(16))),
    ):
        table = pa.table({"x": column, "c": ["f"] * n})
        assert ask(app, ARROW, stream(table)) == (400, "malformed-body")
        aside = pa.table({"x": [1.0] * n, "more": column, "c": ["f"] * n})
        assert ask(app, ARROW, stream(aside)) == (200, None)
    assert ask(app, ARROW, stream(pa.table({"x": [1.0]}))) == (400, "no-such-column")
    twice = pa.Table.from_arrays([pa.array([1.0])] * 2 + [pa.array(["f"])], ["x", "x", "c"])
    assert ask(app, ARROW, stream(twice)) == (400, "malformed-body")


def test_damaged_arrow_never_ends_the_process(app):
    table = pa.table(
        {"x": np.linspace(0, 1, 20), "c": pa.array(["f", "m"] * 10), "d": pa.array(["u", "v"] * 10).dictionary_encode()}
    )
    rng = random.Random(0)
    wholes = [stream(table), stream(table, compression="lz4"), stream(table.select(["x", "c"]))]
    seen = set()
    for i in range(1500):
        damaged = bytearray(wholes[i % 3])
        for _ in range(rng.choice((1, 1, 2, 8))):
            place = rng.randrange(len(damaged))
            how = rng.randrange(3)
            if how == 0:
                damaged[place] = rng.randrange(256)
            elif how == 1:
                damaged[place : place + 8] = struct.pack("<q", rng.choice((-1, 2**40, 2**63 - 1, -(2**63), 7)))
            else:
                del damaged[place : place + rng.randrange(1, 40)]
        seen.add(ask(app, ARROW, bytes(damaged)))
    assert {status for status, _ in seen} <= {200, 400, 413}
    assert (400, "malformed-body") in seen
    assert ask(app, ARROW, wholes[0]) == (200, None)
    for cut in range(0, len(wholes[2]), 37):
        assert ask(app, ARROW, wholes[2][:cut])[0] in {200, 400}  # a stream may end without its mark


@given(st.binary(max_size=300))
def test_any_bytes_as_the_head_of_a_message(data):
    try:
        batch_of(data)
    except (ValueError, RecursionError):
        return


@given(st.binary(max_size=2000), st.sampled_from(["application/json", "text/csv", ARROW]))
def test_any_bytes_as_a_body(app, data, kind):
    assert ask(app, kind, data)[0] in {200, 400}


def test_what_all_bodies_hold_together_is_bounded_and_given_back(app):
    bodies, small = app.state.worker.bodies, json.dumps({"points": [[0.5, "f"]]}).encode()
    assert bodies.held == 0  # after all that was asked before
    bodies.held = bodies.together - len(small) + 1
    try:
        assert ask(app, "application/json", small) == (503, "unavailable")
        assert ask(app, "application/json", [small[:9], small[9:]]) == (503, "unavailable")
        bodies.held -= 1
        assert ask(app, "application/json", small) == (200, None)
        assert ask(app, "application/json", [small[:9], small[9:]]) == (200, None)
        assert bodies.held == bodies.together - len(small)
    finally:
        bodies.held = 0


def test_the_head_of_a_message_says_what_arrow_says():
    for codec in (None, "lz4"):
        body = stream(points(17), compression=codec)
        messages = [one for one in pa.ipc.MessageReader.open_stream(io.BytesIO(body)) if one.type == "record batch"]
        found = batch_of(messages[0].metadata)
        assert (found.rows, found.compressed) == (17, codec is not None)
        assert len(found.buffers) == 5
        assert (found.dictionary, found.delta) == (None, False)


@pytest.mark.parametrize("one", [b"[]", b"{}", b'{"x":1,"sex":"f"}'])
def test_millions_of_small_containers_are_refused_before_they_become_objects(one):
    domain = Domain((0.0,), (1.0,), ("x",))
    body = b'{"points":[' + (one + b",") * ((4 << 20) // len(one)) + one + b"]}"
    tracemalloc.start()
    try:
        with pytest.raises(Refusal) as refused:
            json_points(body, domain, 1000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert refused.value.code == "too-many-rows"
    assert peak < 1 << 20


def test_brackets_within_text_are_no_points():
    domain = Domain((0.0,), (1.0,), ("x",))
    body = json.dumps({"points": [{"x": 0.5, "note": "[" * 900}]}).encode()
    assert len(json_points(body, domain, 10)) == 1
