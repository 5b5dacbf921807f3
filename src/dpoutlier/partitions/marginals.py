"""One histogram for each feature: a row lies in one bin of each."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import parameter_error
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.axes import each_axis
from dpoutlier.kernels.marginals import add_bin_terms, bin_ids, tally_bins
from dpoutlier.partitions.base import Binned, CellIds, absent_positions, ids_below_64_bits
from dpoutlier.partitions.members import MAX_MEMBER_CELLS, Digit, EvenAxis, Member, numbered


@dataclass(frozen=True)
class Margins(Binned):
    """Bins of equal width for each feature on its own.

    >>> Margins((10, 10, 2)).n_cells
    22
    """

    name: ClassVar[str] = "margins"
    kind: ClassVar[str] = "marginals"
    detail: ClassVar[str] = "a histogram for each feature on its own"
    most_bins: ClassVar[int] = 2**16

    first: NDArray[np.int64] = field(init=False, repr=False, compare=False)
    """Id of the first bin of each feature."""

    def __post_init__(self) -> None:
        if not self.bins:
            raise parameter_error("bins", "one number for each feature", self.bins)
        super().__post_init__()
        object.__setattr__(self, "first", np.append(0, np.cumsum(self.sizes)[:-1]).astype(np.int64))
        if self.n_cells > MAX_MEMBER_CELLS:
            raise InvalidParameterError(
                f"bins give {self.n_cells:,} cells, and at most {MAX_MEMBER_CELLS:,} are possible: use fewer bins."
            )

    @property
    def n_cells(self) -> int:
        return sum(self.sizes)

    @property
    def cells_per_row(self) -> int:
        return len(self.bins)

    @property
    def members(self) -> tuple[Member, ...]:
        """The histogram of each feature."""
        axes = (EvenAxis(j, bins, axis.missing) for j, (bins, axis) in enumerate(self._features()))
        return numbered(Member((axis,), (Digit(axis.feature, axis.size),)) for axis in axes)

    def cells(self, positions: NDArray[np.uint32]) -> CellIds:
        out = np.empty((len(positions), self.n_features), np.int64)
        bin_ids(np.asfortranarray(positions), *self._arrays(), out)
        return ids_below_64_bits(out)

    def tally(self, positions: NDArray[np.uint32], counters: NDArray[np.int64]) -> None:
        tally_bins(np.asfortranarray(positions), *self._arrays(), counters)

    def add_terms(self, positions: NDArray[np.uint32], terms: NDArray[np.int64], out: NDArray[np.int64]) -> None:
        add_bin_terms(np.asfortranarray(positions), *self._arrays(), terms, out)

    def _arrays(self) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64]]:
        return np.array(self.bins), absent_positions(each_axis(self.axes, len(self.bins))), self.first
