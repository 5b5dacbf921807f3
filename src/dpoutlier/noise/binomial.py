"""Binomial numbers of up to 2**128 trials, exactly: random bits against rigorous bounds of the distribution function.

Each of N empty cells has noise of at least tau with probability p = a**tau / (1 + a), a = exp(-rate). The number of cells that
have it is binomial, and can be drawn without a look at any cell.
"""

from bisect import bisect_right
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_FLOOR,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
)
from functools import lru_cache
from typing import NamedTuple

from dpoutlier.noise.laplace import RATE_BITS, DiscreteLaplace
from dpoutlier.noise.sources import ByteSource

BLOCK = 512  # successes expected in a block of trials
WORD_DIGITS, GUARD_DIGITS = 20, 25  # 64 bits are 19.3 decimal digits; roundings of a table take about ten of the others


class Between(NamedTuple):
    """A positive number that lies between two decimals."""

    below: Decimal
    above: Decimal


def directed(digits: int) -> tuple[Context, Context]:
    """Contexts that round down and up. Products, quotients and sums of positive bounds stay bounds."""
    traps = [InvalidOperation, DivisionByZero, Overflow]
    down, up = (
        Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=traps)
        for rounding in (ROUND_FLOOR, ROUND_CEILING)
    )
    return down, up


def _exponential(least: Decimal, most: Decimal, down: Context, up: Context) -> Between:
    """The exponential of what lies between. Decimal's is rounded correctly, to the nearest: its neighbours are bounds."""
    return Between(down.next_minus(down.exp(least)), up.next_plus(up.exp(most)))


def chance_of_at_least(law: DiscreteLaplace, tau: int, digits: int) -> Between:
    """P(noise >= tau) = a**tau / (1 + a) for tau >= 1, to about this number of digits."""
    assert tau >= 1
    down, up = directed(digits)
    # Written out in decimals a rate, a multiple of 2**-40, is exact.
    minus_rate, minus_all = (Decimal(f"-{law.rate_units * times * 5**RATE_BITS}e-{RATE_BITS}") for times in (1, tau))
    a, power = (_exponential(x, x, down, up) for x in (minus_rate, minus_all))
    return Between(down.divide(power.below, up.add(1, a.above)), up.divide(power.above, down.add(1, a.below)))


def _minus_log_of_the_rest(p: Between, digits: int) -> Between:
    """-ln(1 - p) for p <= 1/2 as p + p**2 / 2 + p**3 / 3 + ...: however small p is, no digit of it is lost."""
    down, up = directed(digits)
    below, above, power, i = Decimal(0), Decimal(0), p, 1
    while True:
        term = Between(down.divide(power.below, i), up.divide(power.above, i))
        below, above = down.add(below, term.below), up.add(above, term.above)
        if up.scaleb(term.above, digits) < above:
            return Between(below, up.add(above, term.above))  # all terms left out are together less than the last
        power, i = Between(down.multiply(power.below, p.below), up.multiply(power.above, p.above)), i + 1


class Distribution(NamedTuple):
    """F(0), F(1), ... of a binomial law in units of 2**-bits, each between two whole numbers."""

    below: list[int]
    above: list[int]

    def number(self, u: int) -> int | None:
        """The k with F(k - 1) <= U < F(k), the same for all U in [u, u + 1); None if the bounds do not tell."""
        k = bisect_right(self.below, u)
        decided = k < len(self.below) and (k == 0 or self.above[k - 1] <= u)
        return k if decided else None


@lru_cache(maxsize=16)
def distribution(n: int, law: DiscreteLaplace, tau: int, words: int) -> Distribution:
    """F of Binomial(n, P(noise >= tau)) in units of 2**-(64 words), up to where the rest is less than a unit. Public."""
    digits, unit = WORD_DIGITS * words + GUARD_DIGITS, Decimal(2 ** (64 * words))
    down, up = directed(digits)
    p = chance_of_at_least(law, tau, digits)
    log = _minus_log_of_the_rest(p, digits)
    none = (up.multiply(n, log.above).copy_negate(), down.multiply(n, log.below).copy_negate())
    term = total = _exponential(*none, down, up)  # P(0) = (1 - p)**n
    odds = Between(
        down.divide(p.below, up.subtract(1, p.below)),
        up.divide(p.above, down.subtract(1, p.above)),
    )
    tail = up.multiply(2 * n, p.above)  # from here on each term is less than half of the one before
    made = Distribution([], [])
    for k in range(n):
        made.below.append(int(down.multiply(total.below, unit)))
        made.above.append(int(up.multiply(total.above, unit)) + 1)
        if k > tail and up.multiply(term.above, unit) < 1:
            return made
        # P(k + 1) = P(k) * odds * (n - k) / (k + 1)
        term = Between(
            down.divide(down.multiply(down.multiply(term.below, odds.below), n - k), k + 1),
            up.divide(up.multiply(up.multiply(term.above, odds.above), n - k), k + 1),
        )
        total = Between(down.add(total.below, term.below), up.add(total.above, term.above))
    made.below.append(2 ** (64 * words))  # F(n) = 1
    made.above.append(2 ** (64 * words))
    return made


def draw_binomial(n: int, law: DiscreteLaplace, tau: int, source: ByteSource) -> int:
    """How many of ``n`` independent draws of the law are at least ``tau``. The bytes read and the time depend on nothing else.

    The trials are cut into blocks, whose results are added up. Blocks are independent, since trials are.
    """
    expected = directed(50)[1].multiply(n, chance_of_at_least(law, tau, 50).above)
    blocks = int(expected) // BLOCK + 1
    size, larger = divmod(n, blocks)
    return sum(_draw(size + (i < larger), law, tau, source) for i in range(blocks))


def _draw(n: int, law: DiscreteLaplace, tau: int, source: ByteSource) -> int:
    """By inversion: draw U 64 bits at a time until it is known between which values of F it lies.

    With probability 1 this ends. The first 64 bits decide, except with a probability of less than 2**-50.
    """
    u, words = 0, 0
    while True:
        u, words = u << 64 | int.from_bytes(source.read(8), "little"), words + 1
        number = distribution(n, law, tau, words).number(u)
        if number is not None:
            return number
