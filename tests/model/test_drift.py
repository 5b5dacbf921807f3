"""Drift: no false alarms on the same distribution, and shifts are seen, in the feature where they are."""

import numpy as np
import pandas as pd
import pytest

from dpoutlier import DPForest, DPGridKNN, DPMarginals, Drift, GridKNN, Marginals, load, merge
from dpoutlier.exceptions import InvalidParameterError, PointsError

N = 20_000


def rows_of(n, seed, centre=(0, 0, 0)):
    return pd.DataFrame(np.random.default_rng(seed).normal(centre, 1, (n, 3)), columns=["age", "bmi", "crp"])


FEATURES = dict.fromkeys(("age", "bmi", "crp"), (-6, 6))
MADE = {
    "forest": DPForest(1, features=FEATURES, n_rows_hint=N),
    "forest with a threshold": DPForest(1, features=FEATURES, n_rows_hint=N, target_fpr=0.05),
    "marginals": DPMarginals(1, features=FEATURES, n_rows_hint=N, target_fpr=0.05),
    "grid": DPGridKNN(1, features=FEATURES, bins=8, n_rows_hint=N),
    "sparse grid": DPGridKNN(1, features=FEATURES, bins=30, counts="sparse", target_fpr=0.05),
    "twin": Marginals(FEATURES, bins=10, target_fpr=0.05),
    "grid's twin": GridKNN(FEATURES, bins=8),
}


@pytest.mark.parametrize("detector", MADE.values(), ids=MADE)
def test_points_of_the_same_law_raise_no_alarm(detector):
    """Of 30 checks each alarms with a probability of at most 1 % / 1,000: together, and over all detectors, about .002.

    Comparisons are conservative by far: the union over four parts and all comparisons. Seeds of points are fixed.
    """
    detector.fit(rows_of(N, 1))
    for seed in range(2, 32):
        assert not detector.drift(rows_of(1000, seed), checks_per_month=1000).drifted


@pytest.mark.parametrize(
    ("kind", "shift"), [("forest", 1.5), ("forest with a threshold", 1), ("marginals", 0.5), ("grid", 0.7)]
)
def test_a_shift_is_seen_and_named(kind, shift):
    detector = MADE[kind].fit(rows_of(N, 1))
    found = detector.drift(rows_of(3000, 2, (0, shift, 0)))
    assert isinstance(found, Drift)
    assert found.drifted
    named = {one.what for one in found.shifts}
    assert named <= {"bmi", "score"}
    assert named
    for one in found.shifts:
        assert not one.lower <= one.points <= one.upper
    assert "DRIFT: 3,000 points" in str(found)
    assert str(found.n_compared) in str(found)


def test_levels_and_missing_values_are_compared():
    rng = np.random.default_rng(0)

    def table(n, share, absent):
        ward = rng.choice(["a", "b", "c"], n, p=[share, 0.5, 0.5 - share])
        return pd.DataFrame({"ward": ward, "bmi": np.where(rng.random(n) < absent, np.nan, rng.normal(size=n))})

    detector = DPMarginals(
        2, features={"bmi": (-6, 6)}, categories={"ward": ["a", "b", "c"]}, missing=["bmi"], n_rows_hint=N
    ).fit(table(N, 0.25, 0.1))
    assert not detector.drift(table(2000, 0.25, 0.1), checks_per_month=1000).drifted
    assert {one.what for one in detector.drift(table(2000, 0.1, 0.1)).shifts} == {"ward"}
    assert {one.what for one in detector.drift(table(2000, 0.25, 0.5)).shifts} == {"bmi"}


def test_a_file_and_a_merge_compare_too(tmp_path):
    fits = [DPMarginals(2, features=FEATURES, bins=12).fit(rows_of(N, seed)) for seed in (1, 2)]
    merged = merge(fits, people="disjoint")
    for model in (load(fits[0].save(tmp_path / "m")), load(merged.save(tmp_path / "n"))):
        assert not model.drift(rows_of(2000, 3), checks_per_month=1000).drifted
        assert model.drift(rows_of(2000, 3, (1, 0, 0))).drifted


def test_parts_are_added_up():
    detector, points = MADE["forest with a threshold"].fit(rows_of(N, 1)), rows_of(3000, 2, (0, 1, 0))
    whole = detector.drift(points)
    assert detector.drift(iter([points[:1000], points[1000:]])) == whole


def test_no_points_are_no_drift_and_few_are_none_either():
    detector = MADE["marginals"].fit(rows_of(N, 1))
    for n in (0, 1):
        assert not detector.drift(rows_of(n, 2, (5, 5, 5))).drifted


def test_wrong_arguments_are_named():
    detector = MADE["marginals"].fit(rows_of(N, 1))
    for checks in (0, -1, 1.5, "a", True, 10**6):
        with pytest.raises(InvalidParameterError, match="checks_per_month must be a whole number"):
            detector.drift(rows_of(10, 2), checks_per_month=checks)
    with pytest.raises(PointsError):
        detector.drift(np.zeros((2, 2)))
    secret = DPGridKNN(1, features=FEATURES, bins=30, counts="keyed").fit(rows_of(N, 1))
    with pytest.raises(InvalidParameterError, match="nothing to compare"):
        secret.drift(rows_of(10, 2))
