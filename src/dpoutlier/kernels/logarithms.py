"""Natural logarithms in integers, times 2**32: the same on every machine, whatever its mathematical library."""

from typing import Any

import numpy as np

from dpoutlier.kernels.jit import inlined, kernel

HALF, LOW_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)
ONE, TOP = np.uint64(1), np.uint64(1 << 63)
BITS = 36  # of the logarithm to base 2, behind the point
LN2 = np.uint64(12786308645202655659)  # the logarithm of 2, times 2**64, rounded down


@inlined
def upper_half(a: Any, b: Any) -> Any:
    """``a * b // 2**64``."""
    a1, a0, b1, b0 = a >> HALF, a & LOW_HALF, b >> HALF, b & LOW_HALF
    low, mid, other = a0 * b0, a1 * b0, a0 * b1
    carried = (low >> HALF) + (mid & LOW_HALF) + (other & LOW_HALF)
    return a1 * b1 + (mid >> HALF) + (other >> HALF) + (carried >> HALF)


@inlined
def log_of(value: Any) -> Any:
    """The logarithm of a whole number from 1 to 2**63, times 2**32, rounded down; off by less than 2 units.

    Bit by bit: a number in 1..2 is squared; whether that reaches 2 is the next bit of its logarithm to base 2.
    """
    exponent, m = 63, value
    while m < TOP:
        m <<= ONE
        exponent -= 1
    bits = np.uint64(exponent)
    for _ in range(BITS):
        m = upper_half(m, m)
        reached = m >> np.uint64(63)
        bits = (bits << ONE) | reached
        m <<= ONE - reached
    return np.int64(upper_half(bits << np.uint64(22), LN2) >> np.uint64(26))


@kernel
def log_terms(counts: Any, unit: int, floor: int, bend: int, out: Any) -> None:
    """The logarithm of each count, but at least of the floor, times 2**32; floor and bend are in units of 1 / unit rows.

    Without a bend, of the count in rows; with one, of count / (count + bend), which levels off where counts are large.
    """
    one_row = log_of(np.uint64(unit))
    for i in range(out.shape[0]):
        value = max(counts[i] * unit, floor)
        out[i] = log_of(np.uint64(value)) - (log_of(np.uint64(value + bend)) if bend > 0 else one_row)
