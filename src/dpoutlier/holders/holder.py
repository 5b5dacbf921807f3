"""What scoring, files and statements need to know of a holder, and all they may know."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpoutlier.kernels.counts import CountTable, look_up, new_scratch
from dpoutlier.kernels.occupied import Occupied, new_occupied, put_counts
from dpoutlier.noise.guide import no_table
from dpoutlier.partitions.partition import CellIds

__all__ = ["UNSAFE_PER_ROW", "NoisyCounts", "empty_table", "noisy_counts"]

UNSAFE_PER_ROW = 2**10  # resolution of the unsafe float noise, per row


class NoisyCounts(Protocol):
    """Counts of a partition's cells after noise."""

    @property
    def kind(self) -> str:
        """The word for it in files and statements: dense, keyed, exact."""

    @property
    def publishable(self) -> bool:
        """Whether the holder itself, and not only its answers, may leave the custodian."""

    def table(self) -> CountTable:
        """What kernels read."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a file holds."""

    def to_json(self) -> dict[str, Any]: ...


def empty_table(kind: int) -> CountTable:
    """A table of no cells, to be filled in by a holder."""
    return CountTable(
        kind=kind,
        per_row=1,
        dense=np.empty(0, np.int64),
        occupied=new_occupied(0),
        subkey=np.zeros(2, np.uint64),
        rate=np.uint64(1),
        scale=0.0,
        guided=no_table(),
    )


def noisy_counts(holder: NoisyCounts, ids: CellIds) -> NDArray[np.float64]:
    """Noisy counts of the cells ``ids`` of shape (n, 2), in rows."""
    out = np.empty(len(ids), np.int64)
    table = holder.table()
    low, high = np.ascontiguousarray(ids[:, 1]), np.ascontiguousarray(ids[:, 0])
    look_up(table, low, high, new_scratch(len(ids)), out)
    return np.asarray(out / table.per_row)


def occupied_cells(ids: CellIds, exact: NDArray[np.int64]) -> Occupied:
    """Exact counts by id, for kernels."""
    occupied = new_occupied(len(ids))
    put_counts(ids, exact, occupied)
    return occupied
