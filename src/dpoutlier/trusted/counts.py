"""Exact counts of the occupied cells: one pass over the rows, block by block, in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier.features.domain import Domain
from dpoutlier.features.lattice import POSITIONS
from dpoutlier.kernels.count_grid import (
    LIST_BLOCK,
    MAX_BINS,
    BinArrays,
    count_by_columns,
    count_by_rows,
    count_column_list,
)
from dpoutlier.kernels.occupied import Occupied, new_occupied
from dpoutlier.kernels.tally import tally_sparse
from dpoutlier.partitions.base import CellIds, Partition
from dpoutlier.partitions.grid import Grid
from dpoutlier.scoring.threads import in_chunks
from dpoutlier.tables.rows import Positions, Rows

MAX_COUNTERS = 2**22  # cells that have a counter each; past that, occupied cells only
CHUNK = 2**19
BLOCK_VALUES = 2**16


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
    """Ids of the occupied cells in ascending order, shape (n, 2), and their exact counts. Private."""

    ids: CellIds
    counts: NDArray[np.int64]


def count_rows(blocks: Iterable[Positions], partition: Partition, n_jobs: int = 1) -> Counts:
    """Count each row once in each of its ``partition.cells_per_row`` cells."""  # (P1)
    make = _Dense if partition.n_cells <= MAX_COUNTERS else _Sparse
    tallies: list[Any] = [make(partition)]  # one for each thread
    lock = Lock()
    for rows in blocks:
        free = list(tallies)

        def start(rows: Positions = rows, free: list[Any] = free) -> Callable[[slice], None]:
            # A tally that two threads took, or that stood twice in the list, would lose rows or count them twice.
            with lock:
                if not free:
                    free.append(make(partition))
                    tallies.append(free[-1])
                return partial(free.pop(), rows)

        in_chunks(len(rows), n_jobs, start, most=CHUNK)
    found: Counts = tallies[0].total(tallies[1:])
    return found


class _Dense:
    """A counter for every cell."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.counts = np.zeros(partition.n_cells, np.int64)
        self.ids, self.whole = np.empty(LIST_BLOCK), np.empty(LIST_BLOCK, np.int32)

    def __call__(self, rows: Positions, part: slice) -> None:
        if isinstance(rows, Rows) and _straight_from_floats(rows.domain, self.partition):
            assert isinstance(self.partition, Grid)
            self._straight(rows, part, _bins(rows.domain, self.partition))
            return
        # In blocks that stay in a cache: an array of rows is read here once for each of its columns.
        step = max(BLOCK_VALUES // self.partition.n_features, 1)
        for first in range(part.start, part.stop, step):
            self.partition.tally(rows[first : min(first + step, part.stop)], self.counts)

    def _straight(self, rows: Rows, part: slice, bins: BinArrays) -> None:
        """Count floats on a grid in one pass, from values to counters."""
        values, buffers = rows.values, (self.ids, self.whole, self.counts)
        if isinstance(values, np.ndarray):
            count = count_by_rows if values.flags.c_contiguous else count_by_columns
            count(values, part.start, part.stop, bins, *buffers)
            return
        for first in range(part.start, part.stop, LIST_BLOCK):
            last = min(first + LIST_BLOCK, part.stop)
            count_column_list([column[first:last] for column in values], bins, *buffers)

    def total(self, others: list[_Dense]) -> Counts:
        counts = sum((other.counts for other in others), self.counts)
        occupied = np.flatnonzero(counts)
        ids = np.zeros((len(occupied), 2), np.uint64)
        ids[:, 1] = occupied
        return Counts(ids, counts[occupied].astype(np.int64))


def _straight_from_floats(domain: Domain, partition: Partition) -> bool:
    """Whether a kernel takes this from values to counters at once; a missing value then falls into the first bin."""
    return isinstance(partition, Grid) and max(partition.bins) <= MAX_BINS and domain.missing is None


@lru_cache(maxsize=8)
def _bins(domain: Domain, grid: Grid) -> BinArrays:
    arrays = grid.arrays()
    return BinArrays(
        lower=np.array([line.lower for line in domain.lines]),
        scale=np.array([line.scale for line in domain.lines]),
        share=arrays.bins / float(POSITIONS),
        last=arrays.bins - 1.0,
        stride=arrays.low.astype(np.float64),
    )


class _Sparse:
    """A hash table of the occupied cells, twice as large whenever it is half full."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.occupied, self.used = new_occupied(1024), np.zeros(1, np.int64)

    def __call__(self, rows: Positions, part: slice) -> None:
        cells = self.partition.cells(rows[part])
        ones = np.ones(len(cells), np.int64)
        for k in range(self.partition.cells_per_row):
            self.add(cells[:, k, 0], cells[:, k, 1], ones)

    def add(self, high: NDArray[np.uint64], low: NDArray[np.uint64], amounts: NDArray[np.int64]) -> None:
        done = 0
        while (done := tally_sparse(high, low, amounts, self.occupied, self.used, done)) < len(low):
            full, self.occupied = self.occupied, new_occupied(len(self.occupied.count))
            self.used[0] = 0
            self.add(*_entries(full))

    def total(self, others: list[_Sparse]) -> Counts:
        for other in others:
            self.add(*_entries(other.occupied))
        high, low, counts = _entries(self.occupied)
        order = np.lexsort((low, high))
        return Counts(np.stack([high[order], low[order]], axis=-1), counts[order])


def _entries(occupied: Occupied) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64]]:
    """(high, low, count) of the occupied slots."""
    at = np.flatnonzero(occupied.count)
    return occupied.high[at], occupied.low[at], occupied.count[at]
