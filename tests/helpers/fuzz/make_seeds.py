"""Write the seeds of the corpus: valid inputs of every kind, and hostile ones made by hand. All data and keys are made up.

``python -m tests.helpers.fuzz.make_seeds`` writes those that are missing, so that what campaigns found stays.
"""

import gzip
import io
import json
import struct
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from dpoutlier import (
    Category,
    DPForest,
    DPGridKNN,
    DPMarginals,
    Forest,
    GridKNN,
    Ledger,
    PrivateBounds,
    load,
    merge,
)
from dpoutlier.features.domain import Domain
from dpoutlier.noise.sources import SystemBytes, UnsafeSeededBytes
from dpoutlier.server.audit_log import AuditLog
from dpoutlier.server.keys import create_key

from .corpus_files import add
from .forged_files import ledger_of, ledger_rows, npy_with_header, sealed_model
from .guards import unwatched
from .targets import _asked, _description, _server

ROWS = np.random.default_rng(0).uniform(size=(40, 2))
MIXED = pa.table({"x": ROWS[:, 0], "c": ["f", "m"] * 20, "s": [1, 2] * 20})
NAMED = {"x": (0, 1), "y": (0, 2)}
LEVELS = {"c": Category(["f", "m"]), "s": Category([1, 2, 3], ordered=True)}


