"""Explained walks: the same cells in the same order as the definition, and parts that add up to the score."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from dpoutlier.counts.base import noisy_counts
from dpoutlier.counts.dense import DenseCounts
from dpoutlier.counts.exact import ExactCounts
from dpoutlier.counts.keyed import KeyedCounts
from dpoutlier.counts.sparse import SparseCounts
from dpoutlier.explain.nearest_region import (
    cells_in_order,
    feature_ranks,
    nearest_regions,
    order_of_walk,
    parts_of_score,
)
from dpoutlier.features.axes import Axis, plain
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.partitions.base import cell_ids
from dpoutlier.partitions.grid import Grid
from dpoutlier.scoring.nearest_cells import NearestCells
from strategies import kinds_with_points, rules


def grid_of(bins, axes) -> Grid:
    return Grid(tuple(bins), plain([Axis(*axis) for axis in axes]))


def naive_parts(point, bins, axes, cells, counts, rule, *, gathered):
    """What each feature adds to the score of a walk over these cells, from the definition."""
    home = naive.home_of(point, bins, axes)
    parts = []
    for j, (p, b, axis) in enumerate(zip(point, bins, axes)):
        far = [
            naive.length(home[j], cell[j], b, axis)
            if rule["distance"] == "cell"
            else Fraction(naive.cost(p, b, cell[j], axis), naive.LATTICE)
            for cell in cells
        ]
        part = sum((q * f for q, f in zip(counts, far)), Fraction(0)) if rule["weighted"] else far[-1]
        if not gathered and rule["exhausted"] == "outlying":
            part = part + (rule["k"] - sum(counts)) if rule["weighted"] else Fraction(1)
        parts.append(part)
    return parts


@settings(max_examples=200, deadline=None)
@given(kinds_with_points(), st.one_of(st.none(), st.integers(0, 6)))
def test_cells_come_in_the_order_of_the_definition(drawn, max_depth):
    bins, axes, points = drawn
    grid = grid_of(bins, axes)
    for point in points:
        ranks = feature_ranks(np.array(point, np.uint32), grid, max_depth, grid.n_cells)
        found = []
        for cell in cells_in_order(ranks, grid, max_depth):
            at = [own[0].cell for own in ranks]
            for j, r in cell.path:
                at[j] = ranks[j][r].cell
            assert cell.number == naive.number_of(at, bins, axes)
            found.append(tuple(at))
        assert found == naive.visiting_order(point, bins, max_depth, axes)


@pytest.mark.parametrize("listed", [False, True])
@settings(max_examples=200, deadline=None)
@given(kinds_with_points(), rules(), st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 3, 12]))
def test_the_parts_are_those_of_the_definition(listed, drawn, rule, seed, spread):
    """If the counts list their cells, the explained walk visits only those."""
    bins, axes, points = drawn
    grid, positions = grid_of(bins, axes), np.array(points, np.uint32)
    noisy = np.random.default_rng(seed).integers(-spread, spread + 1, grid.n_cells)
    released = DenseCounts(noisy)
    if listed:
        noisy, rule = noisy.clip(0), {**rule, "max_cells": grid.n_cells}
        released = ExactCounts(cell_ids(np.flatnonzero(noisy)), noisy[noisy > 0])
    scorer = NearestCells(**rule)
    walks = scorer.walk(positions, grid, released)
    found = nearest_regions(positions, grid, released, scorer, walks)
    for i, point in enumerate(points):
        score, total, visited = naive.score(point, bins, lambda number: int(noisy[number]), **rule, axes=axes)
        cells = naive.visiting_order(point, bins, rule["max_depth"], axes)[:visited]
        counts = [int(noisy[naive.number_of(cell, bins, axes)]) for cell in cells]
        assert walks.gathered[i] == total == sum(counts)
        gathered = total >= rule["k"]
        expected = naive_parts(point, bins, axes, cells, counts, rule, gathered=gathered)
        order = order_of_walk(positions[i], grid, released, scorer, int(walks.visited[i]), gathered=gathered)
        exact = parts_of_score(order, grid, released, scorer, gathered=gathered)
        assert exact == expected
        assert float(sum(exact)) == score == walks.scores[i]
        assert found.parts[i].tolist() == [float(part) for part in expected]


def kinds_of_counts(grid, seed):
    """One of each kind over the same few exact rows."""
    rng = np.random.default_rng(seed)
    numbers = sorted({int(n) for n in rng.integers(0, min(grid.n_cells, 2**40), 30)})
    ids, exact = cell_ids(numbers), rng.integers(1, 6, len(numbers))
    law = DiscreteLaplace(Fraction(3, 8))
    return {
        "keyed": KeyedCounts(ids, exact, bytes(32), bytes(16), law),
        "sparse": SparseCounts(ids, exact + 2, 2),
        "exact": ExactCounts(ids, exact),
    }


@pytest.mark.parametrize("kind", ["keyed", "sparse", "exact"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("times", "max_depth"), [(1, None), (12, 4)])
def test_every_kind_of_counts_is_explained_by_its_own_counts(kind, weighted, times, max_depth):
    """With 36 features the ids of cells need two words."""
    axes = (Axis(), Axis(5, unordered=True), Axis(missing=True)) * times
    grid, rng = Grid((5, 5, 4) * times, axes), np.random.default_rng(1)
    assert (grid.n_cells > 2**64) == (times > 1)
    positions = rng.integers(0, 2**32, (6, grid.n_features), dtype=np.uint32)
    counts = kinds_of_counts(grid, 0)[kind]
    scorer = NearestCells(k=6, weighted=weighted, max_cells=400, max_depth=max_depth)
    walks = scorer.walk(positions, grid, counts)
    found = nearest_regions(positions, grid, counts, scorer, walks)
    np.testing.assert_allclose(found.parts.sum(axis=1), walks.scores, rtol=1e-12)
    for i, position in enumerate(positions):
        visited, gathered = int(walks.visited[i]), walks.status[i] == 0
        if not weighted and not gathered:
            continue  # its score needs none of them
        order = order_of_walk(position, grid, counts, scorer, visited, gathered=gathered).cells
        rows = noisy_counts(counts, cell_ids([cell.number for cell in order]))
        assert len(order) == visited
        assert rows.sum() == walks.gathered[i]
        if walks.status[i] == 0:
            assert rows[:-1].sum() < scorer.k <= rows.sum()


def test_a_walk_that_ends_in_nothing_adds_one_edge_for_each_feature():
    grid, counts = Grid((4, 4)), DenseCounts(np.array([2] + [0] * 15))
    far = np.array([[2**32 - 1] * 2], np.uint32)
    for rule, parts in (
        ({}, [1, 1]),
        ({"weighted": True}, [5, 5]),  # all five rows are missing
        (
            {"weighted": True, "max_depth": None},
            [2 * 0.75 + 3, 2 * 0.75 + 3],
        ),  # two rows three steps away, three missing
        ({"exhausted": "as-printed", "max_depth": 2}, [0.5, 0]),
    ):
        scorer = NearestCells(**{"k": 5, "max_depth": 3, **rule})
        found = nearest_regions(far, grid, counts, scorer, scorer.walk(far, grid, counts))
        assert found.parts.tolist() == [parts]


@pytest.mark.slow
@pytest.mark.parametrize("listed", [False, True])
@settings(max_examples=150, deadline=None)
@given(kinds_with_points(), rules(), st.integers(0, 2**32 - 1))
def test_the_usual_cell_is_the_nearest_of_those_that_score_least(listed, drawn, rule, seed):
    """The first cell with the least score within reach (fewer than a thousand cells here), if that is less."""
    bins, axes, points = drawn
    grid = Grid(tuple(bins), plain([Axis(*axis) for axis in axes]))
    counts = np.random.default_rng(seed).integers(-2, 5, grid.n_cells)
    released = DenseCounts(counts)
    if listed:
        counts, rule = counts.clip(0), {**rule, "max_cells": grid.n_cells}
        released = ExactCounts(cell_ids(np.flatnonzero(counts)), counts[counts > 0])
    positions, scorer = np.array(points, np.uint32), NearestCells(**rule)
    walks = scorer.walk(positions, grid, released)
    found = nearest_regions(positions, grid, released, scorer, walks)
    for i, point in enumerate(points):
        home = naive.home_of(point, bins, axes)
        if counts[naive.number_of(home, bins, axes)] >= rule["k"]:
            assert tuple(found.usual[i].tolist()) == home
            continue
        best, least = (-1,) * len(bins), walks.scores[i]
        for cell in naive.visiting_order(point, bins, rule["max_depth"], axes)[1:1000]:
            moved = [
                p if c == h else 2**32 - 1 if c == b else (2 * c + 1) * 2**32 // (2 * b)
                for p, c, h, b in zip(point, cell, home, bins)
            ]
            score = naive.score(moved, bins, lambda number: int(counts[number]), **rule, axes=axes)[0]
            if score < least:
                best, least = cell, score
        assert tuple(found.usual[i].tolist()) == best
