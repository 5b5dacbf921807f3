"""One histogram for each feature: a row lies in one bin of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import at_least_one, bad
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.kernels.margins import add_bin_terms, bin_ids, tally_bins
from dpoutlier.partitions.partition import CellIds, Coarser, bins_of_each, ids_below_64_bits

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

    def __post_init__(self) -> None:
        if not self.bins:
            raise bad("bins", "one number for each feature", self.bins)
        for bins in self.bins:
            at_least_one(MOST_BINS, bins=bins)
        if self.n_cells > MOST_CELLS:
            raise InvalidParameterError(
                f"bins give {self.n_cells:,} cells, and at most {MOST_CELLS:,} are possible: use fewer bins."
            )

    @classmethod
    def of(cls, bins: Any, n_features: int) -> Margins:
        """Margins from one number of bins for all features, or one for each."""
        return cls(bins_of_each(bins, n_features, MOST_BINS))

    @property
    def name(self) -> str:
        return "margins"

    @property
    def detail(self) -> str:
        return "a histogram for each feature on its own"

    @property
    def n_features(self) -> int:
        return len(self.bins)

    @property
    def n_cells(self) -> int:
        return sum(self.bins)

    @property
    def cells_per_row(self) -> int:
        return len(self.bins)

    @property
    def first(self) -> NDArray[np.int64]:
        """Id of the first bin of each feature."""
        return np.append(0, np.cumsum(self.bins)[:-1]).astype(np.int64)

    def cells(self, positions: NDArray[np.uint32]) -> CellIds:
        out = np.empty((len(positions), self.n_features), np.int64)
        bin_ids(np.asfortranarray(positions), np.array(self.bins), self.first, out)
        return ids_below_64_bits(out)

    def tally(self, positions: NDArray[np.uint32], counters: NDArray[np.int64]) -> None:
        tally_bins(np.asfortranarray(positions), np.array(self.bins), self.first, counters)

    def add_terms(self, positions: NDArray[np.uint32], terms: NDArray[np.int64], out: NDArray[np.int64]) -> None:
        add_bin_terms(np.asfortranarray(positions), np.array(self.bins), self.first, terms, out)

    def merges(self) -> Iterator[tuple[int, int]]:
        return iter(())

    def coarser(self, counts: NDArray[np.int64]) -> Iterator[Coarser]:  # noqa: ARG002 - nothing is left out
        return iter(())

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "bins": list(self.bins)}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Margins:
        return cls(tuple(content["bins"]))
