"""Why a walk over a grid scored as it did: the distance that each feature added, and the nearest region that would be usual.

The kernels visit whole windows of cells and keep no list of them. Here the same order is made again, for the few points that are to
be explained: cell by cell, which takes some microseconds for each cell visited, or by sorting the stored cells where empty cells
count nothing. Post-processing, free of charge.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from itertools import accumulate, islice, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpoutlier.counts.base import NoisyCounts, noisy_counts
from dpoutlier.features.axes import MISSING, Axis, each_axis, level_position
from dpoutlier.features.lattice import POSITIONS, bin_of_position
from dpoutlier.kernels.walk import GATHERED
from dpoutlier.kernels.walk_stored import StoredCells
from dpoutlier.partitions.base import cell_ids
from dpoutlier.partitions.grid import Grid
from dpoutlier.scoring.nearest_cells import NearestCells, Walks, last_cell_within, stored_cells
from dpoutlier.tables.rows import Positions

MAX_LOOKED = 1000


class Rank(NamedTuple):
    """One cell of a feature; they are sorted by (cost, steps, cell), which puts home first."""

    cost: int
    """Distance from the point to the cell's middle, in positions, rounded down."""
    steps: int
    cell: int
    length: int
    """Distance from home, in units of the grid."""


class Visited(NamedTuple):
    """A cell that a walk visits."""

    number: int
    path: tuple[tuple[int, int], ...]
    """(feature, rank) where that is not home."""


@dataclass(frozen=True)
class NearestRegions:
    """Per point and feature."""

    usual: NDArray[np.int64]
    """The nearest cell in which a point scores least; home if it has k rows, and -1 if no cell scores less than the point."""
    parts: NDArray[np.float64]
    """They add up to the point's score."""


@dataclass(frozen=True)
class Order:
    """Cells in the order in which the walk from one position visits them, as many as an explanation needs."""

    ranks: list[list[Rank]]
    cells: list[Visited]

    @property
    def home(self) -> list[int]:
        return [own[0].cell for own in self.ranks]


def nearest_regions(
    positions: Positions, grid: Grid, counts: NoisyCounts, scorer: NearestCells, walks: Walks
) -> NearestRegions:
    """What each feature added to the scores of walks that are done, and which cells would be usual."""
    usual, parts = np.empty((2, len(positions), grid.n_features))
    alone = scorer.gathers_at_home(positions, grid, counts)
    for i, position in enumerate(positions[:]):
        visited, gathered = int(walks.visited[i]), bool(walks.status[i] == GATHERED)
        order = order_of_walk(position, grid, counts, scorer, visited, gathered=gathered)
        parts[i] = [float(part) for part in parts_of_score(order, grid, counts, scorer, gathered=gathered)]
        usual[i] = order.home if alone[i] else usual_cell(position, grid, counts, scorer, float(walks.scores[i]))
    return NearestRegions(usual.astype(np.int64), parts)


def order_of_walk(
    position: NDArray[np.uint32], grid: Grid, counts: NoisyCounts, scorer: NearestCells, visited: int, *, gathered: bool
) -> Order:
    """The cells of a walk that its score needs: only home if the score is the diameter, whatever the walk visited."""
    only_the_end = not gathered and not scorer.weighted
    if only_the_end and scorer.exhausted == "outlying":
        return first_cells(position, grid, scorer, 1)
    cells = stored_cells(grid, counts)
    if cells is None:
        return first_cells(position, grid, scorer, visited)
    if only_the_end:
        return last_cell_alone(position, grid, scorer)
    return first_stored_cells(position, grid, scorer, cells, visited)


def first_cells(position: NDArray[np.uint32], grid: Grid, scorer: NearestCells, most: int) -> Order:
    """The first cells of a walk, empty or not."""
    ranks = feature_ranks(position, grid, scorer.max_depth, most)
    return Order(ranks, list(islice(cells_in_order(ranks, grid, scorer.max_depth), most)))


