r"""How far noise can carry a count: the least t with :math:`P(|Z_1 + \dots + Z_m| \le t) \ge` level, from the known laws.

One draw: its law knows. Sums, over cells or over the parts of a merge: the characteristic function :math:`\varphi` of a sum is the
product of those of the laws, and for N points on the circle

.. math:: P(S \bmod N \in [-t, t]) = \frac{1}{N} \sum_k \varphi(\theta_k) \frac{\sin((2t + 1) \theta_k / 2)}{\sin(\theta_k / 2)},
          \quad \theta_k = 2 \pi k / N.

That is a convolution in closed form. Three errors, each bounded: the left side exceeds :math:`P(|S| \le t)` by at most
:math:`P(|S| \ge N / 2)`, made smaller than 1e-12 by Chernoff's bound; terms past K add at most
:math:`\varphi(\theta_K) \log(\pi / \theta_K)` since both factors fall, less than 1e-10; the rest is rounding, far below that since
angles are reduced in integers. The slack of 1e-9 covers all.
"""

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import parameter_error
from dpoutlier.noise.mechanism import Noise

SLACK = 1e-9
MAX_LEVEL = Fraction(999_999, 1_000_000)
ALIASED, CUT_OFF = 1e-12, 1e-10
TRIED = 80  # exponents of Chernoff's bound, each a smaller part of the least rate


def as_level(level: Any) -> Fraction:
    """The level that a user wrote, exactly: 0.95 is 19/20, and not the binary number near it."""
    usable = isinstance(level, numbers.Real) and not isinstance(level, bool) and math.isfinite(level)
    exact = (
        (Fraction(level) if isinstance(level, Fraction) else Fraction(repr(float(level)))) if usable else Fraction(0)
    )
    if not 0 < exact <= MAX_LEVEL:
        raise parameter_error("level", "a number above 0 and at most 0.999999, such as 0.95", level)
    return exact


@dataclass(frozen=True)
class SummedNoise:
    """The sum of independent draws: ``n_each`` of each law. No laws: no noise.

    >>> from dpoutlier.noise.laplace import DiscreteLaplace
    >>> SummedNoise((DiscreteLaplace(Fraction(1)),)).half_width(Fraction(19, 20))
    3
    """

    laws: tuple[Noise, ...]
    n_each: int = 1

    def half_width(self, level: Fraction) -> int:
        """The least t such that the sum lies within t of 0 with at least this probability.

        For several draws in all: with at least this probability and the slack, so that rounding cannot make it less.
        """
        if not self.laws:
            return 0
        if self._one():
            return self.laws[0].half_width(level)
        return _least_of_sum(self, level)

    def coverage(self, t: int) -> float:
        """P(|sum| <= t) for t of at least 0, right to 1e-9; for one draw to the last digits."""
        if not self.laws:
            return 1.0
        if self._one():
            return self.laws[0].coverage(t)
        return 1.0 if t >= _reach(self) else min(max(_coverage_of_sum(self)(t), 0.0), 1.0)

    def _one(self) -> bool:
        return len(self.laws) * self.n_each == 1


@lru_cache(maxsize=4096)
def _least_of_sum(noise: SummedNoise, level: Fraction) -> int:
    coverage, enough = _coverage_of_sum(noise), float(level) + SLACK
    low, high = -1, _reach(noise)  # too small, and large enough
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if coverage(middle) >= enough else (middle, high)
    return high


def _reach(noise: SummedNoise) -> int:
    """The sum lies at this or farther from 0 with a probability of at most ALIASED, by Chernoff's bound."""

    def bound(x: float) -> float:
        return (math.log(2 / ALIASED) + noise.n_each * sum(law.log_moment(x) for law in noise.laws)) / x

    least_rate = min(float(law.rate) for law in noise.laws)
    return math.ceil(min(bound(0.9 * least_rate * 2 ** (-j / 3)) for j in range(TRIED)))


@lru_cache(maxsize=4)
def _coverage_of_sum(noise: SummedNoise) -> Callable[[int], float]:
    """The function t -> P(|sum| <= t), for t up to the reach."""
    points = 2 * _reach(noise) + 2

    def characteristic(sines: NDArray[np.float64]) -> NDArray[np.float64]:
        logs = sum((law.log_characteristic(sines) for law in noise.laws), np.zeros_like(sines))
        return np.exp(noise.n_each * logs)

    def left_out(k: int) -> float:
        angle = 2 * math.pi * k / points
        return float(characteristic(np.array([math.sin(angle / 2)]))[0]) * math.log(math.pi / angle)

    few, many = 0, points // 2 - 1  # the last term that is kept; at half of the circle nothing is left out but one term
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if left_out(middle) <= CUT_OFF else (middle, many)
    k = np.arange(1, many + 1, dtype=np.int64)  # few where there are many points: the product below stays in 64 bits
    sines = np.sin(np.pi * k / points)
    weights = 2 * characteristic(sines) / sines

    def coverage(t: int) -> float:
        turns = (2 * t + 1) * k % (2 * points)
        terms = weights * np.sin(np.pi * turns / points)
        total = 2 * t + 1 + float(terms.sum())
        if many == points // 2 - 1:
            total += float(characteristic(np.ones(1))[0]) * (-1) ** t
        return total / points

    return coverage
