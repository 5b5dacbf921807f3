"""Changes that know the structure of what they change, and that mend checksums, so that the parser behind them is reached.

``mutated(target, data, rng)`` is the whole interface: data is any bytes, rng a ``random.Random``.
"""

import gzip
import hashlib
import io
import json
import struct
import zlib
from contextlib import suppress

import pyarrow as pa

from dpoutlier.server.audit_log import FIRST, _hash, _line

from .forged_files import ledger_of, ledger_rows, members_of, npy_with_header, sealed_model

NUMBERS = (0, -1, 1, 2, 255, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64, 2**128, -(2**63), 10**400)
FLOATS = (0.0, -0.0, 0.5, 1e-300, 5e-324, 1e308, -1e308, float("inf"), float("-inf"), float("nan"))
TEXTS = (
    "",
    " ",
    "0",
    "1/3",
    "1/0",
    "1e999",
    "-1",
    "nan",
    "inf",
    "\0",
    "\x1b[2J",
    "ä",
    "\ud800",
    "x" * 300,
    "a.b",
    "*",
    "true",
    "null",
)
WORDS = (
    b"0",
    b"-1",
    b"1e308",
    b"NaN",
    b"1e400",
    b"0x" + b"f" * 5000,
    b"9" * 400,
    b"\0",
    b"\xff\xfe",
    b'"',
    b"'",
    b"''",
    b"[",
    b"]",
    b"{",
    b"}",
    b",",
    b"\n",
    b"\r",
    b"=",
    b".",
    b"#",
    b";",
    b"\\",
    b"\xef\xbb\xbf",
)
STRUCTS = ("<b", "<h", "<i", "<q", ">h", ">i", ">q")


