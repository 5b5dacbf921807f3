"""Algorithm 1 of the paper: gather noisy counts cell by cell, nearest first, until k rows are there."""

from typing import Any, NamedTuple

import numpy as np

from dpoutlier.kernels.cells import find_home_cells
from dpoutlier.kernels.counts import CountTable, Scratch, look_up, new_scratch, noisy_counts_of
from dpoutlier.kernels.jit import inlined, kernel
from dpoutlier.kernels.order import BUCKETS, into_buckets, sort_few, sort_stably
from dpoutlier.kernels.ranks import LATTICE, GridArrays, Ranks, farthest_cost, new_ranks, reach, start_ranks
from dpoutlier.kernels.window import Path, Window, compare_first_steps, find_cells, new_path, new_window, set_out

GATHERED, RAN_OUT_OF_CELLS, CAPPED, ON_THE_WAY = 0, 1, 2, 3
LIMB = (
    24  # a weighted score is kept as high * 2**24 + low: for counts below 2**38 units no product and no sum overflows
)
LOW_LIMB, SHIFT = (1 << LIMB) - 1, 2.0**LIMB
MIN_ROOM, ROOM = 64, 1 << 16  # cells of a window
FEW_CELLS = 12  # not worth a look before they are sorted
SHORT_WINDOW = 32  # not worth buckets
FIRST_BLOCK, LARGEST_BLOCK = 16, 512  # cells whose noise is drawn at once
RUN = 16  # cells that are visited at once
FIRST_END = 2.0  # of the first window, in bin widths, times the number of features: about six cells
GROWTH = 2.5  # of the cells from window to window; more finds more cells for nothing, less passes more of them again


class Rule(NamedTuple):
    """How to walk and what to score."""

    k: int
    weighted: bool
    from_point: bool  # score with ||y - centroid||, not ||centroid - home centroid||
    max_depth: int
    max_cells: int
    outlying: bool  # a walk that does not gather k counts the missing rows at the cube's diameter


class Results(NamedTuple):
    """One entry per point."""

    score: Any
    gathered: Any  # rows
    visited: Any
    status: Any


class Buffers(NamedTuple):
    """Room for one walk at a time, and for the home cells of a chunk of points; made once for each thread."""

    ranks: Ranks
    path: Path
    found: Window  # as found
    sorted: Window  # in buckets
    starts: Any  # of buckets
    counts: Any  # noisy, per cell
    scratch: Scratch
    order: Any
    spare: Any
    state: Any  # of the walk: see the names below
    home_low: Any  # per point of the chunk: id of its home cell
    home_high: Any
    home_count: Any  # noisy


S_GATHERED, S_HIGH, S_LOW, S_VISITED, S_STATUS = 0, 1, 2, 3, 4


def new_results(points: int) -> Results:
    return Results(np.empty(points), np.empty(points, np.int64), np.empty(points, np.int64), np.empty(points, np.int64))


def new_buffers(grid: GridArrays, rule: Rule, points: int, stream: int) -> Buffers:
    """For chunks of ``points`` points."""
    room = min(ROOM, max(rule.max_cells + 1, MIN_ROOM))
    ranks = new_ranks(grid, rule.max_depth, rule.max_cells)
    return Buffers(
        ranks,
        new_path(ranks),
        new_window(room),
        new_window(room),
        np.empty(BUCKETS + 2, np.int64),
        np.empty(room, np.int64),
        new_scratch(max(room, points), stream),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(5, np.int64),
        np.empty(points, np.uint64),
        np.empty(points, np.uint64),
        np.empty(points, np.int64),
    )


@inlined
def add_product(high: Any, low: Any, count: Any, distance: Any) -> Any:
    """``(high, low) + count * distance``, carried, for |count| < 2**38 and distance < 2**48."""
    low += count * (distance & LOW_LIMB)
    return high + count * (distance >> LIMB) + (low >> LIMB), low & LOW_LIMB


@inlined
def as_score(high: Any, low: Any, grid: GridArrays, rule: Rule) -> Any:
    """``high * 2**24 + low``, in lengths of the cube's edge and in rows."""
    return (np.float64(high) * SHIFT + np.float64(low)) / np.float64(LATTICE if rule.from_point else grid.unit)


