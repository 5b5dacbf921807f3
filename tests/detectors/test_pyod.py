"""PyOD's polarity, in PyOD's own hands."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from pyod.utils.data import evaluate_print
from pyod.utils.utility import check_detector, get_label_n, precision_n_scores, score_to_label, standardizer
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from dpoutlier import KNN, DPForest, DPGridKNN, DPMarginals, Forest, PyODAdapter, load
from dpoutlier.exceptions import InvalidParameterError, ThresholdNotSetError

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.normal(size=(800, 3))
POINTS = np.concatenate([RANDOM.normal(size=(90, 3)), RANDOM.uniform(3.5, 5, size=(10, 3))])
OUTLYING = np.arange(100) >= 90

MAKERS = {
    "DPForest": lambda: DPForest(4, features=(-6, 6), n_rows_hint=1000, target_fpr=0.05),
    "another DPForest": lambda: DPForest(4, features=(-6, 6), n_rows_hint=1000, tree_seed=1, target_fpr=0.05),
    "DPMarginals": lambda: DPMarginals(4, features=(-6, 6), target_fpr=0.05),
    "DPGridKNN": lambda: DPGridKNN(4, features=(-6, 6), bins=5, target_fpr=0.05),
    "Forest": lambda: Forest((-6, 6), target_fpr=0.05),
    "KNN": lambda: KNN((-6, 6), target_fpr=0.05),
}


@pytest.fixture(scope="module")
def adapters():
    return [PyODAdapter(make()).fit(ROWS) for make in MAKERS.values()]


@pytest.fixture(scope="module")
def scores(adapters):
    return np.stack([adapter.decision_function(POINTS) for adapter in adapters], axis=1)


@pytest.fixture(scope="module")
def labels(adapters):
    return np.stack([adapter.predict(POINTS) for adapter in adapters], axis=1)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_scores_rise_with_outlyingness_and_labels_are_zero_and_one(make):
    adapter = PyODAdapter(make()).fit(ROWS)
    own = adapter.detector_
    assert (adapter.decision_function(POINTS) == own.outlier_scores(POINTS)).all()
    assert (adapter.predict(POINTS) == (1 - own.predict(POINTS)) // 2).all()
    assert (adapter.predict(POINTS) == (adapter.decision_function(POINTS) > adapter.threshold_)).all()
    assert set(adapter.predict(POINTS).tolist()) == {0, 1}
    assert adapter.decision_function(POINTS)[OUTLYING].mean() > adapter.decision_function(POINTS)[~OUTLYING].mean()


def test_pyod_takes_it_for_a_detector(adapters):
    for adapter in adapters:
        check_detector(adapter)


def test_pyods_helpers_for_scores_take_its_scores(scores, capsys):
    normal = standardizer(scores)
    assert np.allclose(normal.mean(axis=0), 0)
    assert np.allclose(normal.std(axis=0), 1)
    mean = normal.mean(axis=1)
    assert score_to_label(mean, 0.1)[OUTLYING].all()
    assert (get_label_n(OUTLYING.astype(int), mean) == OUTLYING).all()
    assert precision_n_scores(OUTLYING.astype(int), mean) == 1
    evaluate_print("mean", OUTLYING.astype(int), mean)
    assert capsys.readouterr().out == "mean ROC:1.0, precision @ rank n:1.0\n"


@pytest.fixture(scope="module")
def combination():
    """PyOD's combinations, which are those of the package combo: PyOD installs it with its extra of that name only."""
    import pyod.models.combination as found

    return found


def test_pyods_combinations_take_its_scores(combination, scores, labels):
    normal = standardizer(scores)
    assert np.allclose(combination.average(normal), normal.mean(axis=1))
    assert (combination.maximization(normal) == normal.max(axis=1)).all()
    assert np.allclose(combination.median(normal), np.median(normal, axis=1))
    for combine in (combination.aom, combination.moa):
        found = combine(normal, n_buckets=3, random_state=0)
        assert found[OUTLYING].min() > found[~OUTLYING].max()
    odd = labels[:, :5]
    assert (combination.majority_vote(odd) == (odd.sum(axis=1) > 2)).all()


