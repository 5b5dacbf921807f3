"""Reference rows on a cluster. Our kernels run on the workers, and their partial results are added up.

A task that is lost runs again, and the cluster adds up the result of one successful run of each task: no row is lost, and none
counts twice.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpoutlier.counts.keyed import secrets_may_travel
from dpoutlier.engines.base import ClusterEngine
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.domain import Domain, Pair
from dpoutlier.model.model import Model
from dpoutlier.model.plan import Plan
from dpoutlier.partitions.base import Partition, ids_below_64_bits
from dpoutlier.partitions.grid import Grid
from dpoutlier.tables.batched import BatchedTable
from dpoutlier.trusted.counts import Counts
from dpoutlier.trusted.in_engine import QueriedReference
from dpoutlier.trusted.quantiles import EdgeCounts
from dpoutlier.trusted.queries import ReferenceQueries, StreamedReference
from dpoutlier.trusted.reference import Reference, in_silence

PARTIAL = pa.schema([("part", pa.int32()), ("high", pa.int64()), ("low", pa.int64()), ("n", pa.int64())])
KEY = ["part", "high", "low"]


def check_workers(engine: ClusterEngine, frame: Any, plan: Plan) -> None:
    """Refuse a plan that needs dpoutlier on the workers if it is not there. No row is read."""
    purpose = "private bounds (PrivateBounds)" if plan.domain.estimated else "a threshold (target_fpr)"
    needed = bool(plan.domain.estimated) or plan.target_fpr is not None
    if needed and not engine.workers_have(frame, "dpoutlier"):
        raise InvalidParameterError(
            f"a fit with {purpose} on {engine.name} needs dpoutlier on the workers, but it was not found there. "
            f"{engine.how_to_install}, or leave out {purpose}."
        )


class ClusterReference(QueriedReference[ClusterEngine]):
    """The rows of an engine on a cluster. A query counts grids, and all partitions if the workers lack dpoutlier."""

    def counts(self, partition: Partition, n_jobs: int) -> Counts:  # noqa: ARG002 - the cluster has its own threads
        if isinstance(partition, Grid) or not self._engine.workers_have(self._frame.to_native(), "dpoutlier"):
            return self.counts_by_query(partition)
        table = self._added_up(partial(_counts, partition))
        ids = np.stack([table["high"], table["low"]], axis=-1).view(np.uint64)
        order = np.lexsort((ids[:, 1], ids[:, 0]))
        return Counts(ids[order], table["n"][order])

    def edge_counts(self, outer: dict[int, Pair]) -> EdgeCounts:
        table = self._added_up(partial(_edge_counts, outer))
        found = EdgeCounts(list(outer.values()))
        for part, place, n in zip(table["part"], table["low"], table["n"], strict=True):
            found.between(int(part))[place] += n
        return found

    def score_counts(self, model: Model, levels: NDArray[np.float64], n_jobs: int) -> NDArray[np.int64]:  # noqa: ARG002
        table = self._added_up(partial(_score_counts, model, levels))
        found = np.zeros(len(levels), np.int64)
        np.add.at(found, table["low"], table["n"])
        return found

    def _added_up(self, answer: Callable[[ReferenceQueries], pa.Table]) -> dict[str, NDArray[Any]]:
        """The sum over all tasks of what each makes of its rows."""

        def run() -> dict[str, NDArray[Any]]:
            with secrets_may_travel():  # to workers, which hold the rows themselves
                each = self._engine.map_tables(
                    self._frame.to_native(), partial(_of_task, self._domain, answer), PARTIAL
                )
            table = self._engine.run(nw.from_native(each).group_by(*KEY).agg(nw.col("n").sum()))
            return {name: table.column(name).to_numpy() for name in (*KEY, "n")}

        return in_silence(run)


def _of_task(
    domain: Domain, answer: Callable[[ReferenceQueries], pa.Table], tables: Iterator[pa.Table]
) -> Iterator[pa.Table]:
    yield answer(StreamedReference(Reference(_Passing(tables), domain, are_values=True)))


class _Passing(BatchedTable):
    """A table in batches that can be read only once."""

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self._tables = tables

    def types(self) -> dict[str, Any]:
        raise NotImplementedError

    def batches(self) -> Iterator[pa.Table]:
        return self._tables


def _table(part: Iterable[int], ids: NDArray[np.uint64], n: NDArray[np.int64]) -> pa.Table:
    words = np.ascontiguousarray(ids).view(np.int64)
    return pa.table([np.asarray(part, np.int32), words[:, 0], words[:, 1], n], schema=PARTIAL)


def _counts(partition: Partition, rows: ReferenceQueries) -> pa.Table:
    found = rows.counts(partition, 1)
    return _table(np.zeros(len(found.counts), np.int32), found.ids, found.counts)


def _edge_counts(outer: dict[int, Pair], rows: ReferenceQueries) -> pa.Table:
    found = rows.edge_counts(outer)
    return pa.concat_tables([_nonzero(i, found.between(i)) for i in range(len(outer))])


def _score_counts(model: Model, levels: NDArray[np.float64], rows: ReferenceQueries) -> pa.Table:
    return _nonzero(0, rows.score_counts(model, levels, 1))


def _nonzero(part: int, n: NDArray[np.int64]) -> pa.Table:
    at = np.flatnonzero(n)
    return _table(np.full(len(at), part), ids_below_64_bits(at), n[at])
