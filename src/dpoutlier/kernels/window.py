"""All cells whose cost lies in a window, in lexicographic order of their rank vectors, without a queue.

A cell is its vector of ranks. The search goes down from home: below a cell lie the cells that have one more non-zero rank,
in a feature after the last. Costs never fall on the way down nor with the rank, so whatever reaches the window's end prunes all
that lies behind it. Visiting features from last to first and ranks upwards gives the vectors in lexicographic order: then a
*stable* sort by cost alone is the order of (cost, rank vector) that the walk is defined by, and no vector is ever stored.

Nothing is kept between windows: the cells before the window are passed again. Windows grow, so that each cell is passed about once
more than it is found.
"""

from typing import Any, NamedTuple

import numpy as np

from dpoutlier.kernels.jit import inlined
from dpoutlier.kernels.ranks import NEVER, Ranks

HOME, ONE = np.uint64(0), np.uint64(1)


class Window(NamedTuple):
    """Cells that were found. One entry per cell."""

    cost: Any  # beyond that of home
    low: Any  # id, lower word
    high: Any  # id, upper word; zero, and never written, where ids need one word only
    length: Any  # distance between the centroids of the cell and of home, in units of 1 / unit


class Path(NamedTuple):
    """The cells between home and where the search stands; it can stop anywhere and go on.

    Features count from 1 here, so that 0 can stand for home, and all indices are unsigned, which spares a check at each use.
    """

    at: Any  # [level, feature, rank's index]: what to try next
    cost: Any  # per level
    depth: Any
    length: Any
    low: Any
    high: Any
    feature: Any  # per level: last feature of non-zero rank, 0 for home
    next: Any  # per level: rank's index where the search goes on when it comes back
    begin: Any  # per feature: index of rank 1
    cheaper: Any  # per feature: the nearest one before it whose first step costs less; 0 if none
    cheapest: Any  # per feature, and for home: the least cost of a first step among the features after it


def new_window(room: int) -> Window:
    return Window(
        np.empty(room, np.int64), np.empty(room, np.uint64), np.zeros(room, np.uint64), np.empty(room, np.int64)
    )


def new_path(ranks: Ranks) -> Path:
    levels = ranks.number.shape[0] + 1
    kinds = 3 * ["int64"] + 6 * ["uint64"] + ["int64"]
    path = Path(np.zeros(3, np.uint64), *(np.zeros(levels, kind) for kind in kinds))
    for j in range(1, levels):
        path.begin[j] = ranks.first[j - 1] + 1
    return path


@inlined
def set_out(high: Any, low: Any, ranks: Ranks, path: Path) -> None:
    """Stand at home, whose id is (high, low), with nothing tried."""
    features = ranks.number.shape[0]
    path.low[0], path.high[0], path.feature[0] = low, high, HOME
    path.cost[0], path.depth[0], path.length[0] = 0, 0, 0
    path.at[0], path.at[1], path.at[2] = HOME, np.uint64(features), path.begin[features]


@inlined
def compare_first_steps(ranks: Ranks, path: Path) -> None:
    """What prunes whole features: for each, the least first step after it, and the nearest cheaper one before it."""
    features = ranks.number.shape[0]
    path.cheapest[features] = NEVER
    for j in range(features, 0, -1):
        path.cheapest[j - 1] = min(path.cheapest[j], ranks.cost[path.begin[j]])
    for j in range(1, features + 1):
        # Where a first step is too dear, so are those of all features between it and the nearest one that is cheaper.
        step, other = ranks.cost[path.begin[j]], np.uint64(j - 1)
        while other > HOME and ranks.cost[path.begin[other]] >= step:
            other = path.cheaper[other]
        path.cheaper[j] = other


@inlined
def find_cells(
    start: Any, end: Any, wide: Any, skips: Any, max_depth: Any, ranks: Ranks, path: Path, window: Window
) -> Any:
    """Put the cells of start <= cost < end into ``window`` until it is full. Returns (how many, whether that was all).

    Ranks must reach ``end``. If that was not all, a call with the same path goes on.
    """
    features = np.uint64(ranks.number.shape[0])
    room, found, complete = np.uint64(window.cost.shape[0]), np.uint64(0), False
    level, i, at = path.at[0], path.at[1], path.at[2]
    cost, depth, length = path.cost[level], path.depth[level], path.length[level]
    low, high, own = path.low[level], path.high[level], path.feature[level]
    while found < room:
        if i > own:
            new_cost, new_depth = cost + ranks.cost[at], depth + ranks.steps[at]
            if skips and new_cost < end and new_depth > max_depth:
                at += ONE  # a later rank may be less deep
                continue
            if new_cost >= end or new_depth > max_depth:
                i = path.cheaper[i] if at == path.begin[i] else i - ONE
                at = path.begin[i]
                continue
            new_low, new_high = low + ranks.low[at], high
            if wide:
                new_high = high + ranks.high[at] + np.uint64(new_low < low)
            new_length = length + ranks.length[at]
            if new_cost >= start:
                window.cost[found], window.low[found], window.length[found] = new_cost, new_low, new_length
                if wide:
                    window.high[found] = new_high
                found += ONE
            at += ONE
            if new_cost + path.cheapest[i] < end and new_depth < max_depth:  # there is something below
                path.next[level] = at
                level += ONE
                cost, depth, length, low, high, own = new_cost, new_depth, new_length, new_low, new_high, i
                path.cost[level], path.depth[level], path.length[level] = cost, depth, length
                path.low[level], path.high[level], path.feature[level] = low, high, own
                i, at = features, path.begin[features]
        else:
            if level == HOME:
                complete = True
                break
            i = own
            level -= ONE
            at = path.next[level]
            cost, depth, length = path.cost[level], path.depth[level], path.length[level]
            low, high, own = path.low[level], path.high[level], path.feature[level]
    path.at[0], path.at[1], path.at[2] = level, i, at
    return np.int64(found), complete
