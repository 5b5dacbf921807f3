"""Walks over exact and sparse counts: only the stored cells are looked at, and the scores are those of the definition."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dpoutlier
import naive
from cell_numbers import cell_numbers
from dpoutlier import DPGridKNN, GridKNN
from dpoutlier.counts.exact import ExactCounts
from dpoutlier.counts.sparse import SparseCounts
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.explain.nearest_region import nearest_regions
from dpoutlier.features.axes import Axis, level_position, plain
from dpoutlier.partitions.base import cell_ids
from dpoutlier.partitions.grid import Grid
from dpoutlier.scoring import nearest_cells
from dpoutlier.scoring.nearest_cells import NearestCells, last_cell_within
from dpoutlier.tables.rows import Rows
from experiments.measure.datasets import dataset_named
from experiments.measure.protocol import bounds_widened, split_rows
from experiments.measure.sources import load_dataset
from shared_data import needs_data
from strategies import coordinate, kinds_with_points, rules

RULE = {"k": 10, "weighted": False, "distance": "cell", "max_depth": None, "exhausted": "outlying"}
ALL_RULES = [
    {"weighted": weighted, "distance": distance, "exhausted": exhausted}
    for weighted in (False, True)
    for distance in ("cell", "point")
    for exhausted in ("outlying", "as-printed")
]


def grid_of(bins, axes=()) -> Grid:
    return Grid(tuple(bins), plain([Axis(*axis) for axis in axes]))


def exact_counts_of(counts):
    """Exact counts from {cell number: count}."""
    return ExactCounts(cell_ids(counts), np.array(list(counts.values()), np.int64))


def walked(rule, positions, grid, released, least_crossover=256):
    """Walks, after a check that scores alone are the same wherever the walk from cell to cell ends."""
    scorer, positions = NearestCells(**rule), np.array(positions, np.uint32)
    walks = scorer.walk(positions, grid, released)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nearest_cells, "MIN_CROSSOVER", least_crossover)
        patch.setattr(nearest_cells, "CELLS_PER_VISIT", 10**9)
        assert (scorer.outlier_scores(positions, grid, released) == walks.scores).all()
    assert set(walks.status) <= {0, 1}
    return walks


# Definitions for grids whose cells cannot all be listed -----------------------------------------------------------------


def last_cell(point, bins, max_depth, axes=()):
    """The last cell within ``max_depth``: for each number of steps the best (cost, rank vector) that some features can have."""
    best = {0: (0, ())}
    for p, b, axis in zip(point, bins, naive.kinds(axes, bins)):
        home, longer = naive.home_bin(p, b, axis), {}
        for rank, c in enumerate(naive.ranked(p, b, axis)):
            own_steps, own_cost = naive.steps(home, c, b, axis), naive.cost(p, b, c, axis)
            for steps, (cost, vector) in best.items():
                deeper, new = steps + own_steps, (cost + own_cost, (*vector, rank))
                if (max_depth is None or deeper <= max_depth) and new > longer.get(deeper, (-1, ())):
                    longer[deeper] = new
        best = longer
    each = zip(max(best.values())[1], point, bins, naive.kinds(axes, bins))
    return tuple(naive.ranked(p, b, axis)[rank] for rank, p, b, axis in each)


def distance_to(cell, point, bins, axes, distance):
    each, home = naive.kinds(axes, bins), naive.home_of(point, bins, axes)
    if distance == "cell":
        return sum((naive.length(h, c, b, axis) for h, c, b, axis in zip(home, cell, bins, each)), Fraction(0))
    return Fraction(sum(naive.cost(p, b, c, axis) for p, b, c, axis in zip(point, bins, cell, each)), naive.LATTICE)


def score_by_sorting(point, bins, counts, *, k, weighted, distance, max_depth, exhausted, axes=()):
    """Algorithm 1 from {cell: count} of the occupied cells alone."""
    home, each = naive.home_of(point, bins, axes), list(zip(point, bins, naive.kinds(axes, bins)))
    some = [sorted({cell[j] for cell in counts} | {home[j]}) for j in range(len(bins))]
    cost = [{c: naive.cost(p, b, c, axis) for c in own} for own, (p, b, axis) in zip(some, each)]
    steps = [{c: naive.steps(h, c, b, axis) for c in own} for own, h, (_, b, axis) in zip(some, home, each)]

    def key(cell):
        return sum(cost[j][c] for j, c in enumerate(cell)), [(cost[j][c], steps[j][c], c) for j, c in enumerate(cell)]

    gathered, visited, result = 0, 0, Fraction(0)
    for cell in sorted(counts, key=key):
        if max_depth is not None and sum(steps[j][c] for j, c in enumerate(cell)) > max_depth:
            continue
        far = distance_to(cell, point, bins, axes, distance)
        gathered, visited = gathered + counts[cell], visited + 1
        result = result + counts[cell] * far if weighted else far
        if gathered >= k:
            return float(result), gathered, visited
    if exhausted == "outlying":
        result = result + (k - gathered) * len(bins) if weighted else Fraction(len(bins))
    elif not weighted:
        result = distance_to(last_cell(point, bins, max_depth, axes), point, bins, axes, distance)
    return float(result), gathered, visited


# Small grids ------------------------------------------------------------------------------------------------------------


def depths(bins):
    return st.one_of(st.none(), st.integers(0, sum(bins) + len(bins)))


@settings(max_examples=500, deadline=None)
@given(kinds_with_points(), rules(), st.data())
def test_scores_equal_the_definition_bit_for_bit(drawn, rule, data):
    """At any depth and for any k. The definition looks at all cells."""
    bins, axes, points = drawn
    rule = {
        **rule,
        "k": data.draw(st.one_of(st.integers(1, 12), st.sampled_from([200, 2**28]))),
        "max_depth": data.draw(depths(bins)),
    }
    grid, rng = grid_of(bins, axes), np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    numbers = np.flatnonzero(rng.random(grid.n_cells) < data.draw(st.sampled_from([0.0, 0.02, 0.2, 0.6])))
    counts = dict(zip(numbers.tolist(), rng.integers(1, 6, len(numbers)).tolist()))
    released = exact_counts_of(counts)
    if data.draw(st.booleans()):
        released = SparseCounts(released.ids, released.exact, 1)
    walks = walked(rule, points, grid, released, data.draw(st.sampled_from([1, 2, 7, 256])))
    cells = {cell: counts[number] for cell, number in all_cells(bins, axes) if number in counts}
    rule.pop("max_cells")
    for i, point in enumerate(points):
        expected = naive.score_of_listed(point, bins, counts, **rule, axes=axes)
        assert (walks.scores[i], walks.gathered[i], walks.visited[i]) == expected
        assert walks.status[i] == (expected[1] < rule["k"])
        assert score_by_sorting(point, bins, cells, **rule, axes=axes) == expected


def all_cells(bins, axes):
    for cell in naive.cells_within((0,) * len(bins), bins, naive.kinds(axes, bins), None):
        yield cell, naive.number_of(cell, bins, axes)


@settings(max_examples=500, deadline=None)
@given(kinds_with_points(), st.data())
def test_the_last_cell_is_the_last_of_the_definition(drawn, data):
    bins, axes, points = drawn
    max_depth = data.draw(depths(bins))
    for point in points:
        expected = naive.visiting_order(point, bins, max_depth, axes)[-1]
        assert last_cell(point, bins, max_depth, axes) == expected
        limit = NearestCells(max_depth=max_depth).rule().max_depth
        assert tuple(last_cell_within(np.array(point, np.uint32), grid_of(bins, axes), limit)) == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=4), st.data())
def test_the_last_cell_is_found_among_many_bins_too(bins, data):
    """Widths that are not a whole number of positions: costs are rounded, and a unit more or less decides."""
    point = data.draw(st.tuples(*(coordinate(b) for b in bins)))
    max_depth = data.draw(st.integers(0, sum(bins)))
    found = last_cell_within(np.array(point, np.uint32), Grid(tuple(bins)), max_depth)
    assert tuple(found) == last_cell(point, bins, max_depth)


def test_the_last_cell_of_two_at_the_same_cost_is_the_one_of_more_steps():
    """From the upper edge of its bin a point has as far to the bin below as to the second one above."""
    point = 2 * 2**32 // 5
    assert naive.cost(point, 5, 0) == naive.cost(point, 5, 3)
    assert last_cell_within(np.array([point], np.uint32), Grid((5,)), 2) == [3] == list(last_cell((point,), (5,), 2))


def test_the_last_cell_at_a_depth_in_the_thousands():
    bins, point = (1500, 3, 801), (5, 2**31, 2**32 - 9)
    for max_depth in (1400, 2299, 2300, 2**40):
        found = last_cell_within(np.array(point, np.uint32), Grid(bins), max_depth)
        assert tuple(found) == last_cell(point, bins, max_depth)


def test_ties_between_levels_and_bins_go_by_the_level_first():
    """On the border of two bins both cost the same, so that all cells one level away tie: their rank vectors decide."""
    bins, axes, point = (3, 3), [(3, True, False), (0, False, False)], (level_position(0, 3), (2**32 - 1) // 3)
    order = naive.visiting_order(point, bins, None, axes)
    assert order.index((1, 1)) < order.index((2, 0))
    costs = [sum(naive.cost(p, b, c, axis) for p, b, c, axis in zip(point, bins, cell, axes)) for cell in order[3:7]]
    assert len(set(costs)) == 1
    counts = {naive.number_of(cell, bins, axes): 1 for cell in [(1, 0), (1, 1), (2, 0), (2, 1)]}
    rule = {**RULE, "k": 2, "weighted": True}
    walks = walked(rule, [point], grid_of(bins, axes), exact_counts_of(counts), 1)
    expected = naive.score_of_listed(point, bins, counts, **rule, axes=axes)
    assert (walks.scores[0], walks.gathered[0], walks.visited[0]) == expected
    assert walks.scores[0] == pytest.approx(1 + 4 / 3)


def test_an_empty_home_is_not_counted_as_visited():
    far = np.array([[2**32 - 1]], np.uint32)
    for depth, expected in ((0, (0, 1)), (2, (0, 1)), (4, (1, 0))):
        walks = walked({**RULE, "k": 5, "max_depth": depth}, far, Grid((5,)), exact_counts_of({0: 5}))
        assert (walks.visited[0], walks.status[0]) == expected


# Large grids ------------------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from([1, 2, 7, 1000, 65_537, 2**24 - 1, 2**24]), min_size=1, max_size=5),
    rules(),
    st.integers(0, 2**32 - 1),
    st.one_of(st.none(), st.integers(0, 12), st.integers(10**8, 10**9)),
)
@example([2**24] * 5, {**RULE, "weighted": True}, 0, None)
def test_features_of_many_bins_are_walked(bins, rule, seed, max_depth):
    """Occupied cells near the point and anywhere."""
    rng = np.random.default_rng(seed)
    point = rng.integers(0, 2**32, len(bins))
    home = naive.home_of(point.tolist(), bins)
    anywhere = rng.integers(0, bins, (20, len(bins)))
    near = np.clip(np.array(home) + rng.integers(-4, 5, (30, len(bins))), 0, np.array(bins) - 1)
    cells = {tuple(cell): int(rng.integers(1, 4)) for cell in np.concatenate([anywhere, near]).tolist()}
    counts = {naive.number_of(cell, bins): n for cell, n in cells.items()}
    rule = {**RULE, "k": rule["k"], "weighted": rule["weighted"], "distance": rule["distance"], "max_depth": max_depth}
    walks = walked(rule, [point], Grid(tuple(bins)), exact_counts_of(counts), 8)
    expected = score_by_sorting(point.tolist(), bins, cells, **rule)
    assert (walks.gathered[0], walks.visited[0]) == expected[1:]
    assert walks.scores[0] == pytest.approx(expected[0], abs=2**-30)  # past a unit of 2**38, lengths are rounded


@pytest.mark.parametrize("max_depth", [8191, 8192, 10_000, 18_999, 19_000, 30_000, None])
def test_stored_cells_too_deep_are_not_met(max_depth):
    """19,000 steps away."""
    released, grid = exact_counts_of({naive.number_of((19_000, 2), (20_000, 3)): 50}), Grid((20_000, 3))
    walks = walked({**RULE, "max_depth": max_depth}, [[0, 2**32 - 1]], grid, released)
    reached = max_depth is None or max_depth >= 19_000
    assert walks.scores[0] == (0.95 if reached else 2.0)
    assert (walks.gathered[0], walks.visited[0]) == ((50, 1) if reached else (0, 0))


@pytest.mark.parametrize("k", [10, 500])
def test_stored_cells_that_all_tie_are_found_in_their_order(k):
    """48,620 cells at the same cost, stored in the opposite of the order in which they are met."""
    bins, point = (2,) * 18, (2**32 - 1,) * 18
    numbers = [number for number in range(2**18) if number.bit_count() == 9]
    counts = {number: 1 + (number % 7 == 0) for number in numbers}
    cells = {tuple(int(bit) for bit in f"{number:018b}"): count for number, count in counts.items()}
    rule = {**RULE, "k": k, "weighted": True}
    walks = walked(rule, [point], Grid(bins), exact_counts_of(counts))
    expected = score_by_sorting(point, bins, cells, **rule)
    assert (walks.scores[0], walks.gathered[0], walks.visited[0]) == expected


def checked_on_many_cells(grid, released, positions, rule):
    """Scores by sorting the occupied cells, and explanations that add up to them."""
    cells = dict(zip(decoded(released.ids, grid), released.exact.tolist()))
    walks = walked(rule, positions, grid, released)
    for i, point in enumerate(positions.tolist()):
        expected = score_by_sorting(point, grid.bins, cells, **rule)
        assert (walks.scores[i], walks.gathered[i], walks.visited[i]) == expected
    few = slice(0, 3)
    scorer = NearestCells(**rule)
    parts = nearest_regions(positions[few], grid, released, scorer, scorer.walk(positions[few], grid, released)).parts
    assert parts.sum(axis=1) == pytest.approx(walks.scores[few], rel=1e-12)
    return walks


def decoded(ids, grid):
    """Cells from their ids."""
    strides = [math.prod(grid.sizes[j + 1 :]) for j in range(grid.n_features)]
    for number in cell_numbers(ids):
        yield tuple(number // stride % size for stride, size in zip(strides, grid.sizes))


@needs_data
@pytest.mark.parametrize("max_depth", [None, 4, 40])
@pytest.mark.parametrize("rule", ALL_RULES)
def test_wdbc_on_a_grid_of_10_to_the_30_cells(data, rule, max_depth):
    """The paper's data of 30 features, where few walks can go from cell to cell."""
    rows = load_dataset(dataset_named("wdbc"), data)
    split = split_rows(rows, 0)
    detector = GridKNN(bounds_widened(rows.rows), bins=10, max_depth=max_depth, **rule).fit(split.reference)
    model = detector.model_
    assert model.partition.n_cells == 10**30
    positions = Rows(split.points[::7], model.domain)[:]
    walks = checked_on_many_cells(model.partition, model.counts, positions, {**RULE, **rule, "max_depth": max_depth})
    assert (walks.status == 0).all() == (max_depth is None)


