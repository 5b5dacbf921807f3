"""Points from an Arrow stream. What it declares is bounded before anything is made of it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dpoutlier import tables
from dpoutlier.domain import Domain
from dpoutlier.server.flatbuffers import Batch, batch_of
from dpoutlier.server.points import Points, chosen_columns, too_many_rows
from dpoutlier.server.refusals import Refusal, cut

__all__ = ["arrow_points"]

MOST_MESSAGES, MOST_COLUMNS = 10_000, 20_000
NO_STREAM = "the body is no Arrow IPC stream, or it is damaged or cut short."


def arrow_points(body: bytes, domain: Domain, person: str | None, most_rows: int, most_bytes: int) -> Points:
    """The points of a body; other columns are not even decoded."""
    try:
        table = _table(body, domain, person, most_rows, most_bytes)
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError, NotImplementedError, EOFError):
        table = None
    if table is None:
        raise Refusal("malformed-body", NO_STREAM)
    return Points(tables.columns(table, domain), lambda row, j: table.column(j)[row].as_py())


def _table(body: bytes, domain: Domain, person: str | None, most_rows: int, most_bytes: int) -> Any:
    buffer = pa.py_buffer(body)
    schema = _checked(buffer, most_rows, most_bytes)
    names = schema.names
    places = chosen_columns(names, domain, person)
    for place in places:
        _check_type(schema.field(place))
    options = pa.ipc.IpcReadOptions(included_fields=sorted(places), use_threads=False)
    table = pa.ipc.open_stream(buffer, options=options).read_all()
    table.validate(full=True)
    order = sorted(places)
    if places != order:
        table = table.select([order.index(place) for place in places])
    if domain.names is None:
        return table.rename_columns(list(domain.labels))
    return table


def _checked(buffer: Any, most_rows: int, most_bytes: int) -> Any:
    """The schema, after a look at the head of every message: how many rows, and how many bytes once inflated."""
    schema, rows, size = None, 0, 0
    for number, message in enumerate(pa.ipc.MessageReader.open_stream(buffer)):
        if number >= MOST_MESSAGES:
            raise Refusal("malformed-body", f"the Arrow stream must have at most {MOST_MESSAGES} messages.")
        if message.type == "schema":
            schema = pa.ipc.read_schema(message)
            if len(schema) > MOST_COLUMNS:
                raise Refusal("malformed-body", f"the Arrow stream must have at most {MOST_COLUMNS} columns.")
            continue
        batch = batch_of(message.metadata)
        rows += batch.rows if message.type == "record batch" else 0
        if batch.rows > most_rows or rows > most_rows:
            raise too_many_rows(most_rows)
        if batch.compressed:
            size += _inflated_size(batch, message.body)
            if size > most_bytes:
                raise Refusal("too-large", f"the Arrow stream must have at most {most_bytes} bytes after inflation.")
    if schema is None:
        raise ValueError
    return schema


def _inflated_size(batch: Batch, body: Any) -> int:
    """Each compressed buffer begins with its size, and Arrow inflates to that size or not at all; -1: not compressed."""
    total = 0
    for offset, length in batch.buffers:
        if length:
            if not 0 <= offset <= offset + length <= body.size or length < 8:
                raise ValueError
            declared = int.from_bytes(body.slice(offset, 8).to_pybytes(), "little", signed=True)
            if declared < -1:
                raise ValueError
            total += length if declared == -1 else declared
    return total


def _check_type(field: Any) -> None:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    is_ = pa.types
    plain = (
        is_.is_integer(kind)
        or is_.is_floating(kind)
        or is_.is_boolean(kind)
        or is_.is_decimal(kind)
        or is_.is_null(kind)
    )
    if not (plain or is_.is_string(kind) or is_.is_large_string(kind)):
        raise Refusal(
            "malformed-body",
            f"column {cut(field.name)} has the Arrow type {cut(str(field.type))}; send numbers, truth values or text.",
        )