@inlined
def visit_in_order(cells: Window, n: Any, home_cost: Any, k: Any, rule: Rule, buffers: Buffers) -> None:
    """Visit the n cells of ``buffers.order`` one by one, until k rows are gathered or ``max_cells`` visited."""
    state, counts, order = buffers.state, buffers.counts, buffers.order
    gathered, visited, high, low = state[S_GATHERED], state[S_VISITED], state[S_HIGH], state[S_LOW]
    for i in range(n):
        if visited == rule.max_cells:
            state[S_STATUS] = CAPPED
            break
        at = order[i]
        distance = home_cost + cells.cost[at] if rule.from_point else cells.length[at]
        gathered += counts[at]
        visited += 1
        if rule.weighted:
            high, low = add_product(high, low, counts[at], distance)
        else:
            low = distance
        if gathered >= k:
            state[S_STATUS] = GATHERED
            break
    state[S_GATHERED], state[S_VISITED], state[S_HIGH], state[S_LOW] = gathered, visited, high, low


@inlined
def visit_together(cells: Window, first: Any, last: Any, home_cost: Any, rule: Rule, buffers: Buffers) -> None:
    """Visit cells first..last - 1 in any order: they will not end the walk."""
    state, counts = buffers.state, buffers.counts
    high, low, total = state[S_HIGH], state[S_LOW], 0
    for i in range(first, last):
        total += counts[i]
    if rule.weighted:
        for i in range(first, last):
            distance = home_cost + cells.cost[i] if rule.from_point else cells.length[i]
            high, low = add_product(high, low, counts[i], distance)
    elif not rule.outlying:  # the paper scores the last cell of a walk that gathers too little
        at = first
        for i in range(first, last):
            if cells.cost[i] >= cells.cost[at]:
                at = i
        low = home_cost + cells.cost[at] if rule.from_point else cells.length[at]
    state[S_GATHERED] += total
    state[S_VISITED] += last - first
    state[S_HIGH], state[S_LOW] = high, low


@inlined
def visit(cells: Window, first: Any, last: Any, home_cost: Any, k: Any, rule: Rule, buffers: Buffers) -> None:
    """Visit cells first..last - 1, whose counts are known: all cells of some range of costs, and only they.

    As long as the positive counts together cannot lift what is gathered to k, the order of the cells does not matter.
    """
    state, positive = buffers.state, 0
    for i in range(first, last):
        positive += max(buffers.counts[i], 0)
    if state[S_GATHERED] + positive < k and state[S_VISITED] + last - first <= rule.max_cells:
        visit_together(cells, first, last, home_cost, rule, buffers)
    else:
        sort_stably(cells.cost, first, last, buffers.order, buffers.spare)
        visit_in_order(cells, last - first, home_cost, k, rule, buffers)


