"""Public steps in front of a detector, in frames of both kinds; and single points, for streams."""

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from dpoutlier import Category, DPForest, DPGridKNN, DPMarginals, load
from dpoutlier.exceptions import PointsError

RANDOM = np.random.default_rng(2)
N = 300
COLUMNS = {
    "age": [None if i % 11 == 0 else float(v) for i, v in enumerate(RANDOM.uniform(0, 100, N))],
    "dose": RANDOM.lognormal(0, 1, N).tolist(),
    "smokes": [None if i % 13 == 0 else str(v) for i, v in enumerate(RANDOM.choice(["never", "former", " now "], N))],
    "stage": RANDOM.integers(1, 4, N).tolist(),
}
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}
CATEGORIES = {"smokes": ["never", "former", "now"], "stage": Category([1, 2, 3], ordered=True)}
BOUNDS = {"age": (0, 100), "log_dose": (-4, 4)}
DETECTORS = {
    "forest": lambda **kw: DPForest(2, n_trees=5, depth=7, target_fpr=0.1, **kw),
    "marginals": lambda **kw: DPMarginals(2, bins=6, target_fpr=0.1, **kw),
    "grid": lambda **kw: DPGridKNN(2, bins=3, target_fpr=0.1, **kw),
}
EACH_FRAME = pytest.mark.parametrize("kind", FRAMES)
EACH_DETECTOR = pytest.mark.parametrize("make", DETECTORS.values(), ids=DETECTORS)


def log_of_dose(X):
    return np.log(X)


def named_log(_, names):
    return [f"log_{name}" for name in names]


def prepared(kind):
    """Public steps: a logarithm, which is another column by its name, and all others as they are; frames in and out."""
    logarithm = FunctionTransformer(log_of_dose, feature_names_out=named_log)
    steps = ColumnTransformer(
        [
            ("as they are", "passthrough", ["age"]),
            ("log", logarithm, ["dose"]),
            ("levels", "passthrough", ["smokes", "stage"]),
        ],
        verbose_feature_names_out=False,
    )
    return steps.set_output(transform=kind)


def pipeline_of(kind, make):
    detector = make(features=BOUNDS, categories=CATEGORIES, missing=["age", "smokes"])
    return Pipeline([("public", prepared(kind)), ("detector", detector)])


@EACH_DETECTOR
@EACH_FRAME
def test_a_pipeline_scores_what_its_steps_make(kind, make):
    frame = FRAMES[kind](COLUMNS)
    pipeline = pipeline_of(kind, make).fit(frame)
    detector = pipeline["detector"]
    assert detector.feature_names_in_.tolist() == ["age", "log_dose", "smokes", "stage"]
    assert detector.n_features_in_ == 4
    made = FRAMES[kind](
        {
            "age": COLUMNS["age"],
            "log_dose": np.log(COLUMNS["dose"]),
            "smokes": COLUMNS["smokes"],
            "stage": COLUMNS["stage"],
        }
    )
    expected = detector.outlier_scores(made)
    assert len(set(expected.tolist())) > 2
    assert (pipeline.score_samples(frame) == -expected).all()
    assert (pipeline.decision_function(frame) == -expected - detector.offset_).all()
    assert (pipeline.predict(frame) == detector.predict(made)).all()
    assert not hasattr(pipeline, "fit_predict")


@EACH_DETECTOR
def test_pandas_and_polars_give_the_same_scores(make, tmp_path):
    fitted = pipeline_of("pandas", make).fit(pd.DataFrame(COLUMNS))
    detector = fitted["detector"]
    path = detector.save(tmp_path / "model")
    known = load(path, secret=path.name.endswith(".secret.dpo"))
    scores = {}
    for kind, frame in FRAMES.items():
        made = prepared(kind).fit(frame(COLUMNS)).transform(frame(COLUMNS))
        assert isinstance(made, frame)
        scores[kind] = known.outlier_scores(made)
        assert (scores[kind] == detector.outlier_scores(made)).all()
    assert (scores["pandas"] == scores["polars"]).all()


@EACH_FRAME
def test_a_clone_of_a_pipeline_is_unfitted_and_has_its_parameters(kind):
    pipeline = pipeline_of(kind, DETECTORS["forest"]).fit(FRAMES[kind](COLUMNS))
    again = clone(pipeline)
    assert not hasattr(again["detector"], "model_")
    assert repr(again.get_params()["detector__categories"]) == repr(CATEGORIES)
    again.set_params(detector__n_trees=2, detector__epsilon=8)
    again.fit(FRAMES[kind](COLUMNS))
    assert again["detector"].model_.partition.n_trees == 2
    assert again["detector"].model_.guarantee.epsilon == 8
    assert pipeline["detector"].model_.partition.n_trees == 5


