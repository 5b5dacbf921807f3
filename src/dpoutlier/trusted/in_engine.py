"""Reference rows that stay in their engine: it groups them by cell, and only the counts of occupied cells come back."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from dpoutlier.engines.cells import GridWords, cells_of, word
from dpoutlier.engines.frames import collected
from dpoutlier.engines.places import positions
from dpoutlier.engines.streams import StreamedTable
from dpoutlier.engines.values import value
from dpoutlier.features.domain import Domain, Pair
from dpoutlier.model.model import Model
from dpoutlier.partitions.base import Partition, ids_below_64_bits
from dpoutlier.partitions.grid import Grid
from dpoutlier.trusted.counts import Counts
from dpoutlier.trusted.quantiles import EdgeCounts
from dpoutlier.trusted.queries import InBlocks
from dpoutlier.trusted.reference import Reference, in_silence

__all__ = ["InEngine"]

CELL, N = "cell", "n"


class InEngine:
    """The rows of a lazy frame of ``value_frame``, whose columns are the values of the features and nothing else.

    A grid is counted by one expression and one group by. Where a row lies in many cells, as in a forest, or its score is asked
    for, rows stream past our kernels, which is fifteen times as fast as the same in an engine (docs/scale.md).
    """

    def __init__(self, frame: nw.LazyFrame[Any], domain: Domain) -> None:
        self._frame, self._domain = frame, domain

    def with_domain(self, domain: Domain) -> InEngine:
        return type(self)(self._frame, domain)

    def number_of_rows(self) -> int:
        table = in_silence(lambda: collected(self._frame.select(nw.len().alias(N))))
        return int(table.column(N)[0].as_py())

    def counts(self, partition: Partition, n_jobs: int) -> Counts:
        return (
            self.counts_by_expression(partition)
            if isinstance(partition, Grid)
            else self._streamed().counts(partition, n_jobs)
        )

    def counts_by_expression(self, partition: Partition) -> Counts:
        """Counted by the engine alone: a row adds one to each of its cells."""  # (P1)
        return in_silence(lambda: counted(self._frame, self._domain, partition))

    def edge_counts(self, outer: dict[int, Pair]) -> EdgeCounts:
        return self._streamed().edge_counts(outer)

    def score_counts(self, model: Model, levels: NDArray[np.float64], n_jobs: int) -> NDArray[np.int64]:
        return self._streamed().score_counts(model, levels, n_jobs)

    def _streamed(self) -> InBlocks:
        types = {value(j): nw.Float64() for j in range(self._domain.n_features)}
        table = StreamedTable(self._frame.to_native(), types)
        return InBlocks(Reference(table, self._domain, are_values=True))


def counted(frame: nw.LazyFrame[Any], domain: Domain, partition: Partition) -> Counts:
    """One query: positions, cells, group by cell, count."""
    placed = frame.select(*positions(domain))
    if isinstance(partition, Grid):
        words = GridWords(partition)
        names = [word(i) for i in range(len(words.groups))]
        table = collected(placed.select(*words.expressions()).group_by(*names).agg(nw.len().alias(N)))
        ids = words.ids([_whole(table, name) for name in names])
    else:
        lies_in = _one_below_the_other(placed, cells_of(partition))
        table = collected(lies_in.group_by(CELL).agg(nw.len().alias(N)))
        ids = ids_below_64_bits(_whole(table, CELL))
    order = np.lexsort((ids[:, 1], ids[:, 0]))
    return Counts(ids[order], _whole(table, N)[order])


def _one_below_the_other(placed: nw.LazyFrame[Any], cells: list[nw.Expr]) -> nw.LazyFrame[Any]:
    """The cells of all rows in one column."""
    if (
        placed.implementation == nw.Implementation.DUCKDB
    ):  # narwhals unpivots on a connection that need not be the relation's
        return nw.concat([placed.select(cell.alias(CELL)) for cell in cells])
    names = [word(i) for i in range(len(cells))]
    return placed.select(*cells).unpivot(on=names, variable_name="member", value_name=CELL)


def _whole(table: Any, name: str) -> NDArray[np.int64]:
    return np.asarray(table.column(name).to_numpy(), np.int64)
