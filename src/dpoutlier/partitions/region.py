"""All cells of a grid within a number of steps of one cell: a region that is fixed before any count is looked at."""

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import parameter_error
from dpoutlier.features.axes import MISSING, each_axis
from dpoutlier.features.lattice import bin_of_position, first_position
from dpoutlier.partitions.base import CellIds, absent_positions
from dpoutlier.partitions.grid import Grid

MAX_REGION = 100_000


def check_steps(grid: Grid, steps: int) -> None:
    most = grid.most_within(steps)
    if most > MAX_REGION:
        raise parameter_error(
            "steps",
            f"small enough for a region of at most {MAX_REGION:,} cells",
            steps,
            f"Up to {float(most):.3g} cells of this grid lie within that many steps.",
        )


def home_bins(grid: Grid, positions: NDArray[np.uint32]) -> NDArray[np.int64]:
    """The cell along each feature that each row lies in: its bin, or the one for missing values."""
    bins = bin_of_position(positions.astype(np.uint64), np.array(grid.bins, np.uint64))
    absent = positions == absent_positions(each_axis(grid.axes, grid.n_features))
    return np.asarray(bins + absent, np.int64)


def cells_within(grid: Grid, home: NDArray[np.int64], steps: int) -> CellIds:
    """Ids, of shape (n, 2), of the cells at most ``steps`` grid steps from the one with these bins."""
    found, left = np.empty((1, 0), np.int64), np.array([steps])
    axes = each_axis(grid.axes, grid.n_features)
    for own, bins, axis in zip(home.tolist(), grid.bins, axes, strict=True):
        near = np.arange(max(own - steps, 0), min(own + steps, bins - 1) + 1)
        absent = np.full(int(axis.missing), bins)
        choices = np.arange(bins + axis.missing) if axis.unordered or own == bins else np.append(near, absent)
        jumps = (choices != own) & (axis.unordered | (own == bins) | (choices == bins))
        taken = np.where(jumps, 1, np.abs(choices - own))
        choices, taken = choices[taken <= steps], taken[taken <= steps]
        which, choice = np.nonzero(taken <= left[:, np.newaxis])
        found = np.column_stack([found[which], choices[choice]])
        left = left[which] - taken[choice]
    last = np.array(grid.bins)
    first = np.where(found == last, MISSING, first_position(found, last))
    return grid.cells(first.astype(np.uint32))[:, 0]
