"""scikit-learn's contract, tables of every kind, and clear errors."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpoutlier import KNN, DPForest, DPGridKNN, DPMarginals, Forest, GridKNN, Marginals
from dpoutlier.detectors.registry import CLASS_HOMES
from dpoutlier.exceptions import InvalidParameterError, PointsError, ReferenceDataError, ThresholdNotSetError

CHECKED = [
    DPGridKNN(1, features=(-10, 10), n_rows_hint=5000, counts="dense", unsafe_seed=0, target_fpr=0.1),
    DPForest(5, features=(-10, 10), n_rows_hint=5000, unsafe_seed=0, target_fpr=0.1),
    DPMarginals(5, features=(-10, 10), unsafe_seed=0, target_fpr=0.1),
    GridKNN((-10, 10), bins=5, target_fpr=0.1),
    Forest((-10, 10), target_fpr=0.1),
    Marginals((-10, 10), target_fpr=0.1),
    KNN((-10, 10), target_fpr=0.1),
]
EXPECTED_FAILURES = {
    "check_estimators_empty_data_messages": "no rows is a fit like any other: a refusal would tell that there are none",
    "check_dtype_object": "reference values that are not numbers are missing, silently: an error would reveal something",
    "check_estimators_pickle": "it scores points with NaN, which are refused; pickling is tested in tests/counts/test_base.py",
}


def test_every_detector_is_here():
    assert {type(one).__name__ for one in CHECKED} == DETECTORS.keys() == {*CLASS_HOMES, "KNN"}


@pytest.mark.filterwarnings("ignore::dpoutlier.exceptions.UnsafeWarning")
@parametrize_with_checks(CHECKED, expected_failed_checks=lambda _: EXPECTED_FAILURES)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


ROWS = np.random.default_rng(0).normal(size=(500, 2))
POINTS = np.random.default_rng(1).normal(size=(60, 2)) * 2
NAMES = {"age": (-5, 5), "bmi": (-5, 5)}
FRAMES = {
    "pandas": lambda X: pd.DataFrame(X, columns=list(NAMES)),
    "polars": lambda X: pl.DataFrame(X, schema=list(NAMES)),
    "pyarrow": lambda X: pa.table(dict(zip(NAMES, X.T))),
    "pandas text": lambda X: pd.DataFrame(X, columns=list(NAMES)).map(repr),
    "polars text": lambda X: pl.DataFrame(
        [[repr(float(v)) for v in row] for row in X], schema=list(NAMES), orient="row"
    ),
    "pandas objects": lambda X: pd.DataFrame(X, columns=list(NAMES)).astype(object),
    "list": lambda X: X.tolist(),
    "float32 would differ, fortran does not": np.asfortranarray,
}

DETECTORS = {
    "KNN": lambda **kw: KNN(**{"features": NAMES, **kw}),
    "GridKNN": lambda **kw: GridKNN(**{"features": NAMES, **kw}),
    "DPGridKNN": lambda **kw: DPGridKNN(**{"epsilon": 1, "features": NAMES, "bins": 6, "unsafe_seed": 1, **kw}),
    "Forest": lambda **kw: Forest(**{"features": NAMES, **kw}),
    "DPForest": lambda **kw: DPForest(**{"epsilon": 1, "features": NAMES, "n_rows_hint": 500, "unsafe_seed": 1, **kw}),
    "Marginals": lambda **kw: Marginals(**{"features": NAMES, **kw}),
    "DPMarginals": lambda **kw: DPMarginals(**{"epsilon": 1, "features": NAMES, "unsafe_seed": 1, **kw}),
}
EACH_DETECTOR = pytest.mark.parametrize("make", DETECTORS.values(), ids=DETECTORS)
quiet = pytest.mark.filterwarnings("ignore::dpoutlier.exceptions.UnsafeWarning")


@quiet
@EACH_DETECTOR
@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_every_kind_of_table_gives_the_same_scores(make, frame):
    expected = make().fit(ROWS).outlier_scores(POINTS)
    detector = make().fit(frame(ROWS))
    assert (detector.outlier_scores(frame(POINTS)) == expected).all()
    assert detector.n_features_in_ == 2
    assert detector.feature_names_in_.tolist() == ["age", "bmi"]


@quiet
@EACH_DETECTOR
def test_the_sign_turns_once(make):
    detector = make(target_fpr=0.2).fit(ROWS)
    scores = detector.outlier_scores(POINTS)
    assert (detector.score_samples(POINTS) == -scores).all()
    assert (detector.decision_function(POINTS) == -scores - detector.offset_).all()
    assert (detector.predict(POINTS) == np.where(scores > -detector.offset_, -1, 1)).all()


@quiet
@EACH_DETECTOR
def test_outliers_score_higher(make):
    near, far = make().fit(ROWS).outlier_scores([[0, 0], [4.5, -4.5]])
    assert near < far


@quiet
@EACH_DETECTOR
@pytest.mark.parametrize("weighted", [False, True])
def test_no_rows_is_a_fit_like_any_other(make, weighted):
    more = {"weighted": True} if weighted and "weighted" in make().get_params() else {}
    scores = make(**more).fit(ROWS[:0]).outlier_scores(POINTS)
    assert np.isfinite(scores).all()
    assert not np.isnan(make(**more, target_fpr=0.1).fit(pd.DataFrame(columns=list(NAMES))).offset_)


@pytest.mark.parametrize("weighted", [False, True])
def test_knn_is_equations_1_and_2(weighted):
    detector = KNN((-5, 5), k=4, weighted=weighted).fit(ROWS)
    cube = lambda X: np.floor((X.clip(-5, 5) + 5) / 10 * 2**32) / 2**32  # noqa: E731
    distances, _ = NearestNeighbors(n_neighbors=4).fit(cube(ROWS)).kneighbors(cube(POINTS))
    expected = distances.sum(axis=1) if weighted else distances[:, -1]
    np.testing.assert_allclose(detector.outlier_scores(POINTS), expected, atol=1e-8)


def test_rows_that_plain_knn_lacks_lie_at_the_diameter():
    one = [[0.5, 0.5]]
    assert KNN((0, 1), k=3).fit(one).outlier_scores(one)[0] == np.sqrt(2)
    assert KNN((0, 1), k=3, weighted=True).fit(one).outlier_scores(one)[0] == pytest.approx(2 * np.sqrt(2))


def test_the_paper_figure_1():
    """Section 4, Figure 1: two cells of six rows each, a 2 x 2 x 2 grid, and a point elsewhere."""
    rows = np.repeat([[0.25, 0.25, 0.25], [0.25, 0.75, 0.25]], 6, axis=0)
    point = [[0.8, 0.9, 0.4]]
    assert GridKNN((0, 1), bins=2, k=6).fit(rows).outlier_scores(point)[0] == 0.5
    assert GridKNN((0, 1), bins=2, k=7).fit(rows).outlier_scores(point)[0] == 1.0
    assert GridKNN((0, 1), bins=2, k=7, weighted=True).fit(rows).outlier_scores(point)[0] == 6 * 0.5 + 6 * 1.0


def test_fit_predict_is_absent_and_says_why():
    assert not hasattr(DPGridKNN(1), "fit_predict")
    with pytest.raises(AttributeError, match="labels of the reference rows"):
        _ = DPGridKNN(1).fit_predict


def test_there_is_no_contamination_and_no_default_epsilon():
    assert "contamination" not in DPGridKNN(1).get_params()
    with pytest.raises(TypeError, match="epsilon"):
        DPGridKNN()


def test_a_private_detector_holds_the_model_and_the_schema_only():
    detector = DPGridKNN(1, features=NAMES, bins=3, target_fpr=0.1).fit(ROWS)
    learned = set(vars(detector)) - set(detector.get_params())
    assert learned == {"model_", "n_features_in_", "feature_names_in_"}


def test_it_works_in_a_pipeline():
    pipeline = make_pipeline(
        FunctionTransformer(lambda X: X / 5), DPGridKNN(1, features=(-1, 1), bins=5, target_fpr=0.1)
    )
    assert set(pipeline.fit(ROWS).predict(POINTS)) <= {-1, 1}
    assert pipeline.score_samples(POINTS).shape == (60,)


def test_points_outside_the_bounds_are_scored_on_the_bound_and_flagged():
    detector = DPGridKNN(1, features=NAMES, bins=5).fit(ROWS)
    assert detector.outside_bounds([[0, 0], [6, 0]]).tolist() == [False, True]
    assert detector.outlier_scores([[6, 0]]) == detector.outlier_scores([[5, 0]])


def test_no_points_have_no_scores():
    assert DPGridKNN(1, features=NAMES, bins=5).fit(ROWS).outlier_scores(np.empty((0, 2))).shape == (0,)


# Bad input -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k must be a whole number of at least 1.*got 0"),
        ({"k": 2.5}, "k must be a whole number"),
        ({"k": True}, "k must be a whole number"),
        ({"bins": 0}, "bins must be a whole number of at least 1.*got 0"),
        ({"bins": [3, 0]}, "bins must be a whole number of at least 1.*got 0"),
        ({"bins": [3]}, "one for each of 2 features"),
        ({"bins": "many"}, "bins must be 'auto'"),
        ({"bins": 2**25}, "at most 16777216"),
        ({"bins": "auto", "n_rows_hint": None}, "bins='auto' needs n_rows_hint"),
        (
            {"bins": "auto", "n_rows_hint": "estimate", "features": (0, 1), "counts": "dense", "columns": 23},
            "counts='dense' takes at most",
        ),
        ({"bins": "auto", "n_rows_hint": "estimate", "features": (0, 1), "columns": 130}, "more than 2"),
        ({"bins": "auto", "n_rows_hint": 0}, "n_rows_hint must be a public guess"),
        ({"bins": "auto", "n_rows_hint": "some"}, "n_rows_hint must be a public guess"),
        ({"weighted": 1}, "weighted must be True or False"),
        ({"distance": "l2"}, "distance must be one of 'cell', 'point', got 'l2'"),
        ({"max_depth": -1}, "max_depth must be a whole number of at least 0, or None"),
        ({"max_cells": 0}, "max_cells must be a whole number of at least 1"),
        ({"exhausted": "zero"}, "exhausted must be one of"),
        ({"neighbours": "both"}, "neighbours must be one of"),
        ({"rows_per_person": 0}, "rows_per_person must be"),
        ({"target_fpr": 0}, "target_fpr must be a number between 0 and 1"),
        ({"target_fpr": 1.5}, "target_fpr must be a number between 0 and 1"),
        ({"target_fpr": 0.1, "threshold_share": 1}, "threshold_share must be a number between 0 and 1"),
        (
            {"target_fpr": 0.1, "threshold_share": 0.96, "bins": "auto", "n_rows_hint": "estimate"},
            "threshold_share must be small enough",
        ),
        ({"n_jobs": 0}, "n_jobs must be None"),
        ({"unsafe_seed": "x"}, "unsafe_seed must be a whole number"),
        ({"epsilon": 0}, "epsilon must be a positive number, got 0"),
        ({"epsilon": -1}, "epsilon must be a positive number, got -1"),
        ({"epsilon": float("nan")}, "epsilon must be a positive number, got nan"),
        ({"epsilon": 1e-12}, "epsilon is too small"),
        ({"epsilon": 1e-8, "target_fpr": 0.1, "threshold_share": 1e-6}, "epsilon is too small"),
    ],
)
def test_bad_arguments_are_named_with_their_value(arguments, message, monkeypatch):
    arguments = dict(arguments)
    rows = np.zeros((3, arguments.pop("columns", 2)))
    detector = DPGridKNN(**{"epsilon": 1, "features": NAMES, "bins": 5, **arguments})
    monkeypatch.setattr("dpoutlier.trusted.fit.open_reference", pytest.fail)  # refused before any row is read
    with pytest.raises(InvalidParameterError, match=message), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detector.fit(rows)
    assert not hasattr(detector, "model_")


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([[0.0, np.nan]], "missing value or a value that is not a number in bmi, row 0 .*: nan"),
        ([[0.0, 1.0], ["young", 1.0]], "missing value or a value that is not a number in age, row 1 .*: 'young'"),
        (pd.DataFrame({"age": [1.0], "bmi": [None]}), "in bmi, row 0"),
        (pl.DataFrame({"age": ["1", "x"], "bmi": [1, 2]}), "in age, row 1 .*: 'x'"),
        ([[None, 1.0]], "in age, row 0 .*: None"),
        ([[1.0, 2.0, 3.0]], "X has 3 features, but DPGridKNN is expecting 2 features as input"),
    ],
)
def test_bad_points_are_shown(points, message):
    detector = DPGridKNN(1, features=NAMES, bins=5).fit(ROWS)
    with pytest.raises(PointsError, match=message):
        detector.score_samples(points)


def test_unknown_and_reordered_feature_names_are_refused():
    detector = DPGridKNN(1, features=NAMES, bins=5).fit(FRAMES["pandas"](ROWS))
    with pytest.raises(ValueError, match=r"Feature names unseen at fit time:\n- weight"):
        detector.score_samples(pd.DataFrame({"age": [1.0], "weight": [1.0]}))
    with pytest.raises(ValueError, match="must be in the same order"):
        detector.score_samples(pd.DataFrame({"bmi": [1.0], "age": [1.0]}))
    with pytest.raises(InvalidParameterError, match="columns without bounds"):
        DPGridKNN(1, features=NAMES, bins=5).fit(pd.DataFrame({"age": [1.0], "weight": [1.0]}))


def test_scoring_before_fitting_is_refused():
    with pytest.raises(NotFittedError):
        DPGridKNN(1, features=NAMES).score_samples(POINTS)
    with pytest.raises(NotFittedError):
        DPGridKNN(1, features=NAMES).privacy_statement()


def test_plain_neighbours_of_a_lazy_frame_are_refused():
    with pytest.raises(TypeError, match=r"a lazy frame .LazyFrame. was passed; collect it into a data frame"):
        KNN(NAMES).fit(pl.LazyFrame({"age": [1.0], "bmi": [1.0]}))


def test_prediction_without_a_threshold_says_what_to_set():
    detector = DPGridKNN(1, features=NAMES, bins=5).fit(ROWS)
    with pytest.raises(ThresholdNotSetError, match=r"target_fpr=0\.05"):
        detector.predict(POINTS)
    with pytest.raises(ThresholdNotSetError, match="spent no epsilon on a histogram of scores"):
        detector.set_threshold(target_fpr=0.1)
    with pytest.raises(InvalidParameterError, match="exactly one"):
        detector.set_threshold()
    with pytest.raises(InvalidParameterError, match="score must be a number"):
        detector.set_threshold(score=float("nan"))
    assert set(detector.set_threshold(score=0.3).predict(POINTS)) <= {-1, 1}


def test_an_error_about_reference_rows_tells_nothing_of_them():
    texts = set()
    for rows in ([[1.0, 2.0], [3.0]], [[1.0, 2.0], [3.0], [4.0, 5.0]], [[7.0, 2.0, 5.0], [3.0]]):
        with pytest.raises(ValueError, match="every row has one value for each feature") as caught:
            DPGridKNN(1, features=(0, 1), bins=2).fit(rows)
        texts.add(str(caught.value))
    assert len(texts) == 1


def test_a_column_that_cannot_be_read_fails_with_a_fixed_text():
    class Broken:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("row 17 holds 4711")

    with pytest.raises(ValueError, match="could not be read as a table") as caught:
        DPGridKNN(1, features=(0, 1), bins=2).fit(Broken())
    assert "17" not in str(caught.value)


def test_a_frame_whose_column_breaks_fails_with_a_fixed_text(monkeypatch):
    def breaks(_):
        raise RuntimeError("row 17 holds 4711")

    monkeypatch.setattr("dpoutlier.tables.convert._series", breaks)
    with pytest.raises(ReferenceDataError, match="The cause is not shown") as caught:
        DPGridKNN(1, features=NAMES, bins=2).fit(FRAMES["pandas"](ROWS))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "17" not in str(caught.value)
