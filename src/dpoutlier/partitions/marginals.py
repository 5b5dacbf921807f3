"""One histogram for each feature: a row lies in one bin of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import at_least_one, bad
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.axes import Axes, Axis, axes_from_json, axes_to_json, each_axis, plain
from dpoutlier.kernels.margins import add_bin_terms, bin_ids, tally_bins
from dpoutlier.partitions.base import (
    CellIds,
    Coarser,
    absent_positions,
    bins_of_each,
    check_axes,
    ids_below_64_bits,
)

__all__ = ["Margins"]

MOST_BINS = 2**16
MOST_CELLS = 2**22


@dataclass(frozen=True)
class Margins:
    """Bins of equal width for each feature on its own.

    >>> Margins((10, 10, 2)).n_cells
    22
    """

    bins: tuple[int, ...]
    axes: Axes = ()
    sizes: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """Cells of each feature: its bins, and one for missing values where it has that."""
    first: NDArray[np.int64] = field(init=False, repr=False, compare=False)
    """Id of the first bin of each feature."""

    def __post_init__(self) -> None:
        if not self.bins:
            raise bad("bins", "one number for each feature", self.bins)
        for bins in self.bins:
            at_least_one(MOST_BINS, bins=bins)
        check_axes(self.axes, self.bins)
        axes = each_axis(self.axes, len(self.bins))
        object.__setattr__(self, "sizes", tuple(b + axis.missing for b, axis in zip(self.bins, axes, strict=True)))
        object.__setattr__(self, "first", np.append(0, np.cumsum(self.sizes)[:-1]).astype(np.int64))
        if self.n_cells > MOST_CELLS:
            raise InvalidParameterError(
                f"bins give {self.n_cells:,} cells, and at most {MOST_CELLS:,} are possible: use fewer bins."
            )

    @classmethod
    def of(cls, bins: Any, axes: Sequence[Axis]) -> Margins:
        """Margins from one number of bins for all features, or one for each."""
        return cls(bins_of_each(bins, axes, MOST_BINS), plain(axes))

    @property
    def name(self) -> str:
        return "margins"

    @property
    def detail(self) -> str:
        return "a histogram for each feature on its own"

    @property
    def brief(self) -> str:
        return f"{max(self.bins)} bins each"

    @property
    def n_features(self) -> int:
        return len(self.bins)

    @property
    def n_cells(self) -> int:
        return sum(self.sizes)

    @property
    def cells_per_row(self) -> int:
        return len(self.bins)

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

    def merges(self) -> Iterator[tuple[int, int]]:
        return iter(())

    def coarser(self, counts: NDArray[np.int64]) -> Iterator[Coarser]:  # noqa: ARG002 - nothing is left out
        return iter(())

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "bins": list(self.bins), **axes_to_json(self.axes)}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Margins:
        return cls(tuple(content["bins"]), axes_from_json(content))
