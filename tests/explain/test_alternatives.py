"""What would be usual instead: the stated segment is there, it is the nearest, and it scores as stated."""

import copy
import pickle
import warnings
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.text import Text

from dpoutlier import Category, DPForest, DPGridKNN, DPMarginals, Forest, GridKNN, Marginals
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.explain.alternatives import pieces
from dpoutlier.explain.segment import Segment
from dpoutlier.explain.wording import number_text, place_of, range_text
from dpoutlier.features.axes import MISSING
from dpoutlier.features.domain import Domain

RNG = np.random.default_rng(0)
N = 2000
ROWS = pd.DataFrame(
    {
        "age": RNG.normal(50, 8, N),
        "glucose": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(100, 12, N)),
        "sex": RNG.choice(["f", "m"], N),
        "stage": RNG.choice(["I", "II", "III", "IV"], N, p=[0.6, 0.3, 0.08, 0.02]),
        "ward": RNG.choice(["a", "b", None], N, p=[0.5, 0.4, 0.1]),
    }
)
FEATURES = {
    "features": {
        "age": (0, 120),
        "glucose": (40, 400),
        "sex": Category(["f", "m"]),
        "stage": Category(["I", "II", "III", "IV"], ordered=True),
        "ward": Category(["a", "b"], other=False),
    },
    "missing": ["glucose", "ward"],
}
POINTS = pd.DataFrame(
    {
        "age": [50, 115, 50, 50, 130],
        "glucose": [110, 110, 300, np.nan, np.nan],
        "sex": ["f", "m", "f", "x", "x"],
        "stage": ["I", "I", "II", "I", "IV"],
        "ward": ["a", "b", "a", None, "b"],
    }
)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    PLAIN = ROWS[["age"]].assign(two=RNG.normal(0, 1, N))
    FITTED = {
        "forest": DPForest(2, **FEATURES, n_rows_hint=N, unsafe_seed=0).fit(ROWS),
        "marginals": DPMarginals(2, **FEATURES, unsafe_seed=0).fit(ROWS),
        "forest's twin": Forest(**FEATURES).fit(ROWS),
        "marginals' twin": Marginals(**FEATURES, bins=7).fit(ROWS),
    }
    GRIDS = {
        "dense": DPGridKNN(5, **FEATURES, bins=6, counts="dense", unsafe_seed=0).fit(ROWS),
        "weighted twin": GridKNN(**FEATURES, bins=6, weighted=True).fit(ROWS),
        "point twin": GridKNN(**FEATURES, bins=6, distance="point", max_depth=None).fit(ROWS),
    }
EACH = pytest.mark.parametrize("detector", FITTED.values(), ids=FITTED)
EACH_GRID = pytest.mark.parametrize("detector", GRIDS.values(), ids=GRIDS)


def everywhere(detector, point, feature):
    """Scores of a point with one feature moved: (values, scores) at many numbers, all levels, or missing."""
    domain = detector.model_.domain
    j = domain.names.index(feature)
    category = domain.category(j)
    values = (
        list(np.linspace(domain.lower[j] + 0.01, domain.upper[j], 4001))
        if category is None
        else [*category.levels, "?"]
    )
    if category is not None and not category.other:
        values = values[:-1]
    moved = pd.concat([point] * len(values), ignore_index=True)
    moved[feature] = values
    return values, detector.outlier_scores(moved)


@EACH
@pytest.mark.parametrize("i", range(len(POINTS)))
@pytest.mark.parametrize("feature", list(ROWS))
def test_the_stated_values_score_as_stated_and_none_nearer_does(detector, i, feature):
    point = POINTS.iloc[i : i + 1]
    found = detector.explain(point)
    other = found.counterfactual(feature=feature)
    values, scores = everywhere(detector, point, feature)
    assert other.before == found.scores[0] == detector.outlier_scores(point)[0]
    if not other.changes:
        assert other.score == other.before
        assert other.reached == (other.before <= found.typical_score)
        assert other.reached or scores.min() >= other.before
        return
    place = other.changes[feature]
    assert place.differs
    assert other.score < other.before
    assert other.reached == (other.score <= found.typical_score)
    if place.lower is not None:
        inside = np.array([place.lower <= value < place.upper for value in values])
        assert scores[inside].max() <= other.score
        value = min(max(point[feature].iloc[0], place.lower), place.upper)
        nearer = [min(value, point[feature].iloc[0]) < v < max(value, point[feature].iloc[0]) for v in values]
        step = (values[1] - values[0]) * 1.01  # the nearer end may lie between two of the values
        nearer &= np.array([abs(v - value) > step for v in values])
        assert not other.reached or (scores[nearer] > found.typical_score).all()
        assert other.reached or scores[inside].min() == scores.min() or place.upper - place.lower < step
    elif place.levels and place.levels != ("missing",):
        at = [{"other": "?"}.get(level, level) for level in place.levels]
        known = dict(zip(values, scores))
        assert max(known[level] for level in at) == other.score
        if not detector.model_.domain.category(list(ROWS).index(feature)).ordered:
            assert known[at[0]] == scores.min()
    else:
        moved = point.assign(**{feature: None})
        assert detector.outlier_scores(moved)[0] == other.score
    if not other.reached:
        assert scores.min() > found.typical_score
        assert other.score <= other.before - 0.5 * (other.before - scores.min()) + 1e-9


