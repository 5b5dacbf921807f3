"""The paper's detector with the paper's preprocessing: the map that the text describes, and a statement that it is not private."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpoutlier
from dpoutlier import DPForest, DPGridKNN, GridKNN
from dpoutlier.detectors.as_in_paper import unsafe_bounds
from dpoutlier.exceptions import InvalidParameterError, UnsafeWarning
from dpoutlier.partitions.grid import Grid
from dpoutlier.privacy.guarantee import LEAKED

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 3))
COLUMNS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=30).map(np.array)
ROWS = np.random.default_rng(0).normal([3, -1], [1, 5], (300, 2))


def in_cube(points, bounds):
    low, high = np.array(bounds.lower), np.array(bounds.upper)
    return np.clip((points - low) / (high - low), 0, 1)


@given(COLUMNS, COLUMNS)
def test_centre_first_is_what_the_authors_code_does(reference, points):
    """Their util.py, lines 24 to 32: subtract the mean, divide by the largest absolute value, map [-1, 1] onto [0, 1], clip."""
    mean = reference.mean(axis=0)
    largest = np.abs(reference - mean).max(axis=0)
    bounds = unsafe_bounds(reference)
    varies = largest > 1e-6
    expected = np.clip(((points - mean)[:, varies] / largest[varies] + 1) / 2, 0, 1)
    assert np.allclose(in_cube(points, bounds)[:, varies], expected, atol=1e-6)


@given(COLUMNS, COLUMNS)
def test_as_printed_is_the_order_of_section_4_1(reference, points):
    """Divide by the largest absolute value, map [-1, 1] onto [0, 1], subtract the mean: 0 is then the middle of the cube."""
    largest = np.abs(reference).max(axis=0)
    varies = largest > 1e-6

    def mapped(rows):
        return (rows[:, varies] / largest[varies] + 1) / 2

    expected = np.clip(mapped(points) - mapped(reference).mean(axis=0) + 0.5, 0, 1)
    found = in_cube(points, unsafe_bounds(reference, "as-printed"))
    assert np.allclose(found[:, varies], expected, atol=1e-6)


def test_the_range_is_from_the_least_to_the_largest():
    bounds = unsafe_bounds(ROWS, "range")
    assert (bounds.lower.tolist(), bounds.upper.tolist()) == (ROWS.min(axis=0).tolist(), ROWS.max(axis=0).tolist())
    constant = unsafe_bounds([[2.0], [2.0]], "range")
    assert (constant.lower.tolist(), constant.upper.tolist()) == ([1.5], [2.5])
    huge, awkward = unsafe_bounds([[1e17], [1e17]]), unsafe_bounds([[0.1]] * 50)
    assert (huge.lower[0], huge.upper[0]) == (1e17 - 1e11, 1e17 + 1e11)
    assert (awkward.lower[0], awkward.upper[0]) == (0.1 - 0.5, 0.1 + 0.5)  # though 50 times 0.1 has another mean
    with pytest.raises(
        InvalidParameterError, match="preprocessing must be one of 'centre-first', 'as-printed', 'range'"
    ):
        unsafe_bounds(ROWS, "z-score")


def test_the_recipe_is_the_detector_of_the_paper_and_states_that_it_is_not_private():
    with pytest.warns(UnsafeWarning, match="NOT PRIVATE") as caught:
        detector = dpoutlier.as_in_paper(ROWS, epsilon=1, k=10, bins=5, weighted=True)
    assert [str(one.message) for one in caught] == [f"NOT PRIVATE: {LEAKED}"]
    assert (detector.k, detector.bins, detector.weighted, detector.max_depth) == (10, 5, True, 4)
    assert (detector.exhausted, detector.distance) == ("as-printed", "cell")
    assert detector.guarantee_.voided_by == (LEAKED,)
    assert not detector.publishable
    statement = str(detector.privacy_statement())
    assert LEAKED in " ".join(statement.split())
    assert detector.privacy_statement().bounds_source == "taken from the reference rows, without noise"
    assert np.isfinite(detector.outlier_scores(ROWS[:5])).all()


def test_depth_alone_ends_a_walk_in_any_number_of_features():
    """Within four steps of 80 features lie 1.7 million cells, and the one that holds most rows is the last of them."""
    rows = np.vstack([np.zeros((1, 80)), np.ones((300, 80)), np.zeros((300, 80))])
    rows[301:, :4] = 1.0
    with pytest.warns(UnsafeWarning):
        detector = dpoutlier.as_in_paper(rows, epsilon=1e4, k=10, bins=2, weighted=True, preprocessing="range")
    assert detector.max_cells == Grid((2,) * 80).most_within(4) < detector.model_.partition.n_cells
    assert detector.outlier_scores(np.zeros((1, 80)))[0] == pytest.approx(300 * 2, rel=1e-3)


BAD = {
    "no row": (np.empty((0, 3)), "X must have at least one row"),
    "no column": (np.empty((5, 0)), "X must have at least one row"),
    "a gap": ([[1.0, 2.0], [np.nan, 3.0]], "X must hold finite numbers"),
    "infinity": ([[1.0], [np.inf]], "X must hold finite numbers"),
    "text": (pl.DataFrame({"a": ["x", "y"]}), "X must hold finite numbers"),
    "too large": ([[-1.7e308], [1.7e308]], "X must hold finite numbers"),
    "a path": ("rows.csv", "X must be an array or a data frame in memory, got str"),
    "a lazy frame": (pl.LazyFrame({"a": [1.0]}), "X must be an array or a data frame in memory, got LazyFrame"),
}


@pytest.mark.parametrize("case", BAD)
def test_rows_that_make_no_grid_are_refused_by_name(case):
    reference, message = BAD[case]
    with pytest.raises(InvalidParameterError, match=message):
        dpoutlier.as_in_paper(reference, epsilon=1, k=3, bins=3)


@pytest.mark.parametrize("bins", [0, 2.5, None, "auto"])
def test_bins_is_a_whole_number(bins):
    with pytest.raises(InvalidParameterError, match="bins must be a whole number of at least 1"):
        dpoutlier.as_in_paper(ROWS, epsilon=1, k=3, bins=bins)


def test_a_frame_keeps_its_names():
    frame = pl.DataFrame(ROWS, schema=["dose", "age"])
    with pytest.warns(UnsafeWarning):
        detector = dpoutlier.as_in_paper(frame, epsilon=1, k=10, bins=5)
    assert detector.model_.domain.names == ("dose", "age")


@pytest.mark.parametrize("detector", [DPGridKNN, DPForest])
def test_leaked_bounds_void_the_guarantee_of_any_detector_and_of_what_is_made_from_it(detector, tmp_path):
    bounds = unsafe_bounds(ROWS)
    with pytest.warns(UnsafeWarning, match="the bounds were taken from the reference rows"):
        fitted = detector(1, features=bounds, n_rows_hint=300, missing="cell").fit(ROWS)
    assert fitted.guarantee_.voided_by == (LEAKED,)
    path = fitted.save(tmp_path / "model")
    again = dpoutlier.load(path, secret=True).estimator()
    with pytest.warns(UnsafeWarning, match="the bounds were taken from the reference rows"):
        again.fit(ROWS)
    assert again.guarantee_.voided_by == (LEAKED,)


def test_an_older_file_states_in_these_words_that_it_is_not_private():
    words = "the bounds were taken from the reference rows: every score depends on them, and no noise covers that."
    assert words == LEAKED  # the words alone tell a file whose bounds were leaked


def test_a_fit_with_a_twins_bounds_states_that_it_is_not_private(tmp_path):
    path = GridKNN(unsafe_bounds(ROWS), bins=5).fit(ROWS).save(tmp_path / "twin")
    bounds = dpoutlier.load(path, secret=True).estimator().features
    assert repr(bounds).endswith(", leaked)")
    with pytest.warns(UnsafeWarning, match="the bounds were taken from the reference rows"):
        fitted = DPGridKNN(1, features=bounds, bins=5).fit(ROWS)
    assert fitted.guarantee_.voided_by == (LEAKED,)


def test_leaked_bounds_cannot_be_charged_to_a_ledger(tmp_path):
    ledger = dpoutlier.Ledger.create(tmp_path / "budget.ledger")
    ledger.open_budget("ward", 1)
    with (
        pytest.warns(UnsafeWarning),
        pytest.raises(dpoutlier.exceptions.LedgerError, match="a fit that is not private"),
    ):
        DPGridKNN(1, features=unsafe_bounds(ROWS), bins=5, ledger=ledger, dataset="ward").fit(ROWS)
    assert ledger.balance("ward").spent == 0
