"""Files of models with levels, missing cells, people and private bounds that somebody changed by hand: they are refused."""

import pandas as pd
import pytest

from dpoutlier import Category, DPForest, DPGridKNN, DPMarginals, PrivateBounds, load
from dpoutlier.exceptions import ModelFileError
from forging import at, rewritten


@pytest.fixture(scope="module", params=["forest", "marginals", "grid"])
def saved_kinds(request, tmp_path_factory):
    """Numbers whose bounds are estimated, ordered and unordered levels, cells for missing values, people."""
    bounds = {"a": PrivateBounds(outer=(-10, 10)), "b": Category(["x", "y"]), "c": Category([1, 2, 3], ordered=True)}
    arguments = {"features": bounds, "missing": ["a", "b"], "person": "who", "rows_per_person": 2}
    made = {
        "forest": DPForest(1, n_trees=3, depth=4, **arguments),
        "marginals": DPMarginals(1, bins=3, **arguments),
        "grid": DPGridKNN(1, bins=3, **arguments),
    }[request.param]
    table = pd.DataFrame({"who": [1, 1, 2], "a": [0.0, 1.0, 2.0], "b": ["x", "y", None], "c": [1, 2, 3]})
    return made.fit(table).save(tmp_path_factory.mktemp("models") / "model")


def without(*keys):
    def change(manifest):
        for key in keys[:-1]:
            manifest = manifest[key]
        del manifest[keys[-1]]

    return change


def uncharged_bounds(manifest):
    """As if bounds had cost nothing, and all of epsilon had gone to the counts."""
    manifest["charges"] = [charge for charge in manifest["charges"] if charge["purpose"] != "bounds"]


def declared_bounds(manifest):
    """As if private bounds had been declared."""
    uncharged_bounds(manifest)
    del manifest["domain"]["outer"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (uncharged_bounds, "charges of the model file do not match its parts"),
        (declared_bounds, "do not add up to its epsilon"),
        (without("domain", "outer"), "charges of the model file do not match its parts"),
        (at("domain", "outer", value=[[-10, 10], None, [0, 3]]), "not a model file"),
        (at("domain", "outer", value=[[20, 30], None, None]), "not a model file"),
        (at("domain", "outer", value=[None, None, None]), "not a model file"),
        (at("domain", "outer", 0, 0, value=float("nan")), "not a model file"),
        (at("charges", 0, "sensitivity", value=2), "does not follow from its guarantee"),
        (without("domain", "missing"), "differ in their number or their kinds|not a model file"),
        (at("domain", "missing", value=[True, True, True]), "differ in their number or their kinds"),
        (at("domain", "missing", value=[1, True, False]), "not one that this format knows|differ in their number"),
        (at("domain", "missing", value=[True, True]), "not a model file"),
        (without("domain", "categories"), "differ in their number or their kinds"),
        (at("domain", "categories", 1, "levels", value=["x"]), "not a model file"),
        (at("domain", "categories", 1, "levels", value=["x", "x"]), "not a model file"),
        (at("domain", "categories", 1, "levels", value=["x", "\x1b[2J"]), "not a model file"),
        (at("domain", "categories", 1, "levels", value=["x", " y"]), "not a model file"),
        (at("domain", "categories", 1, "levels", value=["x"] * 10**5), "not a model file"),
        (at("domain", "categories", 1, "ordered", value=True), "not a model file"),
        (at("domain", "categories", 1, "unknown", value=True), "not a model file"),
        (at("domain", "categories", 2, "numeric", value="yes"), "not a model file|not one that this format knows"),
        (
            at("partition", "axes", value=[[0, False, False]] * 3),
            "not a model file|differ in their number or their kinds",
        ),
        (at("partition", "axes", 1, value=[4, False, False]), "differ in their number or their kinds"),
        (at("partition", "axes", 1, value=[10**9, True, False]), "not a model file"),
        (at("partition", "axes", 1, value=[4, True, True]), "not a model file"),
        (at("partition", "axes", 0, value=[0, 0, True]), "not a model file"),
        (without("partition", "axes"), "not a model file|differ in their number or their kinds"),
        (at("guarantee", "person", value=7), "a value that should be text and is not"),
        (at("guarantee", "person", value=[]), "a value that should be text and is not"),
        (at("statement", "epsilon", value="0.001"), "statement in the model file does not match its content"),
        (
            at("statement", "epsilon_replace_one", value="0.001"),
            "statement in the model file does not match its content",
        ),
        (at("guarantee", "person", value="\x1b[2J"), "cannot be printed"),
        (at("guarantee", "person", value=None), "not one that this format knows"),
        (at("guarantee", "rows_per_person", value=1), "does not follow from its guarantee"),
    ],
)
def test_a_forged_model_of_all_kinds_is_refused(saved_kinds, change, message, tmp_path):
    target = rewritten(saved_kinds, tmp_path / "forged.dpo", change=change)
    with pytest.raises(ModelFileError, match=message):
        load(target)