def test_both_ends_occur():
    """Among the points above some become usual, some only more so, and some are usual already."""
    usual = [
        FITTED["forest"].explain(POINTS).counterfactual(i, feature) for i in range(len(POINTS)) for feature in ROWS
    ]
    assert {(bool(one.changes), one.reached) for one in usual} >= {(True, True), (True, False), (False, True)}
    assert {str(one)[:8] for one in usual} > {"as usual"}


@pytest.mark.parametrize("name", [*FITTED, "plain"])
def test_scores_are_constant_on_pieces_and_pieces_cover_the_axis(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = (Forest((0, 120)).fit(PLAIN) if name == "plain" else FITTED[name]).model_
    rng = np.random.default_rng(3)
    for j in range(model.domain.n_features):
        parts, places = pieces(model.partition, j)
        line = [part for part in parts if not part.missing]
        assert [line[0].low, line[-1].high] == [0, 1]
        assert all(a.high == b.low for a, b in pairwise(line))
        assert (places[len(line) :] == MISSING).all()
        position = rng.integers(0, 2**32 - 1, (1, model.domain.n_features), dtype=np.uint32)
        many = np.repeat(position, 2000, axis=0)
        many[:, j] = rng.integers(0, 2**32 - 1, 2000)
        middles = np.repeat(position, len(line), axis=0)
        middles[:, j] = places[: len(line)]
        edges = [part.low for part in line]
        piece = np.searchsorted(np.array([float(edge) for edge in edges]), many[:, j] / 2**32, side="right") - 1
        assert (model.outlier_scores(many) == model.outlier_scores(middles)[piece]).all()


def test_marginals_by_hand():
    """Ten bins of 0 to 100: 90 rows in 40 to 60, 5 each in 20 to 30 and 70 to 80. The nearest usual bins are the dense ones."""
    rows = [[45.0]] * 50 + [[55.0]] * 40 + [[25.0]] * 5 + [[75.0]] * 5
    found = Marginals({"x": (0, 100)}, bins=10).fit(rows).explain([[95.0], [45.0], [75.0]])
    other = found.counterfactual()
    assert other.score == pytest.approx(-np.log(40))  # the fewer of the two
    assert str(other) == "x 40 to 60 instead of 95 would bring the score from 0.693 to -3.69"
    assert str(found.counterfactual(1)) == "as usual"


# Grids --------------------------------------------------------------------------------------------------------------------


@EACH_GRID
def test_regions_of_grids_are_in_the_users_words(detector):
    found = detector.explain(POINTS)
    assert found.typical_score == 0
    assert (found.scores == detector.outlier_scores(POINTS)).all()
    np.testing.assert_allclose(found.contributions.sum(axis=1), found.scores, rtol=1e-12)
    assert np.isnan(found.empty).all()
    assert found.regions[0] is not None
    assert [str(place) for place in found.regions[0]] == ["40 to 60", "100 to 160", "f", "I", "a"]
    assert not any(place.differs for place in found.regions[0])
    assert str(found.counterfactual(0)) == "as usual"
    moved = found.counterfactual(1)
    assert moved.changes["age"].upper <= 80
    assert moved.reached
    assert str(moved).startswith(f"age {moved.changes['age']} instead of 115")
    middles = {
        name: place.levels[0] if place.levels else (place.lower + place.upper) / 2
        for name, place in moved.changes.items()
    }
    assert detector.outlier_scores(POINTS.iloc[1:2].assign(**middles))[0] == moved.score < found.scores[1]
    other = found.counterfactual(3)
    assert other.score < found.scores[3]
    assert other.changes["sex"].levels[0] in {"f", "m"}


def test_one_feature_of_a_region_alone():
    found = GRIDS["point twin"].explain(POINTS)
    both = found.counterfactual(4)
    assert {"age", "sex"} <= set(both.changes)
    one = found.counterfactual(4, "age")
    assert list(one.changes) == ["age"]
    assert not one.reached
    assert both.score < one.score < found.scores[4]
    assert found.counterfactual(4, "ward").score == found.scores[4]  # where it does not differ


def test_a_walk_without_enough_rows_is_reported():
    alone = GridKNN(**FEATURES, bins=6, max_depth=0).fit(ROWS)
    found = alone.explain(POINTS.iloc[4:])
    assert found.found.tolist() == [False]
    assert found.regions == (None,)
    assert found.counterfactual() is None
    assert "No region within reach is more usual." in found.to_table().caption
    assert list(found.to_table().columns[3].cells) == [Text("")] * 5
    assert found.contributions.sum() == pytest.approx(found.scores[0])


def test_tables_hold_values_parts_and_what_would_be_usual():
    given = {"sex": "divers", "ward": "n/a"}
    point = POINTS.iloc[4:].assign(**given)
    for detector, columns in ((GRIDS["dense"], 4), (FITTED["forest"], 6)):
        found = detector.explain(point)
        table = found.to_table(name="row 7", given=given)
        assert table.title.startswith("row 7: outlier score ")
        assert len(table.columns) == columns
        rows = [[str(cell) for cell in row] for row in zip(*(column.cells for column in table.columns))]
        assert [row[0] for row in rows] == [name for name, _, _ in found.ranking()]
        value = {row[0]: row[1] for row in rows}
        assert value["age"] == "130 (outside 0 to 120)"
        assert value["glucose"] == "missing"
        assert value["sex"] == "divers (other)"
        assert value["ward"] == "n/a (missing)"
        assert value["stage"] == "IV"
        short = found.to_table(top=2)
        assert len(list(short.columns[0].cells)) == 2
        rest = sum(part for _, part, _ in found.ranking()[2:])
        assert f"(3 other features: {rest:+.3f})" in short.caption
        assert short.title.startswith("point 0: ")


def test_an_unknown_feature_is_refused():
    with pytest.raises(InvalidParameterError, match="feature must be one of"):
        FITTED["forest"].explain(POINTS).counterfactual(0, "weight")


def test_a_pickle_of_an_explanation_does_not_carry_the_model():
    found = GRIDS["dense"].explain(POINTS)
    for other in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert (other.contributions == found.contributions).all()
        assert other.explained is None
        assert other.regions is None
        with pytest.raises(TypeError, match="call explain again"):
            other.counterfactual()


# Words --------------------------------------------------------------------------------------------------------------------


@settings(max_examples=500)
@given(
    st.floats(-1e12, 1e12, allow_nan=False),
    st.floats(-9, 12).map(lambda exponent: 10**exponent),
)
def test_ranges_are_rounded_by_less_than_a_hundredth_of_their_width(low, width):
    high = low + width
    if high - low < abs(low) * 1e-12:  # floats can hardly tell them apart
        return
    first, last = (float(part) for part in range_text(low, high).split(" to "))
    assert abs(first - low) <= 0.0051 * (high - low) + abs(low) * 1e-15
    assert abs(last - high) <= 0.0051 * (high - low) + abs(high) * 1e-15


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0, 12, "0 to 12"),
        (-6, -1.2, "-6 to -1.2"),
        (-1e-9, 10, "0 to 10"),
        (1e9, 1e9 + 0.5, "1000000000 to 1000000000.5"),
        (0, 1e20, "0 to 1e+20"),
        (1.0, 1.0, "1"),
    ],
)
def test_ranges_read_well(low, high, text):
    assert range_text(low, high) == text


