"""A noise with a delta is one file and one line: dense counts take it, and whatever cannot account for it refuses."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpoutlier import DPForest, DPGridKNN, DPMarginals, Ledger, load, merge
from dpoutlier.detectors.partitioned import PrivateDetector
from dpoutlier.exceptions import DpoutlierError, InvalidParameterError, ModelFileError
from dpoutlier.model.file.checks import check_model
from dpoutlier.noise import registry

ROWS = np.random.default_rng(0).uniform(size=(300, 3))
DELTA = Fraction(1, 10**6)
GRID = {"features": (0, 1), "bins": 3, "k": 3}
WITHOUT = PrivateDetector._guarantee


@pytest.fixture
def with_delta(monkeypatch):
    """There is a noise for a delta, and all fits ask for one."""
    new = registry.Registered("approximate", "approximate_noise", "ApproximateNoise", noise_of="approximate")
    monkeypatch.setattr(registry, "_REGISTERED", (*registry._REGISTERED, new))
    monkeypatch.setattr(PrivateDetector, "_guarantee", lambda self: replace(WITHOUT(self), delta=DELTA))


@pytest.mark.usefixtures("with_delta")
@pytest.mark.parametrize(
    "detector",
    [
        DPForest(1, features=(0, 1), n_rows_hint=300, target_fpr=0.1, tight_ranges=True),
        DPMarginals(1, features=(0, 1), bins=4, target_fpr=0.1),
        DPGridKNN(1, **GRID, target_fpr=0.1),
    ],
    ids=lambda detector: type(detector).__name__,
)
def test_dense_counts_take_a_noise_with_a_delta(detector, tmp_path):
    loaded = load(detector.fit(ROWS).save(tmp_path / "model"))
    statement = loaded.privacy_statement()
    assert (statement.delta, statement.mechanism) == ("1/1000000", "noise of a test")
    assert {charge.mechanism.name for charge in loaded.model_.charges} == {"approximate"}
    assert loaded.outlier_scores(ROWS).tolist() == detector.outlier_scores(ROWS).tolist()
    intervals, known = loaded.count_intervals(ROWS), loaded.model_.charges[0].noise.half_width(Fraction(19, 20))
    assert (intervals.upper == np.maximum(intervals.noisy + known, 0)).all()
    loaded.explain(ROWS[:2])


def test_without_such_a_noise_a_delta_is_refused(monkeypatch):
    monkeypatch.setattr(PrivateDetector, "_guarantee", lambda self: replace(WITHOUT(self), delta=DELTA))
    with pytest.raises(InvalidParameterError, match="All noise that this version has is pure"):
        DPMarginals(1, features=(0, 1)).fit(ROWS)


@pytest.mark.usefixtures("with_delta")
@pytest.mark.parametrize("counts", ["keyed", "sparse"])
def test_keyed_and_sparse_counts_refuse_a_delta(counts):
    with pytest.raises(InvalidParameterError, match="keyed and sparse counts have discrete Laplace noise"):
        DPGridKNN(1, **GRID, counts=counts).fit(ROWS)


@pytest.mark.usefixtures("with_delta")
def test_a_ledger_refuses_a_delta_and_charges_nothing(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.ledger")
    ledger.open_budget("clinic", 2)
    with pytest.raises(DpoutlierError, match="delta"):
        DPMarginals(1, features=(0, 1), ledger=ledger, dataset="clinic").fit(ROWS)
    assert ledger.balance("clinic").spent == 0


@pytest.mark.usefixtures("with_delta")
def test_a_merge_refuses_a_delta():
    parts = [DPMarginals(1, features=(0, 1)).fit(ROWS) for _ in range(2)]
    with pytest.raises(InvalidParameterError, match=r"only pure releases \(delta = 0\)"):
        merge(parts, people="disjoint")


@pytest.mark.parametrize("kind", ["keyed", "sparse", "merged"])
def test_a_file_of_such_counts_with_a_delta_is_refused(kind):
    if kind == "merged":
        fitted = merge([DPMarginals(1, features=(0, 1)).fit(ROWS) for _ in range(2)], people="disjoint")
    else:
        fitted = DPGridKNN(1, **GRID, counts=kind).fit(ROWS)
    check_model(fitted.model_)
    claimed = replace(fitted.model_, guarantee=replace(fitted.model_.guarantee, delta=DELTA))
    with pytest.raises(ModelFileError, match="only dense counts of one fit can have"):
        check_model(claimed)
