"""Per feature, the bins in the order in which a walk meets them: by (cost, steps from home, index).

``cost`` is the distance from the point to the middle of the bin, in lattice units of 2**-32 and rounded down. The point is
the middle of its lattice position, or the upper edge of its home bin where that middle lies past it (positions that
straddle an edge): so home is never farther than another bin, and steps never fall as ranks rise. Both the order and the
depth limit of a walk rest on that.

With V the point's offset from the middle of home in units of 1 / (2 bins) positions, a bin t steps above costs
``(t * 2**33 - V) // (2 bins)`` and a bin t steps below ``(t * 2**33 + V) // (2 bins)``, so both bins at t steps come before
those at t + 1, and nothing needs sorting. Ranks are made as far as a walk gets, not before.

Levels without an order are all one step and the cube's edge apart, by index; so is the cell of missing values from all bins of its
line. It costs more than any of them, so it has the last rank, and there steps do fall: ``skips`` says that a search may not stop
at the first rank that is too deep.
"""

from typing import Any, NamedTuple

import numpy as np

from dpoutlier.kernels.jit import inlined
from dpoutlier.kernels.wide import multiply_add

LATTICE = 1 << 32
STEP = 1 << 33
NEVER = 1 << 62  # a cost past all others
NO_DEPTH = 1 << 24  # no feature is so deep


class GridArrays(NamedTuple):
    """A grid as kernels see it."""

    bins: Any  # per feature
    cells: Any  # per feature: its bins, and one for missing values where it has that
    absent: Any  # per feature: the position of missing values; past all positions where they have no cell
    unordered: Any  # per feature
    skips: bool  # whether any line has a cell for missing values
    unit: int  # the cube's edge, in the units of lengths
    step: Any  # per feature: the length of a step in these units, or 0 if that is not a whole number
    width: Any  # per feature: of a bin, in lattice positions and rounded up
    narrowest: int  # the least width of a feature that has more than one bin
    widest: int
    inverse: Any  # per feature: 1 / (2 bins), a float
    low: Any  # per feature: what one bin more adds to a cell's id, lower word
    high: Any  # upper word
    wide: bool  # whether ids need both words


class Ranks(NamedTuple):
    """Buffers of one point. Rank r of feature j stands at ``first[j] + r``, so that features need no equal room.

    After the last rank that was made there is one more entry, of a cost that no window reaches.
    """

    first: Any  # per feature, and the end
    number: Any  # per feature: ranks made so far
    sides: Any  # per feature: bins that were ranked or do not exist, two for each step from home
    offset: Any  # per feature: V
    home: Any  # per feature: home bin
    jumps: Any  # per feature: whether all other cells are one step away
    home_cost: Any  # per feature
    cost: Any  # per rank: beyond that of home
    steps: Any
    length: Any  # of the steps, in units of 1 / unit
    low: Any  # what the rank adds to the id of home, lower word, modulo 2**128
    high: Any


def new_ranks(grid: GridArrays, max_depth: int, max_cells: int) -> Ranks:
    features = grid.bins.shape[0]
    first = np.zeros(features + 1, np.int64)
    for j in range(features):
        # A rank of r takes at least r + 1 visited cells and, on a line, about r / 2 steps. One entry ends them.
        jumps = grid.unordered[j] or grid.cells[j] > grid.bins[j]
        within = grid.cells[j] if jumps else min(grid.bins[j], 2 * max_depth + 1)
        first[j + 1] = first[j] + min(within, max_cells + 2) + 1
    room = first[features]
    of_features, of_ranks = 4 * ["int64"] + ["bool", "int64"], 3 * ["int64"] + 2 * ["uint64"]
    buffers = [np.empty(features, kind) for kind in of_features] + [np.empty(room, kind) for kind in of_ranks]
    return Ranks(first, *buffers)


@inlined
def divided(numerator: Any, divisor: Any, inverse: Any) -> Any:
    """``numerator // divisor`` for 0 <= numerator < 2**58 and a quotient below 2**34.

    The float estimate is off by less than one, and the remainder, an exact integer, says which way.
    """
    quotient = np.int64(numerator * inverse)
    rest = numerator - quotient * divisor
    if rest < 0:
        quotient -= 1
    if rest >= divisor:
        quotient += 1
    return quotient


@inlined
def offset_in_home(position: Any, home: Any, bins: Any) -> Any:
    """V: from the middle of home to the point, in units of 1 / (2 bins) positions; at most 2**32 either way."""
    return min((2 * position + 1) * bins - (2 * home + 1) * LATTICE, LATTICE)


@inlined
def below_first(steps: Any, offset: Any, bins: Any, inverse: Any) -> Any:
    """Whether the lower of the two bins ``steps`` steps from home comes first: it costs less than the other, or the same."""
    if offset <= 0:
        return True
    if offset >= bins:  # the costs differ by at least one
        return False
    above = divided(steps * STEP - offset, 2 * bins, inverse)
    return divided(steps * STEP + offset, 2 * bins, inverse) == above


@inlined
def move(end: Any, feature: Any, away: Any, below: Any, grid: GridArrays, ranks: Ranks) -> None:
    """Set what a rank ``away`` cells from home adds to the id of home."""
    high, low = np.uint64(0), grid.low[feature] * np.uint64(away)
    if grid.wide:
        high, low = multiply_add(grid.high[feature], grid.low[feature], np.uint64(away), np.uint64(0))
    if below:  # minus, in two's complement
        low = ~low + np.uint64(1)
        high = ~high + np.uint64(low == np.uint64(0))
    ranks.low[end], ranks.high[end] = low, high


