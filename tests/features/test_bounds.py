"""Declared features: bounds, levels, private bounds and missing cells, in all the ways to say them."""

import copy
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpoutlier import Bounds, Category, DPForest, PrivateBounds
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.domain import Domain

SEX, STAGE = Category(["f", "m"]), Category([1, 2, 3], ordered=True)
AGE_SEX = Domain((0.0, 0.0), (120.0, 3.0), ("age", "sex"), categories=(None, SEX))


def domain(bounds, categories=None, missing="error", names=("age", "sex")):
    return Bounds.of(bounds, categories, missing).domain(len(names), names)


@pytest.mark.parametrize(
    ("bounds", "categories"),
    [
        ({"age": (0, 120), "sex": SEX}, None),
        ({"age": (0, 120)}, {"sex": ["f", "m"]}),
        ({"age": np.array([0, 120])}, {"sex": np.array(["f", "m"])}),
        ({"age": (0, 120)}, {"sex": SEX}),
        (Bounds(0, 120, names=["age"]), {"sex": SEX}),
        (Bounds([0], 120, names=["age"]), {"sex": SEX}),
        ((0, 120), {"sex": ("f", "m")}),
        ((0, 120), {1: ["f", "m"]}),
        (([0, -1], [120, 1]), {np.int64(1): ["f", "m"]}),
    ],
)
def test_all_ways_to_declare_levels_agree(bounds, categories):
    assert domain(bounds, categories) == AGE_SEX


def test_levels_alone_need_no_bounds():
    assert domain(None, {"sex": SEX, "age": STAGE}) == Domain(
        (0.0, 0.0), (3.0, 3.0), ("age", "sex"), categories=(STAGE, SEX)
    )
    found = Bounds.of(None, {1: SEX, 0: STAGE}).domain(2)
    assert found == Domain((0.0, 0.0), (3.0, 3.0), categories=(STAGE, SEX))


@pytest.mark.parametrize(
    ("bounds", "categories", "message"),
    [
        (None, None, "features are required"),
        (None, {}, "bounds of age are required"),
        (None, {1: SEX}, "bounds of age are required"),
        (None, {"sex": SEX}, r"columns without bounds: \['age'\]"),
        (None, {"sex": SEX, 0: STAGE}, r"columns without bounds: \['age'\]"),
        ({"age": (0, 120), "sex": (0, 1)}, {"sex": SEX}, "features that have no bounds, got 'sex'. Declare each"),
        ({"age": (0, 120), "sex": SEX}, {"sex": STAGE}, "features that have no bounds, got 'sex'"),
        ({"age": (0, 120)}, {"gender": SEX}, r"columns without bounds: \['sex'\].*without a column: \['gender'\]"),
        ((0, 120), {"gender": SEX}, "categories must be given by names of columns, or .* got 'gender'.*age, sex"),
        ((0, 120), {2: SEX}, "by their numbers from 0, got 2"),
        ((0, 120), {-1: SEX}, "by their numbers from 0, got -1"),
        ((0, 120), {"sex": SEX, 1: STAGE}, "categories must be given once for each feature"),
        ({"age": (0, 120), "sex": (0, 1)}, {1: SEX}, "categories must be given by names of columns, got 1"),
        ((0, 120), {True: SEX}, "categories of True: categories must be given by the name"),
        ((0, 120), {1.0: SEX}, "categories of 1.0: categories must be given by the name"),
        ((0, 120), {"sex": "fm"}, "categories of 'sex': levels must be a list"),
        ((0, 120), {"sex": ["f", "f"]}, "categories of 'sex': levels must be given once"),
        ((0, 120), ["f", "m"], "categories must be a dict"),
        ((0, 120), SEX, "categories must be a dict"),
        ({"age": (0, 120), "sex": "fm"}, None, "bounds of sex must be a pair"),
        ({"age": (0, 120), "sex": b"fm"}, None, "bounds of sex must be a pair"),
        ({"age": (0, 120), "sex": np.array(3)}, None, "bounds of sex must be a pair"),
        ({"age": (0, 10**400), "sex": SEX}, None, "upper bound of age must be a number below 1e308"),
        (np.array(3), None, "features must be a Bounds"),
        (b"ab", None, "features must be a Bounds"),
        ({"age": PrivateBounds(0.1), "sex": PrivateBounds(0.2)}, None, "share must be the same"),
    ],
)
def test_what_cannot_be_used_is_refused(bounds, categories, message):
    with pytest.raises(InvalidParameterError, match=message):
        domain(bounds, categories)


