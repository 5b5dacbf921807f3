"""The three metrics, against scikit-learn and against their definition."""

from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from experiments.measure.quality import quality


@st.composite
def ranked(draw, most=40):
    """Labels of both kinds, and scores with many ties."""
    n = draw(st.integers(2, most))
    labels = draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(lambda values: 0 < sum(values) < len(values)))
    scores = draw(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0, np.inf]), min_size=n, max_size=n))
    return np.array(labels), np.array(scores)


@given(ranked())
def test_auroc_and_average_precision_are_scikit_learn_s(case):
    labels, scores = case
    finite = np.where(np.isinf(scores), 1e9, scores)
    found = quality(labels, scores)
    assert found.auroc == pytest.approx(roc_auc_score(labels, finite), abs=1e-12)
    assert found.ap == pytest.approx(average_precision_score(labels, finite), abs=1e-12)


@given(ranked(most=6))
def test_precision_at_n_is_the_mean_over_all_orders_of_ties(case):
    labels, scores = case
    n, hits, orders = int(labels.sum()), 0, 0
    for order in permutations(range(len(scores))):
        if all(scores[a] >= scores[b] for a, b in pairwise(order)):
            hits, orders = hits + int(labels[list(order[:n])].sum()), orders + 1
    assert quality(labels, scores).p_at_n == pytest.approx(float(Fraction(hits, orders * n)), abs=1e-12)


@given(ranked())
def test_a_constant_score_tells_nothing(case):
    labels, _ = case
    share = labels.mean()
    assert quality(labels, np.zeros(len(labels))) == pytest.approx((0.5, share, share))


def test_a_perfect_ranking_is_one_and_its_reverse_is_not():
    labels = np.array([False, False, True])
    assert quality(labels, np.array([0.0, 1.0, 2.0])) == (1, 1, 1)
    assert quality(labels, np.array([2.0, 1.0, 0.0])) == pytest.approx((0, 1 / 3, 0))