def first_stored_cells(
    position: NDArray[np.uint32], grid: Grid, scorer: NearestCells, cells: StoredCells, most: int
) -> Order:
    """The first stored cells of a walk, by (sum of costs, rank vector)."""
    occupied = [cells.bins[first:end].tolist() for first, end in pairwise(cells.first.tolist())]
    ranks = _ranks_of_cells(position, grid, occupied)
    cost, steps = np.zeros((2, cells.index.shape[1]), np.int64)
    vectors = np.empty(cells.index.shape, np.int64)
    for own, bins, index, vector in zip(ranks, occupied, cells.index, vectors, strict=True):
        place = {rank.cell: r for r, rank in enumerate(own)}
        vector[:] = np.array([place[cell] for cell in bins], np.int64)[index]
        cost += np.array([rank.cost for rank in own])[vector]
        steps += np.array([rank.steps for rank in own])[vector]
    found = np.flatnonzero(steps <= _deepest(grid, scorer.max_depth))
    if most < len(found):  # only those that can be among the first need an order
        found = found[cost[found] <= np.partition(cost[found], most)[most]]
    found = found[np.lexsort((*vectors[::-1, found], cost[found]))][:most]
    return Order(ranks, [_visited(vector, ranks, grid) for vector in vectors[:, found].T.tolist()])


def last_cell_alone(position: NDArray[np.uint32], grid: Grid, scorer: NearestCells) -> Order:
    """The last of all cells within reach, which is all that the paper's score of an exhausted walk needs."""
    last = last_cell_within(position, grid, scorer.rule().max_depth)
    ranks = _ranks_of_cells(position, grid, [[cell] for cell in last])
    return Order(ranks, [_visited([len(own) - 1 for own in ranks], ranks, grid)])


def _ranks_of_cells(position: NDArray[np.uint32], grid: Grid, cells: list[list[int]]) -> list[list[Rank]]:
    """Some cells of each feature, and home, in order."""
    each = zip(position.tolist(), grid.bins, each_axis(grid.axes, grid.n_features), cells, strict=True)
    return [
        sorted(_rank(cell, p, bins, axis, grid.unit) for cell in {_home(p, bins, axis), *some})
        for p, bins, axis, some in each
    ]


def _visited(vector: list[int], ranks: list[list[Rank]], grid: Grid) -> Visited:
    """A cell by its rank in each feature."""
    number = sum(own[r].cell * stride for own, r, stride in zip(ranks, vector, grid.strides, strict=True))
    return Visited(number, tuple((j, r) for j, r in enumerate(vector) if r))


def usual_cell(
    position: NDArray[np.uint32], grid: Grid, counts: NoisyCounts, scorer: NearestCells, score: float
) -> list[int]:
    """The nearest of the first thousand cells, however far the walk went, in which the point would score least.

    The point is moved into the middle of each cell along the features in which it differs from home, and scored there. The last
    cell of a walk would not do: rows were gathered on the way to it, and it may have few of its own.
    """
    order = first_cells(position, grid, scorer, MAX_LOOKED)
    home, others = order.home, order.cells[1:]
    moved = np.repeat(position[np.newaxis], len(others), axis=0)
    for point, cell in zip(moved, others, strict=True):
        for j, r in cell.path:
            point[j] = middle_of(order.ranks[j][r].cell, grid.bins[j])
    scores = scorer.outlier_scores(moved, grid, counts)
    if not len(others) or not scores.min() < score:
        return [-1] * len(home)
    for j, r in others[int(scores.argmin())].path:
        home[j] = order.ranks[j][r].cell
    return home


def middle_of(cell: int, bins: int) -> int:
    """The position in the middle of a feature's cell."""
    return MISSING if cell == bins else level_position(cell, bins)


def parts_of_score(
    order: Order, grid: Grid, counts: NoisyCounts, scorer: NearestCells, *, gathered: bool
) -> list[Fraction]:
    """What each feature added to the score of a walk over these cells, exactly.

    Where k rows were not gathered, and missing rows score at the diameter, that is one edge of the cube along each feature: all of
    them add the same for these rows.
    """
    ranks = order.ranks
    from_point, outlying = scorer.distance == "point", scorer.exhausted == "outlying" and not gathered
    edge = POSITIONS if from_point else grid.unit
    if outlying and not scorer.weighted:
        return [Fraction(1)] * len(ranks)
    walk = order.cells
    far = [[rank.cost if from_point else rank.length for rank in own] for own in ranks]
    if scorer.weighted:
        known = noisy_counts(counts, cell_ids([cell.number for cell in walk])).tolist()
    else:
        walk, known = walk[-1:], [1]
    totals = [sum(known) * own[0] for own in far]
    for cell, q in zip(walk, known, strict=True):
        for j, r in cell.path:
            totals[j] += q * (far[j][r] - far[j][0])
    if outlying:
        missing = scorer.k - sum(known)
        totals = [total + missing * edge for total in totals]
    return [Fraction(total, edge) for total in totals]


