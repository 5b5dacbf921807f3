"""Walks over few occupied cells: where empty cells count nothing, look at the stored cells instead of enumerating all.

The stored cells that a walk would meet, in its order, give the same score as the walk. How many cells the walk would have
visited is counted, if anyone wants to know, by the search that finds cells.
"""

from typing import Any, NamedTuple

import numpy as np

from dpoutlier.kernels.jit import inlined, kernel
from dpoutlier.kernels.ranks import (
    LATTICE,
    STEP,
    GridArrays,
    Ranks,
    below_first,
    divided,
    farthest_cost,
    reach,
    start_ranks,
)
from dpoutlier.kernels.walk import GATHERED, RAN_OUT_OF_CELLS, Buffers, Results, Rule, add_product, as_score
from dpoutlier.kernels.window import Path, Window, compare_first_steps, find_cells, set_out

__all__ = [
    "LEAVE",
    "MOST_K",
    "MOST_STEPS",
    "StoredBuffers",
    "StoredCells",
    "decode_cells",
    "new_stored_buffers",
    "walk_stored",
]

LEAVE = 3  # to the walk from cell to cell
BLOCK = 1024
DEPTH_BITS = 50  # a cell's cost stands below them, its depth above
MOST_STEPS = 1 << 13  # so many fit above
COST = (1 << DEPTH_BITS) - 1
MOST_K = 1 << 12
FAR = 1 << 62


class StoredCells(NamedTuple):
    """The cells whose count is not zero."""

    ids: Any  # (cell, 2)
    bins: Any  # (feature, cell)
    count: Any  # per cell, positive
    first: Any  # per feature: where its bins begin in the tables of a point


class StoredBuffers(NamedTuple):
    """Room for one point at a time."""

    key: Any  # per bin of a feature: cost beyond home, and steps
    rank: Any  # per bin of a feature: a number that ranks it
    total: Any  # per cell of a block
    near: Any  # cells that may be met
    cost: Any  # their costs
    new_near: Any  # both of them again, while they are sorted
    new_cost: Any