@pytest.mark.parametrize("names", ["ab", ["a", "a"], ["a", 1]])
def test_names_are_texts_and_given_once(names):
    with pytest.raises(InvalidParameterError, match="names must be"):
        Bounds(0, 1, names=names)


# Missing cells ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("missing", "cells"),
    [
        ("error", None),
        ([], None),
        ("cell", (True, True)),
        (["sex"], (False, True)),
        (("age",), (True, False)),
        ({"age", "sex"}, (True, True)),
        (np.array(["age", "sex"]), (True, True)),
        (pd.Index(["sex"]), (False, True)),
    ],
)
def test_all_ways_to_ask_for_missing_cells(missing, cells):
    found = domain({"age": (0, 120), "sex": SEX}, missing=missing)
    assert found.missing == cells
    assert found.upper[1] == 3 + bool(cells and cells[1])  # a level more


@pytest.mark.parametrize("missing", [[1], (np.int64(1),), np.array([1]), ["sex"]])
def test_missing_cells_by_number_where_features_have_no_names(missing):
    assert domain((0, 1), missing=missing).missing == (False, True)


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("sex", "'error', 'cell', or a list"),
        (b"cell", "'error', 'cell', or a list"),
        (None, "'error', 'cell', or a list"),
        (True, "'error', 'cell', or a list"),
        ({"sex": "error"}, "'error', 'cell', or a list"),
        ([True], "missing must be given by the name of a feature, or its number"),
        ([1.5], "missing must be given by the name of a feature, or its number"),
        ([None], "missing must be given by the name of a feature, or its number"),
        (["gender"], "missing must be given by names of columns, or .* got 'gender'"),
        ([2], "missing must be given .* got 2"),
    ],
)
def test_missing_cells_that_cannot_be_meant(missing, message):
    with pytest.raises(InvalidParameterError, match=message):
        domain((0, 1), missing=missing)


def test_an_ordered_feature_and_a_number_keep_their_bounds_beside_a_missing_cell():
    found = domain({"age": (0, 120), "sex": STAGE}, missing="cell")
    assert found.upper == (120.0, 3.0)
    assert [axis.missing for axis in found.axes] == [True, True]


def test_cells_of_a_file_and_cells_that_are_asked_for_add_up(tmp_path):
    path = tmp_path / "features.toml"
    path.write_text('[features]\nage = {lower = 0, upper = 120, missing = "cell"}\nsex = {levels = ["f", "m"]}\n')
    assert domain(path).missing == (True, False)
    assert domain(path, missing=["sex"]).missing == (True, True)
    assert domain(path, missing="cell").missing == (True, True)
    assert domain(str(path), {"stage": STAGE}, ["stage"], ("age", "sex", "stage")).missing == (True, False, True)


# Private bounds ------------------------------------------------------------------------------------------------------------


def test_bounds_for_all_features_can_be_private_beside_levels():
    found = domain(PrivateBounds(outer=(0, 1e6)), {"sex": SEX})
    assert found.outer == ((0.0, 1e6), None)
    assert found.estimated == (0,)
    assert found.upper == (1e6, 3.0)


def test_the_share_is_what_all_private_bounds_cost_together():
    bounds = Bounds.of({"a": PrivateBounds(0.2), "b": PrivateBounds(0.2, (0, 9)), "c": (0, 1)})
    assert bounds._share() == 0.2
    assert Bounds.of((0, 1))._share() is None
    assert bounds.domain(3, "abc").outer == ((-1e9, 1e9), (0.0, 9.0), None)


