"""The statistics of an audit: exact where a case is small enough, and against scipy's own intervals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from dpoutlier.audit.confidence import (
    CERTAIN,
    REPORTED,
    attainable,
    attainable_by_guesses,
    epsilon_of_event,
    epsilon_of_guesses,
    least_share,
    most_share,
)

ERRORS = (0.2, 0.01, 1e-3, 1e-7)


@given(trials=st.integers(1, 10**6), data=st.data(), error=st.sampled_from(ERRORS))
@settings(max_examples=60, deadline=None)
def test_shares_are_those_of_clopper_and_pearson(trials, data, error):
    hits = data.draw(st.integers(0, trials))
    expected = binomtest(hits, trials).proportion_ci(1 - 2 * error, method="exact")
    assert least_share(hits, trials, error) == pytest.approx(expected.low, rel=1e-9, abs=1e-300)
    assert most_share(hits, trials, error) == pytest.approx(expected.high, rel=1e-9)


def test_errors_are_those_that_are_stated():
    """In the report, in the docs and where a build fails."""
    assert (REPORTED, CERTAIN) == (1e-3, 1e-7)


@given(trials=st.integers(1, 10**5), data=st.data(), error=st.sampled_from(ERRORS))
@settings(max_examples=40, deadline=None)
def test_each_side_of_an_event_errs_with_half_of_the_error(trials, data, error):
    hits, others = data.draw(st.integers(1, trials)), data.draw(st.integers(0, trials - 1))
    low = binomtest(hits, trials).proportion_ci(1 - error, method="exact").low
    high = binomtest(others, trials).proportion_ci(1 - error, method="exact").high
    assert epsilon_of_event(hits, trials, others, trials, error) == pytest.approx(
        max(math.log(low / high), 0), abs=1e-9
    )


@pytest.mark.parametrize("error", [0.2, 0.01])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("rare", [0.3, 0.02])
def test_a_bound_by_an_event_errs_no_more_often_than_stated(epsilon, rare, error):
    """Over all outcomes of 60 runs a side, for an event that is exactly exp(epsilon) times as likely in one world."""
    n, often = 60, min(rare * math.exp(epsilon), 1.0)
    epsilon = math.log(often / rare)
    hits = np.arange(n + 1)
    bounds = epsilon_of_event(hits[:, np.newaxis], n, hits, n, error)
    chances = binom.pmf(hits, n, often)[:, np.newaxis] * binom.pmf(hits, n, rare)
    assert chances[bounds > epsilon].sum() <= error
    assert chances[bounds > epsilon / 4].sum() > 0  # it does say something


@pytest.mark.parametrize("error", [0.2, 0.01, 1e-3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_a_bound_by_guesses_errs_no_more_often_than_stated(epsilon, error):
    n, chance = 200, 1 / (1 + math.exp(-epsilon))
    right = np.arange(n + 1)
    bounds = epsilon_of_guesses(right, n, error)
    assert binom.pmf(right, n, chance)[bounds > epsilon].sum() <= error
    assert (np.diff(bounds) >= 0).all()
    assert bounds[0] == 0 < bounds[-1]


def test_bounds_grow_sharper_with_runs_and_reach_epsilon():
    runs = [10**3, 10**4, 10**5, 10**7]
    found = [attainable(1, 1.0, n) for n in runs]
    assert found == sorted(found)
    assert 0.99 < found[-1] < 1
    assert attainable(8, 1.0, 10**5) < attainable(4, 1.0, 10**5) < attainable(1, 1.0, 10**5)


def test_what_is_attainable_is_what_simulated_counts_give():
    """A row in 3 cells: the number of cells that speak for its world, simulated, against the formula."""
    random = np.random.default_rng(0)
    epsilon, cells, n = 1.0, 3, 10**6
    a = math.exp(-epsilon / cells)
    noise = random.geometric(1 - a, (2, n, cells)) - random.geometric(1 - a, (2, n, cells))
    here, there = (1 + noise[0] >= 1).sum(axis=1), (noise[1] >= 1).sum(axis=1)
    best = max(
        float(epsilon_of_event(np.sum(here >= enough), n, np.sum(there >= enough), n, 1e-3)) for enough in (1, 2, 3)
    )
    assert best == pytest.approx(attainable(cells, epsilon, n), abs=0.01)
    coins = random.random(n) < 0.5
    agree = np.where(coins, here, there)
    guessed = (agree == 0) | (agree == cells)
    right = ((agree == cells) == coins)[guessed].sum()
    assert attainable_by_guesses(cells, epsilon, n) >= float(epsilon_of_guesses(right, guessed.sum(), 1e-3)) - 0.02
    assert attainable_by_guesses(0, epsilon, n) == attainable(0, epsilon, n) == 0
