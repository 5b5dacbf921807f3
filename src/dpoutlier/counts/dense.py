"""Dense counts: every cell's noise was drawn at the fit and the exact counts are gone. Publishable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpoutlier.counts.base import MAX_COUNT, empty_table
from dpoutlier.counts.file_arrays import Arrays, expect, too_large
from dpoutlier.exceptions import ModelFileError
from dpoutlier.kernels.counts import DENSE, CountTable
from dpoutlier.noise.laplace_table import DIGITS
from dpoutlier.partitions.base import Partition

MAX_DENSE_CELLS = 2**22


def _compact(counts: NDArray[np.int64]) -> NDArray[Any]:
    """The counts in 32 bits if they fit: half the memory, and half the misses of a cache."""
    fits = not len(counts) or (counts.min() >= -(2**31) and counts.max() < 2**31)
    return counts.astype(np.int32) if fits else np.array(counts)


@dataclass(frozen=True, eq=False, repr=False)
class DenseCounts:
    """Released counts by cell id."""

    kind: ClassVar[str] = "dense"
    publishable: ClassVar[bool] = True

    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        self.counts.setflags(write=False)

    def table(self, digits: int = DIGITS) -> CountTable:  # noqa: ARG002 - the noise was drawn
        return empty_table(DENSE)._replace(dense=_compact(self.counts))

    def listed(self) -> None:
        return None  # noise lies on every cell

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"counts": self.counts}

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "unsafe_float": False}  # of a mode that is gone; version 1 of the format names it

    @classmethod
    def from_file(cls, content: dict[str, Any], arrays: Arrays, partition: Partition) -> DenseCounts:  # noqa: ARG003 - nothing else is said of them
        """Counts of the cells of this partition, every array checked."""
        if partition.n_cells > MAX_DENSE_CELLS:
            raise ModelFileError("the model file has too many cells for dense counts.")
        counts = expect(arrays, "counts", "<i8", (partition.n_cells,))
        if too_large(counts, MAX_COUNT):
            raise ModelFileError("the counts of the model file are too large.")
        return cls(counts)