def models(folder):
    """Small model files of every kind, by name."""
    mixed = {"features": {"x": (0, 1)}, "categories": LEVELS, "missing": ["x"]}
    ledger = Ledger.create(folder / "budget.ledger")
    ledger.open_budget("patients", 3)
    forests = [DPForest(e, features=NAMED, n_trees=2, depth=3).fit(ROWS) for e in ("1/3", "1/2")]
    people = pa.table({"x": ROWS[:, 0], "id": [str(i // 2) for i in range(40)]})
    made = {
        "grid-dense": DPGridKNN("1/3", features=NAMED, bins=[2, 3], target_fpr=0.1),
        "grid-keyed": DPGridKNN(0.3, features=NAMED, bins=7, counts="keyed", rows_per_person=2, max_depth=None),
        "grid-keyed-wide-noise": DPGridKNN("1/5000", features=NAMED, bins=3, counts="keyed"),
        "grid-sparse": DPGridKNN(1, features=NAMED, bins=1000, counts="sparse", sparse_size=50, target_fpr=0.1),
        "grid-private-rows": DPGridKNN(
            0.3, features=NAMED, n_rows_hint="estimate", bins=3, weighted=True, distance="point"
        ),
        "forest": DPForest("1/3", features=NAMED, n_trees=3, depth=4, subspace=(1, 2), tree_seed=7, target_fpr=0.1),
        "forest-charged": DPForest(1, features=(0, 1), n_trees=2, depth=3, ledger=ledger, dataset="patients"),
        "marginals": DPMarginals(0.3, features=NAMED, bins=[3, 5], neighbours="replace-one", target_fpr=0.1),
        "marginals-private-bounds": DPMarginals(1, features={"x": PrivateBounds(outer=(-10, 10)), "y": (0, 1)}, bins=3),
        "twin-grid": GridKNN(NAMED, bins=3, target_fpr=0.2, exhausted="as-printed"),
        "twin-forest": Forest(NAMED, n_trees=2, depth=3),
        "grid-seeded": DPGridKNN(1, features=NAMED, bins=3, unsafe_seed=3),
    }
    found = {name: one.fit(ROWS) for name, one in made.items()}
    found["merged"] = merge(forests, people="disjoint")
    found["forest-mixed"] = DPForest(1, n_trees=2, depth=3, **mixed).fit(MIXED)
    found["grid-mixed"] = DPGridKNN(1, bins=3, **mixed).fit(MIXED)
    found["marginals-mixed"] = DPMarginals(1, bins=3, **mixed).fit(MIXED)
    found["marginals-person"] = DPMarginals(1, features={"x": (0, 1)}, bins=3, person="id", rows_per_person=2).fit(
        people
    )
    return {name: one.save(folder / name).read_bytes() for name, one in found.items()}


def hostile_models(good):
    """What a forger would write, with checksums that fit."""
    dense = good["grid-dense"]
    header = "{'descr': %s, 'fortran_order': False, 'shape': %s, }"
    shapes = {
        "bomb-shape": ("'<i8'", "(1000000000000,)"),
        "bomb-subarray": ("('<i8', (2000000000,))", "(1,)"),
        "object-array": ("'|O'", "(6,)"),
        "negative-shape": ("'<i8'", "(-2, -3)"),
        "code-for-shape": ("'<i8'", "(__import__('os').getpid(),)"),
        "warning-for-shape": ("'<i8'", "(6 is 6,)"),
    }
    found = {
        f"array-{name}": sealed_model(dense, arrays={"counts": npy_with_header(header % each, bytes(48))})
        for name, each in shapes.items()
    }
    found["array-nested"] = sealed_model(dense, arrays={"counts": npy_with_header("(" * 9000 + ")" * 9000, b"")})
    found["manifest-deep"] = zipped({"manifest.json": b"[" * 50_000})
    found["manifest-digits"] = zipped({"manifest.json": b'{"format_version": ' + b"9" * 4299 + b"}"})
    found["members-twice"] = dense[: dense.index(b"PK\1\2")] + dense[dense.index(b"PK\1\2") :] * 2
    found["encrypted"] = dense.replace(b"PK\1\2\x14\3\x14\0\0\0", b"PK\1\2\x14\3\x14\0\1\0")
    found["deflated"] = zipped({"manifest.json": b" " * 20_000_000}, zipfile.ZIP_DEFLATED)[:60_000]
    found["lying-size"] = dense.replace(struct.pack("<I", 176), struct.pack("<I", 2**31 - 1))
    found["pickle"] = zipped({"manifest.json": b"{}", "counts.npy": b"\x80\4cos\nsystem\n(S'true'\ntR."})

    def many_leaves(manifest):
        manifest["partition"] |= {"n_trees": 64, "depth": 16, "subspace": [16]}

    def many_levels(manifest):
        category = {"levels": [str(i) for i in range(8000)], "numeric": False, "ordered": False, "other": False}
        domain = {"lower": [0.0], "upper": [8000.0], "names": ["c"], "categories": [category]}
        manifest["domain"] = domain | {"scales": list(Domain.from_json(domain).scales)}
        manifest["partition"] |= {"axes": [[8000, True, False]], "n_trees": 4000, "depth": 10, "subspace": [1]}

    found["many-leaves"] = sealed_model(good["forest"], many_leaves)
    found["many-levels"] = sealed_model(good["forest-mixed"], many_levels)
    return found


def zipped(members, how=zipfile.ZIP_STORED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", how) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, how)
    return stream.getvalue()


EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "features.toml"
TOML = {
    "example": EXAMPLE.read_bytes(),
    "deep-key": b"[features]\nx" + b".a" * 3000 + b" = 1\n",
    "deep-header": b"[features.x" + b".a" * 3000 + b"]\n",
    "deep-quoted-key": b"[features]\nx" + b".'a=,b'" * 1000 + b" = 1\n",
    "deep-list": b"features = " + b"[" * 20_000,
    "long-hexadecimal": b"[features]\nx = [0, 0x" + b"f" * 5000 + b"]\n",
    "long-hexadecimal-entry": b"[features]\nx = 0x" + b"f" * 5000 + b"\n",
    "long-hexadecimal-level": b"[features]\nx = {levels = [0x" + b"f" * 5000 + b"]}\n",
    "long-hexadecimal-share": b"[features]\nx = {outer = [0, 1], share = 0x" + b"f" * 5000 + b"}\n",
    "long-name": b"[features]\n" + b"x" * 5000 + b" = [0, 1]\n",
    "controls": b'[features]\n"\\u001b[2J" = [0, 1]\n',
    "dates": b"[features]\nx = [1979-05-27, 1979-05-28]\ny = {levels = [07:32:00]}\n",
    "wrong-encoding": b"\xff\xfe[\0f\0",
}
JSON = {
    "example": b'{"features": {"age": [0, 120], "bmi": {"lower": 10, "upper": 80, "missing": "cell"}, "sex": {"levels": ["f"]}, '
    b'"stage": {"levels": [1, 2, 3], "ordered": true}, "income": {"outer": [0, 1e6], "share": 0.1}}}',
    "deep": b'{"features": {"x": ' + b"[" * 20_000,
    "nested": b'{"features": {"x": ' + b"[" * 900 + b"]" * 900 + b"}}",
    "twice": b'{"features": {"x": [0, 1], "x": [0, 2]}}',
    "infinite": b'{"features": {"x": [-Infinity, NaN], "y": [1e400, 2]}}',
    "digits": b'{"features": {"x": [0, ' + b"9" * 4300 + b"]}}",
    "surrogate": b'{"features": {"\\ud800": [0, 1]}}',
}
HEAD = b"age,sex,stage,crp\n"
CSV = {
    "points": HEAD + b"51,f,1,0.5\n34,m,2,\n1e400,x,3,inf\n",
    "two-columns": b"a,b\n0.5,0.25\n1,2\n",
    "more-columns": b"id,age,sex,stage,crp\n1,51,f,1,0.5\n2,34,m,2,\n",
    "semicolons": b"age;sex;stage;crp\n51;f;1;0.5\n",
    "quotes": b'"age","sex","stage","crp"\n"5""1","f\n\n","1",\n"',
    "bare-returns": b"age,sex,stage,crp\r51,f,1,0.5\r\r\n34,m,2,1\r",
    "zeros": HEAD + b"\0,\0,\0,\0\n",
    "wrong-encoding": "age,sex,stage,crp,ä\n".encode("latin-1") + b"\xff\xfe,f,1,1,\xe4\n",
    "utf-16": "age,sex,stage,crp\n51,f,1,0.5\n".encode("utf-16"),
    "byte-order-mark": b"\xef\xbb\xbf" + HEAD + b"51,f,1,0.5\n",
    "doubled": b"age,age,sex,stage,crp\n1,2,f,1,1\n",
    "ragged": HEAD + b"1\n1,2,3,4,5\n\n51,f,1,0.5\n",
    "numbers-for-names": b"1,2,3,4\n51,f,1,0.5\n",
    "empty": b"",
    "blank-header": b"\n51,f,1,0.5\n",
    "long-value": HEAD + b"1" * 3000 + b",f,1,1e" + b"9" * 1000 + b"\n",
    "digits-of-others": HEAD + "٣,f,\uff11,²\n".encode(),
    "many-columns": b",".join(b"%x" % i for i in range(8000)) + b"\n",
    "many-columns-with-the-features": HEAD[:-1] + b"," * 20_000 + b"\n",
    "hidden-in-a-quote": b'age,sex,stage,"crp\n51,f,1,0.5\n',
}
REFERENCE = {
    "people": b"id,age,sex,stage,crp\n1,51,f,1,0.5\n1,34,m,2,\n,1,f,1,1\n\xe4,1,f,1,1\n",
}


def stream(table, **options):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def bodies():
    """The first byte: 0 JSON, 1 CSV, 2 Arrow; 4 gzip, 8 explain, 16 the model without names, 32 missing=null."""
    table = pa.table({"age": [51.0, 34.0], "sex": ["f", "m"], "stage": [1, 2], "crp": [0.5, None]})
    coded = table.set_column(1, "sex", table["sex"].dictionary_encode())
    point = {"age": 51, "sex": "f", "stage": 1, "crp": None}
    plain = json.dumps({"points": [point, point | {"age": "34"}]}).encode()
    floats = pa.table({"0": [0.5, 0.25], "1": [1.0, 7.0]})
    nulls = pa.table({"age": pa.nulls(10**9), "sex": pa.nulls(10**9), "stage": pa.nulls(10**9), "crp": pa.nulls(10**9)})
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(400, np.int8)), pa.array(["z" * 5000]))
    long = pa.table({"age": np.zeros(400), "sex": text, "stage": [1] * 400, "crp": [0.5] * 400})
    wide = table.append_column("more", [["a" * 1_000_000] * 2])
    decimals = pa.table(
        {
            "age": pa.array([1, 2], pa.decimal128(5, 2)),
            "sex": ["f", None],
            "stage": [True, False],
            "crp": pa.array([1, 2], pa.float16()),
        }
    )
    return {
        "json": b"\0" + plain,
        "json-lists": b"\x10" + b'{"points": [[0.5, 1], [2, "0.25"]]}',
        "json-explain": b"\x08" + plain,
        "json-gzip": b"\4" + gzip.compress(plain, mtime=0),
        "json-deep": b"\0" + b'{"points":' + b"[" * 900,
        "json-deeper": b"\0" + b"[" * 1900,
        "json-digits": b"\0" + b'{"points": [{"age": ' + b"9" * 5000 + b', "sex": "f", "stage": 1, "crp": 1}]}',
        "json-many": b"\0" + b'{"points":[' + b"{}," * 3000 + b"{}]}",
        "json-surrogate": b"\0" + b'{"points": [{"age": "\\ud800", "sex": "\\udfff", "stage": 1, "crp": 1}]}',
        "csv": b"\1" + CSV["points"],
        "csv-nulls": b"\x21" + CSV["points"],
        "csv-nameless": b"\x11" + b"a,b\n0.5,1\n2,0.25\n",
        "csv-explain": b"\x09" + HEAD + b"51,f,1,0.5\n",
        "csv-gzip": b"\5" + gzip.compress(CSV["points"], mtime=0),
        "csv-columns": b"\1" + b"," * 20_001,
        "arrow": b"\2" + stream(table),
        "arrow-floats": b"\x12" + stream(floats),
        "arrow-nulls": b"\x22" + stream(table.set_column(0, "age", [pa.array(["x", None])])),
        "arrow-explain": b"\x0a" + stream(table),
        "arrow-dictionary": b"\2" + stream(coded),
        "arrow-dictionary-of-a-long-text": b"\x22" + stream(long),
        "arrow-lz4": b"\2" + stream(table, compression="lz4"),
        "arrow-zstd": b"\2" + stream(coded, compression="zstd"),
        "arrow-types": b"\x22" + stream(decimals),
        "arrow-a-billion-rows": b"\2" + stream(nulls),
        "arrow-bursting": b"\2" + stream(wide, compression="zstd"),
        "gzip-bomb": b"\4" + gzip.compress(b" " * (40 << 20), mtime=0)[:20_000],
        "gzip-cut": b"\4" + gzip.compress(plain, mtime=0)[:-5],
        "empty": b"",
    }


def answers():
    """The first byte: 0 models, 1 description, 2 scores, 3 explanation, 4 threshold; 8: head and body."""
    app, loop = _server()
    point = json.dumps({"points": [{"age": 50, "sex": "f", "stage": 2, "crp": 0.5}] * 3}).encode()
    said = {
        what: _asked(
            app,
            loop,
            f"/v1/models/a/{what}",
            [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"accept", kind)],
            query,
            point,
        )[1]
        for what, kind, query in (
            ("score", b"application/vnd.apache.arrow.stream", b""),
            ("explain", b"application/json", b""),
        )
    }
    release = json.loads(_description())["release"]
    threshold = json.dumps({"release": release, "threshold": 1.5}).encode()
    refusal = json.dumps({"error": {"code": "unavailable", "message": "later\x1b[2J"}}).encode()
    head = b"HTTP/1.1 %d X\r\nContent-Length: %d\r\nRetry-After: 0\r\n\r\n"
    big = b"9" * 400
    described = _description()
    return {
        "models": b"\0" + b'{"models": [{"id": "a"}]}',
        "description": b"\1" + described,
        "scores": b"\2" + said["score"],
        "explanation": b"\3" + said["explain"],
        "threshold": b"\4" + threshold,
        "large-limits": b"\1" + described.replace(b'"bytes":100000', b'"bytes":' + big),
        "large-limits-and-scores": b"\1" + described.replace(b'"rows":500', b'"rows":' + big),
        "large-threshold": b"\4" + threshold.replace(b"1.5", big),
        "large-contribution": b"\3" + said["explain"].replace(b'"typical_score":', b'"typical_score":' + big),
        "deep": b"\1" + b'{"statement":' * 900,
        "busy-for-ever": b"\x0a" + head % (503, len(refusal)) + refusal,
        "elsewhere": b"\x0a" + b"HTTP/1.1 302 X\r\nLocation: http://example.com/\r\nContent-Length: 0\r\n\r\n",
        "chunks": b"\x0b" + b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n{",
        "negative-chunk": b"\x0b" + b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n{}",
        "endless": b"\x0b" + b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n{",
        "many-headers": b"\x0b" + b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n{}",
        "long-header": b"\x0b" + b"HTTP/1.1 200 OK\r\na: " + b"b" * 70_000,
        "gzip": b"\x0b"
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 30\r\n\r\n" + gzip.compress(b"{}", mtime=0),
        "informational": b"\x0b" + b"HTTP/1.1 100 Continue\r\n\r\n" * 300,
        "no-http": b"\x08" + b"SSH-2.0-OpenSSH\r\n",
    }


def ledgers(folder):
    ledger = Ledger.create(folder / "small.ledger")
    ledger.open_budget("patients", 3)
    ledger.open_budget("ward", part_of="patients")
    ledger.charge("patients", "1/3", "a study")
    plain = ledger.path.read_bytes()
    anchored = Ledger.create(folder / "anchored.ledger", anchor=folder / "anchor")
    anchor = (folder / "anchor").read_bytes()
    found = {"plain": plain, "anchored": anchored.path.read_bytes()}
    for name, first in {
        "anchor-without-end": {"anchor": "/dev/zero"},
        "anchor-with-zero": {"anchor": "a\0b"},
        "anchor-is-no-text": {"anchor": [1]},
        "anchor-is-a-folder": {"anchor": "/"},
        "no-anchor": {},
    }.items():
        found[name] = rechained(
            plain,
            lambda number, content, first=first: (
                {"kind": "ledger", "id": "0" * 32, **first} if number == 1 else content
            ),
        )
    found["first-is-no-object"] = rechained(plain, lambda number, content: 3 if number == 1 else content)
    found["first-is-deep"] = rechained_text(plain, 1, "[" * 50_000)
    found["later-is-deep"] = rechained_text(plain, 2, '{"kind":' * 20_000)
    found["first-is-no-json"] = rechained_text(plain, 1, "{")
    found["epsilon-of-many-digits"] = rechained(
        plain, lambda number, content: content | {"epsilon": "1" * 5000} if "epsilon" in content else content
    )
    found["pages-in-a-ring"] = ring(plain)
    return found, anchor


def rechained(data, change):
    """A ledger with other contents, and hashes that fit."""
    rows = [(number, change(number, json.loads(body))) for number, body in ledger_rows(data)]
    return ledger_of(data, [json.dumps(content, sort_keys=True, separators=(",", ":")) for _, content in rows])


def rechained_text(data, place, text):
    return ledger_of(data, [text if number == place else body for number, body in ledger_rows(data)])


def ring(data):
    """A ledger whose table has twenty levels of pages, each of which leads to the same next one a hundred times."""
    size = int.from_bytes(data[16:18], "big")
    pages = [data[i : i + size] for i in range(0, len(data), size)]
    root = next(i for i, page in enumerate(pages) if i and page[0] == 13) + 1
    leaf, levels = len(pages) + 1, 17
    made = list(pages)
    made.append(pages[root - 1])
    for _ in range(levels):
        made.append(interior(size, len(made)))
    made[root - 1] = interior(size, len(made))
    whole = bytearray(b"".join(made))
    whole[28:32] = struct.pack(">I", len(made))
    assert leaf == len(pages) + 1
    return bytes(whole)


def interior(size, child, n=100):
    """An interior page of a table: n cells, all of the same child."""
    page = bytearray(size)
    content = size - 6 * n
    page[0:12] = struct.pack(">BHHHBI", 5, 0, n, content, 0, child)
    for i in range(n):
        place = content + 6 * i
        page[12 + 2 * i : 14 + 2 * i] = struct.pack(">H", place)
        page[place : place + 6] = struct.pack(">I", child) + bytes([0x80 | i >> 7, i & 0x7F])
    return bytes(page)


def keys(folder):
    path = folder / "keys.json"
    create_key(path, ["patients", "visits"], label="ward 3")
    create_key(path, ["*"], metrics=True)
    plain = path.read_bytes()
    content = json.loads(plain)

    def changed(**more):
        return json.dumps(content | {"keys": [content["keys"][0] | more]}).encode()

    return {
        "plain": plain,
        "deep": b"[" * 50_000,
        "far-future": changed(expires=10**30),
        "far-past": changed(created=-(10**17)),
        "label-with-controls": changed(label="\x1b[2J"),
        "label-is-no-text": changed(label=[1]),
        "truth-for-time": changed(expires=True),
        "models-is-text": changed(models="ab"),
        "unknown-field": changed(more=1),
    }


def logs(folder):
    log = AuditLog(folder / "audit.jsonl")
    for i in range(3):
        log.append("query", request_id=f"r{i}", key="abcdefghij", model="a", rows=i, status=200)
    log.close()
    plain = (folder / "audit.jsonl").read_bytes()
    return {
        "plain": plain,
        "torn": plain[:-20],
        "deep": plain + b"[" * 20_000 + b"\n",
        "no-object": b"3\n",
        "numbers": b'{"seq":1e400,"hash":1}\n',
    }


def main():
    stream_of_bytes = UnsafeSeededBytes(9)
    SystemBytes.read = lambda _, n: stream_of_bytes.read(n)
    with tempfile.TemporaryDirectory() as name, unwatched():
        folder = Path(name)
        good = models(folder)
        ledger, anchor = ledgers(folder)
        found = {
            "model_file": good | hostile_models(good),
            "features_toml": TOML,
            "features_json": JSON,
            "csv_points": CSV,
            "csv_reference": CSV | REFERENCE,
            "server_body": bodies(),
            "client_answer": answers(),
            "ledger_file": ledger,
            "anchor_file": {
                "plain": anchor,
                "torn": anchor[:-3],
                "zeros": bytes(100),
                "digits": b"9" * 5000 + b" a\n",
                "empty": b"",
            },
            "keys_file": keys(folder),
            "key_file": {
                "plain": b"dpo_abcdefghij_" + b"S" * 43 + b"\n",
                "two": b"a b\n",
                "long": b"x" * 5000,
                "bytes": bytes(range(256)),
                "return": b"dpo_a\rX-More: 1",
            },
            "audit_log": logs(folder),
        }
        for path in folder.glob("*.dpo"):
            load(path, secret=True)
    for target, inputs in found.items():
        for name, content in inputs.items():
            if add(target, content, name):
                sys.stdout.write(f"{target}/{name} {len(content)}\n")


if __name__ == "__main__":
    main()