def mutated(target, data, rng):
    """Other bytes that are much like the given ones."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        aware = WAYS.get(target)
        if aware is not None and rng.random() < 0.7:
            with suppress(Exception):  # it has lost its structure by now
                data = aware(data, rng)
                continue
        data = changed_bytes(data, rng)
    return data


# Bytes --------------------------------------------------------------------------------------------------------------------


def changed_bytes(data, rng):
    """Flip, set, insert, take out, repeat, cut, swap, or write an extreme number."""
    found, place = bytearray(data), rng.randrange(len(data) + 1)
    length = rng.choice((1, 1, 2, 4, 8, 16, 64, 256))
    match rng.randrange(9):
        case 0 if data:
            found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
        case 1 if data:
            found[rng.randrange(len(found))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        case 2:
            found[place:place] = rng.choice(WORDS)
        case 3:
            del found[place : place + length]
        case 4:
            found[place:place] = bytes(found[place : place + length]) * rng.choice((1, 2, 3, 100))
        case 5:
            del found[place:]
        case 6:
            found[place:place] = bytes(rng.randrange(256) for _ in range(min(length, 16)))
        case 7:
            other = rng.randrange(len(found) + 1)
            found[place : place + length] = found[other : other + length]
        case _:
            _write_number(found, place, rng)
    return bytes(found[: 1 << 17])


def _write_number(found, place, rng):
    code = rng.choice(STRUCTS)
    size = struct.calcsize(code)
    number = rng.choice((0, 1, -1, 7, 100, 2**7 - 1, 2**15 - 1, 2**31 - 1, 2**40, 2**63 - 1, -(2**63), -(2**31)))
    limit = 1 << (8 * size - 1)
    if len(found) >= size:
        place = min(place, len(found) - size)
        found[place : place + size] = struct.pack(code, (number + limit) % (2 * limit) - limit)


# JSON ---------------------------------------------------------------------------------------------------------------------


def changed_json(value, rng):
    """The same value with one thing changed in some place."""
    if isinstance(value, dict | list) and value and rng.random() < 0.85:
        found = dict(value) if isinstance(value, dict) else list(value)
        key = rng.choice(list(found)) if isinstance(found, dict) else rng.randrange(len(found))
        match rng.randrange(12):
            case 0:
                del found[key]
            case 1 if isinstance(found, dict):
                found[rng.choice(TEXTS)] = found[key]
            case 1:
                found.insert(key, found[key])
            case 2 if isinstance(found, dict):
                found[rng.choice(list(found))] = found[key]
            case 2:
                found.reverse()
            case _:
                found[key] = changed_json(found[key], rng)
        return found
    return _extreme(value, rng)


def _extreme(value, rng):
    if isinstance(value, str) and value and rng.random() < 0.5:
        place = rng.randrange(len(value))
        return (
            value[:place]
            + rng.choice(("", "0", "9", "/", "e", "-", ".", "x", "\0", "ß"))
            + value[place + rng.randrange(2) :]
        )
    if isinstance(value, int) and not isinstance(value, bool) and rng.random() < 0.5:
        return rng.choice((value + 1, value - 1, -value, value * 2, value // 2, float(value), str(value)))
    if isinstance(value, float) and rng.random() < 0.5:
        return rng.choice((value / 2, -value, value * 1.0000001, int(value) if abs(value) < 1e9 else 0))
    if isinstance(value, bool):
        return rng.choice((not value, None, 1, "true"))
    match rng.randrange(7):
        case 0:
            return rng.choice(NUMBERS)
        case 1:
            return rng.choice(FLOATS)
        case 2:
            return rng.choice(TEXTS)
        case 3:
            return rng.choice((None, True, False, [], {}, [[]], {"": None}))
        case 4:
            return [value] * rng.choice((1, 2, 1000))
        case 5:
            return {"x": value}
        case _:
            return _nested(rng.choice((10, 200, 900)))


def _nested(depth):
    found = 1
    for _ in range(depth):
        found = [found]
    return found


def _json(data, rng):
    text = json.dumps(changed_json(json.loads(data), rng))
    return text.encode("utf-8", "surrogatepass")[: 1 << 17]


# Model files --------------------------------------------------------------------------------------------------------------


def _model(data, rng):
    if rng.random() < 0.6:
        return sealed_model(data, lambda manifest: _manifest(manifest, rng))
    members = members_of(data)
    arrays = [name.removesuffix(".npy") for name in members if name.endswith(".npy")]
    if rng.random() < 0.15:
        return sealed_model(data, lambda manifest: _without(manifest, rng.choice(arrays)))
    name = rng.choice(arrays)
    return sealed_model(data, arrays={rng.choice((name, name, name, "extra")): _array(members[f"{name}.npy"], rng)})


def _manifest(manifest, rng):
    """Few places matter more than others: those are chosen more often."""
    keys = [
        key
        for key in (
            "domain",
            "partition",
            "scorer",
            "counts",
            "guarantee",
            "charges",
            "merged",
            "receipt",
            "score_histogram",
            "n_rows_hint",
        )
        if key in manifest
    ]
    if rng.random() < 0.8:
        key = rng.choice(keys)
        return manifest | {key: changed_json(manifest[key], rng)}
    return changed_json(manifest, rng)


def _without(manifest, name):
    manifest["arrays"].pop(name, None)
    return manifest


def _array(content, rng):
    size = int.from_bytes(content[8:10], "little")
    header, data = content[10 : 10 + size].decode("latin-1"), bytearray(content[10 + size :])
    match rng.randrange(4):
        case 0:
            return npy_with_header(changed_bytes(header.encode("latin-1"), rng).decode("latin-1"), bytes(data))
        case 1:
            header = header.replace(
                *rng.choice(
                    (("<i8", "<u8"), ("<i8", "<f8"), ("<i8", ">i8"), ("<u8", "|O"), ("False", "True"), (",)", ", 1)"))
                )
            )
            return npy_with_header(header, bytes(data))
        case 2:
            return npy_with_header(header, changed_bytes(bytes(data), rng))
        case _:
            for _ in range(rng.randrange(1, 4)):
                place = 8 * rng.randrange(max(len(data) // 8, 1))
                data[place : place + 8] = struct.pack(
                    "<q", rng.choice((0, 1, -1, 2**38, 2**40, 2**63 - 1, -(2**63), rng.randrange(100)))
                )[: len(data) - place]
            return npy_with_header(header, bytes(data))


# Text ---------------------------------------------------------------------------------------------------------------------


def _words(data, rng):
    """A word of the text replaced, doubled or moved."""
    marks = b" \t\r\n,=[]{}\"'.:"
    places = [i for i, letter in enumerate(data) if letter in marks] or [0]
    first, last = rng.choice(places), rng.choice(places)
    match rng.randrange(4):
        case 0:
            end = next((i for i in places if i > first), len(data))
            return data[: first + 1] + rng.choice(WORDS) + data[end:]
        case 1:
            first, last = sorted((first, last))
            return data[:last] + data[first:last] + data[last:]
        case 2:
            first, last = sorted((first, last))
            return data[:first] + data[last:]
        case _:
            end = next((i for i in places if i > first), len(data))
            return data[:first] + data[first:end] * rng.choice((2, 50, 1000)) + data[end:]


def _csv(data, rng):
    """A record or a field taken from elsewhere."""
    if rng.random() < 0.4:
        return _words(data, rng)
    lines = data.split(b"\n")
    line = rng.randrange(len(lines))
    fields = lines[line].split(b",")
    place = rng.randrange(len(fields))
    match rng.randrange(6):
        case 0:
            fields[place] = rng.choice(WORDS)
        case 1:
            fields[place] = b'"' + fields[place] + rng.choice((b'"', b'"x', b""))
        case 2:
            fields.insert(place, rng.choice(fields))
        case 3:
            del fields[place]
        case 4:
            lines.insert(line, rng.choice(lines))
        case _:
            fields[place] = rng.choice(
                (b"1e400", b"-inf", b"nan", b" 1 ", b"f ", b"F", b"true", b"1_0", b"0x1", "٣".encode(), b"1" * 400)
            )
    lines[line] = b",".join(fields)
    return b"\n".join(lines)


# Bodies and answers -------------------------------------------------------------------------------------------------------


def _arrow(body, rng):
    """The same table in another guise, or with other numbers in the heads of its messages."""
    if rng.random() < 0.5:
        found = bytearray(body)
        place = 8 * rng.randrange(max(len(found) // 8, 1))
        _write_number(found, place, rng)
        return bytes(found)
    table = pa.ipc.open_stream(body).read_all().slice(0, 600)  # of a billion rows that take no bytes as well
    table.validate(full=True)  # Arrow computes with what it was given
    j = rng.randrange(table.num_columns)
    name, column = table.column_names[j], table.column(j)
    kinds = (
        pa.float64(),
        pa.float16(),
        pa.int8(),
        pa.uint64(),
        pa.string(),
        pa.large_string(),
        pa.bool_(),
        pa.decimal128(10, 2),
    )
    match rng.randrange(6):
        case 0:
            table = table.set_column(j, name, column.cast(rng.choice(kinds), safe=False))
        case 1:
            table = table.set_column(j, name, column.dictionary_encode())
        case 2:
            table = table.append_column(rng.choice((name, "more")), column)
        case 3:
            table = pa.concat_tables([table] * rng.choice((2, 5)))
        case 4:
            table = table.set_column(j, name, pa.nulls(len(table), rng.choice(kinds)))
        case _:
            table = table.select([rng.choice(table.column_names) for _ in table.column_names])
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=rng.choice((None, None, "lz4", "zstd")))
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _body(data, rng):
    how, body = data[0], data[1:]
    if rng.random() < 0.1:
        return bytes([rng.randrange(64)]) + body
    zipped = how & 4
    if zipped:
        body = zlib.decompressobj(wbits=31).decompress(body, 1 << 17)
    body = (_json, _csv, _arrow)[how % 4 % 3](body, rng)
    return bytes([how]) + (gzip.compress(body, 1, mtime=0) if zipped else body)


def _answer(data, rng):
    how, body = data[0], data[1:]
    if rng.random() < 0.1:
        return bytes([rng.randrange(16)]) + body
    head = b""
    if how & 8:
        head, mark, body = body.partition(b"\r\n\r\n")
        if rng.random() < 0.5:
            return bytes([how]) + _words(head, rng) + mark + body
        head += mark
    body = _arrow(body, rng) if how % 8 % 5 == 2 else _json(body, rng)
    return bytes([how]) + head + body


# Ledgers and logs ---------------------------------------------------------------------------------------------------------


def _ledger(data, rng):
    bodies = [body for _, body in ledger_rows(data)]
    place = rng.randrange(len(bodies))
    match rng.randrange(5):
        case 0:
            bodies.insert(place, rng.choice(bodies))
        case 1:
            del bodies[place]
        case 2:
            bodies[place] = changed_bytes(bodies[place].encode(), rng).decode("utf-8", "replace")
        case _:
            bodies[place] = json.dumps(changed_json(json.loads(bodies[place]), rng))
    return ledger_of(data, bodies)


def _log(data, rng):
    entries = [json.loads(line) for line in data.split(b"\n") if line]
    place, previous, lines = rng.randrange(len(entries)), FIRST, []
    entries[place] = changed_json(entries[place], rng)
    for entry in entries:
        if isinstance(entry, dict):
            entry["previous"] = previous
            entry["hash"] = previous = _hash(entry)
        lines.append(_line(entry))
    return b"".join(lines)


def _anchor(data, rng):
    lines = data.split(b"\n")
    line = rng.choice(
        (b"%d %s" % (rng.choice((0, 1, 2, 10**14)), hashlib.sha256(data).hexdigest().encode()), b"1", b"1 ", b"9" * 99)
    )
    lines.insert(rng.randrange(len(lines) + 1), line)
    return b"\n".join(lines)


WAYS = {
    "model_file": _model,
    "features_toml": _words,
    "features_json": _json,
    "csv_points": _csv,
    "csv_reference": _csv,
    "server_body": _body,
    "client_answer": _answer,
    "ledger_file": _ledger,
    "anchor_file": _anchor,
    "keys_file": _json,
    "audit_log": _log,
}
