"""The guided table of discrete Laplace noise: its distribution function to as many digits as wanted, every one of them right."""

import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpoutlier.kernels.laplace import RATE_BITS
from dpoutlier.kernels.laplace_by_table import GuidedTable

DIGITS = 2  # of 64 bits; that a draw needs more has probability below 2**-110
MAX_SCALE = 2**11  # the table of wider noise would outgrow a cache; such noise takes the sampler of version 1
TAIL_SCALES = Fraction(111, 10)  # exp(-11.1) < 2**-16: so rarely is a draw past either end of the table
GUARD_BITS = 64
MIN_GUIDE_BITS, MAX_GUIDE_BITS = 10, 16


def has_table(rate: Fraction) -> bool:
    """Whether noise of this rate is narrow enough for a table."""
    return rate * MAX_SCALE >= 1


def exponential(rate: Fraction, bits: int) -> tuple[int, int]:
    """(below, above) with below <= exp(-rate) * 2**bits <= above: Decimal's exp is correctly rounded."""
    context = Context(prec=max(80, bits // 3 + 40))
    exact = context.divide(Decimal(int(rate * 2**RATE_BITS)), Decimal(2**RATE_BITS))  # at most 60 places
    near = int(context.multiply(context.exp(context.minus(exact)), Decimal(2**bits)))
    return max(near - 1, 0), near + 2


def _tails(rate: Fraction, n: int, digits: int) -> list[int]:
    """``floor(2**(64 digits) * P(Z >= j))`` for j = 1..n, exactly: P(Z >= j) = a**j / (1 + a) with a = exp(-rate)."""
    bits = 64 * digits + GUARD_BITS
    while True:
        below, above = exponential(rate, bits)
        one = 1 << bits
        least, most = (one << bits) // (one + above), (one << bits) // (one + below) + 1
        found = []
        for _ in range(n):
            least, most = (least * below) >> bits, ((most * above) >> bits) + 1
            tail = least >> (bits - 64 * digits)
            if tail != most >> (bits - 64 * digits):
                break  # too close to a whole number to tell: it cannot be one, so more bits will
            found.append(tail)
        if len(found) == n:
            return found
        bits += GUARD_BITS


@lru_cache(maxsize=32)
def guided_table(rate: Fraction, digits: int = DIGITS) -> GuidedTable:
    """The table of noise of this rate, if it has one. F(-j) = P(Z >= j), and F(j - 1) = 1 - P(Z >= j)."""
    assert has_table(rate)
    n = math.ceil(TAIL_SCALES / rate)
    tails = _tails(rate, n, digits)
    whole = 1 << (64 * digits)
    # No F is a fraction of 2**64 (exp(-rate) is transcendental), so 1 - F rounds down to the complement.
    values = tails[::-1] + [whole - 1 - tail for tail in tails] + [whole - 1]
    split = [value.to_bytes(8 * digits, "big") for value in values]
    table = np.frombuffer(b"".join(split), ">u8").reshape(len(values), digits).astype(np.uint64)
    first = np.ascontiguousarray(table[:, 0])
    bits = min(max(MIN_GUIDE_BITS, (16 * n).bit_length()), MAX_GUIDE_BITS)
    words = np.arange(2**bits, dtype=np.uint64) << np.uint64(64 - bits)
    guide = np.searchsorted(first[:-1], words, side="left").astype(np.int32)
    return GuidedTable(table, first, guide, np.uint64(64 - bits), n)


def no_table() -> GuidedTable:
    """A placeholder for kernels if no table is used."""
    one = np.zeros((1, 1), np.uint64)
    return GuidedTable(one, np.zeros(1, np.uint64), np.zeros(1, np.int32), np.uint64(63), 0)
