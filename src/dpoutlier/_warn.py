"""Warnings of this package. What is expected is said for the present thread or task alone: filters belong to the whole process."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count

from dpoutlier.exceptions import LargeEpsilonWarning, RepeatedFitWarning, ThresholdWarning, UnsafeWarning

LARGE_EPSILON = 10
SECOND = 2

_protected: ContextVar[bool] = ContextVar("dpoutlier_protected", default=True)
_fits = count(1)


@contextmanager
def nothing_to_protect() -> Iterator[None]:
    """Rows are made up or public here: no warning about their privacy is given, and fits on them are not counted."""
    before = _protected.set(False)
    try:
        yield
    finally:
        _protected.reset(before)


def warn_unsafe(reason: str, stacklevel: int) -> None:
    """Say that a mode is not private."""
    if _protected.get():
        warnings.warn(f"NOT PRIVATE: {reason}", UnsafeWarning, stacklevel=stacklevel + 1)


def warn_large_epsilon(epsilon: float, stacklevel: int) -> None:
    """Say that little is protected, where that is so."""
    if epsilon > LARGE_EPSILON and _protected.get():
        warnings.warn(
            f"epsilon is {epsilon:g}, which protects little: the odds of guessing correctly whether a person is in the data may "
            f"rise by a factor of exp({epsilon:g}). From about 30 on, released counts can equal the exact ones. Usual values are "
            "0.1 to 3.",
            LargeEpsilonWarning,
            stacklevel=stacklevel + 1,
        )


def warn_threshold(stacklevel: int) -> None:
    """Say that a threshold cannot be trusted. The text is fixed: what the noise made of it stands in the statement."""
    if _protected.get():
        warnings.warn(
            "the threshold cannot be trusted: the share of normal points that it flags may lie far from target_fpr. false_alarms() "
            "says between which ends. More rows, more epsilon or a larger threshold_share would help; scores do not depend on it, "
            "and set_threshold(score=...) sets another.",
            ThresholdWarning,
            stacklevel=stacklevel + 1,
        )


def note_fit(stacklevel: int) -> None:
    """Count a private fit that no ledger knows of, and say once in a process that the epsilons of several add up."""
    if _protected.get() and next(_fits) == SECOND:
        warnings.warn(
            "this is the second private fit in this process, and no ledger is kept. If both are on rows of the same people, their "
            "epsilons add up, although each privacy statement speaks of its own fit alone; cross-validation and grid searches fit "
            "many times. Fit once and score as often as you like, choose parameters on public data, or keep a budget: "
            "ledger=dpoutlier.Ledger(...), dataset='...' (docs/ledger.md). This warning is given once per process.",
            RepeatedFitWarning,
            stacklevel=stacklevel + 1,
        )
