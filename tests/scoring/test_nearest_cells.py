"""Algorithm 1: the walk gives exactly what the definition over all cells gives, and what the first kernel gave."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import naive
from cell_numbers import cell_numbers
from dpoutlier import GridKNN
from dpoutlier.counts.base import noisy_counts
from dpoutlier.counts.dense import DenseCounts
from dpoutlier.counts.exact import ExactCounts
from dpoutlier.counts.keyed import KeyedCounts
from dpoutlier.kernels import walk as walk_kernel
from dpoutlier.kernels.order import into_buckets, sort_few, sort_stably
from dpoutlier.kernels.ranks import divided, new_ranks, reach, start_ranks
from dpoutlier.kernels.window import compare_first_steps, find_cells, new_path, new_window, set_out
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.partitions.base import cell_ids
from dpoutlier.partitions.grid import Grid
from dpoutlier.scoring import nearest_cells, threads
from dpoutlier.scoring.nearest_cells import NearestCells
from heap.walk import walk_by_heap
from strategies import grids_with_points, rules

NO_LIMIT = 2**40


def ranked(point, bins, max_depth, limit=2**50, max_cells=10**6):
    """(grid, ranks up to a cost, path, cost and id of home)."""
    grid = Grid(tuple(bins))
    arrays = grid.arrays()
    ranks = new_ranks(arrays, max_depth, max_cells)
    cost = start_ranks(np.array(point, np.uint32), arrays, ranks)
    for j in range(len(bins)):
        reach(j, limit, arrays, max_depth, ranks)
    path = new_path(ranks)
    compare_first_steps(ranks, path)
    home = grid.cells(np.array([point], np.uint32))[0, 0]
    return arrays, ranks, path, cost, home


def order_by_windows(point, bins, max_depth, ends, room):
    """Cells as windows yield them, each window sorted by cost alone, and stably."""
    limit = NO_LIMIT if max_depth is None else max_depth
    arrays, ranks, path, _, home = ranked(point, bins, limit)
    window, order = new_window(room), [cell_numbers(home[np.newaxis])[0]]
    for start, end in zip(ends, [*ends[1:], 2**50]):
        set_out(home[0], home[1], ranks, path)
        cells, complete = [], False
        while not complete:  # a window that is full goes on where it stopped
            n, complete = find_cells(start, end, arrays.wide, arrays.skips, limit, ranks, path, window)
            ids = np.stack([window.high[:n], window.low[:n]], axis=-1)
            cells += zip(window.cost[:n].tolist(), cell_numbers(ids))
        assert all(start <= cost < end for cost, _ in cells)
        order += [number for _, number in sorted(cells, key=lambda cell: cell[0])]
    return order


@settings(max_examples=300)
@given(
    grids_with_points(most_cells=300),
    st.one_of(st.none(), st.integers(0, 6)),
    st.lists(st.integers(1, 2**34), max_size=4, unique=True),
    st.integers(1, 50),
)
def test_cells_are_found_in_the_defined_order_completely_and_once(grid, max_depth, cuts, room):
    bins, points = grid
    for point in points:
        expected = [naive.number_of(cell, bins) for cell in naive.visiting_order(point, bins, max_depth)]
        assert order_by_windows(point, bins, max_depth, [0, *sorted(cuts)], room) == expected


@given(st.integers(0, 2**57), st.integers(1, 2**24))
@example(2**57 - 1, 2**24)
@example(2**33 - 1, 1)
def test_division_by_a_float_estimate_is_exact(numerator, bins):
    numerator = min(numerator, bins * 2**34)
    assert divided(numerator, 2 * bins, 1 / (2.0 * bins)) == numerator // (2 * bins)


@given(st.lists(st.integers(0, 30), max_size=200), st.integers(0, 20))
def test_sorting_is_stable(costs, first):
    costs = np.array([0] * first + costs, np.int64)
    n = len(costs) - first
    order = np.empty(n, np.int64)
    sort_stably(costs, first, len(costs), order, np.empty(n, np.int64))
    assert order.tolist() == (first + np.argsort(costs[first:], kind="stable")).tolist()
    sort_few(costs[first:], n, order)
    assert order.tolist() == np.argsort(costs[first:], kind="stable").tolist()


@given(st.lists(st.integers(1000, 1000 + 2**33), min_size=1, max_size=300), st.booleans())
def test_buckets_keep_cells_whole_and_in_the_order_they_came(costs, wide):
    n = len(costs)
    found, out, starts = new_window(n), new_window(n), np.empty(5000, np.int64)
    found.cost[:], found.length[:] = costs, np.arange(n)
    found.low[:], found.high[:] = np.arange(n) + 7, (np.arange(n) + 9 if wide else 0)
    buckets = into_buckets(found, n, 1000, max(costs) - 999, wide, starts, out)
    moved = out.length
    assert sorted(moved.tolist()) == list(range(n))
    assert (out.low == moved + 7).all()
    assert (out.high == (moved + 9 if wide else 0)).all()
    assert (out.cost == found.cost[moved]).all()
    assert (starts[0], starts[buckets]) == (0, n)
    for a, b in pairwise(starts[: buckets + 1]):
        assert (np.diff(moved[a:b]) > 0).all()
        assert a == b or b == n or out.cost[a:b].max() < out.cost[b:].min()


# The middle of this position lies past the edge of its bin: without care the next bin would come before home.
STRADDLING = (2**33 - 1) // 7


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 5000), st.data())
def test_home_is_first_and_steps_never_fall_with_rank(bins, data):
    edge = data.draw(st.integers(0, bins - 1))
    p = min(max(-(-edge * 2**32 // bins) + data.draw(st.integers(-2, 2)), 0), 2**32 - 1)
    _, ranks, _, cost, _ = ranked((p,), (bins,), 50)
    number = int(ranks.number[0])
    found = naive.ranked(p, bins)
    near = [c for c in found if abs(c - p * bins // 2**32) <= 50]
    assert cost == naive.cost(p, bins, near[0])
    assert (cost + ranks.cost[:number]).tolist() == [naive.cost(p, bins, c) for c in near]
    assert (near[0] + ranks.low[:number].astype(np.int64)).tolist() == near
    assert near[0] == p * bins // 2**32
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


@given(grids_with_points(), st.integers(0, 7))
def test_no_more_cells_lie_within_reach_than_the_grid_says(grid, max_depth):
    bins, points = grid
    for point in points:
        assert len(naive.visiting_order(point, bins, max_depth)) <= Grid(bins).most_within(max_depth)
    assert Grid(bins).most_within(None) == Grid(bins).n_cells


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
    ranks = new_ranks(Grid((2**22, *[1] * 499)).arrays(), 2**40, 10**7)
    assert len(ranks.cost) == 2**22 + 499 + 500  # and one entry to end each


@pytest.mark.parametrize("bins", [(16777216, 16501795), (3, 7, 11, 13, 17, 19, 23, 29, 31, 37)])
def test_lengths_are_right_past_a_common_multiple_of_64_bits(bins):
    grid = Grid(bins)
    assert grid.unit == 2**38
    counts = np.zeros(1, np.int64)
    far = np.array([[2**32 - 1] * len(bins)], np.uint32)
    rule = NearestCells(k=1, max_depth=None)
    assert rule.walk(far, grid, ExactCounts(np.empty((0, 2), np.uint64), counts[:0])).scores[0] == len(bins)
    steps = 3
    ids = cell_ids([naive.number_of([b - 1 for b in bins[:-1]] + [bins[-1] - 1 - steps], bins)])
    walk = rule.walk(far, grid, ExactCounts(ids, np.array([1])))
    assert walk.scores[0] == pytest.approx(steps / bins[-1], abs=2**-37)


LONG = {"k": 80, "weighted": False, "distance": "cell", "max_depth": 4, "max_cells": 3000, "exhausted": "outlying"}
LAW = DiscreteLaplace(Fraction(3, 8))


def occupied(bins, seed, share):
    """Ids and counts of some cells."""
    rng, n_cells = np.random.default_rng(seed), Grid(bins).n_cells
    numbers = np.flatnonzero(rng.random(n_cells) < share)
    return cell_ids(numbers), rng.integers(1, 6, len(numbers))


@pytest.mark.parametrize("noise", [1, 2])
@settings(max_examples=100)
@given(grids_with_points(most_cells=300), rules(), st.integers(0, 2**32 - 1))
def test_keyed_scores_equal_the_definition_on_the_noise_of_each_cell(noise, grid, rule, seed):
    """Noise asked for cell by cell, or many at once on a walk, is the same noise."""
    bins, points = grid
    partition = Grid(bins)
    held = KeyedCounts(*occupied(bins, seed, 0.3), seed.to_bytes(32, "big"), bytes(16), LAW, sampler_version=noise)
    counts = noisy_counts(held, cell_ids(range(partition.n_cells))).astype(int)
    walks = NearestCells(**rule).walk(np.array(points, np.uint32), partition, held)
    for i, point in enumerate(points):
        expected = naive.score(point, bins, lambda number: int(counts[number]), **rule)
        assert (walks.scores[i], walks.gathered[i], walks.visited[i]) == expected


def test_a_grid_of_all_the_cells_there_can_be():
    grid = Grid((1, *[2] * 128))
    assert cell_numbers(grid.cells(np.full((1, 129), 2**32 - 1, np.uint32))) == [2**128 - 1]
    held = KeyedCounts(cell_ids([2**128 - 1]), np.array([9]), bytes(32), bytes(16), LAW, sampler_version=1)
    both_kernels({**LONG, "max_cells": 500}, np.full((1, 129), 2**32 - 5, np.uint32), grid, held)


def both_kernels(rule, positions, grid, held):
    scorer = NearestCells(**rule)
    walks, heap = scorer.walk(positions, grid, held), walk_by_heap(scorer, positions, grid, held)
    for found, expected in zip((walks.scores, walks.gathered, walks.visited, walks.status), heap):
        assert (found == expected).all()
    return walks


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [{}, {"weighted": True}, {"distance": "point"}, {"max_depth": None}, {"exhausted": "as-printed", "max_cells": 700}],
)
@pytest.mark.parametrize("bins", [(10,) * 30, (3,) * 30, (4,) * 7 + (9,) * 25, (12,) * 8, (500, 400, 300)])
def test_long_walks_equal_those_of_the_first_kernel(bins, change):
    """Up to 10**30 cells, of 64 and of 128 bits; points at borders and middles of bins, where cells tie by the thousand."""
    rng = np.random.default_rng(0)
    grid = Grid(bins)
    rows = rng.integers(0, 2**32, (200, len(bins)), dtype=np.uint32)
    ids = grid.cells(rows)[:, 0, :]
    ids = ids[np.lexsort((ids[:, 1], ids[:, 0]))]
    held = KeyedCounts(ids, rng.integers(1, 4, len(ids)), bytes(32), bytes(16), LAW, sampler_version=1)
    halves = rng.integers(0, 2 * np.array(bins) + 1, (10, len(bins))) * 2**32 // (2 * np.array(bins))
    points = np.concatenate([rng.integers(0, 2**32, (20, len(bins))), np.minimum(halves, 2**32 - 1)]).astype(np.uint32)
    walks = both_kernels({**LONG, **change}, points, grid, held)
    assert walks.visited.max() > 128


def test_cells_that_tie_by_the_million_are_walked_without_room_for_them():
    """A point in the middle of its bin in 20 features, on the border in 10: a thousand cells cost nothing, millions the same."""
    grid, rng = Grid((4,) * 30), np.random.default_rng(1)
    point = np.full((1, 30), 5 * 2**32 // 8, np.uint32)
    point[0, ::3] = 2**31
    held = KeyedCounts(
        np.empty((0, 2), np.uint64),
        np.empty(0, np.int64),
        rng.bytes(32),
        bytes(16),
        DiscreteLaplace(Fraction(3)),
        sampler_version=1,
    )
    walks = both_kernels({**LONG, "k": 5000, "max_depth": None, "max_cells": 3 * walk_kernel.ROOM}, point, grid, held)
    assert walks.visited[0] == 3 * walk_kernel.ROOM


@pytest.mark.parametrize("noise", [1, 2])
def test_any_chunk_size_and_thread_count_gives_the_same_scores(noise, monkeypatch):
    rng = np.random.default_rng(3)
    grid, points = Grid((6,) * 9), rng.integers(0, 2**32, (700, 9), dtype=np.uint32)
    held = KeyedCounts(*occupied((6,) * 4, 0, 0.2), bytes(32), bytes(16), LAW, sampler_version=noise)
    scorer = NearestCells(max_cells=500)
    expected = scorer.outlier_scores(points, grid, held)
    for size, jobs in ((64, 1), (64, 2), (65, 3), (4096, 1), (131, 7)):
        monkeypatch.setattr(threads, "MIN_CHUNK", min(size, 64))
        monkeypatch.setattr(threads, "FIRST_CHUNK", size)
        assert (scorer.outlier_scores(points, grid, held, n_jobs=jobs) == expected).all()
        assert (scorer.walk(points, grid, held, n_jobs=jobs).scores == expected).all()


def test_a_table_that_is_too_short_is_made_longer_on_the_way(monkeypatch):
    """Streams of two words run out; the walk starts again with longer ones and gives the same scores."""
    rng = np.random.default_rng(4)
    grid, points = Grid((6,) * 9), rng.integers(0, 2**32, (300, 9), dtype=np.uint32)
    held = KeyedCounts(*occupied((6,) * 4, 0, 0.2), bytes(32), bytes(16), LAW, sampler_version=1)
    expected = NearestCells(max_cells=200).outlier_scores(points, grid, held)
    monkeypatch.setattr(nearest_cells, "STREAM", 1)
    assert (NearestCells(max_cells=200).outlier_scores(points, grid, held) == expected).all()


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


@pytest.mark.parametrize(
    ("upper", "bins", "expected"), [(4, 4, [0, 1, 2, 3]), (3, 3, [0, 0, 1]), (6, 6, [0, 0, 1, 3, 3, 4])]
)
def test_values_on_the_edges_of_bins_go_where_the_docs_say(upper, bins, expected):
    """docs/how-it-works.md, and the docstring of DPGridKNN."""
    for value, wanted in enumerate(expected):
        grid = GridKNN((0, upper), bins=bins, k=1).fit([[float(value)]])
        assert cell_numbers(grid.model_.counts.ids) == [wanted]
        assert wanted == (value if value * 2**32 % bins == 0 else value - 1)
