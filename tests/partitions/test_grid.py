"""Grids over levels and missing cells: walks, ids and thresholds are those of the definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from cell_numbers import cell_numbers
from dpoutlier.counts.dense import DenseCounts
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.axes import Axis, level_position, plain
from dpoutlier.partitions.grid import Grid, bins_by_rule
from dpoutlier.partitions.marginals import Margins
from dpoutlier.scoring.nearest_cells import NearestCells
from strategies import kinds_with_points, rules


def grid_of(bins, axes) -> Grid:
    return Grid(tuple(bins), plain([Axis(*axis) for axis in axes]))


@settings(max_examples=500, deadline=None)
@given(kinds_with_points(), rules(), st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 3, 12]))
def test_scores_equal_the_definition_bit_for_bit(drawn, rule, seed, spread):
    bins, axes, points = drawn
    grid = grid_of(bins, axes)
    counts = np.random.default_rng(seed).integers(-spread, spread + 1, grid.n_cells)
    walks = NearestCells(**rule).walk(np.array(points, np.uint32), grid, DenseCounts(counts))
    for i, point in enumerate(points):
        expected = naive.score(point, bins, lambda number: int(counts[number]), **rule, axes=axes)
        assert (walks.scores[i], walks.gathered[i], walks.visited[i]) == expected


@given(kinds_with_points())
def test_cell_ids_are_the_mixed_radix_numbers(drawn):
    bins, axes, points = drawn
    expected = [naive.number_of(naive.home_of(point, bins, axes), bins, axes) for point in points]
    assert cell_numbers(grid_of(bins, axes).cells(np.array(points, np.uint32))) == expected


def test_cell_ids_past_64_bits_are_exact_with_missing_cells():
    bins, axes = (9,) * 30, [(0, False, True), (9, True, False), (9, False, False)] * 10
    rng = np.random.default_rng(0)
    points = rng.integers(0, 2**32 - 1, (50, 30), dtype=np.uint32)
    points[:, ::3] = np.where(rng.random((50, 10)) < 0.5, 2**32 - 1, points[:, ::3])
    expected = [naive.number_of(naive.home_of(point.tolist(), bins, axes), bins, axes) for point in points]
    assert max(expected) > 2**64
    assert cell_numbers(grid_of(bins, axes).cells(points)) == expected


@given(kinds_with_points(), st.integers(0, 6))
def test_no_more_cells_lie_within_reach_than_the_grid_says(drawn, max_depth):
    bins, axes, points = drawn
    for point in points:
        near = naive.visiting_order(point, bins, max_depth, axes)
        assert len(near) <= grid_of(bins, axes).most_within(max_depth)


@given(kinds_with_points(), st.one_of(st.none(), st.integers(0, 5)))
def test_thresholds_lie_at_the_distances_that_cells_can_have(drawn, max_depth):
    bins, axes, points = drawn
    grid = grid_of(bins, axes)
    found = set(grid.distances(max_depth, most=10**6).tolist())
    for point in points:
        home = naive.home_of(point, bins, axes)
        for cell in naive.visiting_order(point, bins, max_depth, axes):
            far = sum(naive.length(h, c, b, axis) for h, c, b, axis in zip(home, cell, bins, axes))
            assert far * grid.unit in found
            assert far * grid.unit <= grid._farthest(10**6 if max_depth is None else max_depth)


@given(kinds_with_points())
def test_marginals_count_each_feature_in_its_own_cells(drawn):
    bins, axes, points = drawn
    margins = Margins(tuple(bins), plain([Axis(*axis) for axis in axes]))
    positions = np.array(points, np.uint32)
    first = np.append(0, np.cumsum(naive.cells_of(bins, axes)))
    expected = [[int(first[j]) + c for j, c in enumerate(naive.home_of(point, bins, axes))] for point in points]
    assert margins.n_cells == first[-1]
    assert margins.cells(positions)[:, :, 1].tolist() == expected
    counters, terms = np.zeros(margins.n_cells, np.int64), np.arange(margins.n_cells) ** 2
    margins.tally(positions, counters)
    assert counters.tolist() == np.bincount(np.ravel(expected), minlength=margins.n_cells).tolist()
    out = np.zeros(len(points), np.int64)
    margins.add_terms(positions, terms, out)
    assert out.tolist() == terms[expected].sum(axis=1).tolist()


@pytest.mark.parametrize("levels", [1, 2, 3, 7, 10, 1000, 2**16 - 1])
def test_levels_lie_in_the_middle_of_their_bins(levels):
    for level in {0, 1, levels // 2, levels - 1} & set(range(levels)):
        p = level_position(level, levels)
        assert p * levels >> 32 == level
        assert naive.cost(p, levels, level) == 0


def test_axes_and_bins_must_belong_together():
    with pytest.raises(InvalidParameterError, match="bins must be the number of levels"):
        Grid((3, 4), (Axis(), Axis(3, unordered=True)))
    with pytest.raises(InvalidParameterError, match="axes must be one for each feature"):
        Grid((3, 4), (Axis(3),))
    with pytest.raises(InvalidParameterError, match="axes must be one for each feature, or none where all are plain"):
        Margins((3,), (Axis(),))


def test_the_rule_for_bins_leaves_levels_as_they_are():
    assert bins_by_rule(10_000, 1.0, 3, [4]) == round((1000**1.2 / 4) ** 0.5)
    assert bins_by_rule(100, 1.0, 3, [400, 20]) == 2
    assert bins_by_rule(1000, 1.0, 2, [3, 3]) >= 2
