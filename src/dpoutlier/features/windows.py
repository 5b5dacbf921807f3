"""Windows: the parts of a declared range in which the rows of a feature may lie. Public.

A range is cut into 1,024 cells. A window of level k is 2**-k of the range, and those of a level overlap by half. Level 0 is the
range itself. docs/ranges.md says why these windows, and what each number here is for.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LEVELS = 10
CELLS = 2**LEVELS
FINER = 4
"""Rows are counted in so many parts of each cell."""
MOST_ALIKE = Fraction(1, 8)
"""Share of the rows that count in one part, where a single feature is looked at. More of them have one value, such as 0, and that
does not make its range too wide."""
UNIT = 10_000
"""The weight of a row in the narrowest windows of a choice. All weights are whole numbers."""
GAIN = 14
"""How much better the narrowest window is than the range if both hold all rows, in nats, whatever the number of rows."""
MOST_MISSED, LEAST_MISSED = 0.7, 0.001
"""Share of the rows that the narrowest window may miss at most, with few rows and with many."""
WHOLE = Fraction(1, 3)
"""What the range itself has of what is expected before any row is seen; all other levels have equal parts of the rest."""
TEST_LEVEL, TEST_WHOLE, TEST_WEIGHT = 3, Fraction(1, 2), 4500
"""The test knows the range and its eighths. An eighth is better from 45 % of the rows on."""
MARGIN = Fraction(1, 2)
"""Of a window's width, added on both sides."""


class Windows(NamedTuple):
    """What is chosen from, as arrays. Number 0 is the range itself."""

    first: NDArray[np.int64]
    """First cell of each window."""
    last: NDArray[np.int64]
    """The cell after its last."""
    weight: NDArray[np.int64]
    """What a row in it adds to its utility."""
    expected: NDArray[np.float64]
    """Logarithm of its share of what is expected before any row is seen."""

    def utilities(self, counts: NDArray[np.int64], rate: Fraction | None) -> NDArray[np.int64]:
        """How good each window is: the weight of the rows in it, and what is expected of it in units of a choice at this rate.

        ``counts`` has the rows in each cell, and ``rate`` is that for a unit of weight; without a rate only rows count.
        """
        below = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        useful: NDArray[np.int64] = (below[self.last] - below[self.first]) * self.weight
        return useful if rate is None else useful + np.round(self.expected / float(rate)).astype(np.int64)


def by_cell(counts: NDArray[np.int64], most: int | None = None) -> NDArray[np.int64]:
    """Rows in each cell, from those in each of its parts, of which at most ``most`` count.

    >>> by_cell(np.array([100, 1, 0, 2, 5, 0, 0, 0]), 10).tolist()
    [13, 5]
    """
    limited = counts if most is None else np.minimum(counts, most)
    return np.asarray(limited.reshape(-1, FINER).sum(axis=1))


def windows(strength: float) -> Windows:
    """All windows, level after level, from left to right. ``strength`` is the rows times epsilon that a choice has.

    >>> found = windows(20.0)
    >>> len(found.first), found.last[:4].tolist(), found.weight[[0, 1, -1]].tolist()
    (3060, [1024, 512, 768, 1024], [3000, 4330, 10000])
    """
    missed = min(MOST_MISSED, max(GAIN / max(strength, 1e-9), LEAST_MISSED))
    by_level = [UNIT - round(UNIT * missed * ((LEVELS - k) / LEVELS) ** 2) for k in range(LEVELS + 1)]
    return _of_levels(range(1, LEVELS + 1), by_level, WHOLE)


def eighths() -> Windows:
    """Those of the test whether the ranges are far too wide."""
    return _of_levels([TEST_LEVEL], [TEST_WEIGHT, *[UNIT] * LEVELS], TEST_WHOLE)


def _of_levels(levels: Sequence[int], weights: Sequence[int], whole: Fraction) -> Windows:
    first, last, level, expected = _layout(tuple(levels), whole)
    return Windows(first, last, np.array(weights)[level], expected)


@lru_cache(maxsize=2)
def _layout(levels: tuple[int, ...], whole: Fraction) -> tuple[NDArray[Any], ...]:
    """First cells, ends, levels and expectations. The first, middle and last window of a level have half of what it has."""
    first, last, level, expected = [0], [CELLS], [0], [math.log(whole)]
    for k in levels:
        width = CELLS >> k
        starts = range(0, CELLS - width + 1, max(width // 2, 1))
        special = {starts[0], starts[len(starts) // 2], starts[-1]}
        for start in starts:
            share = Fraction(1, 2 * len(starts)) + Fraction(start in special, 2 * len(special))
            first.append(start)
            last.append(start + width)
            level.append(k)
            expected.append(math.log((1 - whole) / len(levels) * share))
    made = tuple(map(np.array, (first, last, level, expected)))
    for one in made:  # every fit has the same ones
        one.flags.writeable = False
    return made


def widened(found: Windows, number: int) -> tuple[Fraction, Fraction]:
    """The part of the range from which bounds are made: the window with its margins.

    >>> widened(windows(20.0), 3), widened(windows(20.0), 4)
    ((Fraction(1, 4), Fraction(1, 1)), (Fraction(0, 1), Fraction(3, 8)))
    """
    first, last = int(found.first[number]), int(found.last[number])
    more = MARGIN * (last - first)
    return max(first - more, Fraction(0)) / CELLS, min(last + more, Fraction(CELLS)) / CELLS