@inlined
def jump(end: Any, feature: Any, cell: Any, grid: GridArrays, ranks: Ranks) -> None:
    """Rank a cell that is one step and the cube's edge away."""
    home = ranks.home[feature]
    ranks.cost[end], ranks.steps[end], ranks.length[end] = LATTICE - ranks.home_cost[feature], 1, grid.unit
    move(end, feature, abs(cell - home), cell < home, grid, ranks)


@inlined
def reach_by_jumps(feature: Any, limit: Any, grid: GridArrays, max_depth: Any, ranks: Ranks) -> None:
    """``reach`` where all other cells are one step away."""
    end, done = ranks.first[feature] + ranks.number[feature], ranks.sides[feature]
    others, full = (grid.cells[feature] - 1 if max_depth > 0 else 0), ranks.first[feature + 1] - 1
    while ranks.cost[end - 1] < limit and done < others and end < full:
        jump(end, feature, done + (1 if done >= ranks.home[feature] else 0), grid, ranks)
        done += 1
        end += 1
    ranks.number[feature], ranks.sides[feature] = end - ranks.first[feature], done
    ranks.cost[end] = NEVER


@inlined
def farthest_cost(grid: GridArrays, max_depth: Any, ranks: Ranks) -> Any:
    """No cell of the point whose ranks were started costs more than this beyond home."""
    total = 0
    for j in range(grid.bins.shape[0]):
        home, own = ranks.home[j], 0
        if not ranks.jumps[j]:
            own = min(max(home, grid.bins[j] - 1 - home), max_depth) * grid.width[j]
        if (ranks.jumps[j] or grid.cells[j] > grid.bins[j]) and max_depth > 0:
            own = max(own, LATTICE)
        total += own
    return min(total, grid.widest * max_depth) if max_depth < NO_DEPTH else total


@inlined
def away_from_home(cell: Any, feature: Any, grid: GridArrays, ranks: Ranks) -> Any:
    """(cost beyond home, steps, length) of one cell of a feature, for the point whose ranks were started."""
    home, bins, steps = ranks.home[feature], grid.bins[feature], abs(cell - ranks.home[feature])
    if steps == 0:
        return 0, 0, 0
    if ranks.jumps[feature] or cell == bins:
        return LATTICE - ranks.home_cost[feature], 1, grid.unit
    offset = ranks.offset[feature] if cell < home else -ranks.offset[feature]
    cost = divided(steps * STEP + offset, 2 * bins, grid.inverse[feature]) - ranks.home_cost[feature]
    return cost, steps, steps * grid.unit // bins


@inlined
def reach(feature: Any, limit: Any, grid: GridArrays, max_depth: Any, ranks: Ranks) -> None:
    """Make ranks until the last one costs ``limit`` or more beyond home, or there are no more bins."""
    if ranks.jumps[feature]:
        reach_by_jumps(feature, limit, grid, max_depth, ranks)
        return
    bins, home, offset = grid.bins[feature], ranks.home[feature], ranks.offset[feature]
    inverse, home_cost = grid.inverse[feature], ranks.home_cost[feature]
    end, sides = ranks.first[feature] + ranks.number[feature], ranks.sides[feature]
    all_sides, full = 2 * min(max(home, bins - 1 - home), max_depth), ranks.first[feature + 1] - 1
    while ranks.cost[end - 1] < limit and sides < all_sides and end < full:
        steps = sides // 2 + 1
        below = below_first(steps, offset, bins, inverse) == (sides % 2 == 0)
        sides += 1
        if (below and steps > home) or (not below and home + steps >= bins):
            continue  # past the first or the last bin
        cost = divided(steps * STEP + offset if below else steps * STEP - offset, 2 * bins, inverse)
        ranks.cost[end], ranks.steps[end] = cost - home_cost, steps
        ranks.length[end] = steps * grid.step[feature] if grid.step[feature] > 0 else steps * grid.unit // bins
        move(end, feature, steps, below, grid, ranks)
        end += 1
    if (
        grid.cells[feature] > bins
        and sides == all_sides
        and max_depth > 0
        and ranks.cost[end - 1] < limit
        and end < full
    ):
        jump(end, feature, bins, grid, ranks)
        sides += 1
        end += 1
    ranks.number[feature], ranks.sides[feature] = end - ranks.first[feature], sides
    ranks.cost[end] = NEVER


@inlined
def start_ranks(position: Any, grid: GridArrays, ranks: Ranks) -> Any:
    """Rank 0 of every feature: home. Returns the cost of the home cell."""
    total = 0
    for j in range(grid.bins.shape[0]):
        bins, p = grid.bins[j], np.int64(position[j])
        home, offset, cost, jumps = (p * bins) >> 32, 0, 0, grid.unordered[j]
        if grid.cells[j] > bins and p == np.int64(grid.absent[j]):
            home, jumps = bins, True
        if not jumps:
            offset = offset_in_home(p, home, bins)
            cost = divided(abs(offset), 2 * bins, grid.inverse[j])
        ranks.jumps[j] = jumps
        ranks.home[j], ranks.offset[j], ranks.home_cost[j] = home, offset, cost
        ranks.number[j], ranks.sides[j] = 1, 0
        at = ranks.first[j]
        ranks.cost[at], ranks.steps[at], ranks.length[at] = 0, 0, 0
        ranks.low[at], ranks.high[at] = np.uint64(0), np.uint64(0)
        ranks.cost[at + 1] = NEVER
        total += cost
    return total
