"""Looks: when a fit looks for where the rows lie within the declared ranges, and for how much. A public rule, chosen by measurement
(docs/ranges.md).

Shares are of what a fit has for its counts; ``power`` is the number of rows times that epsilon, for one row more or less.
"""

from __future__ import annotations

import math
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple


class Kind(StrEnum):
    """What is asked of the rows."""

    TEST = "test"
    """Whether the values of all features together lie in an eighth of their ranges. Cheap."""
    TOGETHER = "together"
    """One window for all features."""
    EACH = "each"
    """A window for each feature."""


class Price(NamedTuple):
    """What a look of one kind may cost."""

    wanted: int
    """Rows times epsilon that a choice needs to be good."""
    needed: int
    """With less it is hardly better than none."""
    most: Fraction
    """Largest share."""


PRICES = {
    Kind.TEST: Price(10, 5, Fraction(1, 5)),
    Kind.TOGETHER: Price(20, 8, Fraction(2, 5)),
    Kind.EACH: Price(16, 8, Fraction(3, 10)),
}
CHEAP = Fraction(1, 10)
"""Each feature is looked at without a test if that costs at most this share."""
LEAST = Fraction(3, 100)
"""Where rows are many, better choices are worth this share."""
STEPS = 1000
"""Shares are rounded up to thousandths, so that files need not hold long fractions."""
MAX_LOOKS = 2
MOST = PRICES[Kind.TEST].most + PRICES[Kind.TOGETHER].most
"""What all looks of a fit cost at most."""


class Look(NamedTuple):
    """One look at the rows."""

    kind: Kind
    share: Fraction
    strength: float
    """Rows times epsilon that each choice has."""


def first_look(power: Fraction, n_features: int) -> Look | None:
    """Each feature if that is cheap, else the test; None if that is not possible either.

    >>> first_look(Fraction(10_000), 5)
    Look(kind=<Kind.EACH: 'each'>, share=Fraction(3, 100), strength=60.0)
    >>> first_look(Fraction(400), 5), first_look(Fraction(20), 5)
    (Look(kind=<Kind.TEST: 'test'>, share=Fraction(3, 100), strength=12.0), None)
    """
    if n_features == 0 or power <= 0:
        return None
    each = _look(Kind.EACH, power, n_features)
    return each if each is not None and each.share <= CHEAP else _look(Kind.TEST, power, 1)


def second_look(power: Fraction, n_features: int) -> Look | None:
    """After a test that has found the ranges far too wide: each feature if that is possible, else all of them together.

    >>> second_look(Fraction(400), 5)
    Look(kind=<Kind.EACH: 'each'>, share=Fraction(1, 5), strength=16.0)
    """
    return _look(Kind.EACH, power, n_features) or _look(Kind.TOGETHER, power, 1)


def _look(kind: Kind, power: Fraction, choices: int) -> Look | None:
    price = PRICES[kind]
    share = min(max(choices * price.wanted / power, LEAST), price.most)
    if share * power < price.needed * choices:
        return None
    rounded = Fraction(math.ceil(share * STEPS), STEPS)
    return Look(kind, rounded, float(rounded * power / choices))
