"""Walks over few occupied cells: where empty cells count nothing, look at the stored cells instead of enumerating all.

The stored cells that a walk would meet, in its order, give the same score as the walk.
"""

from typing import Any, NamedTuple

import numpy as np

from dpoutlier.kernels.jit import inlined, kernel
from dpoutlier.kernels.last_cell import last_cell, new_cost_table
from dpoutlier.kernels.ranks import LATTICE, GridArrays, Ranks, away_from_home, below_first, farthest_cost, start_ranks
from dpoutlier.kernels.walk import GATHERED, RAN_OUT_OF_CELLS, Results, Rule, add_product, as_score

BLOCK = 1024


class StoredCells(NamedTuple):
    """The cells whose count is not zero."""

    index: Any  # (feature, cell): which of the feature's occupied bins
    bins: Any  # the occupied bins of each feature, ascending, feature after feature
    first: Any  # per feature: where its bins begin
    count: Any  # per cell, positive


class StoredBuffers(NamedTuple):
    """Room for one point at a time."""

    cost: Any  # per occupied bin of a feature: beyond home
    steps: Any  # per occupied bin of a feature
    rank: Any  # per occupied bin of a feature: a number that ranks it
    total: Any  # per cell of a block
    near: Any  # cells that may be met
    near_cost: Any  # their costs
    new_near: Any  # both of them again, while they are sorted
    new_cost: Any
    cell: Any  # per feature: one cell
    costs_left: Any  # for the last cell of a walk


def new_stored_buffers(cells: StoredCells, grid: GridArrays, rule: Rule) -> StoredBuffers:
    room, bins = min(4 * rule.k + 256, cells.count.shape[0] + 1), cells.bins.shape[0]
    last_matters = not rule.weighted and not rule.outlying
    sizes = 3 * [bins] + [BLOCK] + 4 * [room] + [grid.bins.shape[0]]
    buffers = [np.empty(size, np.int64) for size in sizes]
    buffers.append(new_cost_table(grid, rule.max_depth if last_matters else 0))
    return StoredBuffers(*buffers)


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
def prepare(grid: GridArrays, cells: StoredCells, ranks: Ranks, buffers: StoredBuffers) -> None:
    """Tables of the point whose ranks were started: for each occupied bin its cost, steps and rank."""
    for j in range(grid.bins.shape[0]):
        bins, home = grid.bins[j], ranks.home[j]
        for at in range(cells.first[j], cells.first[j + 1]):
            c = cells.bins[at]
            cost, steps, _ = away_from_home(c, j, grid, ranks)
            rank = 0
            if c != home and (ranks.jumps[j] or c == bins):
                rank = 2 * bins + 2 + c
            elif c != home:
                rank = 2 * steps + ((c < home) != below_first(steps, ranks.offset[j], bins, grid.inverse[j]))
            buffers.cost[at], buffers.steps[at], buffers.rank[at] = cost, steps, rank


@inlined
def comes_before(a: Any, cost_a: Any, b: Any, cost_b: Any, cells: StoredCells, buffers: StoredBuffers) -> Any:
    """Whether cell a comes before cell b in a walk: by (cost, rank vector)."""
    if cost_a != cost_b:
        return cost_a < cost_b
    for j in range(cells.index.shape[0]):
        rank_a = buffers.rank[cells.first[j] + cells.index[j, a]]
        rank_b = buffers.rank[cells.first[j] + cells.index[j, b]]
        if rank_a != rank_b:
            return rank_a < rank_b
    return False


@inlined
def sort_near(n: Any, cells: StoredCells, buffers: StoredBuffers) -> None:
    """Sort the first n entries by (cost, rank vector): runs merged two by two."""
    near, cost, new_near, new_cost = buffers.near, buffers.near_cost, buffers.new_near, buffers.new_cost
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
def too_deep(cell: Any, max_depth: Any, cells: StoredCells, buffers: StoredBuffers) -> Any:
    """Whether a stored cell is more than ``max_depth`` steps away from home."""
    steps = 0
    for j in range(cells.index.shape[0]):
        steps += buffers.steps[cells.first[j] + cells.index[j, cell]]
        if steps > max_depth:
            return True
    return False


