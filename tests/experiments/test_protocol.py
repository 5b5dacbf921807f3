"""The paper's protocol: splits, stand-ins for declared bounds, seeds."""

import numpy as np
import pytest

from dpoutlier import KNN
from experiments.measure.protocol import bounds_widened, seed_of, split_rows
from made_data import made


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
