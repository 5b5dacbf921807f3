"""Regions in the user's own units and names: ranges of numbers, names of levels, or that a value is missing."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier.explain.segment import Segment
from dpoutlier.features.category import text_of
from dpoutlier.features.domain import Domain

DIGITS = 3
"""Number of digits of a range's width that are shown."""


@dataclass(frozen=True)
class Place:
    """Where a region lies along one feature; ``str`` of it says so in words.

    Attributes
    ----------
    text : str
        Such as ``"90 to 110"``, ``"female"`` or ``"missing"``.
    differs : bool
        Whether the point lies elsewhere.
    lower, upper : float or None
        Of a range of numbers, within the bounds. Values past a bound count as that bound.
    levels : tuple of str
        Names of the levels in it.
    """

    text: str
    differs: bool
    lower: float | None = None
    upper: float | None = None
    levels: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


def place_of(segment: Segment, domain: Domain, j: int, *, differs: bool) -> Place:
    """A segment of feature j in words."""
    axis, category = domain.axes[j], domain.category(j)
    if segment.missing:
        return Place(missing_word(domain, j), differs)
    if category is None:
        lower, upper = domain.lower[j], domain.upper[j]
        low, high = (float(Fraction(lower) + share * (Fraction(upper) - Fraction(lower))) for share in segment[:2])
        return Place(range_text(low, high), differs, low, high)
    # On an axis without order a missing value is one level more.
    names = (*category.names, missing_word(domain, j))
    levels = names[int(segment.low * axis.levels) : int(segment.high * axis.levels)]
    return Place(levels[0] if len(levels) == 1 else f"{levels[0]} to {levels[-1]}", differs, levels=levels)


def missing_word(domain: Domain, j: int) -> str:
    """The word for a missing value: it differs from the names of all levels."""
    category, word = domain.category(j), "missing"
    while category is not None and word in category.names:
        word = f"({word})"
    return word


def range_text(low: float, high: float) -> str:
    """A range with rounded ends. Rounding moves an end by at most a hundredth of the width.

    >>> range_text(90, 110), range_text(120 / 7, 240 / 7), range_text(1e6 / 3, 2e6 / 3), range_text(1.25e-7, 2.5e-7)
    ('90 to 110', '17.1 to 34.3', '333000 to 667000', '1.25e-07 to 2.5e-07')
    """
    if not low < high:  # narrower than floats can tell
        return number_text(low)
    places = DIGITS - 1 - math.floor(math.log10(high - low))
    return f"{_rounded(low, places)} to {_rounded(high, places)}"


def _rounded(value: float, places: int) -> str:
    number = round(value, places) + 0.0  # no -0
    if number == 0:
        return "0"
    digits = math.floor(math.log10(abs(number))) + 1 + places
    if 1e-4 <= abs(number) < 1e15 and places < 16:
        text = f"{number:.{max(places, 0)}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{number:.{min(max(digits, 1), 17)}g}"


def number_text(value: float) -> str:
    """A value of a point: up to ten digits of it.

    >>> number_text(182.0), number_text(0.1 + 0.2)
    ('182', '0.3')
    """
    return f"{value:.10g}"


def value_text(domain: Domain, j: int, values: NDArray[np.float64], given: Any = None) -> str:
    """Value j of a point in words, level i of a category being ``i + 1/2``; ``given`` is how it was written."""
    value, category = float(values[j]), domain.category(j)
    written = text_of(given)
    if category is None:
        if math.isnan(value):
            return missing_word(domain, j) if written is None else f"{written} ({missing_word(domain, j)})"
        text = number_text(value) if written is None else written
        bounds = f"{domain.lower[j]:.6g} to {domain.upper[j]:.6g}"
        return f"{text} (outside {bounds})" if domain.beyond(j, value) else text
    code = None if math.isnan(value) else int(value)
    name = missing_word(domain, j) if code is None else category.names[code]
    declared = code is not None and code < len(category.levels)
    return name if declared or written is None else f"{written} ({name.strip('()')})"
