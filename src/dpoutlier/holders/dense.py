"""The dense holder: every cell's noise was drawn at the fit and the exact counts are gone. Publishable."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier.holders.holder import UNSAFE_PER_ROW, empty_table
from dpoutlier.kernels.counts import DENSE, CountTable

__all__ = ["MOST_DENSE_CELLS", "DenseCounts"]

MOST_DENSE_CELLS = 2**22


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

    def table(self) -> CountTable:
        per_row = UNSAFE_PER_ROW if self.unsafe_float else 1
        return empty_table(DENSE)._replace(dense=self.counts, per_row=per_row)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"counts": self.counts}

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "unsafe_float": self.unsafe_float}
