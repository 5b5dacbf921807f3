"""Bounds and the lattice."""

import json

import numpy as np
import pytest

from dpoutlier import Bounds, DPGridKNN
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.domain import Domain

AGE = {"age": (0, 120), "bmi": (10, 80)}


@pytest.mark.parametrize(
    "given",
    [
        AGE,
        Bounds([0, 10], [120, 80], names=["age", "bmi"]),
        Bounds(lower=(0, 10), upper=(120, 80)),
        ([0, 10], [120, 80]),
        (np.array([0, 10]), np.array([120, 80])),
    ],
)
def test_all_ways_to_declare_bounds_agree(given):
    domain = Bounds.of(given).domain(2, ["age", "bmi"])
    assert domain == Domain((0.0, 10.0), (120.0, 80.0), ("age", "bmi"))


def test_a_pair_of_numbers_holds_for_all_features():
    assert Bounds.of((0, 1)).domain(3) == Domain((0.0,) * 3, (1.0,) * 3)


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_bounds_from_a_features_file(tmp_path, suffix):
    path = tmp_path / f"features{suffix}"
    if suffix == ".json":
        path.write_text(json.dumps({"features": {"age": [0, 120], "bmi": {"lower": 10, "upper": 80}}}))
    else:
        path.write_text("[features]\nage = [0, 120]\nbmi = {lower = 10, upper = 80}\n")
    assert Bounds.of(str(path)).domain(2, ["age", "bmi"]) == Bounds.of(AGE).domain(2, ["age", "bmi"])


def test_columns_are_found_by_name_in_the_order_of_the_table():
    assert Bounds.of(AGE).domain(2, ["bmi", "age"]) == Domain((10.0, 0.0), (80.0, 120.0), ("bmi", "age"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must hold one table named 'features'"),
        ("[features]\n", "must hold one table named 'features'"),
        ("[features]\nage = [0]\n", "age must be"),
        ("[features]\nage = {lower = 0}\n", "age must be"),
        ("[features]\nage = {lower = 0, upper = 1, bins = 3}\n", "age must be"),
        ("[features]\nage = ['a', 'b']\n", r"age must be \[lower, upper\].*For levels write age = {levels = "),
        ("[other]\nage = [0, 1]\n", "must hold one table named 'features'"),
        ("features = [", "cannot be read"),
    ],
)
def test_a_features_file_that_is_wrong_says_where(tmp_path, text, message):
    path = tmp_path / "features.toml"
    path.write_text(text)
    with pytest.raises(InvalidParameterError, match=message):
        Bounds.from_file(path)


def test_a_features_file_that_does_not_exist(tmp_path):
    with pytest.raises(InvalidParameterError, match="does not exist"):
        Bounds.from_file(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (None, "features are required.*features={'age': \\(0, 120\\)"),
        ((1, 0), "lower < upper"),
        ((1, 1), "lower < upper"),
        ((0, np.inf), "two finite numbers"),
        ((np.nan, 1), "two finite numbers"),
        ((-1e308, 1e308), "neither wider"),
        ((0, 1e-310), "neither wider"),
        (("a", "b"), "lower bound must be a number"),
        ((True, False), "lower bound must be a number"),
        ([1, 2, 3], "features must be a Bounds"),
        (7, "features must be a Bounds"),
        ({}, "at least one feature"),
        ({"age": 3}, "bounds of age must be a pair"),
        ({1: (0, 1)}, "dict from feature name"),
        (([0], [1]), "one for each of 2 features"),
        ({"age": (0, 1)}, "the declared features are"),
    ],
)
def test_bounds_that_cannot_be_used_are_refused_before_any_row_is_read(bounds, message):
    with pytest.raises(InvalidParameterError, match=message):
        DPGridKNN(1, features=bounds, bins=2).fit([[1, 2], [3, 4]])


def test_bounds_and_columns_must_match():
    with pytest.raises(
        InvalidParameterError, match=r"columns without bounds: \['weight'\].*without a column: \['bmi'\]"
    ):
        Bounds.of(AGE).domain(2, ["age", "weight"])


def test_points_outside_are_found():
    domain = Bounds.of(AGE).domain(2, ["age", "bmi"])
    columns = np.array([[0.0, 121, 50, np.nan, 120, -np.inf], [10, 20, 80.5, 20, np.nan, 20]])
    assert domain.outside(columns).tolist() == [False, True, True, False, False, True]
    assert domain.outside([*columns]).tolist() == domain.outside(columns).tolist()
    assert domain.beyond(1, columns[1]).tolist() == [False, False, True, False, False, False]
