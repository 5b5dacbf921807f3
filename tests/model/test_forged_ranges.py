"""Files of models whose fits have looked for where the rows lie: they come back as they were, and are refused if they lie."""

import copy
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dpoutlier import Category, DPForest, DPGridKNN, DPMarginals, PrivateBounds, load, merge
from dpoutlier.exceptions import ModelFileError
from dpoutlier.noise.mechanism import Cost, Sensitivity
from dpoutlier.noise.permute_and_flip import PermuteAndFlip
from forging import at, rewritten

FEATURES = {"a": (-1000, 1000), "b": (-1000, 1000), "c": PrivateBounds(0.1, (-100, 100)), "d": Category(["x", "y"])}
MAKERS = {
    "forest": lambda **more: DPForest(8, **more),
    "marginals": lambda **more: DPMarginals(8, **more),
    "grid": lambda **more: DPGridKNN(8, tight_ranges=False, bins=3, **more),
}


def fitted(detector, n_rows_hint=500):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({name: rng.normal(size=500) for name in "abc"} | {"d": ["x"] * 500})
    return MAKERS[detector](features=FEATURES, missing=["a"], n_rows_hint=n_rows_hint).fit(rows), rows


@pytest.mark.parametrize("detector", MAKERS)
@pytest.mark.parametrize("n_rows_hint", [10, 500, "estimate"])
def test_a_fit_comes_back_as_it_was(detector, n_rows_hint, tmp_path):
    """After a test and a second look, or after one look at each feature."""
    made, rows = fitted(detector, n_rows_hint)
    again = load(made.save(tmp_path / "model"))
    assert made.model_.domain.declared == ((-1000, 1000), (-1000, 1000), None, None)
    assert again.model_.domain == made.model_.domain
    assert again.model_.charges == made.model_.charges
    paid = [charge.purpose for charge in again.model_.charges]
    assert paid.count("ranges") == (2 if n_rows_hint == 10 else 1)
    assert (again.outlier_scores(rows.head(20)) == made.outlier_scores(rows.head(20))).all()
    assert str(again.privacy_statement()) == str(made.privacy_statement())
    arguments = again.estimator().get_params()
    assert arguments["tight_ranges"] is False
    assert again.estimator().features.domain(4).lower[0] == -1000


@pytest.fixture(scope="module", params=MAKERS)
def saved(request, tmp_path_factory):
    """Charges: bounds, two looks, counts."""
    made, _ = fitted(request.param, 10)
    assert [charge.purpose for charge in made.model_.charges] == ["bounds", "ranges", "ranges", "counts"]
    return made.save(tmp_path_factory.mktemp("models") / "model")


def split(manifest):
    """Three looks, of the same epsilon together."""
    first = manifest["charges"][1]
    epsilon = Fraction(first["epsilon"]) / 2
    half = first | {"epsilon": str(epsilon), "rate": str(rate_of(epsilon, first["sensitivity"]))}
    manifest["charges"][1:2] = [half, copy.deepcopy(half)]


def rate_of(epsilon, sensitivity):
    return PermuteAndFlip.costing(Cost(Fraction(epsilon)), Sensitivity(sensitivity)).rate


def of_one_feature(manifest):
    """As if a look together moved one count only: at twice the rate."""
    look = manifest["charges"][2]
    look |= {"sensitivity": 1, "rate": str(rate_of(look["epsilon"], 1))}


def uncharged(manifest):
    manifest["charges"] = [charge for charge in manifest["charges"] if charge["purpose"] != "ranges"]


def after_the_counts(manifest):
    manifest["charges"].append(manifest["charges"].pop(1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (uncharged, "do not add up to its epsilon"),
        (split, "do not match its parts"),
        (of_one_feature, "does not follow from its guarantee"),
        (after_the_counts, "do not match its parts"),
        (at("charges", 1, "purpose", value="counts"), "do not match its parts"),
        (at("charges", 1, "rate", value="1/2"), "does not follow from its guarantee"),
        (at("domain", "declared", value=[[-1000, 1000]] * 3 + [None]), "not a model file"),
        (at("domain", "declared", value=[[-1000, 1000], None, None, [0, 9]]), "not a model file"),
        (at("domain", "declared", 0, value=[1e6, 1e7]), "not a model file"),
        (at("domain", "declared", value=[None] * 4), "not a model file"),
        (at("domain", "declared", value=[[-1000, 1000]]), "not a model file"),
        (at("domain", "outer", value=[None, [-1000, 1000], [-100, 100], None]), "not a model file"),
    ],
)
def test_a_forged_look_is_refused(saved, tmp_path, change, message):
    with pytest.raises(ModelFileError, match=message):
        load(rewritten(saved, tmp_path / "forged.dpo", change=change))


def test_ranges_narrowed_without_a_charge_are_refused(tmp_path):
    """All of epsilon went to the counts, and the file says that ranges were narrowed: then they were taken from the rows."""
    saved = DPMarginals(1, features={"a": (0, 1)}).fit(pd.DataFrame({"a": [0.5]})).save(tmp_path / "plain")
    fixed = DPMarginals(1, features={"a": (0, 1)}, bins=10).fit(pd.DataFrame({"a": [0.5]})).save(tmp_path / "fixed")
    assert load(saved).model_.charges != load(fixed).model_.charges
    with pytest.raises(ModelFileError, match="ranges that were narrowed, and no charge for that"):
        load(rewritten(fixed, tmp_path / "forged.dpo", change=at("domain", "declared", value=[[-9, 9]])))


def merged_parts(tmp_path):
    rows = pd.DataFrame({"a": np.full(500, 0.5), "b": np.full(500, 0.5)})
    first = DPMarginals(4, features={"a": (-100, 100), "b": (-100, 100)}, n_rows_hint=500).fit(rows)
    second = DPMarginals(1, features=first.bounds_, tight_ranges=True).fit(rows)
    path = merge([first, second], people="overlapping").save(tmp_path / "merged")
    assert load(path).model_.merged is not None
    return path


def charges_of(manifest):
    """The charges of the part that has looked."""
    return next(
        part["charges"]
        for part in manifest["merged"]["parts"]
        if any(charge["purpose"] == "ranges" for charge in part["charges"])
    )


def test_in_a_merge_a_look_at_each_feature_is_charged(tmp_path):
    """A merge does not say which ranges were narrowed, but all features without levels and private bounds were looked at."""
    path = merged_parts(tmp_path)

    def at_one_feature(manifest):
        look = next(charge for charge in charges_of(manifest) if charge["purpose"] == "ranges")
        look |= {"sensitivity": 1, "rate": str(rate_of(look["epsilon"], 1))}

    def thrice(manifest):
        charges = charges_of(manifest)
        charges[0:0] = [charges[0], charges[0]]

    for change, message in (
        (at_one_feature, "does not follow from its guarantee"),
        (thrice, "do not match its parts"),
        (at("domain", "declared", value=[[-100, 100], None]), "not what a merge makes"),
    ):
        with pytest.raises(ModelFileError, match=message):
            load(rewritten(path, tmp_path / "forged.dpo", change=change))
