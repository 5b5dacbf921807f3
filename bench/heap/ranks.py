"""Per feature, the bins in the order in which a walk meets them: by (cost, steps from home, index).

``cost`` is the distance from the point to the middle of the bin, in lattice units of 2**-32 and rounded down. The point is
the middle of its lattice position, or the upper edge of its home bin where that middle lies past it (positions that
straddle an edge): so home is never farther than another bin, and steps never fall as ranks rise. Both the order and the
depth limit of a walk rest on that.
"""

from typing import Any, NamedTuple

import numpy as np

from heap.jit import kernel

__all__ = ["LATTICE", "GridArrays", "Ranks", "new_ranks", "rank_bins"]

LATTICE = 1 << 32


class GridArrays(NamedTuple):
    """A grid as kernels see it."""

    bins: Any  # per feature
    unit: int  # the cube's edge, in the units of lengths


class Ranks(NamedTuple):
    """Buffers of one point. Rank r of feature j stands at ``first[j] + r``, so that features need no equal room."""

    first: Any  # per feature, and the end
    number: Any  # per feature: ranks in use
    cost: Any
    steps: Any
    length: Any  # of the steps, in units of 1 / unit
    bin: Any


@kernel
def new_ranks(grid: GridArrays, max_depth: int, max_cells: int) -> Ranks:
    features = grid.bins.shape[0]
    first = np.zeros(features + 1, np.int64)
    for j in range(features):
        # A rank of r takes at least r + 1 visited cells and about r / 2 steps.
        first[j + 1] = first[j] + min(grid.bins[j], 2 * max_depth + 1, max_cells + 1)
    room = first[features]
    return Ranks(
        first,
        np.empty(features, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
    )


@kernel
def bin_cost(position: int, home: int, bins: int, index: int) -> int:
    point = min((2 * position + 1) * bins, (2 * home + 2) * LATTICE)
    return abs(point - (2 * index + 1) * LATTICE) // (2 * bins)


@kernel
def rank_bins(feature: int, position: Any, grid: GridArrays, max_depth: int, ranks: Ranks) -> None:
    """Merge the bins below and above home, both sorted already, into one order."""
    bins = grid.bins[feature]
    home = position * bins // LATTICE
    below, above = home - 1, home + 1
    at, end = ranks.first[feature], ranks.first[feature + 1]
    ranks.cost[at], ranks.bin[at] = bin_cost(position, home, bins, home), home
    ranks.steps[at], ranks.length[at] = 0, 0
    at += 1
    while at < end:
        has_below = below >= 0 and home - below <= max_depth
        has_above = above < bins and above - home <= max_depth
        if not (has_below or has_above):
            break
        cost_below = bin_cost(position, home, bins, below)
        cost_above = bin_cost(position, home, bins, above)
        take_below = has_below and (
            not has_above or (cost_below, home - below, below) < (cost_above, above - home, above)
        )
        ranks.cost[at] = cost_below if take_below else cost_above
        ranks.bin[at] = below if take_below else above
        ranks.steps[at] = abs(ranks.bin[at] - home)
        ranks.length[at] = ranks.steps[at] * grid.unit // bins
        if take_below:
            below -= 1
        else:
            above += 1
        at += 1
    ranks.number[feature] = at - ranks.first[feature]
