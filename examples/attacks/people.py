"""Made people for all attacks: age and body mass index of a few hundred, and one whose presence is the secret."""

import warnings
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from dpoutlier.exceptions import RepeatedFitWarning, UnsafeWarning

BOUNDS = {"age": (0, 100), "bmi": (10, 60)}
TARGET = np.array([[90.6, 55.3]])  # far from all others, and alone in a cell


def made_people(n=300, seed=5):
    """Others than the target: two groups, whatever the seed of the attack."""
    rng = np.random.default_rng(seed)
    young, old = rng.normal([31, 23], [7, 2.6], (n // 2, 2)), rng.normal([62, 29], [9, 3.6], (n - n // 2, 2))
    return np.clip(np.vstack([young, old]), [1, 11], [99, 59])


def with_and_without(others, target):
    """The two neighbouring data sets that an attacker wants to tell apart."""
    return {True: np.vstack([others, target]), False: others}


class Noise:
    """Arguments that give the next fit noise of its own.

    From a seed, so that a run can be repeated; the attacker does not use that he could know it. Or from the operating system,
    as in use, with the seed None. The sampler is the same.
    """

    def __init__(self, seed):
        self._next = None if seed is None else seed * 10**9

    def fresh(self):
        if self._next is None:
            return {}
        self._next += 1
        return {"unsafe_seed": self._next}


def named(rows):
    """Rows as a table whose columns have the names of the bounds."""
    return pa.table(dict(zip(BOUNDS, rows.T, strict=True)))


@contextmanager
def expected():
    """Without the warnings that a seed is unsafe, and that an attack fits again and again."""
    with warnings.catch_warnings():
        for category in (UnsafeWarning, RepeatedFitWarning):
            warnings.simplefilter("ignore", category)
        yield


def fitted(detector, rows):
    with expected():
        return detector.fit(named(rows))