def test_what_would_publish_scores_of_members_is_absent_and_says_why(adapters):
    for name in ("labels_", "decision_scores_", "fit_predict", "predict_proba"):
        assert not hasattr(adapters[0], name)
        with pytest.raises(AttributeError, match=f"has no {name}: it would publish .* of the reference rows"):
            getattr(adapters[0], name)


def test_a_fit_leaves_the_detector_that_was_passed_alone():
    detector = MAKERS["DPForest"]()
    adapter = PyODAdapter(detector).fit(ROWS, y=np.zeros(len(ROWS)))
    assert adapter.detector is detector
    assert not hasattr(detector, "model_")
    assert adapter.n_features_in_ == 3
    assert not hasattr(adapter, "feature_names_in_")
    check_is_fitted(adapter)


def test_parameters_reach_through_to_the_detector():
    adapter = PyODAdapter(DPForest(1, features=(0, 1), n_trees=3, depth=4))
    assert adapter.get_params()["detector__epsilon"] == 1
    adapter.set_params(detector__n_trees=5, detector__epsilon=2)
    assert (adapter.detector.n_trees, adapter.detector.epsilon) == (5, 2)
    again = clone(adapter)
    assert again.detector is not adapter.detector
    assert again.detector.get_params() == adapter.detector.get_params()
    assert again.fit(ROWS).detector_.model_.partition.n_trees == 5


def test_a_loaded_model_scores_at_once_and_does_not_fit(tmp_path):
    detector = MAKERS["DPForest"]().fit(ROWS)
    for known in (detector, load(detector.save(tmp_path / "model"))):
        adapter = PyODAdapter(known)
        check_is_fitted(adapter)
        assert (adapter.decision_function(POINTS) == detector.outlier_scores(POINTS)).all()
    assert (clone(adapter).predict(POINTS) == adapter.predict(POINTS)).all()
    with pytest.raises(InvalidParameterError, match="scores without a fit"):
        adapter.fit(ROWS)


def test_an_unfitted_adapter_and_other_objects_are_refused():
    adapter = PyODAdapter(MAKERS["DPForest"]())
    assert not hasattr(adapter, "n_features_in_")
    for use in (adapter.decision_function, adapter.predict):
        with pytest.raises(NotFittedError):
            use(POINTS)
    for use in (PyODAdapter(7).fit, PyODAdapter(7).predict):
        with pytest.raises(InvalidParameterError, match="detector must be"):
            use(POINTS)
    with pytest.raises(ThresholdNotSetError):
        PyODAdapter(DPMarginals(1, features=(-6, 6))).fit(ROWS).predict(POINTS)


def test_it_works_in_a_pipeline_with_names():
    def halved(X):
        return X / 2

    bounds = dict.fromkeys("abc", (-3, 3))
    pipeline = make_pipeline(FunctionTransformer(halved), PyODAdapter(DPMarginals(4, features=bounds, target_fpr=0.1)))
    frame = pd.DataFrame(POINTS, columns=list("abc"))
    pipeline.fit(pd.DataFrame(ROWS, columns=list("abc")))
    own = pipeline[-1].detector_
    assert pipeline[-1].feature_names_in_.tolist() == ["a", "b", "c"]
    assert (pipeline.decision_function(frame) == own.outlier_scores(frame / 2)).all()
    assert set(pipeline.predict(frame).tolist()) == {0, 1}
    assert not hasattr(pipeline, "fit_predict")


def test_pyod_is_not_needed():
    program = """
import sys
sys.modules["pyod"] = None
import dpoutlier
adapter = dpoutlier.PyODAdapter(dpoutlier.Forest((0, 1), target_fpr=.1)).fit([[0.1, 0.2]] * 9)
assert adapter.predict([[0.1, 0.2]]).tolist() == [0]
"""
    subprocess.run([sys.executable, "-c", program], check=True)
