"""Per feature, the bins in the order in which a walk meets them: by (cost, steps from home, index).

``cost`` is the distance from the point to the middle of the bin, in lattice units of 2**-32 and rounded down. The point is
the middle of its lattice position, or the upper edge of its home bin where that middle lies past it (positions that
straddle an edge): so home is never farther than another bin, and steps never fall as ranks rise. Both walks and their
depth limit rest on that.
"""

from typing import Any, NamedTuple

import numpy as np

from dpoutlier.kernels.jit import kernel

__all__ = ["LATTICE", "GridArrays", "Ranks", "new_ranks", "rank_bins"]

LATTICE = 1 << 32


class GridArrays(NamedTuple):
    """A grid as kernels see it."""

    bins: Any  # per feature
    step_length: Any  # per feature: length of one step, in units of 1 / unit
    unit: int  # length of the cube's edge


class Ranks(NamedTuple):
    """Buffers of one point, indexed (feature, rank)."""

    number: Any  # per feature
    cost: Any
    steps: Any
    bin: Any


@kernel
def new_ranks(grid: GridArrays, max_depth: int, max_cells: int) -> Ranks:
    features = grid.bins.shape[0]
    # A rank of r takes at least r + 1 visited cells and about r / 2 steps.
    most = min(grid.bins.max(), 2 * max_depth + 1, max_cells + 1)
    return Ranks(
        np.zeros(features, np.int64),
        np.zeros((features, most), np.int64),
        np.zeros((features, most), np.int64),
        np.zeros((features, most), np.int64),
    )


@kernel
def bin_cost(position: int, home: int, bins: int, index: int) -> int:
    point = min((2 * position + 1) * bins, (2 * home + 2) * LATTICE)
    return abs(point - (2 * index + 1) * LATTICE) // (2 * bins)


@kernel
def rank_bins(feature: int, position: Any, bins: int, max_depth: int, ranks: Ranks) -> None:
    """Merge the bins below and above home, both sorted already, into one order."""
    home = position * bins // LATTICE
    below, above = home - 1, home + 1
    ranks.cost[feature, 0] = bin_cost(position, home, bins, home)
    ranks.steps[feature, 0] = 0
    ranks.bin[feature, 0] = home
    rank = 1
    while rank < ranks.cost.shape[1]:
        has_below = below >= 0 and home - below <= max_depth
        has_above = above < bins and above - home <= max_depth
        if not (has_below or has_above):
            break
        cost_below = bin_cost(position, home, bins, below)
        cost_above = bin_cost(position, home, bins, above)
        take_below = has_below and (
            not has_above or (cost_below, home - below, below) < (cost_above, above - home, above)
        )
        ranks.cost[feature, rank] = cost_below if take_below else cost_above
        ranks.steps[feature, rank] = home - below if take_below else above - home
        ranks.bin[feature, rank] = below if take_below else above
        if take_below:
            below -= 1
        else:
            above += 1
        rank += 1
    ranks.number[feature] = rank
