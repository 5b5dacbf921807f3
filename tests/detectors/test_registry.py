"""The default detector: by public numbers alone."""

import numpy as np
import pytest

import dpoutlier
from dpoutlier import Bounds, DPForest, DPGridKNN, DPMarginals
from dpoutlier.detectors.registry import DETECTOR_NAMES
from dpoutlier.exceptions import InvalidParameterError

RANGES = {"age": (0, 120), "bmi": (10, 80), "pulse": (20, 250), "dose": (0, 9)}


@pytest.mark.parametrize(
    ("name", "expected"), [("forest", DPForest), ("marginals", DPMarginals), ("grid", DPGridKNN), ("auto", DPForest)]
)
def test_a_detector_by_name(name, expected):
    found = dpoutlier.detector(name, epsilon=0.5, features=RANGES, n_rows_hint=5000, target_fpr=0.1)
    assert type(found) is expected
    assert (found.epsilon, found.n_rows_hint, found.target_fpr) == (0.5, 5000, 0.1)
    rows = np.random.default_rng(0).uniform(size=(300, 4)) * [120, 80, 250, 9]
    assert found.fit(rows).guarantee_.private


def test_ranges_in_every_form(tmp_path):
    path = tmp_path / "features.toml"
    path.write_text("[features]\na = [0, 1]\nb = [0, 2]\n")
    for features in (path, str(path), {"a": (0, 1), "b": (0, 2)}, Bounds([0, 0], [1, 2], ["a", "b"]), ([0, 0], [1, 2])):
        found = dpoutlier.detector(epsilon=1, features=features, tight_ranges=True)
        assert found.fit([[0.5, 1.5]]).model_.domain.upper == (1.0, 2.0)
        assert found.n_rows_hint == "estimate"
    assert dpoutlier.detector(epsilon=1, features=(0, 1)).fit([[0.5] * 3]).n_features_in_ == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": None}, "features are required"),
        (
            {"features": RANGES, "name": "tree"},
            f"name must be one of {str(('auto', *DETECTOR_NAMES))[1:-1]}, got 'tree'",
        ),
        ({"features": (0, 1), "epsilon": -1}, "epsilon must be a positive number"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InvalidParameterError, match=message):
        dpoutlier.detector(**{"epsilon": 1, **arguments}).fit([[0.5]])


def test_what_a_detector_does_not_take_is_refused():
    with pytest.raises(TypeError, match="max_cells"):
        dpoutlier.detector("forest", epsilon=1, features=RANGES, max_cells=5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_rows_hint": None}, "n_trees='auto' and depth='auto' need n_rows_hint"),
        ({"n_trees": "many", "n_rows_hint": 5}, "n_trees must be 'auto' or a whole number, got 'many'"),
        ({"depth": "deep", "n_rows_hint": 5}, "depth must be 'auto' or a whole number, got 'deep'"),
        ({"n_trees": 0, "depth": 3}, "n_trees must be a whole number of at least 1"),
        ({"n_trees": 2.5, "depth": 3}, "n_trees must be a whole number"),
        ({"n_rows_hint": 10, "subspace": "two"}, "subspace must be a number of features"),
        ({"n_rows_hint": 10, "subspace": []}, "subspace must be a number of features"),
        ({"n_rows_hint": 10, "subspace": [2, 0]}, "subspace must be a whole number of at least 1"),
        ({"n_rows_hint": 10, "tree_seed": -1}, "tree_seed must be a whole number from 0"),
        ({"n_rows_hint": 10, "tree_seed": None}, "tree_seed must be a whole number from 0"),
        ({"n_trees": 4096, "depth": 12}, "leaves, and at most 4,194,304"),
        ({"n_rows_hint": 0}, "n_rows_hint must be a public guess"),
        ({"n_rows_hint": 10, "epsilon": 1e-9}, "epsilon is too small"),
    ],
)
def test_bad_arguments_of_a_forest(arguments, message, monkeypatch):
    detector = DPForest(**{"epsilon": 1, "features": (0, 1), **arguments})
    monkeypatch.setattr("dpoutlier.trusted.fit.open_reference", pytest.fail)  # refused before any row is read
    with pytest.raises(InvalidParameterError, match=message):
        detector.fit(np.zeros((3, 30)))


@pytest.mark.parametrize(
    ("bins", "message"),
    [
        (0, "bins must be a whole number"),
        ([3], "one for each of 2 features"),
        ("many", "bins must be"),
        (1.5, "bins must"),
    ],
)
def test_bad_bins_of_marginals(bins, message):
    with pytest.raises(InvalidParameterError, match=message):
        DPMarginals(1, features=(0, 1), bins=bins).fit(np.zeros((3, 2)))


def test_marginals_spend_no_epsilon_on_what_they_do_not_use():
    model = DPMarginals(1, features=(0, 1), n_rows_hint="estimate", tight_ranges=True).fit(np.zeros((3, 2))).model_
    assert [charge.purpose for charge in model.charges] == ["counts"]
    assert model.n_rows_hint is None
