"""Algorithm 1: the lazy walk gives exactly what the definition over all cells gives."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import naive
from dpoutlier.holders.dense import DenseCounts
from dpoutlier.holders.exact import ExactCounts
from dpoutlier.kernels.frontier import new_frontier, pop, push_followers, start
from dpoutlier.kernels.ranks import new_ranks, rank_bins
from dpoutlier.partitions.grid import Grid
from dpoutlier.partitions.partition import cell_ids, cell_numbers
from dpoutlier.scoring.nearest_cells import NearestCells
from strategies import grids_with_points, rules


def lazy_order(point, bins, max_depth):
    """Cells in the order in which the frontier yields them."""
    grid = Grid(tuple(bins)).arrays()
    limit = 2**40 if max_depth is None else max_depth
    ranks, frontier = new_ranks(grid, limit, 10**6), new_frontier(4, len(bins))
    for j, p in enumerate(point):
        rank_bins(j, p, grid, limit, ranks)
    start(ranks, frontier)
    order = []
    while frontier.size[0] > 0:
        slot = pop(frontier)
        order.append(tuple(int(ranks.bin[ranks.first[j] + frontier.vector[slot, j]]) for j in range(len(bins))))
        frontier = push_followers(frontier, ranks, slot, limit)
    return order


@settings(max_examples=300, deadline=None)
@given(grids_with_points(most_cells=300), st.one_of(st.none(), st.integers(0, 6)))
def test_cells_are_visited_in_the_defined_order_completely_and_once(grid, max_depth):
    bins, points = grid
    for point in points:
        assert lazy_order(point, bins, max_depth) == naive.visiting_order(point, bins, max_depth)


# The middle of this position lies past the edge of its bin: without care the next bin would come before home.
STRADDLING = (2**33 - 1) // 7


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 5000), st.data())
def test_home_is_first_and_steps_never_fall_with_rank(bins, data):
    edge = data.draw(st.integers(0, bins - 1))
    p = min(max(-(-edge * 2**32 // bins) + data.draw(st.integers(-2, 2)), 0), 2**32 - 1)
    grid = Grid((bins,)).arrays()
    ranks = new_ranks(grid, 50, 10**6)
    rank_bins(0, p, grid, 50, ranks)
    number = int(ranks.number[0])
    assert ranks.bin[0] == p * bins // 2**32
    assert (np.diff(ranks.cost[:number]) >= 0).all()
    assert (np.diff(ranks.steps[:number]) >= 0).all()


def test_the_straddling_position_is_the_case_that_needs_care():
    home = STRADDLING * 7 // 2**32
    unclamped = [abs((2 * STRADDLING + 1) * 7 - (2 * c + 1) * 2**32) // 14 for c in range(7)]
    assert unclamped[home] > unclamped[home + 1]
    assert naive.ranked(STRADDLING, 7)[0] == home


@settings(max_examples=500, deadline=None)
@given(grids_with_points(), rules(), st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 3, 12]))
@example(((7,), [(STRADDLING,)]), {**dict.fromkeys(["weighted"], False), "k": 1, "distance": "cell", "max_depth": 0,
         "max_cells": 9, "exhausted": "outlying"}, 0, 3)  # fmt: skip
def test_scores_equal_the_definition_bit_for_bit(grid, rule, seed, spread):
    bins, points = grid
    partition = Grid(bins)
    counts = np.random.default_rng(seed).integers(-spread, spread + 1, partition.n_cells)
    walks = NearestCells(**rule).walk(np.array(points, np.uint32), partition, DenseCounts(counts))
    for i, point in enumerate(points):
        expected = naive.score(point, bins, lambda number: int(counts[number]), **rule)
        assert (walks.scores[i], walks.gathered[i], walks.visited[i]) == expected


@settings(max_examples=30)
@given(grids_with_points(most_cells=6**5), rules(), st.integers(0, 2**32 - 1))
def test_scores_equal_the_definition_on_the_largest_grids(grid, rule, seed):
    """Up to five features of six bins: 7,776 cells."""
    test_scores_equal_the_definition_bit_for_bit.hypothesis.inner_test(grid, rule, seed, 3)


@given(grids_with_points())
def test_cell_ids_are_the_mixed_radix_numbers(grid):
    bins, points = grid
    ids = Grid(bins).cells(np.array(points, np.uint32))
    assert ids.shape == (len(points), 1, 2)
    assert cell_numbers(ids) == [naive.number_of(naive.home_of(point, bins), bins) for point in points]


def test_cell_ids_past_64_bits_are_exact():
    bins = (10,) * 30 + (2**24 - 1,)
    points = np.random.default_rng(0).integers(0, 2**32, (50, 31), dtype=np.uint32)
    expected = [naive.number_of(naive.home_of(point.tolist(), bins), bins) for point in points]
    assert max(expected) > 2**64
    assert cell_numbers(Grid(bins).cells(points)) == expected


def test_huge_weighted_sums_do_not_overflow():
    counts = np.zeros(4, np.int64)
    counts[3] = 10**11
    rule = NearestCells(k=1, weighted=True, distance="point", max_depth=None)
    walk = rule.walk(np.array([[0]], np.uint32), Grid((4,)), DenseCounts(counts))
    assert walk.scores[0] == pytest.approx(10**11 * 0.875, rel=1e-9)


def test_a_fine_feature_costs_the_others_no_room():
    """One feature of four million bins beside 499 of one: buffers are as large as their sum, not their product."""
    grid = Grid((2**22, *[1] * 499)).arrays()
    ranks = new_ranks(grid, 2**40, 10**7)
    assert len(ranks.cost) == 2**22 + 499


@pytest.mark.parametrize("bins", [(16777216, 16501795), (3, 7, 11, 13, 17, 19, 23, 29, 31, 37)])
def test_lengths_are_right_past_a_common_multiple_of_64_bits(bins):
    grid = Grid(bins)
    assert grid.unit == 2**38
    counts = np.zeros(1, np.int64)
    far = np.array([[2**32 - 1] * len(bins)], np.uint32)
    rule = NearestCells(k=1, max_depth=None, max_cells=100)
    assert rule.walk(far, grid, ExactCounts(np.empty((0, 2), np.uint64), counts[:0])).scores[0] == len(bins)
    steps = 3
    ids = cell_ids([naive.number_of([b - 1 for b in bins[:-1]] + [bins[-1] - 1 - steps], bins)])
    walk = NearestCells(k=1, max_depth=None, max_cells=10**5).walk(far, grid, ExactCounts(ids, np.array([1])))
    assert walk.scores[0] == pytest.approx(steps / bins[-1], abs=2**-37)


@settings(max_examples=25, deadline=None)
@given(grids_with_points(), rules(), st.integers(0, 2**32 - 1))
def test_scores_do_not_depend_on_batch_order_or_threads(grid, rule, seed):
    bins, points = grid
    partition = Grid(bins)
    rng = np.random.default_rng(seed)
    counts = DenseCounts(rng.integers(-3, 4, partition.n_cells))
    many = np.array(points * 60, np.uint32)
    scorer = NearestCells(**rule)
    together = scorer.outlier_scores(many, partition, counts)
    order = rng.permutation(len(many))
    assert (scorer.outlier_scores(many[order], partition, counts) == together[order]).all()
    assert (scorer.outlier_scores(many, partition, counts, n_jobs=3) == together).all()
    assert (scorer.outlier_scores(many[:1], partition, counts) == together[:1]).all()


def test_statuses_tell_how_walks_ended():
    counts = DenseCounts(np.array([5, 0, 0, 0, 0]))
    at_end = np.array([[2**32 - 1]], np.uint32)
    status = {
        "gathered": NearestCells(k=5, max_depth=None).walk(at_end, Grid((5,)), counts).status[0],
        "ran out": NearestCells(k=5, max_depth=2).walk(at_end, Grid((5,)), counts).status[0],
        "capped": NearestCells(k=5, max_depth=None, max_cells=3).walk(at_end, Grid((5,)), counts).status[0],
    }
    assert status == {"gathered": 0, "ran out": 1, "capped": 2}