@inlined
def smaller_end(found: Window, n: Any, start: Any, sample: Any) -> Any:
    """An end with fewer cells before it: the median cost of some cells, but at least ``start`` + 1."""
    for i in range(31):
        key, j = found.cost[i * n // 31], i
        while j > 0 and sample[j - 1] > key:
            sample[j] = sample[j - 1]
            j -= 1
        sample[j] = key
    return max(sample[15], start + 1)


@inlined
def larger_end(start: Any, end: Any, before: Any, passed: Any, max_cells: Any) -> Any:
    """An end with about GROWTH times as many cells before it, from their growth between start and end.

    It is a guess. Only time depends on it.
    """
    wanted = min(GROWTH, (passed + ROOM // 2) / passed, 1.2 * (max_cells + 1) / passed)
    factor = 2.0
    if start > 0 and passed > before:
        factor = max(1.0, wanted) ** (np.log(end / start) / np.log(passed / before))
    return end + max(1, np.int64(end * (min(factor, 2.0) - 1.0)))


@inlined
def visit_window(
    n: Any,
    start: Any,
    end: Any,
    home_cost: Any,
    grid: GridArrays,
    table: CountTable,
    k: Any,
    rule: Rule,
    buffers: Buffers,
) -> Any:
    """Visit the n cells that were found, block by block, until the walk ends. Returns False if the noise needs more digits."""
    state, starts, cells = buffers.state, buffers.starts, buffers.found
    if n <= FEW_CELLS:  # most walks end here: sort them at once
        if not noisy_counts_of(table, cells.low[:n], cells.high[:n], buffers.scratch, buffers.counts[:n]):
            return False
        sort_few(cells.cost, n, buffers.order)
        visit_in_order(cells, n, home_cost, k, rule, buffers)
        return True
    if end - start == 1:  # all of one cost, and in order: cut anywhere
        buckets = (n + RUN - 1) // RUN
        for i in range(buckets + 1):
            starts[i] = min(i * RUN, n)
    elif n <= SHORT_WINDOW:
        buckets, starts[0], starts[1] = 1, 0, n
    else:
        buckets = into_buckets(buffers.found, n, start, end - start, grid.wide, starts, buffers.sorted)
        cells = buffers.sorted
    bucket, drawn = 0, 0
    while bucket < buckets and state[S_STATUS] == ON_THE_WAY:
        first = starts[bucket]
        bucket += 1
        while bucket < buckets and starts[bucket + 1] - first <= RUN:
            bucket += 1
        last = starts[bucket]
        if last > drawn:  # noise of many cells at once, whether or not the walk gets there
            block = min(max(FIRST_BLOCK, state[S_VISITED] // 2), LARGEST_BLOCK)
            upto = min(max(last, drawn + block), n)
            low, high, counts = cells.low[drawn:upto], cells.high[drawn:upto], buffers.counts[drawn:upto]
            if not noisy_counts_of(table, low, high, buffers.scratch, counts):
                return False
            drawn = upto
        if last > first:
            visit(cells, first, last, home_cost, k, rule, buffers)
    return True


@inlined
def walk_on(
    position: Any,
    home_high: Any,
    home_low: Any,
    home_count: Any,
    grid: GridArrays,
    table: CountTable,
    rule: Rule,
    buffers: Buffers,
) -> Any:
    """Walk from a home cell that was visited. Returns False if the noise needs more digits."""
    ranks, path, state = buffers.ranks, buffers.path, buffers.state
    features, k = grid.bins.shape[0], rule.k
    home_cost = start_ranks(position, grid, ranks)
    farthest = farthest_cost(grid, rule.max_depth, ranks)
    state[S_GATHERED], state[S_VISITED], state[S_STATUS] = home_count, 1, ON_THE_WAY
    state[S_HIGH], state[S_LOW] = 0, home_cost if rule.from_point else 0
    if rule.weighted:
        state[S_HIGH], state[S_LOW] = add_product(0, 0, home_count, home_cost if rule.from_point else 0)
    start: Any = np.int64(0)
    end = 1 + int(min(grid.narrowest * min(1.0, FIRST_END / features), farthest))
    while state[S_STATUS] == ON_THE_WAY:
        passed = state[S_VISITED]
        for j in range(features):
            reach(j, end, grid, rule.max_depth, ranks)
        if start == 0:
            compare_first_steps(ranks, path)
        set_out(home_high, home_low, ranks, path)
        complete = False
        while not complete and state[S_STATUS] == ON_THE_WAY:
            n, complete = find_cells(start, end, grid.wide, grid.skips, rule.max_depth, ranks, path, buffers.found)
            if not complete and end - start > 1:  # too many: a smaller window
                end = smaller_end(buffers.found, n, start, buffers.order)
                set_out(home_high, home_low, ranks, path)
            elif n > 0 and not visit_window(n, start, end, home_cost, grid, table, k, rule, buffers):
                return False
        if state[S_STATUS] == ON_THE_WAY:
            if end > farthest:
                state[S_STATUS] = RAN_OUT_OF_CELLS
            following = larger_end(start, end, passed, state[S_VISITED], rule.max_cells)
            start, end = end, min(following, max(farthest, end) + 1)
    if state[S_STATUS] != GATHERED and rule.outlying:
        diameter = features * (LATTICE if rule.from_point else grid.unit)
        if rule.weighted:
            missing = k - state[S_GATHERED]
            state[S_HIGH], state[S_LOW] = add_product(state[S_HIGH], state[S_LOW], missing, diameter)
        else:
            state[S_LOW] = diameter
    return True


@kernel
def walk_points(
    positions: Any, grid: GridArrays, table: CountTable, rule: Rule, buffers: Buffers, results: Results
) -> bool:
    """Algorithm 1 for each row of ``positions``, into ``results``. Returns False if the noise needs more digits."""
    n, k, state = positions.shape[0], rule.k, buffers.state
    high, low, count = buffers.home_high[:n], buffers.home_low[:n], buffers.home_count[:n]
    find_home_cells(positions, grid, high, low)
    if not look_up(table, low, high, buffers.scratch, count):
        return False
    for i in range(n):
        if count[i] >= k and not rule.from_point:  # home alone gathers enough, at distance 0
            results.score[i] = 0.0
            results.gathered[i], results.visited[i], results.status[i] = count[i], 1, GATHERED
            continue
        if count[i] >= k:
            distance = start_ranks(positions[i], grid, buffers.ranks)
            upper, lower = add_product(0, 0, count[i] if rule.weighted else 1, distance)
            results.score[i] = as_score(upper, lower, grid, rule)
            results.gathered[i], results.visited[i], results.status[i] = count[i], 1, GATHERED
            continue
        if not walk_on(positions[i], high[i], low[i], count[i], grid, table, rule, buffers):
            return False
        results.score[i] = as_score(state[S_HIGH], state[S_LOW], grid, rule)
        results.gathered[i], results.visited[i], results.status[i] = (
            state[S_GATHERED],
            state[S_VISITED],
            state[S_STATUS],
        )
    return True