@pytest.mark.parametrize("k", [5, 10**6])
@pytest.mark.parametrize("max_depth", [None, 2, 60])
@pytest.mark.parametrize("rule", ALL_RULES)
def test_made_rows_on_a_grid_of_10_to_the_30_cells(rule, max_depth, k):
    rng, grid = np.random.default_rng(2), Grid((10,) * 30)
    rows, points = ((rng.normal(0.5, 0.08, (n, 30)).clip(0, 1) * (2**32 - 1)).astype(np.uint32) for n in (200, 4))
    ids = np.unique(grid.cells(rows)[:, 0, :], axis=0)
    released = ExactCounts(ids, rng.integers(1, 4, len(ids)))
    checked_on_many_cells(grid, released, points, {**RULE, **rule, "k": k, "max_depth": max_depth})


def test_a_last_cell_too_many_steps_away_is_refused_with_the_remedy():
    """The limit is on the work, depth times cells within it: here 11,584 (2 * 11,584 + 1 + 3) is just below 2**28."""
    detector = GridKNN((0, 1), bins=[2**24, 3], k=5, max_depth=10**6, exhausted="as-printed")
    with pytest.raises(
        InvalidParameterError, match=r"max_depth must be None, or at most 11,584 on this grid .* got 1000000"
    ):
        detector.fit([[0.1, 0.2]])
    assert np.isfinite(detector.set_params(max_depth=11_584).fit([[0.1, 0.2]]).outlier_scores([[0.5, 0.5]])).all()
    with pytest.raises(InvalidParameterError, match="max_depth must be None"):
        detector.set_params(max_depth=11_585).fit([[0.1, 0.2]])
    detector.set_params(max_depth=10**6)
    for change in ({"max_depth": None}, {"exhausted": "outlying"}, {"weighted": True}):
        assert np.isfinite(detector.set_params(**change).fit([[0.1, 0.2]]).outlier_scores([[0.5, 0.5]])).all()
        detector.set_params(max_depth=10**6, exhausted="as-printed", weighted=False)


@pytest.mark.parametrize("bins", [[2**24, 3], "auto"])
def test_walks_of_a_sparse_release_that_would_take_too_long_are_refused_before_the_charge(bins, tmp_path, monkeypatch):
    monkeypatch.setattr("dpoutlier.scoring.nearest_cells.MAX_WORK", 1)
    ledger = dpoutlier.Ledger.create(tmp_path / "budget.ledger")
    ledger.open_budget("ward", 1)
    rule = {"max_depth": 2, "exhausted": "as-printed", "counts": "sparse"}
    detector = DPGridKNN(1, features=(0, 1), bins=bins, n_rows_hint=10_000, ledger=ledger, dataset="ward", **rule)
    with pytest.raises(InvalidParameterError, match="max_depth must be None"):
        detector.fit(np.array([[0.1, 0.2]]))
    assert ledger.balance("ward").spent == 0