@inlined
def find_near(grid: GridArrays, rule: Rule, cells: StoredCells, ranks: Ranks, buffers: StoredBuffers) -> Any:
    """The stored cells that a walk meets, in order. Returns how many.

    Counts are positive, so at most k of them are needed; the rest of the room saves sorting.
    """
    n, room, last = 0, buffers.near.shape[0], -1
    limit = farthest_cost(grid, rule.max_depth, ranks)  # so steps are added up for few cells only
    for start in range(0, cells.count.shape[0], BLOCK):
        stop = min(start + BLOCK, cells.count.shape[0])
        total = buffers.total[: stop - start]
        for i in range(total.shape[0]):
            total[i] = 0
        for j in range(grid.bins.shape[0]):
            table, index = buffers.cost[cells.first[j] : cells.first[j + 1]], cells.index[j, start:stop]
            for i in range(total.shape[0]):
                total[i] += table[index[i]]
        for i in range(total.shape[0]):
            cost = total[i]
            if cost > limit or too_deep(start + i, rule.max_depth, cells, buffers):
                continue
            if n == room:
                sort_near(n, cells, buffers)
                n = enough(n, rule.k, cells, buffers)
                limit, last = buffers.near_cost[n - 1], buffers.near[n - 1]
            if last < 0 or comes_before(start + i, cost, last, limit, cells, buffers):
                buffers.near[n], buffers.near_cost[n] = start + i, cost
                n += 1
    sort_near(n, cells, buffers)
    return enough(n, rule.k, cells, buffers)


@inlined
def distance_to(cell: Any, home_cost: Any, grid: GridArrays, rule: Rule, ranks: Ranks) -> Any:
    """What a cell, given by a number for each feature, is scored with."""
    total_cost, total_length = home_cost, 0
    for j in range(grid.bins.shape[0]):
        cost, _, length = away_from_home(cell[j], j, grid, ranks)
        total_cost += cost
        total_length += length
    return total_cost if rule.from_point else total_length


@inlined
def add_up(
    n: Any, home_cost: Any, grid: GridArrays, rule: Rule, cells: StoredCells, ranks: Ranks, buffers: StoredBuffers
) -> Any:
    """Visit the n cells that were found. Returns (rows gathered, upper and lower part of the score)."""
    gathered, high, low = 0, 0, 0
    for i in range(n):
        at, rows = buffers.near[i], cells.count[buffers.near[i]]
        gathered += rows
        if rule.weighted or i == n - 1:
            for j in range(grid.bins.shape[0]):
                buffers.cell[j] = cells.bins[cells.first[j] + cells.index[j, at]]
            distance = distance_to(buffers.cell, home_cost, grid, rule, ranks)
            high, low = add_product(high, low, rows if rule.weighted else 1, distance)
    return gathered, high, low


@kernel
def walk_stored(
    positions: Any, which: Any, grid: GridArrays, rule: Rule, cells: StoredCells, buffers: StoredBuffers, ranks: Ranks,
    results: Results,
) -> None:  # fmt: skip
    """Algorithm 1 for the rows ``which`` of ``positions``, into ``results``. Visited are the stored cells that were met."""
    diameter = grid.bins.shape[0] * (LATTICE if rule.from_point else grid.unit)
    for at in range(which.shape[0]):
        i = which[at]
        home_cost = start_ranks(positions[i], grid, ranks)
        prepare(grid, cells, ranks, buffers)
        n = find_near(grid, rule, cells, ranks, buffers)
        gathered, high, low = add_up(n, home_cost, grid, rule, cells, ranks, buffers)
        exhausted = gathered < rule.k
        if exhausted and rule.outlying and rule.weighted:
            high, low = add_product(high, low, rule.k - gathered, diameter)
        elif exhausted and rule.outlying:
            high, low = 0, diameter
        elif exhausted and not rule.weighted:  # the paper scores the last cell of all, empty or not
            last_cell(grid, rule.max_depth, ranks, buffers.costs_left, buffers.cell)
            high, low = 0, distance_to(buffers.cell, home_cost, grid, rule, ranks)
        results.score[i] = as_score(high, low, grid, rule)
        results.gathered[i], results.visited[i] = gathered, n
        results.status[i] = RAN_OUT_OF_CELLS if exhausted else GATHERED
