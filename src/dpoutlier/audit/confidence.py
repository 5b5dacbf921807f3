"""From how often an attacker was right to a lower bound on epsilon, at a stated probability of error."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, betaincinv

REPORTED = 1e-3
"""Probability that a reported bound lies above the true epsilon."""
CERTAIN = 1e-7
"""The same for the bound that refutes a claim."""
PRUDENCE = 1e-3
"""The same for bounds by which events are compared before they are counted: so that a rare one is not preferred for its luck."""

Numbers = NDArray[np.float64]


def least_share(hits: Any, trials: Any, error: float) -> Numbers:
    """Clopper and Pearson's lower bound on a probability: too high with a probability of at most ``error``.

    >>> round(float(least_share(5, 10, 0.05)), 4)
    0.2224
    """
    hits, trials = np.asarray(hits, float), np.asarray(trials, float)
    found = betaincinv(np.maximum(hits, 0.5), trials - hits + 1, error)
    return np.where(hits > 0, found, 0.0)


def most_share(hits: Any, trials: Any, error: float) -> Numbers:
    """The upper bound: too low with a probability of at most ``error``."""
    return 1 - least_share(np.asarray(trials, float) - np.asarray(hits, float), trials, error)


def epsilon_of_event(hits: Any, trials: Any, other_hits: Any, other_trials: Any, error: float) -> Numbers:
    """The least epsilon, at least 0, that agrees with how often an event was seen in two neighbouring worlds.

    Under epsilon-DP an event is at most exp(epsilon) times as likely in one world as in the other. Each of the two bounds on a
    probability errs with half of ``error``.
    """
    least = least_share(hits, trials, error / 2)
    most = most_share(other_hits, other_trials, error / 2)
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(np.log(least) - np.log(most), 0.0))


def epsilon_of_guesses(right: Any, made: Any, error: float) -> Numbers:
    """The least epsilon, at least 0, that agrees with ``right`` correct guesses among ``made`` guesses of fair coins.

    Each coin decides whether one canary is in the data. Whatever was released, and whatever all other coins showed, a guess is
    right with a probability of at most e**epsilon / (1 + e**epsilon), so that the number of right ones is dominated by a binomial
    variable with that probability (Steinke, Nasr and Jagielski 2023, for delta = 0).

    >>> round(float(epsilon_of_guesses(1000, 1000, 0.001)), 2)
    4.97
    """
    least = least_share(right, made, error)
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(np.log(least) - np.log1p(-least), 0.0))


def attainable(n_cells: int, epsilon: float, runs: int) -> float:
    """The bound to expect from ``runs`` runs in each world if the claim is tight: one row changes ``n_cells`` counts by one.

    Each of these counts speaks for one world or the other by epsilon / n_cells, and no more. The attacker's best event is that at
    least a certain number of them speak for the first.
    """
    if not n_cells:
        return 0.0
    chance = 1 / (1 + math.exp(-epsilon / n_cells))
    enough = np.arange(1, n_cells + 1)
    first, second = (1 - bdtr(enough - 1, n_cells, share) for share in (chance, 1 - chance))
    return float(np.max(epsilon_of_event(runs * first, runs, runs * second, runs, REPORTED), initial=0.0))


def attainable_by_guesses(n_cells: int, epsilon: float, canaries: int) -> float:
    """The same for a number of canaries. A coin is guessed if enough of its canary's counts agree."""
    if not n_cells:
        return 0.0
    chance = 1 / (1 + math.exp(-epsilon / n_cells))
    enough = np.arange(n_cells // 2 + 1, n_cells + 1)
    right, wrong = (1 - bdtr(enough - 1, n_cells, share) for share in (chance, 1 - chance))
    return float(np.max(epsilon_of_guesses(canaries * right, canaries * (right + wrong), REPORTED), initial=0.0))
