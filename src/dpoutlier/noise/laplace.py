r"""The discrete Laplace law, :math:`P(z) = \frac{1 - a}{1 + a}\, a^{|z|}` with :math:`a = \exp(-\text{rate})`.

where rate is :math:`\epsilon_\text{counts} / \text{sensitivity}`, rounded down to a multiple of :math:`2^{-40}`. Public: anyone may
know how the noise was drawn.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.kernels.laplace import RATE_BITS

__all__ = ["RATE_BITS", "DiscreteLaplace"]

LEAST_RATE = Fraction(1, 2**30)  # noise past a billion rows would also leave the integers of 64 bits
MOST_RATE = Fraction(2**20)  # no noise was ever seen at exp(-1048576)


@dataclass(frozen=True)
class DiscreteLaplace:
    """Two-sided geometric noise on integers.

    >>> DiscreteLaplace.costing(Fraction(1, 3), sensitivity=1).rate <= Fraction(1, 3)
    True
    """

    rate: Fraction

    def __post_init__(self) -> None:
        if not (LEAST_RATE <= self.rate <= MOST_RATE and (self.rate * 2**RATE_BITS).denominator == 1):
            raise InvalidParameterError(f"rate must be a multiple of 2**-40 in 2**-30..2**20, got {self.rate}.")

    @classmethod
    def costing(cls, epsilon: Fraction, sensitivity: int) -> "DiscreteLaplace":
        """The noise that makes a release of this sensitivity cost at most ``epsilon``: the rate is rounded down."""
        wanted = min(epsilon / sensitivity, MOST_RATE)
        if wanted < LEAST_RATE:
            raise InvalidParameterError(
                f"epsilon is too small for its sensitivity: noise of scale {float(1 / wanted):.3g} rows is beyond use. "
                "Give a larger epsilon, fewer shares of it, or a smaller rows_per_person."
            )
        return cls(Fraction(math.floor(wanted * 2**RATE_BITS), 2**RATE_BITS))

    @property
    def rate_units(self) -> int:
        """The rate in units of 2**-40, as the sampler takes it."""
        return int(self.rate * 2**RATE_BITS)

    @property
    def scale(self) -> float:
        return float(1 / self.rate)

    def log_probability(self, value: int) -> float:
        return (
            math.log(-math.expm1(-float(self.rate)))
            - math.log1p(math.exp(-float(self.rate)))
            - abs(value) * float(self.rate)
        )

    def probability(self, value: int) -> float:
        """P(noise = value).

        >>> round(sum(DiscreteLaplace(Fraction(1)).probability(z) for z in range(-50, 51)), 12)
        1.0
        """
        return math.exp(self.log_probability(value))

    def at_least(self, value: int) -> float:
        """P(noise >= value)."""
        a = math.exp(-float(self.rate))
        if value > 0:
            return a**value / (1 + a)
        return 1 - a ** (1 - value) / (1 + a)
