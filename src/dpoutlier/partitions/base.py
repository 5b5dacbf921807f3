"""What counting, noise, counts, files and statements need to know of a partition, and all they may know."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import parameter_error, positive_int
from dpoutlier.features.axes import MISSING, Axes, Axis, axes_from_json, axes_to_json, each_axis, plain
from dpoutlier.partitions.members import Member

CellIds = NDArray[np.uint64]
"""Ids of cells below 2**128 as words (high, low): the last axis has length 2."""

MAX_CELLS = 2**128


def absent_positions(axes: Sequence[Axis]) -> NDArray[np.uint64]:
    """For each axis the position of missing values that have a cell past its bins; if there is no such cell, past all positions."""
    return np.array([MISSING if axis.missing else MISSING + 1 for axis in axes], np.uint64)


def _bins_of_each(bins: Any, axes: Sequence[Axis], most: int) -> tuple[int, ...]:
    """Bins of each feature, from one number for all of them or one for each; levels are bins, whatever the number."""
    n_features = len(axes)
    if isinstance(bins, Sequence | np.ndarray) and not isinstance(bins, str) and np.ndim(bins) == 1:
        if len(bins) != n_features:
            raise parameter_error("bins", f"one number, or one for each of {n_features} features", bins)
        return tuple(axis.bins(positive_int(most, bins=b)) for b, axis in zip(bins, axes, strict=True))
    wanted = positive_int(most, bins=bins)
    return tuple(axis.bins(wanted) for axis in axes)


@dataclass(frozen=True)
class Binned:
    """What partitions share that cut each feature into bins of equal width."""

    bins: tuple[int, ...]
    axes: Axes = ()
    sizes: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """Cells along each feature: its bins, and one for missing values where it has that."""

    name: ClassVar[str]
    kind: ClassVar[str]
    most_bins: ClassVar[int]

    def __post_init__(self) -> None:
        for bins in self.bins:
            positive_int(self.most_bins, bins=bins)
        if self.axes and (len(self.axes) != len(self.bins) or self.axes != plain(self.axes)):
            raise parameter_error("axes", "one for each feature, or none where all are plain", self.axes)
        for bins, axis in self._features():
            if axis.levels not in {0, bins}:
                raise parameter_error("bins", "the number of levels where a feature has levels", bins)
        object.__setattr__(self, "sizes", tuple(bins + axis.missing for bins, axis in self._features()))

    @classmethod
    def of(cls, bins: Any, axes: Sequence[Axis]) -> Self:
        """From one number of bins for all features, or one for each; where a feature has levels, they are its bins."""
        return cls(_bins_of_each(bins, axes, cls.most_bins), plain(axes))

    def _features(self) -> list[tuple[int, Axis]]:
        return list(zip(self.bins, each_axis(self.axes, len(self.bins)), strict=True))

    @property
    def brief(self) -> str:
        return f"{max(self.bins)} bins each"

    @property
    def n_features(self) -> int:
        return len(self.bins)

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "bins": list(self.bins), **axes_to_json(self.axes)}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        return cls(tuple(content["bins"]), axes_from_json(content))


class Partition(Protocol):
    """A public map from a row to the cells that it is counted in."""

    @property
    def name(self) -> str:
        """The word for it in files."""

    @property
    def kind(self) -> str:
        """The word for it elsewhere: grid, trees, marginals."""

    @property
    def detail(self) -> str:
        """What a privacy statement says of it besides its number of cells; may be empty."""

    @property
    def brief(self) -> str:
        """Its size in a few words, for plans."""

    @property
    def n_features(self) -> int: ...

    @property
    def axes(self) -> Axes:
        """The kind of each feature; empty where all are plain lines."""

    @property
    def n_cells(self) -> int:
        """Number of cells, at most 2**128. Ids run from 0 to this."""

    @property
    def cells_per_row(self) -> int:
        """In how many cells a row is counted: the L1 sensitivity of the counts to one row more or less."""

    def cells(self, positions: NDArray[np.uint32]) -> CellIds:
        """Ids of the cells of each row of ``positions``, of shape (n, cells_per_row, 2)."""

    def tally(self, positions: NDArray[np.uint32], counters: NDArray[np.int64]) -> None:
        """Add one to the counter of each cell of each row; for partitions small enough to have a counter for every cell."""

    def add_terms(self, positions: NDArray[np.uint32], terms: NDArray[np.int64], out: NDArray[np.int64]) -> None:
        """Add to ``out``, for each row, the terms of its cells; ``terms`` has one for every cell."""

    @property
    def members(self) -> tuple[Member, ...]:
        """The small grids that its cells make up, one for each of ``cells_per_row``, in the order of their cells.

        None for ``Grid``, whose scores walk from cell to cell.
        """

    def to_json(self) -> dict[str, Any]:
        """All public numbers that make this partition."""


def ids_below_64_bits(numbers: NDArray[np.int64]) -> CellIds:
    """Ids from an array of whole numbers, of one more axis."""
    ids = np.zeros((*numbers.shape, 2), np.uint64)
    ids[..., 1] = numbers
    return ids


def cell_ids(numbers: Any) -> CellIds:
    """Ids from Python integers.

    >>> cell_ids([5, 2**64 + 7]).tolist()
    [[0, 5], [1, 7]]
    """
    return np.array([divmod(int(number), 2**64) for number in numbers], np.uint64).reshape(-1, 2)
