"""Tables as custodians have them: levels, gaps, bounds that nobody knows. All detectors, from fit to file and back."""

import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

from dpoutlier import (
    KNN,
    Bounds,
    Category,
    DPForest,
    DPGridKNN,
    DPMarginals,
    Forest,
    GridKNN,
    Marginals,
    PrivateBounds,
    detector,
    load,
)
from dpoutlier.cli.app import app
from dpoutlier.exceptions import InvalidParameterError, PointsError, UnsafeWarning
from dpoutlier.features.axes import Axis
from dpoutlier.trusted.knn import embedded
from shared_data import needs_data

BOUNDS = {"age": (0, 120), "sex": Category(["f", "m"]), "stage": Category([1, 2, 3], ordered=True), "dose": (0, 10)}
MISSING = ["age", "sex", "stage"]
REAL = {"features": BOUNDS, "missing": MISSING}
PAIRS = {
    "grid": (DPGridKNN, GridKNN, {"bins": 4, "k": 5}),
    "forest": (DPForest, Forest, {"n_trees": 6, "depth": 6}),
    "marginals": (DPMarginals, Marginals, {"bins": 6}),
}
EACH = pytest.mark.parametrize("kind", PAIRS)


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 12, n).round(),
            "sex": rng.choice(np.array(["f", "m", "x", None], object), n, p=[0.5, 0.4, 0.05, 0.05]),
            "stage": rng.choice([1.0, 2.0, 3.0, np.nan], n, p=[0.5, 0.3, 0.1, 0.1]),
            "dose": rng.gamma(2, 1, n),
        }
    )
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    return frame


def private(kind, epsilon=1, **more):
    cls, _, own = PAIRS[kind]
    return cls(epsilon, **{**REAL, **own, **more})


@EACH
def test_without_noise_the_private_detector_is_its_twin(kind):
    cls, twin, own = PAIRS[kind]
    rows, points = table(), table(50, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsafeWarning)
        exact = cls(float("inf"), **REAL, **own).fit(rows)
    assert (exact.outlier_scores(points) == twin(**REAL, **own).fit(rows).outlier_scores(points)).all()


@EACH
def test_every_kind_of_table_gives_the_same_counts_and_scores(kind):
    rows, points = table(), table(50, 1)
    as_lists = lambda frame: frame.astype(object).where(frame.notna(), None).to_numpy().tolist()  # noqa: E731
    found = []
    for make in (
        lambda frame: frame,
        lambda frame: frame.astype(object),
        lambda frame: frame.assign(sex=frame["sex"].astype("category")),
        pl.from_pandas,
        lambda frame: pl.from_pandas(frame).with_columns(
            pl.col("sex").cast(pl.Categorical), pl.col("stage").cast(pl.Int8)
        ),
        lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
        lambda frame: np.array(as_lists(frame), object),
        as_lists,
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsafeWarning)
            fitted = private(kind, unsafe_seed=1).fit(make(rows))
        found.append(fitted.outlier_scores(make(points)).tolist())
    assert all(scores == found[0] for scores in found[1:])


@EACH
def test_a_model_of_all_kinds_survives_its_file(kind, tmp_path):
    estimated = {**BOUNDS, "dose": PrivateBounds(share=0.2, outer=(0, 1e6))}
    fitted = private(kind, features=estimated, target_fpr=0.1).fit(table())
    points = table(50, 1)
    again = load(fitted.save(tmp_path / "m"))
    assert (again.outlier_scores(points) == fitted.outlier_scores(points)).all()
    assert again.model_.domain == fitted.model_.domain
    assert str(again.privacy_statement()) == str(fitted.privacy_statement())
    estimator = again.estimator()
    assert (estimator.predict(points) == fitted.predict(points)).all()
    refit = estimator.fit(table())  # with the same arguments
    assert refit.model_.domain.outer == fitted.model_.domain.outer
    assert refit.model_.charges == fitted.model_.charges
    assert refit.model_.partition == fitted.model_.partition


@EACH
def test_no_rows_is_a_fit_like_any_other(kind):
    fitted = private(kind, features={**BOUNDS, "dose": PrivateBounds()}, person=None).fit(table()[:0])
    assert np.isfinite(fitted.outlier_scores(table(20, 1))).all()


