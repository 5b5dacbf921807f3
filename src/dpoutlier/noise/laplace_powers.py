"""Powers of ``a = exp(-rate)`` in two digits, from which kernels/constant_time.py makes its distribution function."""

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpoutlier.noise.laplace_table import exponential, guided_table

BITS = 320
WHOLE_BITS = 128


@lru_cache(maxsize=32)
def law_powers(rate: Fraction) -> NDArray[np.uint64]:
    """1 / (1 + a), then a**(2**i) from the i that n of the guided table needs down to 0: fractions of 2**128, each of them cut
    off, or one less, and never too large.
    """
    below, above = exponential(rate, BITS)
    powers = [below]
    for _ in range(guided_table(rate).n.bit_length() - 1):
        powers.append((powers[-1] * powers[-1]) >> BITS)
    first = (1 << (2 * BITS)) // ((1 << BITS) + above)
    digits = [value >> (BITS - WHOLE_BITS) for value in (first, *powers[::-1])]
    return np.array([divmod(value, 2**64) for value in digits], np.uint64)
