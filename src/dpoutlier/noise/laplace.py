r"""Discrete Laplace noise, :math:`P(z) = \frac{1 - a}{1 + a}\, a^{|z|}` with :math:`a = \exp(-\text{rate})`.

where rate is :math:`\epsilon_\text{counts} / \text{sensitivity}`, rounded down to a multiple of :math:`2^{-40}`. Public: anyone may
know how the noise was drawn.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import exact_number, parameter_error
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.kernels.laplace import RATE_BITS, fill
from dpoutlier.kernels.laplace_by_table import UNDECIDED, guided_fill
from dpoutlier.noise.laplace_table import DIGITS, guided_table, has_table
from dpoutlier.noise.mechanism import Cost, Sensitivity
from dpoutlier.noise.sources import ByteSource

__all__ = ["RATE_BITS", "DiscreteLaplace", "PureMechanism", "more_words"]

MIN_RATE = Fraction(1, 2**30)  # noise past a billion rows would also leave the integers of 64 bits
MAX_RATE = Fraction(2**20)  # no noise was ever seen at exp(-1048576)
MAX_WORDS = 1 << 20  # read at a time; what is missing then is read in the next round


def rate_costing(epsilon: Fraction, l1: int) -> Fraction:
    """The rate at which a release of this L1 sensitivity costs at most ``epsilon``: rounded down."""
    wanted = min(epsilon / l1, MAX_RATE)
    if wanted < MIN_RATE:
        raise InvalidParameterError(
            f"epsilon is too small for its sensitivity: noise of scale {float(1 / wanted):.3g} rows is too large to be useful. "
            "Give a larger epsilon, fewer shares of it, or a smaller rows_per_person."
        )
    return Fraction(math.floor(wanted * 2**RATE_BITS), 2**RATE_BITS)


@dataclass(frozen=True)
class PureMechanism:
    """What mechanisms share whose releases are purely (rate times L1 sensitivity)-differentially private."""

    rate: Fraction

    def __post_init__(self) -> None:
        if not (MIN_RATE <= self.rate <= MAX_RATE and (self.rate * 2**RATE_BITS).denominator == 1):
            raise InvalidParameterError(f"rate must be a multiple of 2**-40 in 2**-30..2**20, got {self.rate}.")

    @classmethod
    def costing(cls, cost: Cost, sensitivity: Sensitivity) -> Self:
        """The mechanism with which all releases of this sensitivity together cost at most the epsilon of ``cost``."""
        return cls(rate_costing(cost.epsilon, sensitivity.l1))

    def cost(self, sensitivity: Sensitivity) -> Cost:
        """Pure: delta is 0."""
        return Cost(self.rate * sensitivity.l1)

    def to_json(self) -> dict[str, Any]:
        return {"rate": str(self.rate)}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        found = exact_number(content["rate"], digits=200)
        if found is None:
            raise parameter_error("rate", "an exact number", content["rate"][:80])
        return cls(found)


@dataclass(frozen=True)
class DiscreteLaplace(PureMechanism):
    """Two-sided geometric noise on integers. A release with it is purely (rate times L1 sensitivity)-differentially private.

    >>> DiscreteLaplace.costing(Cost(Fraction(1, 3)), Sensitivity(1)).rate <= Fraction(1, 3)
    True
    """

    name: ClassVar[str] = "discrete-laplace"
    words: ClassVar[str] = "discrete Laplace noise on integer counts, sampled exactly"

    @property
    def rate_units(self) -> int:
        """The rate in units of 2**-40, as the sampler takes it."""
        return int(self.rate * 2**RATE_BITS)

    @property
    def scale(self) -> float:
        return float(1 / self.rate)

    @property
    def variance(self) -> float:
        return 2 / float(self.rate) ** 2

    # Drawing -------------------------------------------------------------------------------------------------------------

    def draw(self, n: int, source: ByteSource) -> NDArray[np.int64]:
        """``n`` independent draws. Words that a round did not use open the next one, so the stream has no seams."""
        return self._by_table(n, source) if has_table(self.rate) else self._without_table(n, source)

    def _by_table(self, n: int, source: ByteSource) -> NDArray[np.int64]:
        noise, words = np.empty(n, np.int64), np.empty(0, np.uint64)
        done, digits = 0, DIGITS
        while done < n:
            words = more_words(words, n - done + 64, source)
            done, used, why = guided_fill(guided_table(self.rate, digits), words, noise, done)
            words = words[used:]
            digits *= 2 if why == UNDECIDED else 1
        return noise

    def _without_table(self, n: int, source: ByteSource) -> NDArray[np.int64]:
        """Noise too wide for a table, by sampler version 1, which takes nine words on average."""
        noise, words = np.empty(n, np.int64), np.empty(0, np.uint64)
        rate, done = np.uint64(self.rate_units), 0
        while done < n:
            words = more_words(words, 12 * (n - done) + 64, source)
            done, used = fill(rate, words, noise, done)
            words = words[used:]
        return noise

    # The law -------------------------------------------------------------------------------------------------------------

    def at_least(self, value: int) -> float:
        """P(noise >= value)."""
        a = math.exp(-float(self.rate))
        if value > 0:
            return a**value / (1 + a)
        return 1 - a ** (1 - value) / (1 + a)

    def log_ratio(self, noisy: NDArray[Any], here: NDArray[Any], there: NDArray[Any]) -> NDArray[np.float64]:
        """Logarithm of how much likelier each noisy count is if the true one is ``here`` than if it is ``there``."""
        return np.asarray(float(self.rate) * (np.abs(noisy - there) - np.abs(noisy - here)).astype(float))

    def half_width(self, level: Fraction) -> int:
        r"""The least t with :math:`P(|Z| \le t) = 1 - 2 a^{t+1} / (1 + a) \ge` level, compared exactly."""
        return _least_width(self.rate, level)

    def coverage(self, t: int) -> float:
        """P(|Z| <= t) for t of at least 0."""
        rate = float(self.rate)
        return 1 - 2 * math.exp(-rate * (t + 1)) / (1 + math.exp(-rate))

    def log_moment(self, x: float) -> float:
        """Logarithm of E exp(x Z) = 1 / (1 - (sinh(x/2) / sinh(rate/2))**2), for 0 < x < rate."""
        rate = float(self.rate)
        ratio = math.exp((x - rate) / 2) * math.expm1(-x) / math.expm1(-rate)
        return -math.log1p(-(ratio**2))

    def log_characteristic(self, sines: NDArray[np.float64]) -> NDArray[np.float64]:
        """Logarithm of (1 + (sin(angle/2) / sinh(rate/2))**2)**-1."""
        rate = float(self.rate)
        half = 2 * math.exp(-rate / 2) / -math.expm1(-rate)  # 1 / sinh(rate/2)
        return -np.log1p((half * sines) ** 2)


def more_words(words: NDArray[np.uint64], wanted: int, source: ByteSource) -> NDArray[np.uint64]:
    """Words that a round did not use, and fresh ones after them."""
    fresh = np.frombuffer(source.read(8 * min(wanted, MAX_WORDS)), "<u8")
    return np.concatenate([words, fresh.astype(np.uint64, copy=False)])


@lru_cache(maxsize=256)
def _least_width(rate: Fraction, level: Fraction) -> int:
    """The least t with (t + 1) rate >= log(2 / ((1 - level) (1 + a))).

    a = exp(-rate) is transcendental, so both sides are never equal, and with enough digits they can be distinguished.
    """
    digits, beyond = 60, 1 - level
    while True:
        context = Context(prec=digits + 60)
        exact = context.divide(Decimal(rate.numerator), Decimal(rate.denominator))  # exact: at most 60 places
        a = context.exp(context.minus(exact))
        tail = context.divide(Decimal(beyond.numerator), Decimal(beyond.denominator))
        log = context.ln(context.divide(Decimal(2), context.multiply(tail, context.add(Decimal(1), a))))
        wanted, error = context.divide(log, exact), Decimal(1).scaleb(-digits)  # right to 40 places more than that
        low, high = (
            context.add(wanted, sign * error).to_integral_value(ROUND_CEILING, context)
            for sign in (Decimal(-1), Decimal(1))
        )
        if low == high:
            return max(int(low) - 1, 0)
        digits *= 2