def feature_ranks(position: NDArray[np.uint32], grid: Grid, max_depth: int | None, most_cells: int) -> list[list[Rank]]:
    """Cells of each feature in the order in which they come up among the first ``most_cells`` cells of a walk."""
    # A rank of r takes r other cells before it.
    reach = most_cells if max_depth is None else min(max_depth, most_cells)
    each = zip(position.tolist(), grid.bins, each_axis(grid.axes, grid.n_features), strict=True)
    return [sorted(_ranks(p, bins, axis, grid.unit, reach))[: most_cells + 1] for p, bins, axis in each]


def _ranks(p: int, bins: int, axis: Axis, unit: int, reach: int) -> Iterator[Rank]:
    """Cells of one feature within ``reach`` steps, in any order."""
    home = _home(p, bins, axis)
    cells = range(max(home - reach, 0), min(home + reach + 1, bins))
    if home == bins or axis.unordered:
        cells = range(bins) if reach else range(home, home)
    yield from (_rank(cell, p, bins, axis, unit) for cell in cells if cell != home)
    yield _rank(home, p, bins, axis, unit)
    if axis.missing and reach and home != bins:
        yield _rank(bins, p, bins, axis, unit)


def _home(p: int, bins: int, axis: Axis) -> int:
    return bins if axis.missing and p == MISSING else bin_of_position(p, bins)


def _rank(cell: int, p: int, bins: int, axis: Axis, unit: int) -> Rank:
    """One cell of one feature."""
    home = _home(p, bins, axis)
    if cell != home and (axis.unordered or bins in {cell, home}):
        return Rank(POSITIONS, 1, cell, unit)
    if axis.unordered or home == bins:
        return Rank(0, 0, home, 0)
    # From the middle of home to the point, in units of 1 / (2 bins) positions; not past the upper edge of home.
    offset = min((2 * p + 1) * bins - (2 * home + 1) * POSITIONS, POSITIONS)
    steps = abs(cell - home)
    return Rank(abs(offset - (cell - home) * 2 * POSITIONS) // (2 * bins), steps, cell, steps * unit // bins)


def _deepest(grid: Grid, max_depth: int | None) -> int:
    return sum(grid.sizes) if max_depth is None else max_depth


def cells_in_order(ranks: list[list[Rank]], grid: Grid, max_depth: int | None) -> Iterator[Visited]:
    """Cells within ``max_depth`` steps from home by (sum of costs, rank vector), one after the other.

    A queue over rank vectors, each of which enters from one other that comes before it. With features sorted by the cost of their
    rank 1, a vector whose last rank r belongs to the feature at place a leads to three: r + 1 there; rank 1 at place a + 1 as well;
    and, where r is 1, rank 1 at place a + 1 instead. Costs never fall on the way. Where they stay, the rank vector, compared as its
    mixed-radix number, rises: among features of equal cost the last comes first.
    """
    deepest, strides = _deepest(grid, max_depth), grid.strides
    usable = (j for j, own in enumerate(ranks) if len(own) > 1)
    places = sorted(usable, key=lambda j: (ranks[j][1].cost - ranks[j][0].cost, -j))
    # The cell for missing values is one step away, however many lie before it: few steps may come after many.
    least = [list(accumulate((rank.steps for rank in reversed(own)), min))[::-1] for own in ranks]
    start = sum(own[0].cell * stride for own, stride in zip(ranks, strides, strict=True))
    yield Visited(start, ())
    queue: list[tuple[int, int, int, int, int, tuple[tuple[int, int], ...]]] = []

    def enter(
        cost: int, vector: int, number: int, steps: int, place: int, r: int, path: tuple[tuple[int, int], ...]
    ) -> None:
        """Add rank r at a place to a vector that has nothing there or later."""
        if place == len(places):
            return
        j = places[place]
        own, stride = ranks[j], strides[j]
        if r < len(own) and steps + least[j][r] <= deepest:
            entry = (
                cost + own[r].cost - own[0].cost,
                vector + r * stride,
                number + (own[r].cell - own[0].cell) * stride,
                steps + own[r].steps,
                place,
                (*path, (j, r)),
            )
            heappush(queue, entry)

    enter(0, 0, start, 0, 0, 1, ())
    while queue:
        cost, vector, number, steps, place, path = heappop(queue)
        if steps <= deepest:
            yield Visited(number, path)
        j, r = path[-1]
        own, stride = ranks[j], strides[j]
        before = (
            cost - own[r].cost + own[0].cost,
            vector - r * stride,
            number - (own[r].cell - own[0].cell) * stride,
            steps - own[r].steps,
        )
        enter(*before, place, r + 1, path[:-1])
        if r == 1:
            enter(*before, place + 1, 1, path[:-1])
        enter(cost, vector, number, steps, place + 1, 1, path)