@pytest.mark.parametrize("share", [0.25, np.float32(0.25), np.float64(0.25), Fraction(1, 4)])
@pytest.mark.parametrize("outer", [(0, 9), [0, 9], np.array([0, 9]), (np.float32(0), Fraction(9))])
def test_private_bounds_are_plain_numbers_whatever_they_come_as(share, outer):
    found = PrivateBounds(share, outer)
    assert repr(found) == "PrivateBounds(share=0.25, outer=(0.0, 9.0))"
    assert hash(found) == hash(PrivateBounds(0.25, (0, 9)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"share": 0}, "share must be a number between 0 and 1"),
        ({"share": 1}, "share must be a number between 0 and 1"),
        ({"share": True}, "share must be a number between 0 and 1"),
        ({"share": math.nan}, "share must be a number between 0 and 1"),
        ({"share": "0.1"}, "share must be a number between 0 and 1"),
        ({"outer": 3}, "outer must be a pair"),
        ({"outer": (1, 2, 3)}, "outer must be a pair"),
        ({"outer": "ab"}, "outer must be a pair"),
        ({"outer": b"ab"}, "outer must be a pair"),
        ({"outer": np.array(1)}, "outer must be a pair"),
        ({"outer": ("0", 1)}, "outer must be a number"),
        ({"outer": (0, 10**400)}, "outer must be a number below 1e308"),
        ({"outer": (1, 0)}, "lower < upper"),
        ({"outer": (0, math.inf)}, "two finite numbers"),
    ],
)
def test_private_bounds_that_cannot_be_used(arguments, message):
    with pytest.raises(InvalidParameterError, match=message):
        PrivateBounds(**arguments)


# The whole ----------------------------------------------------------------------------------------------------------------


EVERYTHING = {"age": (0, 120), "sex": SEX, "stage": STAGE, "income": PrivateBounds(0.2, (0, 1e6))}


@pytest.mark.parametrize("missing", ["error", "cell", ["sex", "stage", "income"]])
def test_a_domain_survives_json_and_its_own_bounds(missing):
    found = domain(EVERYTHING, missing=missing, names=tuple(EVERYTHING))
    assert Domain.from_json(found.to_json()) == found
    again = Bounds._of_domain(found, 0.2, leaked=False)
    assert again.domain(4, list(EVERYTHING)) == found
    assert again._share() == 0.2
    assert copy.deepcopy(again).domain(4, list(EVERYTHING)[::-1]).names == tuple(EVERYTHING)[::-1]


def test_a_domain_without_names_survives_too():
    found = Bounds.of((0, 1), {1: SEX}, [0]).domain(3)
    assert Bounds._of_domain(found, 0.1, leaked=False).domain(3) == found


def test_bounds_show_what_they_hold():
    shown = repr(Bounds.of({"sex": SEX}, missing=["sex"]))
    assert "Category(['f', 'm'], ordered=False, other=True)" in shown
    assert "missing=['sex']" in shown
    assert "PrivateBounds(share=0.1" in repr(Bounds.of(PrivateBounds()))


@pytest.mark.parametrize("share", [np.float64(0.1), Fraction(1, 10)])
def test_a_fit_with_everything_at_once(share):
    rng = np.random.default_rng(0)
    n = 300
    table = pd.DataFrame(
        {
            "income": rng.lognormal(10, 1, n),
            "stage": rng.choice(["1", "2.0", " 3", "x", ""], n),
            "sex": rng.choice(np.array(["f", "m", None, 7], dtype=object), n),
            "age": rng.choice([20, 50, np.nan], n),
        }
    )
    bounds = {**EVERYTHING, "income": PrivateBounds(share, (0, 1e6))}
    fitted = DPForest(epsilon=2, features=bounds, missing="cell", n_trees=3, n_rows_hint=300).fit(table)
    assert fitted.feature_names_in_.tolist() == ["income", "stage", "sex", "age"]
    assert np.isfinite(fitted.score_samples(table)).all()


def test_a_path_is_a_features_file_however_it_is_given():
    for path in ("none.toml", Path("none.toml")):
        with pytest.raises(InvalidParameterError, match=r"features file none.toml does not exist"):
            Bounds.of(path)
