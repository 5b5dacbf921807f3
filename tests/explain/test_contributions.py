"""Explanations: contributions add up, follow from released counts alone, and point at what is odd."""

import warnings

import numpy as np
import pytest

from dpoutlier import DPForest, DPGridKNN, DPMarginals, Forest, Marginals, load
from dpoutlier.scoring.log_counts import UNIT
from dpoutlier.tables.rows import Rows

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(3000, 6))
POINTS = np.zeros((3, 6))
POINTS[1, 2] = 5
POINTS[2, [0, 5]] = -4, 4
NAMES = dict.fromkeys("abcdef", (-6, 6))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    FITTED = {
        "forest": DPForest(5, features=NAMES, n_rows_hint=3000, unsafe_seed=0).fit(ROWS),
        "marginals": DPMarginals(5, features=NAMES, unsafe_seed=0).fit(ROWS),
        "forest's twin": Forest(NAMES).fit(ROWS),
        "marginals' twin": Marginals(NAMES).fit(ROWS),
    }
EACH = pytest.mark.parametrize("detector", FITTED.values(), ids=FITTED)


@EACH
def test_contributions_add_up_to_the_score_beyond_the_typical_one(detector):
    found = detector.explain(POINTS)
    assert found.features == tuple("abcdef")
    assert len(found) == 3
    assert (found.scores == detector.outlier_scores(POINTS)).all()
    np.testing.assert_allclose(found.contributions.sum(axis=1), found.scores - found.typical_score, atol=1e-8)


@EACH
def test_the_odd_features_contribute_most_and_their_cells_are_empty(detector):
    found = detector.explain(POINTS)
    assert found.contributions[1].argmax() == 2
    assert set(np.argsort(found.contributions[2])[-2:]) == {0, 5}
    assert found.ranking(1)[0][0] == "c"
    assert found.empty[1, 2] > 0.3
    assert found.empty[0].max() < 0.2
    assert found.ranking(2) == sorted(found.ranking(2), key=lambda entry: -entry[1])


@EACH
@pytest.mark.parametrize("j", range(6))
def test_each_feature_can_be_the_odd_one(detector, j):
    point = np.zeros((1, 6))
    point[0, j] = 5
    assert detector.explain(point).contributions[0].argmax() == j


@pytest.mark.parametrize("name", ["forest's twin", "marginals' twin"])
def test_without_noise_the_typical_score_is_the_mean_over_the_reference_rows(name):
    found = FITTED[name].explain(POINTS)
    assert found.typical_score == pytest.approx(FITTED[name].outlier_scores(ROWS).mean(), abs=1e-8)


def test_marginals_by_hand():
    """Three rows in bins (2, 1) of one feature: log 2 and log 1, and a typical row has (2 log 2 + log 1) / 3."""
    twin = Marginals((0, 1), bins=2).fit([[0.1], [0.2], [0.7]])
    found = twin.explain([[0.1], [0.9]])
    typical = -2 * np.log(2) / 3
    assert found.typical_score == pytest.approx(typical)
    np.testing.assert_allclose(found.contributions[:, 0], [-np.log(2) - typical, -typical], atol=1e-9)


def test_a_tree_by_hand():
    """One tree of one cut: four rows left, none right. Going right loses log(4 / 6) - log(1/4 / 2 1/4)."""
    twin = Forest((0, 1), n_trees=1, depth=1, subspace=1).fit([[0.1, 0.1]] * 4)
    j = int(twin.model_.partition.members[0].axes[0].feature)
    point = np.full((1, 2), 0.1)
    point[0, j] = 0.9
    found = twin.explain(point)
    assert found.contributions[0, j] == pytest.approx(np.log(6))
    assert found.contributions[0, 1 - j] == 0
    assert found.empty[0, j] == 1
    assert np.isnan(found.empty[0, 1 - j])  # no cell looks at it


def test_empty_means_not_above_the_floor():
    """At a small epsilon the floor is some hundred rows, and many counts lie between 0 and it."""
    detector = DPMarginals(0.02, features=NAMES).fit(ROWS)
    model = detector.model_
    points = np.random.default_rng(1).uniform(-6, 6, (50, 6))
    counts = model.counts.counts[model.partition.cells(Rows(points, model.domain)[:])[:, :, 1].astype(int)]
    floor = model.scorer.floor / UNIT
    assert ((counts > 0) & (counts < floor)).sum() > 20
    assert detector.explain(points).empty.tolist() == (counts <= floor).astype(float).tolist()


def test_a_loaded_model_explains_alike(tmp_path):
    path = FITTED["forest"].save(tmp_path / "m")
    assert (
        load(path, secret=True).explain(POINTS).contributions == FITTED["forest"].explain(POINTS).contributions
    ).all()


def test_no_points_and_no_rows():
    assert FITTED["forest"].explain(np.empty((0, 6))).contributions.shape == (0, 6)
    found = Forest(NAMES, n_trees=3, depth=4).fit(ROWS[:0]).explain(POINTS)
    np.testing.assert_allclose(found.contributions.sum(axis=1), found.scores - found.typical_score, atol=1e-8)


def test_a_grid_explains_by_distances():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = DPGridKNN(5, features=NAMES, bins=6, max_depth=None, unsafe_seed=0).fit(ROWS).explain(POINTS)
    assert found.contributions[1, 2] == found.contributions[1].max() > 0
    assert found.typical_score == 0
    np.testing.assert_allclose(found.contributions.sum(axis=1), found.scores)