@EACH
@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("dose", np.nan, "missing value or a value that is not a number in dose, row 2"),
        ("dose", "lots", "missing value or a value that is not a number in dose, row 2"),
    ],
)
def test_a_missing_value_without_a_cell_is_an_error_in_points_that_says_where(kind, column, value, message):
    fitted = private(kind).fit(table())
    points = table(5, 1).astype(object)
    points.loc[2, column] = value
    with pytest.raises(PointsError, match=message):
        fitted.outlier_scores(points)


def test_a_level_that_is_not_declared_is_an_error_where_there_is_no_other():
    fitted = DPMarginals(1, categories={"stage": Category([1, 2], other=False)}).fit(pd.DataFrame({"stage": [1, 2, 3]}))
    with pytest.raises(PointsError, match=r"not one of the levels 1, 2 in stage, row 1 .*: 3\. .*missing='cell'"):
        fitted.score_samples(pd.DataFrame({"stage": [1, 3]}))


@EACH
def test_values_outside_the_bounds_are_flagged_and_levels_never_are(kind):
    fitted = private(kind).fit(table())
    points = table(4, 1).astype(object)
    points.loc[:, ["age", "dose"]] = [[50, 1], [130, 1], [50, -0.1], [np.nan, 10]]
    points["sex"] = ["f", "never heard of", None, "m"]
    assert fitted.outside_bounds(points).tolist() == [False, True, True, False]