def new_stored_buffers(cells: StoredCells, k: int) -> StoredBuffers:
    room = 4 * k + 256
    return StoredBuffers(
        np.empty(cells.first[-1], np.int64),
        np.empty(cells.first[-1], np.int64),
        np.empty(BLOCK, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
    )


@kernel
def decode_cells(high: Any, low: Any, bins: Any, out: Any) -> None:
    """Bins of each cell from its id: long division in four limbs of 32 bits, the last feature first."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    for i in range(low.shape[0]):
        h, v = high[i], low[i]
        for j in range(bins.shape[0] - 1, -1, -1):
            divisor = np.uint64(bins[j])
            top = h >> half
            rest = ((top % divisor) << half) | (h & mask)
            h = ((top // divisor) << half) | (rest // divisor)
            rest = ((rest % divisor) << half) | (v >> half)
            upper = rest // divisor
            rest = ((rest % divisor) << half) | (v & mask)
            v = (upper << half) | (rest // divisor)
            out[j, i] = rest % divisor


@inlined
def prepare(grid: GridArrays, rule: Rule, cells: StoredCells, ranks: Ranks, buffers: StoredBuffers) -> None:
    """Tables of the point whose ranks were started: for each bin its cost, steps and rank."""
    limited = rule.max_depth < MOST_STEPS
    for j in range(grid.bins.shape[0]):
        bins, home, offset, inverse = grid.bins[j], ranks.home[j], ranks.offset[j], grid.inverse[j]
        for c in range(grid.cells[j]):
            at, steps = cells.first[j] + c, abs(c - home)
            cost, rank = 0, 0
            if steps > 0 and (ranks.jumps[j] or c == bins):
                cost, rank, steps = LATTICE - ranks.home_cost[j], 2 * bins + 2 + c, 1
            elif steps > 0:
                below = c < home
                cost = divided(steps * STEP + (offset if below else -offset), 2 * bins, inverse) - ranks.home_cost[j]
                rank = 2 * steps + (below != below_first(steps, offset, bins, inverse))
            buffers.key[at] = cost + ((min(steps, rule.max_depth + 1) << DEPTH_BITS) if limited else 0)
            buffers.rank[at] = rank


@inlined
def comes_before(a: Any, cost_a: Any, b: Any, cost_b: Any, cells: StoredCells, buffers: StoredBuffers) -> Any:
    """Whether cell a comes before cell b in a walk: by (cost, rank vector)."""
    if cost_a != cost_b:
        return cost_a < cost_b
    for j in range(cells.bins.shape[0]):
        rank_a = buffers.rank[cells.first[j] + cells.bins[j, a]]
        rank_b = buffers.rank[cells.first[j] + cells.bins[j, b]]
        if rank_a != rank_b:
            return rank_a < rank_b
    return False


@inlined
def sort_near(n: Any, cells: StoredCells, buffers: StoredBuffers) -> None:
    """Sort the first n entries by (cost, rank vector): runs merged two by two."""
    near, cost, new_near, new_cost = buffers.near, buffers.cost, buffers.new_near, buffers.new_cost
    run = 1
    while run < n:
        for begin in range(0, n, 2 * run):
            middle, end = min(begin + run, n), min(begin + 2 * run, n)
            left, right = begin, middle
            for i in range(begin, end):
                take_right = left == middle
                if left < middle and right < end:
                    take_right = comes_before(near[right], cost[right], near[left], cost[left], cells, buffers)
                if take_right:
                    new_near[i], new_cost[i] = near[right], cost[right]
                    right += 1
                else:
                    new_near[i], new_cost[i] = near[left], cost[left]
                    left += 1
        for i in range(n):
            near[i], cost[i] = new_near[i], new_cost[i]
        run *= 2


@inlined
def enough(n: Any, k: Any, cells: StoredCells, buffers: StoredBuffers) -> Any:
    """How many of the first n entries, in order, gather k rows; n if they do not."""
    gathered = 0
    for i in range(n):
        gathered += cells.count[buffers.near[i]]
        if gathered >= k:
            return i + 1
    return n


@inlined
def find_near(grid: GridArrays, rule: Rule, cells: StoredCells, buffers: StoredBuffers) -> Any:
    """The stored cells that a walk without limit would meet, in order. Returns how many.

    Counts are positive, so at most k of them are needed; the rest of the room saves sorting.
    """
    n, room, limit, last = 0, buffers.near.shape[0], FAR, 0
    deepest = min(MOST_STEPS, rule.max_depth)
    for start in range(0, cells.count.shape[0], BLOCK):
        stop = min(start + BLOCK, cells.count.shape[0])
        total = buffers.total[: stop - start]
        for i in range(total.shape[0]):
            total[i] = 0
        for j in range(grid.bins.shape[0]):
            table, bins = buffers.key[cells.first[j] : cells.first[j + 1]], cells.bins[j, start:stop]
            for i in range(total.shape[0]):
                total[i] += table[bins[i]]
        for i in range(total.shape[0]):
            cost = total[i] & COST
            if cost <= limit and (total[i] >> DEPTH_BITS) <= deepest:
                if n == room:
                    sort_near(n, cells, buffers)
                    n = enough(n, rule.k, cells, buffers)
                    limit, last = buffers.cost[n - 1], buffers.near[n - 1]
                if limit < FAR and not comes_before(start + i, cost, last, limit, cells, buffers):
                    continue
                buffers.near[n], buffers.cost[n] = start + i, cost
                n += 1
    sort_near(n, cells, buffers)
    return enough(n, rule.k, cells, buffers)


@inlined
def count_until(
    high: Any, low: Any, cost: Any, grid: GridArrays, rule: Rule, ranks: Ranks, path: Path, window: Window
) -> Any:
    """How many cells a walk visits until the cell of this id and cost, that one included."""
    for j in range(grid.bins.shape[0]):
        reach(j, cost + 1, grid, rule.max_depth, ranks)
    compare_first_steps(ranks, path)
    set_out(path.high[0], path.low[0], ranks, path)
    visited, complete, met = 1, False, False
    while not complete:
        n, complete = find_cells(0, cost + 1, grid.wide, grid.skips, rule.max_depth, ranks, path, window)
        for i in range(n):
            if window.cost[i] < cost or not met:  # cells of equal cost are found in their order
                visited += 1
            if window.low[i] == low and window.high[i] == high:
                met = True
    return visited


@inlined
def distance(cell: Any, feature: Any, grid: GridArrays, ranks: Ranks) -> Any:
    """Between a cell and home in one feature, in units of 1 / unit."""
    home, bins = ranks.home[feature], grid.bins[feature]
    if cell != home and (ranks.jumps[feature] or cell == bins):
        return grid.unit
    return abs(cell - home) * grid.unit // bins


@kernel
def walk_stored(
    positions: Any, which: Any, grid: GridArrays, rule: Rule, cells: StoredCells, count: bool, buffers: StoredBuffers,
    walk: Buffers, results: Results,
) -> None:  # fmt: skip
    """The rows ``which`` of ``positions``, into ``results``; status LEAVE where only the walk from cell to cell can tell.

    The home cells are in ``walk``. ``count``: also say how many cells a walk visits. No walk may be stopped by ``max_cells``.
    """
    features, ranks, path = grid.bins.shape[0], walk.ranks, walk.path
    for at in range(which.shape[0]):
        i = which[at]
        home_cost = start_ranks(positions[i], grid, ranks)
        path.low[0], path.high[0] = walk.home_low[i], walk.home_high[i]
        prepare(grid, rule, cells, ranks, buffers)
        n = find_near(grid, rule, cells, buffers)
        gathered, high, low, length = 0, 0, 0, 0
        for found in range(n):
            cell, rows = buffers.near[found], cells.count[buffers.near[found]]
            length = home_cost + buffers.cost[found]
            if not rule.from_point:
                length = 0
                for j in range(features):
                    length += distance(np.int64(cells.bins[j, cell]), j, grid, ranks)
            gathered += rows
            if rule.weighted:
                high, low = add_product(high, low, rows, length)
        visited = 0
        if gathered >= rule.k:
            cell = buffers.near[n - 1]
            if count:
                visited = count_until(
                    cells.ids[cell, 0], cells.ids[cell, 1], buffers.cost[n - 1], grid, rule, ranks, path, walk.found
                )
            status = GATHERED
            if not rule.weighted:
                high, low = 0, length
        else:
            farthest = farthest_cost(grid, rule.max_depth, ranks)
            home_high, home_low = walk.home_high[i], walk.home_low[i]
            if count:
                visited = count_until(home_high, home_low, farthest, grid, rule, ranks, path, walk.found)
            status = RAN_OUT_OF_CELLS
            diameter = features * (LATTICE if rule.from_point else grid.unit)
            if rule.weighted:
                high, low = add_product(high, low, rule.k - gathered, diameter)
            else:
                high, low = 0, diameter
        if status == RAN_OUT_OF_CELLS and not rule.outlying:  # the paper scores the last cell of all
            status = LEAVE
        results.score[i] = as_score(high, low, grid, rule, 1)
        results.gathered[i], results.visited[i], results.status[i] = gathered, visited, status
