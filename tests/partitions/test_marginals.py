"""One histogram for each feature."""

import numpy as np
import pytest
from hypothesis import given, settings

from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.partitions.marginals import Margins
from strategies import grids_with_points


@settings(max_examples=100)
@given(grids_with_points())
def test_bins_are_numbered_over_all_features(drawn):
    bins, points = drawn
    margins = Margins(bins)
    first = [sum(bins[:j]) for j in range(len(bins))]
    expected = [[first[j] + p * b // 2**32 for j, (p, b) in enumerate(zip(point, bins))] for point in points]
    ids = margins.cells(np.array(points, np.uint32))
    assert ids[:, :, 0].max() == 0
    assert ids[:, :, 1].tolist() == expected
    assert margins.cells_per_row == len(bins)
    assert margins.n_cells == sum(bins)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [0, 1, 2000])
def test_tallies_and_sums_of_terms_are_those_of_the_bins(n, order):
    margins, rng = Margins((10, 3, 1, 7)), np.random.default_rng(n)
    points = np.asarray(rng.integers(0, 2**32, (n, 4), dtype=np.uint32), order=order)
    ids = margins.cells(points)[:, :, 1].astype(np.int64)
    counters, terms = np.zeros(margins.n_cells, np.int64), rng.integers(-(2**40), 2**40, margins.n_cells)
    margins.tally(points, counters)
    assert (counters == np.bincount(ids.ravel(), minlength=margins.n_cells)).all()
    out = np.arange(n)
    margins.add_terms(points, terms, out)
    assert (out == np.arange(n) + terms[ids].sum(axis=1)).all()


@pytest.mark.parametrize(
    ("bins", "message"),
    [
        ((), "one number for each feature"),
        ((0,), "bins must be a whole number of at least 1"),
        ((2**16 + 1,), "at most 65536"),
        ((2**16,) * 65, "at most 4,194,304 are possible"),
    ],
)
def test_impossible_margins_are_refused(bins, message):
    with pytest.raises(InvalidParameterError, match=message):
        Margins(bins)
