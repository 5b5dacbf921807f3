"""Reference rows that stay in their engine: it groups them by cell, and only the counts of occupied cells come back."""

from typing import Any, Generic, Self, TypeVar

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from dpoutlier.engines.base import LocalEngine, QueryEngine, StreamedTable
from dpoutlier.engines.expressions.cells import GridWords, cells_of, word
from dpoutlier.engines.expressions.positions import positions
from dpoutlier.engines.expressions.values import value
from dpoutlier.features.domain import Domain, Pair
from dpoutlier.model.model import Model
from dpoutlier.partitions.base import Partition, ids_below_64_bits
from dpoutlier.partitions.grid import Grid
from dpoutlier.trusted.counts import Counts
from dpoutlier.trusted.quantiles import EdgeCounts
from dpoutlier.trusted.queries import StreamedReference
from dpoutlier.trusted.reference import Reference, in_silence

CELL, N = "cell", "n"
E = TypeVar("E", bound=QueryEngine)


class QueriedReference(Generic[E]):
    """The rows of a lazy frame of ``value_frame``, whose columns are the values of the features and nothing else.

    Base class: the answers that need only queries.
    """

    def __init__(self, frame: nw.LazyFrame[Any], domain: Domain, engine: E) -> None:
        self._frame, self._domain, self._engine = frame, domain, engine

    def with_domain(self, domain: Domain) -> Self:
        return type(self)(self._frame, domain, self._engine)

    def number_of_rows(self) -> int:
        table = in_silence(lambda: self._engine.run(self._frame.select(nw.len().alias(N))))
        return int(table.column(N)[0].as_py())

    def counts_by_query(self, partition: Partition) -> Counts:
        """A row adds one to each of its cells."""  # (P1)
        return in_silence(lambda: counted(self._engine, self._frame, self._domain, partition))


class EngineReference(QueriedReference[LocalEngine]):
    """The rows of an engine in this process.

    A grid is counted by one expression and one group by. Where a row lies in many cells, as in a forest, or its score is asked
    for, rows stream past our kernels, which is fifteen times as fast as the same in an engine (docs/scale.md).
    """

    def counts(self, partition: Partition, n_jobs: int) -> Counts:
        if isinstance(partition, Grid):
            return self.counts_by_query(partition)
        return self._streamed().counts(partition, n_jobs)

    def edge_counts(self, outer: dict[int, Pair]) -> EdgeCounts:
        return self._streamed().edge_counts(outer)

    def score_counts(self, model: Model, levels: NDArray[np.float64], n_jobs: int) -> NDArray[np.int64]:
        return self._streamed().score_counts(model, levels, n_jobs)

    def _streamed(self) -> StreamedReference:
        types = {value(j): nw.Float64() for j in range(self._domain.n_features)}
        table = StreamedTable(self._engine, self._frame.to_native(), types)
        return StreamedReference(Reference(table, self._domain, are_values=True))


def counted(engine: QueryEngine, frame: nw.LazyFrame[Any], domain: Domain, partition: Partition) -> Counts:
    """One query: positions, cells, group by cell, count."""
    placed = frame.select(*positions(domain))
    if isinstance(partition, Grid):
        words = GridWords(partition)
        names = [word(i) for i in range(len(words.groups))]
        table = engine.run(placed.select(*words.expressions()).group_by(*names).agg(nw.len().alias(N)))
        ids = words.ids([_whole(table, name) for name in names])
    else:
        lies_in = engine.in_one_column(placed, cells_of(partition), CELL)
        table = engine.run(lies_in.group_by(CELL).agg(nw.len().alias(N)))
        ids = ids_below_64_bits(_whole(table, CELL))
    order = np.lexsort((ids[:, 1], ids[:, 0]))
    return Counts(ids[order], _whole(table, N)[order])


def _whole(table: Any, name: str) -> NDArray[np.int64]:
    return np.asarray(table.column(name).to_numpy(), np.int64)