def test_missing_is_never_mistaken_for_a_level():
    category = Category(["missing", "there"])
    domain = Domain((0.0,), (4.0,), ("x",), categories=(category,), missing=(True,))
    words = [place_of(Segment(Fraction(i, 4), Fraction(i + 1, 4)), domain, 0, differs=True).text for i in range(4)]
    assert words == ["missing", "there", "other", "(missing)"]
    assert number_text(1 / 3) == "0.3333333333"


def test_for_a_missing_value_all_that_it_could_have_been_is_as_near():
    """So it says where the point would score least, wherever on the line that lies."""
    rows = pd.DataFrame({"x": [5.0] * 40 + [95.0] * 60, "y": [1.0] * 100})
    twin = Marginals({"x": (0, 100), "y": (0, 2)}, bins=10, missing=["x"]).fit(rows)
    other = twin.explain(pd.DataFrame({"x": [np.nan], "y": [1.0]})).counterfactual(feature="x")
    assert (other.changes["x"].lower, other.changes["x"].upper) == (90, 100)


@pytest.mark.parametrize("point", [-1, 5, 1.5, "0"])
def test_a_point_that_is_not_there_is_refused(point):
    found = FITTED["forest"].explain(POINTS)
    for ask in (found.ranking, found.counterfactual, found.to_table, found.region):
        with pytest.raises(InvalidParameterError, match="point must be the number of a point, from 0 to 4"):
            ask(point)


def test_a_declared_level_called_other_is_not_mistaken_for_the_one_that_is_not():
    twin = Marginals(categories={"x": ["other", "a"]}).fit(pd.DataFrame({"x": ["other", "a"]}))
    found = twin.explain(pd.DataFrame({"x": ["b", "other"]}))
    assert [found.value("x", i, given) for i, given in enumerate(["b", "other"])] == ["b (other)", "other"]
