"""Points from an Arrow stream. What it declares is bounded before anything is made of it."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpoutlier.features.domain import Domain
from dpoutlier.server.arrow_dictionaries import DictionaryColumn
from dpoutlier.server.error_responses import Refusal, cut
from dpoutlier.server.models import LoadedModel
from dpoutlier.server.points import Points, chosen_columns, too_many_rows
from dpoutlier.tables import convert
from dpoutlier.tables.arrow_message import DAMAGED, Batch, batch_of

MAX_MESSAGES, MAX_COLUMNS = 10_000, 20_000
MAX_LAYOUTS, LONGEST_LAYOUT = 32, 1 << 16
ONE_DICTIONARY = (
    "a column of the Arrow stream must have one dictionary, which comes once and whole; unify the dictionaries of its chunks, or "
    "send plain text."
)
NO_STREAM = "the body is not an Arrow IPC stream, or it is damaged or cut short."


def arrow_points(body: bytes, served: LoadedModel, most_rows: int, most_bytes: int) -> Points:
    """The points of a body; other columns are not even decoded."""
    try:
        return _points(_table(body, served, most_rows, most_bytes), served.domain)
    except DAMAGED:
        pass
    raise Refusal("malformed-body", NO_STREAM)


def _points(table: Any, domain: Domain) -> Points:
    if isinstance(table, pa.RecordBatch):
        columns: list[NDArray[np.float64]] = [column.to_numpy(zero_copy_only=False) for column in table.columns]
        return Points(columns, lambda row, j: table.column(j)[row].as_py())
    coded: dict[int, DictionaryColumn] = {}
    for j, column in enumerate(table.columns):
        if not pa.types.is_dictionary(column.type):
            column.validate(full=True)
            continue
        category = domain.category(j)
        coded[j] = DictionaryColumn(column, category)
        stand_in = pa.nulls(table.num_rows, pa.float64() if category is None else pa.string())
        table = table.set_column(j, domain.labels[j], stand_in)
    columns = convert.columns(table, domain)
    for j, found in coded.items():
        columns[j] = found.numbers
    return Points(columns, lambda row, j: coded[j].value(row) if j in coded else table.column(j)[row].as_py())


class Layout(NamedTuple):
    """What a schema means for a model. It is cached for the next request with the same schema."""

    schema: Any
    places: list[int]
    """Places of the features among the columns."""
    plain: bool
    """Whether the columns are the features and nothing else, in their order, and no dictionaries follow."""
    floats: bool
    """Whether, beyond that, all are float64 and none has levels: then the batch is as kernels read it."""


def _table(body: bytes, served: LoadedModel, most_rows: int, most_bytes: int) -> Any:
    """The features as a table, or as the one batch that they came in."""
    buffer = pa.py_buffer(body)
    messages = _messages(buffer)
    layout = _layout(next(messages, None), served)
    batches = list(_checked(messages, most_rows, most_bytes))
    if layout.floats and len(batches) == 1:
        batch = pa.ipc.read_record_batch(batches[0], layout.schema)
        batch.validate(full=True)
        return batch
    if layout.plain:
        table = pa.Table.from_batches([pa.ipc.read_record_batch(one, layout.schema) for one in batches], layout.schema)
    else:
        wanted = sorted(layout.places)
        options = pa.ipc.IpcReadOptions(included_fields=wanted, use_threads=False)
        table = pa.ipc.open_stream(buffer, options=options).read_all()
        table = table.select([wanted.index(place) for place in layout.places])
    table.validate()
    return table if served.domain.names is not None else table.rename_columns(list(served.domain.labels))


def _messages(buffer: Any) -> Iterator[Any]:
    for number, message in enumerate(pa.ipc.MessageReader.open_stream(buffer)):
        if number >= MAX_MESSAGES:
            raise Refusal("malformed-body", f"the Arrow stream must have at most {MAX_MESSAGES} messages.")
        yield message


def _layout(message: Any, served: LoadedModel) -> Layout:
    """The first message's schema, checked against the model."""
    if message is None or message.type != "schema":
        raise ValueError
    text = message.metadata.to_pybytes()
    known: Layout | None = served.layouts.get(text)
    if known is not None:
        return known
    schema = pa.ipc.read_schema(message)
    if len(schema) > MAX_COLUMNS:
        raise Refusal("malformed-body", f"the Arrow stream must have at most {MAX_COLUMNS} columns.")
    places = chosen_columns(schema.names, served.domain, served.person)
    for place in places:
        _check_type(schema.field(place))
    plain = places == list(range(len(schema))) and not any(pa.types.is_dictionary(kind) for kind in schema.types)
    floats = plain and served.domain.categories is None and set(schema.types) == {pa.float64()}
    found = Layout(schema, places, plain, floats)
    if len(text) <= LONGEST_LAYOUT:
        while len(served.layouts) >= MAX_LAYOUTS:
            served.layouts.pop(list(served.layouts)[0], None)  # noqa: RUF015 - other threads may change it meanwhile
        served.layouts[text] = found
    return found


def _checked(messages: Iterator[Any], most_rows: int, most_bytes: int) -> Iterator[Any]:
    """The messages that follow, after a look at their heads: how many rows, and how many bytes once inflated."""
    rows = size = 0
    dictionaries: set[int] = set()
    for message in messages:
        batch = batch_of(message.metadata)
        if batch.dictionary is not None:
            if batch.delta or batch.dictionary in dictionaries:  # each would be put together with those before it
                raise Refusal("malformed-body", ONE_DICTIONARY)
            dictionaries.add(batch.dictionary)
        rows += batch.rows if message.type == "record batch" else 0
        if batch.rows > most_rows or rows > most_rows:
            raise too_many_rows(most_rows)
        if batch.compressed:
            size += _inflated_size(batch, message.body)
            if size > most_bytes:
                raise Refusal("too-large", f"the Arrow stream must have at most {most_bytes} bytes after inflation.")
        elif sum(length for _, length in batch.buffers) > message.body.size:  # one that is used for several columns
            raise ValueError
        yield message


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
    if is_.is_decimal(kind) and not 0 <= kind.scale <= kind.precision:
        raise Refusal(
            "malformed-body",
            f"column {cut(field.name)} has the Arrow type {cut(str(kind))}; its scale must lie between 0 and its precision.",
        )
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
