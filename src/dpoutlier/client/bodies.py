"""Points as Arrow streams, cut so that each is within a server's limits, and scores from one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpoutlier.client.connection import Answer
from dpoutlier.client.description import Limits
from dpoutlier.domain import Domain
from dpoutlier.exceptions import ServerError

__all__ = ["points_batches", "points_body", "scores_of_answer"]

FOR_A_COLUMN = 512
"""Bytes of a stream for each column, beside its values: lengths, padding, and its share of the head."""


def points_batches(
    columns: Sequence[NDArray[Any]], domain: Domain, limits: Limits, most: int
) -> Iterator[tuple[int, int]]:
    """(first, last) of batches of at most ``most`` rows, and of fewer bytes than the limit. There is at least one."""
    fixed = len(_stream(_schema(domain).empty_table())) + FOR_A_COLUMN * domain.n_features
    of_a_row = sum(_width(domain, j) for j in range(domain.n_features))
    size = max(1, min(most, int((limits.bytes - fixed) / of_a_row)))
    n = len(columns[0])
    for first in range(0, max(n, 1), size):
        yield first, min(first + size, n)


def points_body(columns: Sequence[NDArray[Any]], domain: Domain, first: int, last: int) -> bytes:
    """Rows ``first`` to ``last``: numbers as float64, where NaN is missing, and levels by their names.

    The server makes the same numbers of them, to the bit: a level's name is that level, and what is called "other" is no level.
    """
    arrays = [_array(column[first:last], domain, j) for j, column in enumerate(columns)]
    return _stream(pa.Table.from_arrays(arrays, schema=_schema(domain)))


def scores_of_answer(answer: Answer, n: int) -> tuple[str, NDArray[np.float64]]:
    """The release and the scores of n points."""
    try:
        table = pa.ipc.open_stream(answer.body).read_all()
        scores = table.column("outlier_score").to_numpy()
        release = (table.schema.metadata or {})[b"release"].decode("ascii")
        if scores.dtype == np.float64 and len(scores) == n:
            return release, np.array(scores)
    except (pa.ArrowException, KeyError, ValueError, OSError):
        pass
    raise ServerError("the server did not answer with a score for each point; is it a dpoutlier server?")


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
