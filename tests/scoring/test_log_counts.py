"""The mean logarithm of noisy counts: integers, the same in every thread, process and machine."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from dpoutlier import DPForest, DPMarginals, Forest, Marginals
from dpoutlier.counts.base import noisy_counts
from dpoutlier.counts.dense import DenseCounts
from dpoutlier.counts.exact import ExactCounts
from dpoutlier.counts.keyed import KeyedCounts
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.kernels.logarithms import log_terms
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.partitions.base import cell_ids
from dpoutlier.partitions.grid import Grid
from dpoutlier.partitions.marginals import Margins
from dpoutlier.partitions.trees import Trees
from dpoutlier.scoring.log_counts import UNIT, LogCounts

quiet = pytest.mark.filterwarnings("ignore::dpoutlier.exceptions.UnsafeWarning")


def terms_of(counts, floor, bend=0):
    out = np.empty(len(counts), np.int64)
    log_terms(np.array(counts, np.int64), UNIT, floor, bend, out)
    return out


@settings(max_examples=200)
@given(
    st.lists(st.integers(-(2**38), 2**38), min_size=1, max_size=20),
    st.integers(1, 2**50),
    st.one_of(st.just(0), st.integers(1, 2**55)),
)
def test_logarithms_are_right_to_two_units(counts, floor, bend):
    for term, count in zip(terms_of(counts, floor, bend=bend).tolist(), counts):
        assert abs(term - naive.log_of_count(count, Fraction(floor, UNIT), Fraction(bend, UNIT))) < 2


def test_logarithms_are_frozen():
    """Integers: what a published model scores must not depend on a mathematical library."""
    expected = [0, 2977044471, 4718503850, 9889527670, 29668583012, 110150645457]
    assert terms_of([1, 2, 3, 10, 1000, 2**37], UNIT // 2).tolist() == expected
    assert terms_of([-5, 0], UNIT // 2).tolist() == [-2977044472] * 2
    assert terms_of([-5, 3, 1000], UNIT // 4, bend=8 * UNIT).tolist() == [-15017385627, -5580377925, -34223028]


@pytest.mark.parametrize("bend", [0, 8 * UNIT])
def test_logarithms_never_fall(bend):
    terms = terms_of(np.arange(1, 5000), UNIT // 2, bend=bend)
    assert (np.diff(terms) > 0).all()


@pytest.mark.parametrize(
    ("rate", "scale"),
    [(None, 1), (Fraction(5), 1), (Fraction(1, 8), 8), (Fraction(1, 64), 64), (Fraction(3, 7), Fraction(7, 3))],
)
def test_the_floor_is_a_part_of_the_scale_which_is_taken_to_be_one_at_least(rate, scale):
    plain, soft = LogCounts().with_noise(rate), LogCounts(soft=True).with_noise(rate)
    assert plain.floor == int(UNIT * scale / 2)
    assert soft.floor == int(UNIT * scale / 4)
    assert (soft.floor_of(1), soft.floor_of(4)) == (soft.floor, 2 * soft.floor)


PARTITIONS = {
    "trees": Trees(3, 4, 5, (1, 2, 3), 1),
    "margins": Margins((4, 6, 5)),
    "grid": Grid((3, 4, 2)),
}
LAW = DiscreteLaplace(Fraction(1, 4))


def kinds_of_counts(partition):
    rng = np.random.default_rng(0)
    counts = rng.integers(-3, 40, partition.n_cells)
    occupied = np.flatnonzero(counts > 0)
    yield "dense", DenseCounts(counts)
    yield "exact", ExactCounts(cell_ids(occupied), counts[occupied])
    yield "keyed", KeyedCounts(cell_ids(occupied), counts[occupied], b"k" * 32, b"s" * 16, LAW)


def by_definition(partition, released, ids, rows, floor):
    """The soft score, with the sum over one feature taken over leaves by their bits."""
    every = noisy_counts(released, cell_ids(range(partition.n_cells)))
    g = lambda q, f: np.log(1 + 8 * f / np.maximum(q, f))  # noqa: E731
    total = g(rows, floor)
    if isinstance(partition, Trees):
        first, hands = 0, naive.deal_features(partition.seed, partition.sizes, partition.n_features)
        for t, (depth, hand) in enumerate(zip(partition.depths, hands)):
            levels = [hand[i] for i in naive.tree_levels(partition.seed, t, depth, hand)]
            own, leaves = sorted(set(levels)), np.arange(2**depth)
            for j in own if len(own) > 1 else ():
                same = sum(1 << (depth - 1 - level) for level in range(depth) if levels[level] != j)
                for i in range(len(rows)):
                    leaf = int(ids[i, t, 1]) - first
                    merged = first + leaves[(leaves & same) == (leaf & same)]
                    total[i, t] += g(every[merged].sum(), floor * np.sqrt(len(merged))) / (2 * len(own))
            first += 2**depth
    return total.mean(axis=1)


@pytest.mark.parametrize("name", PARTITIONS)
@pytest.mark.parametrize("kind", ["dense", "exact", "keyed"])
@pytest.mark.parametrize(("soft", "threads"), [(False, 1), (True, 3)])
def test_scores_are_those_of_the_definition(name, kind, soft, threads):
    partition = PARTITIONS[name]
    released = dict(kinds_of_counts(partition))[kind]
    scorer = LogCounts(soft, 3 * UNIT // 2)
    positions = np.random.default_rng(1).integers(0, 2**32, (300, 3), dtype=np.uint32)
    found = scorer.outlier_scores(positions, partition, released, threads)
    ids = partition.cells(positions)
    rows = noisy_counts(released, ids.reshape(-1, 2)).reshape(ids.shape[:2])
    expected = (
        by_definition(partition, released, ids, rows, 1.5) if soft else -np.log(np.maximum(rows, 1.5)).mean(axis=1)
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 if soft else 1e-9)  # floors of sums are rounded down
    one_by_one = [scorer.outlier_scores(positions[i : i + 1], partition, released)[0] for i in range(50)]
    assert found[:50].tolist() == one_by_one


def test_terms_are_computed_again_for_another_rule_or_partition():
    released = DenseCounts(np.arange(15))
    margins, other = Margins((4, 6, 5)), Margins((6, 4, 5))
    point = np.full((1, 3), 2**32 - 1, np.uint32)
    scores = [
        LogCounts(floor=f).outlier_scores(point, m, released)[0]
        for f in (UNIT, 8 * UNIT)
        for m in (margins, other, margins)
    ]
    assert scores[0] == scores[2] != scores[1]
    assert scores[3] == scores[5] != scores[0]


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("floor", [1, UNIT // 2, 12_345, 2**40])
def test_the_highest_level_is_the_score_of_empty_cells(floor, soft):
    scorer, trees = LogCounts(soft, floor), Trees(3, 7, 4)
    empty = ExactCounts(cell_ids([]), np.empty(0, np.int64))
    (score,) = scorer.outlier_scores(np.zeros((1, 3), np.uint32), trees, empty)
    levels = scorer.levels(trees, empty, 20, 0.02)
    assert levels[-1] == pytest.approx(score, abs=1e-4)  # a ladder of no height is given one
    assert (np.diff(levels) > 0).all()


@pytest.mark.parametrize("floor", [0, -1, 1.5, True, 2**53])
def test_an_impossible_floor_is_refused(floor):
    with pytest.raises(InvalidParameterError, match="floor must be"):
        LogCounts(floor=floor)


FEW_TREES = {"n_trees": 5, "depth": 4, "subspace": 3, "tree_seed": 9}
ROWS = np.random.default_rng(0).normal(size=(400, 5))
POINTS = np.random.default_rng(1).normal(size=(100, 5)) * 2


@quiet
@pytest.mark.parametrize(
    ("private", "twin"),
    [
        (DPForest(np.inf, features=(-6, 6), n_rows_hint="estimate"), Forest((-6, 6))),
        (DPForest(np.inf, features=(-6, 6), **FEW_TREES), Forest((-6, 6), **FEW_TREES)),
        (DPMarginals(np.inf, features=(-6, 6), bins=7), Marginals((-6, 6), bins=7)),
    ],
)
def test_an_infinite_epsilon_gives_the_exact_twin(private, twin):
    one, other = private.fit(ROWS), twin.fit(ROWS)
    assert one.model_.partition == other.model_.partition
    assert (one.outlier_scores(POINTS) == other.outlier_scores(POINTS)).all()
    assert not one.guarantee_.private
    assert not other.guarantee_.private


@pytest.mark.parametrize("make", [DPForest, DPMarginals])
def test_the_floor_follows_from_the_noise_that_was_charged(make):
    model = make(0.7, features=(-6, 6), n_rows_hint=400, tight_ranges=True).fit(ROWS).model_
    (charge,) = model.charges
    assert charge.sensitivity.l1 == model.partition.cells_per_row
    assert model.scorer.floor == int(UNIT / ((4 if model.scorer.soft else 2) * charge.rate))
    assert model.scorer.soft is (make is DPForest)


def test_an_exact_score_by_hand():
    """Two rows in one bin, one in the other, of each of two features: the mean of two logarithms."""
    twin = Marginals((0, 1), bins=2).fit([[0.1, 0.1], [0.2, 0.9], [0.7, 0.8]])
    scores = twin.outlier_scores([[0.1, 0.9], [0.9, 0.1], [0.1, 0.1]])
    np.testing.assert_allclose(scores, [-np.log(2), 0, -np.log(2) / 2], atol=1e-9)
