"""Points as Arrow streams within a server's limits, and scores from such a stream."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpoutlier.client.connection import Answer
from dpoutlier.client.description import Limits
from dpoutlier.exceptions import ServerError
from dpoutlier.features.domain import Domain
from dpoutlier.tables.arrow_message import DAMAGED, batch_of

FOR_A_COLUMN = 512
"""Bytes of a stream for each column, besides its values: lengths, padding, and its share of the head."""
FOR_A_SCORE, FOR_AN_ANSWER = 64, 1 << 20
"""Most bytes of an answer: for each point, and besides."""
ANSWERED = [("outlier_score", pa.float64()), ("outside_bounds", pa.bool_()), ("prediction", pa.int64())]
"""The columns of an answer; the last only if there is a threshold."""


def points_batches(
    columns: Sequence[NDArray[Any]], domain: Domain, limits: Limits, most: int
) -> Iterator[tuple[int, int]]:
    """(first, last) of batches of at most ``most`` rows and within the limit of bytes. There is at least one batch."""
    fixed = len(_stream(_schema(domain).empty_table())) + FOR_A_COLUMN * domain.n_features
    of_a_row = sum(_width(domain, j) for j in range(domain.n_features))
    size = max(1, min(most, int((limits.bytes - fixed) / of_a_row)))
    n = len(columns[0])
    for first in range(0, max(n, 1), size):
        yield first, min(first + size, n)


def points_body(columns: Sequence[NDArray[Any]], domain: Domain, first: int, last: int) -> bytes:
    """Rows ``first`` to ``last``: numbers as float64, where NaN means missing, and levels by their names.

    The server reads the same numbers from them, to the bit: a level's name is that level, and "other" is not a level.
    """
    arrays = [_array(column[first:last], domain, j) for j, column in enumerate(columns)]
    return _stream(pa.Table.from_arrays(arrays, schema=_schema(domain)))


def most_bytes(n: int) -> int:
    """Most bytes of the scores of n points: more than any honest answer has."""
    return FOR_A_SCORE * n + FOR_AN_ANSWER


def scores_of_answer(answer: Answer, n: int) -> tuple[str, NDArray[np.float64]]:
    """The release and the scores of n points. The server is not trusted: everything that Arrow would assume is checked."""
    try:
        return _scores(answer.body, n)
    except DAMAGED:
        pass
    raise ServerError(
        "the server's answer cannot be used: it must hold exactly one score for each point.",
        remedy="Is it a dpoutlier server?",
    )


def _scores(body: bytes, n: int) -> tuple[str, NDArray[np.float64]]:
    """Raises ValueError, or an error of Arrow, unless the body is the right schema and one right batch."""
    if len(body) > most_bytes(n):
        raise ValueError
    first, second = islice(pa.ipc.MessageReader.open_stream(pa.py_buffer(body)), 3)
    if first.type != "schema" or second.type != "record batch":
        raise ValueError
    schema, head = pa.ipc.read_schema(first), batch_of(second.metadata)
    fields = list(zip(schema.names, schema.types, strict=True))
    if fields not in (ANSWERED, ANSWERED[:-1]) or head.compressed or head.rows != n:
        raise ValueError
    batch = pa.ipc.read_record_batch(second, schema)
    batch.validate(full=True)
    if any(column.null_count for column in batch.columns):
        raise ValueError
    scores = np.array(batch.column(0).to_numpy())
    if len(scores) != n or np.isnan(scores).any():
        raise ValueError
    return schema.metadata[b"release"].decode("ascii"), scores


def _schema(domain: Domain) -> Any:
    kinds = (pa.float64() if domain.category(j) is None else pa.string() for j in range(domain.n_features))
    return pa.schema(list(zip(domain.labels, kinds, strict=True)))


def _array(column: NDArray[Any], domain: Domain, j: int) -> Any:
    category = domain.category(j)
    if category is None:
        return pa.array(np.ascontiguousarray(column, np.float64), from_pandas=False)
    missing = np.isnan(column)
    codes = pa.array(np.where(missing, 0, column).astype(np.int64), mask=missing)
    return pa.array(category.names, pa.string()).take(codes)


def _width(domain: Domain, j: int) -> float:
    """Bytes of one value, at most."""
    category = domain.category(j)
    return 8.125 if category is None else 4.125 + max(len(name.encode()) for name in category.names)


def _stream(table: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())
