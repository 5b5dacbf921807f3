"""What scoring, files and statements need to know of noisy counts, and all they may know."""

from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dpoutlier.kernels.constant_time import no_constant_time_table
from dpoutlier.kernels.counts import CountTable, look_up, new_scratch
from dpoutlier.kernels.occupied import Occupied, new_occupied, put_counts
from dpoutlier.noise.laplace_table import DIGITS, no_table
from dpoutlier.partitions.base import CellIds, ids_below_64_bits

STREAM = (
    128  # words of a cell that can be looked at, per digit of the table; twice as many of both if ever that is too few
)
MANY = 2**16  # cells looked up at once
MAX_COUNT = 2**38  # of a cell, in rows: with more, sums of count times distance would leave the kernels' integers


class NoisyCounts(Protocol):
    """Counts of a partition's cells after noise."""

    @property
    def kind(self) -> str:
        """The word for it in files and statements: dense, keyed, sparse, exact."""

    @property
    def publishable(self) -> bool:
        """Whether the counts themselves, and not only answers made from them, may leave the custodian."""

    def table(self, digits: int = DIGITS) -> CountTable:
        """What kernels read, with so many digits in the table of the noise. Ask ``kernel_table``, which keeps it."""

    def listed(self) -> tuple[CellIds, NDArray[np.int64]] | None:
        """Ids and counts of all cells that do not count zero, if these are listed; None if any cell may count."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a file holds."""

    def to_json(self) -> dict[str, Any]: ...


def empty_table(kind: int) -> CountTable:
    """A table of no cells, to be filled in by each kind of counts."""
    return CountTable(
        kind=kind,
        dense=np.empty(0, np.int32),  # as most dense counts have it, so that kernels are compiled once for all
        occupied=new_occupied(0),
        subkey=np.zeros(2, np.uint64),
        rate=np.uint64(1),
        guided=no_table(),
        constant_time=no_constant_time_table(),
    )


def noisy_counts(counts: NoisyCounts, ids: CellIds) -> NDArray[np.int64]:
    """Noisy counts of the cells ``ids`` of shape (n, 2), in rows."""
    out = np.empty(len(ids), np.int64)
    low, high = np.ascontiguousarray(ids[:, 1]), np.ascontiguousarray(ids[:, 0])
    table, digits = kernel_table(counts), DIGITS
    while not look_up(table, low, high, new_scratch(len(ids), STREAM * digits), out):
        digits *= 2
        table = counts.table(digits)
    return out


def all_counts(counts: NoisyCounts, n_cells: int) -> NDArray[np.int64]:
    """Noisy counts of all cells by id, in rows; for partitions of few cells."""
    out = np.empty(n_cells, np.int64)
    for first in range(0, n_cells, MANY):
        part = out[first : first + MANY]
        part[:] = noisy_counts(counts, ids_below_64_bits(np.arange(first, first + len(part))))
    return out


_tables: WeakKeyDictionary[Any, CountTable] = WeakKeyDictionary()


def kernel_table(counts: NoisyCounts) -> CountTable:
    """What kernels read of counts, made at first use and kept beside them: no pickle and no file carries it."""
    table = _tables.get(counts)
    if table is None:
        table = _tables[counts] = counts.table()
    return table


def occupied_cells(ids: CellIds, exact: NDArray[np.int64]) -> Occupied:
    """Exact counts by id, for kernels."""
    occupied = new_occupied(len(ids))
    put_counts(ids, exact, occupied)
    return occupied