def test_rare_levels_and_gaps_are_outlying():
    """A level, an order and a gap that hardly occur, each in otherwise normal points."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], 3000),
            "stage": rng.choice([1.0, 2.0, 3.0], 3000, p=[0.7, 0.299, 0.001]),
            "age": rng.normal(50, 5, 3000),
        }
    )
    bounds = {"sex": BOUNDS["sex"], "stage": BOUNDS["stage"], "age": (0, 100)}
    points = pd.DataFrame(
        [["f", 1, 50], ["m", 2, 45], ["x", 1, 50], ["f", 3, 50], ["f", 1, np.nan], ["f", 1, 95]], columns=list(bounds)
    )
    for make in (
        DPForest(1, features=bounds, missing=["age"], n_rows_hint=3000),
        DPMarginals(1, features=bounds, missing=["age"]),
    ):
        scores = make.fit(rows).outlier_scores(points)
        assert scores[:2].max() < scores[2:].min()


# Private bounds ------------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize(("relation", "factor"), [("add-or-remove-one", 1), ("replace-one", 2)])
def test_private_bounds_are_charged_at_the_rate_at_which_they_are_chosen(kind, relation, factor, monkeypatch):
    from dpoutlier.trusted import fit

    used, real = [], fit.choose_quantiles
    monkeypatch.setattr(
        fit, "choose_quantiles", lambda counts, rate, source: used.append(rate) or real(counts, rate, source)
    )
    bounds = {"a": PrivateBounds(share=0.25, outer=(-5, 5)), "b": (0, 1), "c": PrivateBounds(share=0.25, outer=(0, 9))}
    own = PAIRS[kind][2]
    made = PAIRS[kind][0](2, features=bounds, neighbours=relation, rows_per_person=3, target_fpr=0.1, **own)
    model = made.fit(np.random.default_rng(0).uniform(size=(100, 3))).model_
    paid = {charge.purpose: charge for charge in model.charges}
    assert list(paid) == ["bounds", "counts", "threshold"]
    assert paid["bounds"].sensitivity.l1 == 2 * 2 * 3 * factor  # two quantiles of two features, three rows of a person
    assert paid["bounds"].epsilon == Fraction(1, 2)
    assert used == [paid["bounds"].rate]
    assert sum(charge.epsilon for charge in model.charges) == 2
    assert model.epsilon_in_use <= 2
    assert paid["bounds"].epsilon_in_use <= Fraction(1, 2)


def test_only_private_bounds_are_read_from_rows_and_they_lie_within_their_outer_range():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(37, 0.5, 20_000), rng.normal(0, 1, 20_000)])
    bounds = {"celsius": PrivateBounds(outer=(0, 1000)), "z": (-3, 3)}
    domain = DPMarginals(5, features=bounds).fit(rows).model_.domain
    assert (domain.lower[1], domain.upper[1]) == (-3, 3)
    assert 0 <= domain.lower[0] < 36 < 38 < domain.upper[0] < 60
    assert domain.outer == ((0, 1000), None)


def test_bounds_for_all_features_and_the_rows_that_they_do_not_need():
    fitted = DPForest(5, features=PrivateBounds(outer=(-1e4, 1e4)), n_rows_hint=5000)
    rng = np.random.default_rng(0)
    rows, points = rng.normal(size=(5000, 3)), np.concatenate([rng.normal(size=(200, 3)), rng.normal(6, 1, (20, 3))])
    scores = fitted.fit(rows).outlier_scores(points)
    assert roc_auc_score(np.arange(220) >= 200, scores) > 0.95
    control = fitted.fit(rows[:0])
    assert control.model_.domain.outer == ((-1e4, 1e4),) * 3


def test_shares_must_agree_and_leave_something_for_the_counts(monkeypatch):
    monkeypatch.setattr("dpoutlier.trusted.fit.open_reference", pytest.fail)
    two = {"a": PrivateBounds(share=0.1), "b": PrivateBounds(share=0.2)}
    with pytest.raises(InvalidParameterError, match=r"share must be the same in every PrivateBounds.*\[0.1, 0.2\]"):
        DPMarginals(1, features=two).fit(np.zeros((2, 2)))
    with pytest.raises(InvalidParameterError, match=r"leave nothing of epsilon for the counts"):
        DPMarginals(1, features=PrivateBounds(share=0.97), target_fpr=0.1).fit(np.zeros((2, 2)))
    with pytest.raises(InvalidParameterError, match=r"epsilon is too small"):
        DPMarginals("1e-8", features=PrivateBounds(share=1e-4)).fit(np.zeros((2, 2)))


def test_twins_take_exact_quantiles_and_say_so():
    twin = Marginals(features=PrivateBounds(outer=(0, 100))).fit(np.linspace(10, 20, 1001)[:, np.newaxis])
    assert twin.model_.charges == ()
    assert twin.privacy_statement().bounds_source == "estimated for all features (nothing here is private)"
    assert 0 <= twin.model_.domain.lower[0] <= 12.5
    assert 17.5 <= twin.model_.domain.upper[0] <= 40


# The plain twin ---------------------------------------------------------------------------------------------------------


def test_plain_k_nn_measures_levels_and_gaps_as_the_grid_does():
    axes = (Axis(), Axis(3, unordered=True), Axis(4), Axis(missing=True))
    middle = lambda i, n: (2 * i + 1) * 2**32 // (2 * n)  # noqa: E731
    rows = [(0, middle(0, 3), middle(1, 4), 2**31), (2**31, middle(2, 3), middle(3, 4), 2**31)]
    rows.append((0, middle(0, 3), middle(1, 4), 2**32 - 1))
    points = embedded(np.array(rows, np.uint32), axes)
    distance = lambda i, j: np.linalg.norm(points[i] - points[j]) ** 2  # noqa: E731
    assert distance(0, 1) == pytest.approx(0.5**2 + 1 + 0.5**2, abs=1e-8)
    assert distance(0, 2) == pytest.approx(0.75, abs=1e-8)  # a gap against the middle of its line; 1 from its ends
    scores = KNN(BOUNDS, missing=MISSING, k=3).fit(table()).outlier_scores(table(20, 1))
    assert scores.shape == (20,)


# Choosing, planning and the command line ------------------------------------------------------------------------------------


def test_a_features_file_of_all_kinds_serves_every_way_in(tmp_path):
    (tmp_path / "f.toml").write_text(
        "[features]\n"
        "age = {lower = 0, upper = 120, missing = 'cell'}\n"
        "sex = {levels = ['f', 'm'], missing = 'cell'}\n"
        "stage = {levels = [1, 2, 3], ordered = true, missing = 'cell'}\n"
        "dose = [0, 10]\n"
    )
    file = str(tmp_path / "f.toml")
    names = list(BOUNDS)
    assert Bounds.of(file).domain(4, names) == Bounds.of(BOUNDS, missing=MISSING).domain(4, names)
    assert detector(epsilon=1, features=file, n_rows_hint=500).fit(table()).model_.partition.name == "mixed-trees"
    result = CliRunner().invoke(app, ["plan", "--n-rows", "300", "--features", file, "--epsilon", "1"])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("kind", PAIRS)
def test_the_command_line_reads_levels_gaps_and_people(kind, suffix, tmp_path):
    """At an epsilon without noise, so that counts can be compared."""
    frame = table().assign(who=np.arange(400) // 4)
    file, points = tmp_path / f"rows{suffix}", tmp_path / f"points{suffix}"
    for path, rows in ((file, frame), (points, table(30, 1))):
        rows.to_csv(path, index=False) if suffix == ".csv" else rows.to_parquet(path)
    (tmp_path / "f.toml").write_text(
        "[features]\nage = {lower = 0, upper = 120, missing = 'cell'}\nsex = {levels = ['f', 'm'], missing = 'cell'}\n"
        "stage = {levels = [1, 2, 3], ordered = true, missing = 'cell'}\ndose = [0, 10]\n"
    )
    own = {
        "grid": ["--bins", "4", "--k", "5"],
        "forest": ["--n-trees", "6", "--depth", "6"],
        "marginals": ["--bins", "6"],
    }
    fit = [
        *("fit", str(file), "--features", str(tmp_path / "f.toml"), "--epsilon", "1e6", "--detector", kind),
        *("--person", "who", "--rows-per-person", "3", "-o", str(tmp_path / "m"), *own[kind]),
    ]
    result = CliRunner().invoke(app, fit)
    assert result.exit_code == 0, result.output
    assert "one person, with at most 3 rows" in result.output
    expected = private(kind, "1e6", person="who", rows_per_person=3).fit(frame)
    found = load(tmp_path / "m.dpo")
    assert (found.model_.counts.counts == expected.model_.counts.counts).all()
    result = CliRunner().invoke(
        app, ["score", str(tmp_path / "m.dpo"), str(points), "-o", str(tmp_path / f"s{suffix}")]
    )
    assert result.exit_code == 0, result.output
    scored = pd.read_csv(tmp_path / "s.csv") if suffix == ".csv" else pq.read_table(tmp_path / "s.parquet").to_pandas()
    assert scored["outlier_score"].to_numpy() == pytest.approx(expected.outlier_scores(table(30, 1)), abs=1e-12)
    assert set(scored["sex"].dropna()) <= {"f", "m", "x"}
    result = CliRunner().invoke(app, ["explain", str(tmp_path / "m.dpo"), str(points), "--row", "1"])
    assert result.exit_code == 0, result.output
    assert "sex" in result.output


@needs_data
@pytest.mark.parametrize(
    ("name", "outliers", "n_outliers", "least"),
    [("lymphography", ("1", "4"), 6, 0.85), ("adult", (">50K",), 100, 0.58)],
)
def test_the_documented_tables_are_fitted_scored_and_explained_from_the_command_line(
    name, outliers, n_outliers, least, data, tmp_path
):
    rows = pd.read_csv(data / f"{name}_full.csv", dtype=str)
    outlying = rows["class"].isin(outliers)
    inliers = rows[~outlying].sample(frac=1, random_state=0)
    n = int(0.8 * len(inliers))
    points = pd.concat([inliers[n:], rows[outlying].head(n_outliers)])
    inliers[:n].to_csv(tmp_path / "reference.csv", index=False)
    points.to_csv(tmp_path / "points.csv", index=False)
    features = str(Path(__file__).parents[2] / "docs" / "examples" / f"{name}.toml")
    model = str(tmp_path / "m.dpo")
    fit = [
        "fit",
        str(tmp_path / "reference.csv"),
        "--features",
        features,
        "--epsilon",
        "5",
        "-o",
        model,
    ]
    for command in (
        [*fit, "--n-rows-hint", "100" if name == "lymphography" else "20000"],
        ["score", model, str(tmp_path / "points.csv"), "-o", str(tmp_path / "scores.csv")],
        ["explain", model, str(tmp_path / "points.csv"), "-o", str(tmp_path / "why.png")],
    ):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
    scored = pd.read_csv(tmp_path / "scores.csv", dtype=str)
    found = roc_auc_score(scored["class"].isin(outliers), scored["outlier_score"].astype(float))
    assert found > least
    assert (tmp_path / "why.png").stat().st_size > 10_000