@EACH_FRAME
def test_a_step_that_loses_or_swaps_columns_is_noticed(kind):
    frame = FRAMES[kind](COLUMNS)
    detector = pipeline_of(kind, DETECTORS["marginals"]).fit(frame)["detector"]
    made = prepared(kind).fit(frame).transform(frame)
    names = list(made.columns)
    with pytest.raises(ValueError, match=r"feature names should match|features"):
        detector.outlier_scores(made[names[:-1]])
    with pytest.raises(ValueError, match="feature names should match"):
        detector.outlier_scores(made[names[::-1]])


def test_arrays_between_the_steps_work_by_place():
    steps = Pipeline([("halve", FunctionTransformer(lambda X: X / 2)), ("detector", DPMarginals(2, features=(0, 1)))])
    rows = RANDOM.uniform(0, 2, (100, 3))
    assert (steps.fit(rows).score_samples(rows) == steps["detector"].score_samples(rows / 2)).all()


# Single points --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def detectors():
    table = {**COLUMNS, "log_dose": np.log(COLUMNS["dose"])}
    frame = pd.DataFrame({name: table[name] for name in ("age", "log_dose", "smokes", "stage")})
    return {
        (name, missing): make(features=BOUNDS, categories=CATEGORIES, missing=cells).fit(frame)
        for name, make in DETECTORS.items()
        for missing, cells in {"some": ["age", "smokes"], "all": "cell"}.items()
    }


def rows_of(frame):
    return frame.to_dict("records") if isinstance(frame, pd.DataFrame) else list(frame.iter_rows(named=True))


@EACH_FRAME
@pytest.mark.parametrize("name", DETECTORS)
@pytest.mark.parametrize("missing", ["some", "all"])
def test_one_point_scores_as_it_does_in_a_batch(name, missing, kind, detectors):
    detector = detectors[name, missing]
    table = {**COLUMNS, "log_dose": np.log(COLUMNS["dose"]).tolist()}
    frame = FRAMES[kind]({n: table[n][:120] for n in ("age", "log_dose", "smokes", "stage")})
    batch = detector.outlier_scores(frame)
    assert [detector.score_one(row) for row in rows_of(frame)] == batch.tolist()
    assert [detector.score_one(dict(reversed(row.items()))) for row in rows_of(frame)] == batch.tolist()
    if kind == "pandas":
        assert [detector.score_one(row.to_dict()) for _, row in frame.iterrows()] == batch.tolist()


ages = st.one_of(
    st.none(),
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-(10**20), 10**20),
    st.sampled_from(["12", " 1e2 ", "x"]),
)
levels = st.one_of(st.none(), st.text(max_size=4), st.sampled_from(["never", " now", "former\n", "1", "2.0", "3"]))


@settings(max_examples=150)
@given(name=st.sampled_from(list(DETECTORS)), age=ages, dose=ages, smokes=levels, stage=st.one_of(levels, ages))
def test_any_point_scores_as_it_does_in_a_list(name, age, dose, smokes, stage, detectors):
    detector = detectors[name, "all"]
    score = detector.score_one({"age": age, "log_dose": dose, "smokes": smokes, "stage": stage})
    assert score == detector.outlier_scores([[age, dose, smokes, stage]])[0]


@pytest.mark.parametrize(
    ("value", "same"),
    [
        (np.float32(2), 2),
        (np.int8(2), 2),
        (np.str_("2"), 2),
        (b"2", 2),
        (Decimal("2.0"), 2),
        (2.0, 2),
        (pd.NA, None),
        (pd.NaT, None),
        (math.nan, None),
        ("", None),
        (9, None),
    ],
    ids=repr,
)
@pytest.mark.parametrize("name", DETECTORS)
def test_values_of_any_type_are_the_level_that_they_say(name, value, same, detectors):
    detector = detectors[name, "all"]
    point = {"age": 40, "log_dose": 0.1, "smokes": "now"}
    assert detector.score_one({**point, "stage": value}) == detector.score_one({**point, "stage": same})


def test_a_row_of_an_arrow_table_scores_as_the_table_does(detectors):
    detector = detectors["forest", "some"]
    point = {"age": 40, "log_dose": 0.1, "smokes": "now", "stage": 2}
    table = pa.table({name: [value] for name, value in point.items()})
    assert detector.score_one(table.to_pylist()[0]) == detector.outlier_scores(table)[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"log_dose": None}, "missing value or a value that is not a number in log_dose"),
        ({"log_dose": "much"}, "not a number in log_dose.*'much'"),
        ({"stage": 4}, r"not one of the levels 1, 2, 3 in stage"),
        ({"sex": "f"}, r"has \['sex'\], which the fit does not know"),
    ],
)
def test_what_is_wrong_with_a_point_is_said(change, message, detectors):
    point = {"age": None, "log_dose": 0.1, "smokes": None, "stage": 2}
    detector = detectors["forest", "some"]
    assert math.isfinite(detector.score_one(point))
    with pytest.raises(PointsError, match=message):
        detector.score_one({**point, **change})
    with pytest.raises(PointsError, match=r"lacks \['age'\]"):
        detector.score_one({name: value for name, value in point.items() if name != "age"})
