"""The paper's protocol: splits, preprocessing, seeds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpoutlier import KNN
from dpoutlier.exceptions import UnsafeWarning
from dpoutlier.experiments.measure.protocol import bounds_leaked_by, bounds_widened, seed_of, split_rows
from made_data import made

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 3))
COLUMNS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=30).map(np.array)


@pytest.mark.parametrize("number", range(3))
def test_a_split_parts_the_inliers_and_keeps_all_outliers(number):
    data = made("pima")
    split = split_rows(data, number)
    inliers = np.concatenate([split.reference, split.points[~split.outlying]])
    assert np.array_equal(inliers[np.lexsort(inliers.T[::-1])], data.inliers)
    assert np.array_equal(split.points[split.outlying], data.outliers)
    assert len(split.reference) == 8 * len(data.inliers) // 10


def test_splits_differ_and_stay():
    """Frozen: another order of rows is another experiment."""
    data = made("pima")
    first, again, other = split_rows(data, 0), split_rows(data, 0), split_rows(data, 1)
    assert np.array_equal(first.reference, again.reference)
    assert not np.array_equal(first.reference, other.reference)
    ranks = {tuple(row): i for i, row in enumerate(data.inliers)}
    assert [ranks[tuple(row)] for row in first.reference[:6]] == [26, 30, 15, 11, 3, 0]


@given(COLUMNS, COLUMNS)
def test_leaked_bounds_are_the_paper_s_map(reference, points):
    """Centre, divide by the largest absolute value, map [-1, 1] onto [0, 1], clip: Section 4.1, line by line."""
    with pytest.warns(UnsafeWarning, match="NOT PRIVATE: bounds_leaked_by"):
        bounds = bounds_leaked_by(reference)
    domain = bounds.domain(2)
    mean = reference.mean(axis=0)
    largest = np.abs(reference - mean).max(axis=0)
    largest[largest == 0] = 1
    by_paper = np.clip(((points - mean) / largest + 1) / 2, 0, 1)
    ours = (points - np.array(domain.lower)) / (np.array(domain.upper) - np.array(domain.lower))
    assert np.allclose(np.clip(ours, 0, 1), by_paper, atol=1e-6)


def test_leaked_bounds_hold_the_reference_rows_and_their_own_mean_in_the_middle():
    reference = made("heart").inliers
    with pytest.warns(UnsafeWarning):
        bounds = bounds_leaked_by(reference)
    assert np.allclose((bounds.lower + bounds.upper) / 2, reference.mean(axis=0))
    assert (reference >= bounds.lower - 1e-9).all()
    assert (reference <= bounds.upper + 1e-9).all()


def test_widened_bounds_are_the_range_and_a_tenth_on_each_side():
    bounds = bounds_widened(np.array([[0.0, 5.0], [10.0, 5.0]]))
    assert (bounds.lower.tolist(), bounds.upper.tolist()) == ([-1, 4.9], [11, 5.1])
    assert KNN(bounds, k=1).fit([[5.0, 5.0]]).outlier_scores([[5.0, 5.0]])[0] == 0


def test_seeds_tell_runs_apart():
    runs = [
        (name, split, bins, epsilon, seed)
        for name in "ab"
        for split in (0, 1)
        for bins in (2, None)
        for epsilon in (1.25, 5)
        for seed in (0, 1)
    ]
    assert len({seed_of(*run) for run in runs}) == len(runs)
    assert seed_of("lymphography", 0, 3, 1.25, 0) == 10_267_500_998_938_245_528
