"""Exact counts of the non-private twins: no noise, no guarantee, secret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpoutlier.counts.base import empty_table, occupied_cells
from dpoutlier.counts.file_arrays import Arrays, listed_cells
from dpoutlier.kernels.counts import EXACT, CountTable
from dpoutlier.noise.laplace_table import DIGITS
from dpoutlier.partitions.base import CellIds, Partition


@dataclass(frozen=True, eq=False, repr=False)
class ExactCounts:
    """Counts of the occupied cells as they are."""

    kind: ClassVar[str] = "exact"
    publishable: ClassVar[bool] = False

    ids: CellIds
    exact: NDArray[np.int64]

    def table(self, digits: int = DIGITS) -> CountTable:  # noqa: ARG002 - no noise, no digits
        return empty_table(EXACT)._replace(occupied=occupied_cells(self.ids, self.exact))

    def listed(self) -> tuple[CellIds, NDArray[np.int64]] | None:
        return self.ids, self.exact

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"ids": self.ids, "exact": self.exact}

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind}

    @classmethod
    def from_file(cls, content: dict[str, Any], arrays: Arrays, partition: Partition) -> ExactCounts:  # noqa: ARG003 - nothing else is said of them
        """Counts of the cells of this partition, every array checked."""
        return cls(*listed_cells(arrays, partition, "exact"))
