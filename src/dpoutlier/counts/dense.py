"""Dense counts: every cell's noise was drawn at the fit and the exact counts are gone. Publishable."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier.counts.base import UNSAFE_PER_ROW, empty_table
from dpoutlier.kernels.counts import DENSE, CountTable
from dpoutlier.noise.guide import DIGITS

__all__ = ["MOST_DENSE_CELLS", "DenseCounts"]

MOST_DENSE_CELLS = 2**22


def _compact(counts: NDArray[np.int64]) -> NDArray[Any]:
    """The counts in 32 bits if they fit: half the memory, and half the misses of a cache."""
    fits = not len(counts) or (counts.min() >= -(2**31) and counts.max() < 2**31)
    return counts.astype(np.int32) if fits else np.array(counts)


@dataclass(frozen=True, eq=False, repr=False)
class DenseCounts:
    """Released counts by cell id; ``unsafe_float`` marks the paper's noise, in units of 2**-10 rows."""

    counts: NDArray[np.int64]
    unsafe_float: bool = False

    def __post_init__(self) -> None:
        self.counts.setflags(write=False)

    @property
    def kind(self) -> str:
        return "dense"

    @property
    def publishable(self) -> bool:
        return not self.unsafe_float

    def table(self, digits: int = DIGITS) -> CountTable:  # noqa: ARG002 - the noise was drawn
        per_row = UNSAFE_PER_ROW if self.unsafe_float else 1
        return empty_table(DENSE)._replace(dense=_compact(self.counts), per_row=per_row)

    def listed(self) -> None:
        return None  # noise lies on every cell

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"counts": self.counts}

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "unsafe_float": self.unsafe_float}
