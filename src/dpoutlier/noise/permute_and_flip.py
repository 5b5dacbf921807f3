r"""Choose one of many candidates by permute-and-flip (McKenna and Sheldon 2020), exactly.

.. math:: P(r) = p_r \int_0^1 \prod_{s \ne r} (1 - t\, p_s)\, dt, \quad p_s = \exp(-\text{rate}\, (u_{\max} - u_s))

where :math:`u_s` is the utility of candidate s, an integer. If between neighbours the changes of all utilities lie in an interval
of length R, the choice is (rate R)-differentially private; docs/privacy.md proves it.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import parameter_error
from dpoutlier.kernels.permute_and_flip import TABLE_ENDS, flip_coins
from dpoutlier.noise.laplace import PureMechanism, more_words
from dpoutlier.noise.sources import ByteSource

LIMITS = 64  # a coin that needs more of them has a probability below exp(-64), and gets more
WORDS_A_COIN = 4


@dataclass(frozen=True)
class PermuteAndFlip(PureMechanism):
    """Choices at this rate: the sensitivity of a choice is the length of the range in which utilities change."""

    name: ClassVar[str] = "permute-and-flip"


def permute_and_flip(utilities: NDArray[np.int64], rate: Fraction, source: ByteSource) -> int:
    """The number of the candidate that is chosen.

    The definition takes the candidates in a random order, flips the coin of each, and stops at the first that is up. Here all coins
    are flipped, and one of those that are up is drawn uniformly. The law is the same: whatever the coins show, each of those that
    are up comes first in a random order with the same probability. The coin of the best candidate is always up.

    Parameters
    ----------
    utilities : array of int64
        Larger is better; their differences stay below 2**63.
    rate : Fraction
        Privacy loss for each unit of utility.
    source : ByteSource

    >>> from dpoutlier.noise.sources import UnsafeSeededBytes
    >>> permute_and_flip(np.array([-90, 0, -80]), Fraction(10), UnsafeSeededBytes(0))
    1
    """
    if rate <= 0 or rate.denominator >= 2**62:
        raise parameter_error("rate", "a positive fraction with a denominator below 2**62", rate)
    if len(utilities) == 0:
        raise parameter_error("utilities", "those of at least one candidate", utilities)
    gaps = (utilities.max() - utilities).astype(np.uint64)
    up = np.flatnonzero(_flipped(gaps, rate, source))
    return int(up[uniform_below(len(up), source)])


def uniform_below(n: int, source: ByteSource) -> int:
    """A uniform integer in 0..n-1, by rejection: no remainder is favoured."""
    share = 2**64 // n
    while True:
        word = int.from_bytes(source.read(8), "little")
        if word < share * n:
            return word // share


def _flipped(gaps: NDArray[np.uint64], rate: Fraction, source: ByteSource) -> NDArray[np.bool_]:
    """Which coins are up. Words that a round did not use open the next one."""
    up, words, limits = np.zeros(len(gaps), np.bool_), np.empty(0, np.uint64), _limits(rate, LIMITS)
    # The kernel computes modulo 2**64, see there.
    numerator, denominator = np.uint64(rate.numerator % 2**64), np.uint64(rate.denominator)
    done = 0
    while done < len(up):
        words = more_words(words, WORDS_A_COIN * (len(up) - done) + 64, source)
        done, used, why = flip_coins(gaps, numerator, denominator, limits, words, up, done)
        words = words[used:]
        if why == TABLE_ENDS:
            limits = _limits(rate, 2 * len(limits))
    return up


def _limits(rate: Fraction, n: int) -> NDArray[np.uint64]:
    """The largest gap whose exponent, rate times gap, is below i + 1, for i = 0..n-1."""
    return np.array(
        [min(-((-i * rate.denominator) // rate.numerator) - 1, 2**64 - 1) for i in range(1, n + 1)], np.uint64
    )
