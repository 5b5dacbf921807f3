"""Bounds estimated from the rows: private quantiles on a public lattice within a wide public range.

docs/private-bounds.md says what was chosen here and why; docs/privacy.md, "Choosing bounds", proves what it costs.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier.features import lattice
from dpoutlier.features.domain import Pair
from dpoutlier.kernels.edges import SHIFT, Guide, count_between
from dpoutlier.noise.permute_and_flip import permute_and_flip
from dpoutlier.noise.sources import ByteSource

LOW, HIGH = Fraction(1, 4), Fraction(3, 4)
WIDENING = 3.0  # times the width between the quantiles, on both sides: Tukey's outer fences

STEPS = 1024  # of the same length, over the outer range
BITS = 6  # after the first, of the floats that are edges
OCTAVES = 40  # below the larger end of the outer range
MIN_EXPONENT = -900  # a bin below that would be too narrow for bounds
BLOCK = 2**15


@lru_cache(maxsize=64)
def candidates(outer: Pair) -> NDArray[np.float64]:
    """Edges of the bins that are chosen from, ascending, the first and the last being those of the outer range. Public.

    Steps of the same length serve where the outer range is about right; floats of few bits, where it is far too wide.

    >>> candidates((0.0, 4.0))[[0, 1, 2, -1]].tolist() == [0.0, 2.0**-37, 2.0**-37 * 65 / 64, 4.0]
    True
    """
    lower, upper = outer
    steps = lower + (upper - lower) * (np.arange(1, STEPS) / STEPS)
    top = math.frexp(max(abs(lower), abs(upper)))[1] - 1
    exponents = np.arange(max(top - OCTAVES + 1, MIN_EXPONENT), top + 1)
    floats = np.ldexp(1 + np.arange(2**BITS) / 2**BITS, exponents[:, np.newaxis]).ravel()
    inner = np.concatenate([steps, -floats, [0.0], floats])
    edges = np.unique(np.concatenate([[lower, upper], inner[(lower < inner) & (inner < upper)]]))
    edges.flags.writeable = False
    return edges


@lru_cache(maxsize=64)
def _guide(outer: Pair) -> Guide:
    edges = candidates(outer)
    magnitudes = np.abs(edges[edges != 0.0])
    keys = [int(value.view(np.int64)) >> SHIFT for value in (magnitudes.min(), magnitudes.max())]
    first = max(keys[0], keys[1] - (OCTAVES << (52 - SHIFT)))
    ends = (np.arange(first, keys[1] + 2, dtype=np.int64) << SHIFT).view(np.float64)
    # For a class of negative numbers, the end outside it; for the other classes, the least number in it.
    start = np.searchsorted(edges, np.concatenate([-ends[:0:-1], [0.0], ends[1:-1]]), side="right")
    start[0] = 0
    return Guide(np.append(start, len(edges)).astype(np.int32), first, keys[1])


class EdgeCounts:
    """How many rows lie between the edges of each feature: exact, hence private.

    A row counts once for each feature: in the first or last bin if it lies outside, and nowhere if its value is missing.

    >>> counts = EdgeCounts([(0.0, 1.0)])
    >>> counts.add([np.array([0.0, 0.3, np.inf, np.nan])])
    >>> int(counts.below(0)[1]), int(counts.above(0)[0])
    (1, 3)
    """

    def __init__(self, outer: Sequence[Pair]) -> None:
        self.outer = [(float(lower), float(upper)) for lower, upper in outer]
        self._edges = [(candidates(one), _guide(one)) for one in self.outer]
        self._counts = [np.zeros(len(edges) - 1, np.int64) for edges, _ in self._edges]

    def add(self, columns: Sequence[NDArray[Any]]) -> None:
        """Count a block of rows: one array of floats for each feature, all of the same length."""  # (P8)
        assert len(columns) == len(self.outer)
        # In blocks that stay in a cache: an array of rows is read here once for each of its columns.
        for first in range(0, max(map(len, columns), default=0), BLOCK):
            for column, edges, counts in zip(columns, self._edges, self._counts, strict=True):
                part = column[first : first + BLOCK]
                if part.dtype not in (np.float32, np.float64):
                    part = part.astype(np.float64)
                count_between(part, *edges, counts)

    def between(self, feature: int) -> NDArray[np.int64]:
        """Rows in each bin."""
        return self._counts[feature]

    def below(self, feature: int) -> NDArray[np.int64]:
        """Rows below each edge. Rows outside the outer range count at its ends."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self._counts[feature])])

    def above(self, feature: int) -> NDArray[np.int64]:
        """Rows at or above each edge."""
        below = self.below(feature)
        return np.asarray(below[-1] - below)


def utilities(below: NDArray[np.int64], above: NDArray[np.int64], quantile: Fraction) -> NDArray[np.int64]:
    r"""How well each bin [e, f) holds the quantile a / b: :math:`-\max(0,\; a\, S(e),\; -(b - a)\, S(f))`.

    where :math:`S(e) = (b - a)\, \#\{x < e\} - a\, \#\{x \ge e\}` is negative below the quantile, positive above it. The bin
    that holds the quantile has utility 0, and one past all rows, at either end, minus a (b - a) times their number.
    """
    a, b = quantile.numerator, quantile.denominator
    balance = (b - a) * below - a * above
    return np.asarray(-np.maximum(0, np.maximum(a * balance[:-1], -(b - a) * balance[1:])))


def spread(quantile: Fraction) -> int:
    """Length of the interval that holds the change of every utility when a row comes or goes: b max(a, b - a)."""
    a, b = quantile.numerator, quantile.denominator
    return b * max(a, b - a)


def choose_quantiles(
    counts: EdgeCounts, rate: Fraction | None, source: ByteSource, low: Fraction = LOW, high: Fraction = HIGH
) -> list[Pair]:
    """For each feature the lower edge of the bin chosen for ``low``, and the upper edge of the one chosen for ``high``.

    Each of the two choices costs ``rate`` for each row that comes or goes. Without a rate nothing is private:
    the best bins, and the outermost of equally good ones.
    """
    return [_choose_pair(counts, feature, rate, source, low, high) for feature in range(len(counts.outer))]


def _choose_pair(
    counts: EdgeCounts, feature: int, rate: Fraction | None, source: ByteSource, low: Fraction, high: Fraction
) -> Pair:
    edges, below, above = candidates(counts.outer[feature]), counts.below(feature), counts.above(feature)
    chosen = []
    for side, quantile in ((0, low), (-1, high)):
        useful = utilities(below, above, quantile)
        if rate is None:
            best = np.flatnonzero(useful == useful.max())
            chosen.append(int(best[side]))
        else:
            chosen.append(permute_and_flip(useful, rate / spread(quantile), source))  # (P8)
    return float(edges[min(chosen)]), float(edges[max(chosen) + 1])  # in this order also where noise has turned them


def widened(lower: float, upper: float, outer: Pair, by: float = WIDENING) -> Pair:
    """Bounds from private edges: wider by a multiple of their width on both sides, within the outer range. Public to public.

    >>> widened(50.0, 60.0, (0.0, 70.0))
    (20.0, 70.0)
    """
    more = by * (upper - lower)
    wide = max(lower - more, outer[0]), min(upper + more, outer[1])
    usable = wide[0] < wide[1] and math.isfinite(lattice.scale(*wide))
    return wide if usable else outer
