"""Exact counts of the occupied cells."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpoutlier.partitions.partition import CellIds, Partition

__all__ = ["Counts", "count_rows"]


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
    """Ids of the occupied cells in ascending order, shape (n, 2), and their exact counts. Private."""

    ids: CellIds
    counts: NDArray[np.int64]


def count_rows(positions: NDArray[np.uint32], partition: Partition) -> Counts:
    """Count each row once in each of its ``partition.cells_per_row`` cells."""  # (P1)
    ids = partition.cells(positions).reshape(-1, 2)
    ids = ids[np.lexsort((ids[:, 1], ids[:, 0]))]
    first = np.ones(len(ids), np.bool_)
    first[1:] = (ids[1:] != ids[:-1]).any(axis=1)
    starts = np.flatnonzero(first)
    return Counts(ids[starts], np.diff(np.append(starts, len(ids))).astype(np.int64))
