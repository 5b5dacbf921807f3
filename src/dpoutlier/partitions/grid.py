"""The paper's partition: each feature cut into equal bins (Section 4.2)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from operator import mul
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpoutlier.exceptions import TooManyCellsError
from dpoutlier.features.axes import Axis, each_axis
from dpoutlier.kernels.cells import home_cells
from dpoutlier.kernels.ranks import GridArrays
from dpoutlier.kernels.tally import tally_dense
from dpoutlier.partitions.base import MAX_CELLS, Binned, CellIds, absent_positions
from dpoutlier.partitions.members import Member, strides_of

MAX_BINS = 2**24
FINEST_UNIT = 2**38
MAX_SUMS = 100_000
MAX_DEPTH = 64


@dataclass(frozen=True)
class Grid(Binned):
    """A grid of ``prod(bins)`` cells over the unit cube (the paper prints d**b; it is b**d).

    >>> Grid((10, 10, 2)).n_cells
    200
    """

    name: ClassVar[str] = "grid"
    kind: ClassVar[str] = "grid"
    detail: ClassVar[str] = ""
    cells_per_row: ClassVar[int] = 1
    members: ClassVar[tuple[Member, ...]] = ()
    most_bins: ClassVar[int] = MAX_BINS

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(n_cells > MAX_CELLS for n_cells in accumulate(self.sizes, mul)):
            raise TooManyCellsError(
                f"bins give a grid of {len(self.bins)} features with more than 2**128 = 3.4e38 cells, which cannot be "
                "numbered. Use fewer bins or fewer features."
            )

    @property
    def n_cells(self) -> int:
        return math.prod(self.sizes)

    @property
    def strides(self) -> list[int]:
        """What one cell more of each feature adds to a cell's number."""
        return strides_of(self.sizes)

    @property
    def unit(self) -> int:
        """The edge of the cube in the integers that cell distances are measured in.

        The least common multiple of the bins, so that t steps of 1 / b are a whole number; past 2**38, that, and t steps are
        rounded down to a whole number. Levels without an order are an edge apart, and ask for nothing.
        """
        return min(math.lcm(*(b for b, axis in self._features() if not axis.unordered)), FINEST_UNIT)

    def distances(self, max_depth: int | None, most: int) -> NDArray[np.int64]:
        """The distances that a cell within ``max_depth`` steps can have from home, in units of 1 / ``unit``, ascending.

        All of them if there are at most ``most``; else that many of them, or of multiples up to the largest.
        """
        deepest = sum(self.sizes) if max_depth is None else max_depth
        reached, unit = {(0, 0)}, self.unit  # (depth, distance)
        for bins, axis in self._features():
            choices = 1 if axis.unordered else min(bins - 1, deepest) + 1
            steps = [(t, t * unit // bins) for t in range(choices)] + [(1, unit)] * _has_jumps(bins, axis)
            if len(reached) * len(steps) > MAX_SUMS:
                return np.linspace(0, self._farthest(deepest), most).astype(np.int64)
            reached = {(s + t, x + y) for s, x in reached for t, y in steps if s + t <= deepest}
        found = np.unique([x for _, x in reached])
        return found if len(found) <= most else found[np.linspace(0, len(found) - 1, most).astype(np.int64)]

    def most_within(self, max_depth: int | None) -> int:
        """No more cells than this lie within ``max_depth`` steps of any cell.

        >>> Grid((9, 9)).most_within(1), Grid((9, 9)).most_within(None)
        (5, 81)
        """
        if max_depth is None or max_depth > MAX_DEPTH:  # not worth counting
            return self.n_cells
        reached = [1] + [0] * max_depth  # vectors of so many steps
        for bins, axis in self._features():
            # Within t steps on a line lie at most 2 t other bins; by a jump all others are within one.
            new = [min(2 * t, bins - 1) - min(2 * (t - 1), bins - 1) if t else 1 for t in range(max_depth + 1)]
            if axis.unordered:
                new = [1, bins - 1, *[0] * max_depth][: max_depth + 1]
            elif axis.missing and max_depth:
                new[1] = max(new[1] + 1, bins)  # from a bin, or from the missing cell
            reached = [sum(reached[t - s] * new[s] for s in range(t + 1)) for t in range(max_depth + 1)]
        return min(sum(reached), self.n_cells)

    def _farthest(self, max_depth: int) -> int:
        """The largest distance within ``max_depth`` steps: the longest steps, those of the fewest bins, first."""
        distance, unit = 0, self.unit
        jumps = sum(_has_jumps(bins, axis) for bins, axis in self._features())
        distance += min(jumps, max_depth) * unit
        max_depth -= min(jumps, max_depth)
        for bins in sorted(bins for bins, axis in self._features() if not _has_jumps(bins, axis)):
            steps = min(bins - 1, max_depth)
            distance += steps * unit // bins
            max_depth -= steps
        return distance

    def cells(self, positions: NDArray[np.uint32]) -> CellIds:
        """Mixed-radix numbers of the bins ``(p * b) // 2**32``, the first feature most significant."""
        words = np.empty((2, 1, len(positions)), np.uint64)
        home_cells(np.asfortranarray(positions), self.arrays(), words[0, 0], words[1, 0])
        return words.T

    def tally(self, positions: NDArray[np.uint32], counters: NDArray[np.int64]) -> None:
        tally_dense(self.cells(positions)[:, 0, 1], counters)

    def add_terms(self, positions: NDArray[np.uint32], terms: NDArray[np.int64], out: NDArray[np.int64]) -> None:
        out += terms[self.cells(positions)[:, 0, 1]]

    def arrays(self) -> GridArrays:
        """What kernels read."""
        return _arrays(self)


def _has_jumps(bins: int, axis: Axis) -> bool:
    """Whether a step along this feature can be as long as the cube's edge."""
    return axis.missing or (axis.unordered and bins > 1)


@lru_cache(maxsize=64)
def _arrays(grid: Grid) -> GridArrays:
    bins, unit, axes = np.array(grid.bins, np.int64), grid.unit, each_axis(grid.axes, len(grid.bins))
    unordered = np.array([axis.unordered for axis in axes])
    width = np.where(unordered, 2**32, 2**32 // bins + 1)
    jumps = any(_has_jumps(b, axis) for b, axis in zip(grid.bins, axes, strict=True))
    return GridArrays(
        bins=bins,
        cells=np.array(grid.sizes, np.int64),
        absent=absent_positions(axes),
        unordered=unordered,
        skips=any(axis.missing for axis in axes),
        unit=unit,
        step=np.where(unit % bins == 0, unit // bins, 0),
        width=width,
        narrowest=int(width[bins > 1].min(initial=2**32)),
        widest=int(max(width.max(), 2**32 if jumps else 0)),
        inverse=1 / (2.0 * bins),
        low=np.array([stride % 2**64 for stride in grid.strides], np.uint64),
        high=np.array([(stride >> 64) % 2**64 for stride in grid.strides], np.uint64),
        wide=grid.n_cells > 2**64,
    )


def bins_by_rule(n_rows: float, epsilon_counts: float, n_features: int, levels: Sequence[int] = ()) -> int:
    """Bins per feature from public numbers alone (the rule of Su et al. 2016): at least 2.

    Features with ``levels`` have their number of cells already; only the bins of the other features are chosen.

    >>> bins_by_rule(n_rows=1000, epsilon_counts=1.0, n_features=2)
    10
    """
    d = n_features
    cells = max(n_rows * epsilon_counts / 10, 1.0) ** (2 * d / (2 + d))
    wanted = math.exp((math.log(cells) - sum(map(math.log, levels))) / max(d - len(levels), 1))
    return int(min(max(round(wanted), 2), MAX_BINS))
