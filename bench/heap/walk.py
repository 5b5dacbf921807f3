"""Algorithm 1 of the paper: gather noisy counts cell by cell, nearest first, until k rows are there."""

from typing import Any, NamedTuple

import numpy as np

from dpoutlier.kernels.walk import Rule
from heap.counts import BATCH, DENSE, EXACT, KEYED, CountTable, noisy_count
from heap.frontier import Frontier, new_frontier, pop, push_followers, start
from heap.jit import kernel
from heap.ranks import LATTICE, GridArrays, Ranks, new_ranks, rank_bins
from heap.wide import multiply_add

__all__ = ["Results", "walk_by_heap", "walk_points"]

GATHERED, RAN_OUT_OF_CELLS, CAPPED = 0, 1, 2
LIMB = 24  # a weighted score is kept as high * 2**24 + low: for counts below 2**38 no product and no sum overflows
LOW_LIMB = (1 << LIMB) - 1


class Results(NamedTuple):
    """One entry per point."""

    high: Any  # score in length units times rows units, high * 2**24 + low
    low: Any
    gathered: Any
    visited: Any
    status: Any


@kernel
def cell_of(frontier: Frontier, ranks: Ranks, grid: GridArrays, slot: int) -> Any:
    """(high, low) id of the cell in ``slot`` and its centroid's distance to the home centroid, in length units."""
    high, low, distance = np.uint64(0), np.uint64(0), 0
    for j in range(grid.bins.shape[0]):
        at = ranks.first[j] + frontier.vector[slot, j]
        high, low = multiply_add(high, low, np.uint64(grid.bins[j]), np.uint64(ranks.bin[at]))
        distance += ranks.length[at]
    return high, low, distance


@kernel
def add_product(high: Any, low: Any, count: Any, distance: Any) -> Any:
    """``(high, low) + count * distance``, carried, for |count| < 2**38 and distance < 2**48."""
    low += count * (distance & LOW_LIMB)
    return high + count * (distance >> LIMB) + (low >> LIMB), low & LOW_LIMB


@kernel
def walk_point(
    position: Any, grid: GridArrays, table: CountTable, rule: Rule, ranks: Ranks, frontier: Frontier, words: Any
) -> Any:
    """Score of one point. Returns (high, low, gathered, visited, status, frontier)."""
    for j in range(position.shape[0]):
        rank_bins(j, np.int64(position[j]), grid, rule.max_depth, ranks)
    start(ranks, frontier)
    k = rule.k
    gathered, high, low, visited = 0, 0, 0, 0
    status = RAN_OUT_OF_CELLS
    while frontier.size[0] > 0:
        if visited == rule.max_cells:
            status = CAPPED
            break
        slot = pop(frontier)
        cell_high, cell_low, distance = cell_of(frontier, ranks, grid, slot)
        if rule.from_point:
            distance = frontier.cost[slot]
        count = noisy_count(table, cell_high, cell_low, words)
        gathered += count
        if rule.weighted:
            high, low = add_product(high, low, count, distance)
        else:
            low = distance
        visited += 1
        if gathered >= k:
            status = GATHERED
            break
        frontier = push_followers(frontier, ranks, slot, rule.max_depth)
    if status != GATHERED and rule.outlying:
        diameter = position.shape[0] * (LATTICE if rule.from_point else grid.unit)
        if rule.weighted:
            high, low = add_product(high, low, k - gathered, diameter)
        else:
            low = diameter
    return high, low, gathered, visited, status, frontier


@kernel
def walk_points(positions: Any, grid: GridArrays, table: CountTable, rule: Rule, results: Results) -> None:
    """Algorithm 1 for each row of ``positions``, into ``results``."""
    ranks = new_ranks(grid, rule.max_depth, rule.max_cells)
    frontier = new_frontier(256, positions.shape[1])
    words = np.empty(4 * BATCH, np.uint64)
    for i in range(positions.shape[0]):
        high, low, gathered, visited, status, frontier = walk_point(
            positions[i], grid, table, rule, ranks, frontier, words
        )
        results.high[i], results.low[i] = high, low
        results.gathered[i], results.visited[i], results.status[i] = gathered, visited, status


def walk_by_heap(scorer: Any, positions: Any, grid: Any, counts: Any) -> Any:
    """(scores, gathered, visited, status) of points on a grid with dense, exact or keyed counts (noise of version 1)."""
    arrays = counts.arrays()
    ids, exact = arrays.get("ids", np.empty((0, 2), np.uint64)), arrays.get("exact", np.empty(0, np.int64))
    rate = np.uint64(counts.noise.rate_units) if counts.kind == "keyed" else np.uint64(1)
    subkey = counts.subkey() if counts.kind == "keyed" else np.zeros(2, np.uint64)
    kind = {"exact": EXACT, "dense": DENSE, "keyed": KEYED}[counts.kind]
    dense = np.array(arrays.get("counts", np.empty(0, np.int64)))
    table = CountTable(kind, dense, np.array(ids), np.array(exact), subkey, rate)
    rule = scorer.rule()
    results = Results(*(np.empty(len(positions), np.int64) for _ in Results._fields))
    bins = GridArrays(np.array(grid.bins, np.int64), grid.unit)
    walk_points(np.ascontiguousarray(positions), bins, table, rule, results)
    edge = LATTICE if rule.from_point else grid.unit
    scores = (results.high.astype(np.float64) * float(1 << LIMB) + results.low) / edge
    return scores, results.gathered, results.visited, results.status
