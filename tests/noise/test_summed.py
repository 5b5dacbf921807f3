"""Half-widths of intervals: one law decided exactly, sums against convolutions, and all against draws."""

import itertools
import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import naive
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.noise.sources import UnsafeSeededBytes
from dpoutlier.noise.summed import SLACK, SummedNoise, as_level
from noise_laws import log_probability

# A right interval passes each statistical test here, except with this probability. There are a dozen; seeds are fixed.
FALSE_ALARM = 1e-8
DRAWS = 500_000
LEVELS = [
    Fraction(1, 100),
    Fraction(1, 2),
    Fraction(9, 10),
    Fraction(19, 20),
    Fraction(999, 1000),
    Fraction(999_999, 10**6),
]


def law(rate):
    return DiscreteLaplace(Fraction(int(Fraction(rate) * 2**40), 2**40))


def noise(*rates, n_each=1):
    return SummedNoise(tuple(law(rate) for rate in rates), n_each)


def exact_coverage(rate, t):
    """(below, above) of 1 - 2 a**(t + 1) / (1 + a), in rationals; the oracle's exp(-x) is right to 500 bits."""
    a, power = (Fraction(naive.exp_minus(x), 2**naive.BITS) for x in (rate, rate * (t + 1)))
    error = Fraction(1, 2**500)
    return 1 - 2 * (power + error) / (1 + a - error), 1 - 2 * (power - error) / (1 + a + error)


@settings(max_examples=200)
@given(st.integers(2**30, 2**43), st.sampled_from(LEVELS))
def test_the_half_width_of_one_draw_is_the_least_that_covers(units, level):
    found = SummedNoise((DiscreteLaplace(Fraction(units, 2**40)),))
    t = found.half_width(level)
    below, above = exact_coverage(Fraction(units, 2**40), t)
    assert below >= level
    assert float(below) <= found.coverage(t) + 1e-12 <= float(above) + 2e-12
    assert t == 0 or exact_coverage(Fraction(units, 2**40), t - 1)[1] < level


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 4), Fraction(3, 8)])
@pytest.mark.parametrize("t", [0, 1, 7])
def test_a_level_a_hair_beside_the_coverage_is_distinguished(rate, t):
    """In floats all of these levels would be one and the same number."""
    below, above = exact_coverage(rate, t)
    assert 0 < above - below < Fraction(1, 10**148)
    assert noise(rate).half_width(below) == t
    assert noise(rate).half_width(above) == t + 1


def test_a_level_a_thousand_digits_beside_the_coverage_is_distinguished_too():
    """From the first digits one cannot tell; then more are taken."""
    context = Context(prec=1200)
    a = context.exp(Decimal(-1))
    coverage = context.subtract(1, context.divide(context.multiply(2, context.power(a, 3)), context.add(1, a)))
    hair = Fraction(1, 10**1000)
    assert noise(1).half_width(Fraction(coverage) - hair) == 2
    assert noise(1).half_width(Fraction(coverage) + hair) == 3


@cache
def by_convolution(found):
    """P(|sum| <= t) for t = 0, 1, ..., by adding up products, one draw after the other."""
    total = np.ones(1)
    for one in found.laws:
        reach = int(45 / one.rate) + 5
        chances = np.array([math.exp(log_probability(one, z)) for z in range(-reach, reach + 1)])
        for _ in range(found.n_each):
            total = np.convolve(total, chances)
    middle = len(total) // 2
    return total[middle] + 2 * np.append(0, np.cumsum(total[middle + 1 :]))


SUMS = [
    noise(1, 1),
    noise("1/2", n_each=5),
    noise("1/4", 2, n_each=3),
    noise(5, 5),
    noise(1, "1/8", 3),
    noise("1/10", n_each=30),
]


@pytest.mark.parametrize(
    "found", SUMS, ids=lambda found: f"{found.n_each} of {[str(one.rate)[:6] for one in found.laws]}"
)
@pytest.mark.parametrize("level", [Fraction(1, 2), Fraction(19, 20), Fraction(999, 1000)])
def test_the_half_width_of_a_sum_is_the_least_that_covers_with_the_slack(found, level):
    t, expected = found.half_width(level), by_convolution(found)
    assert expected[t] >= float(level) + SLACK - 1e-13
    assert t == 0 or expected[t - 1] < float(level) + SLACK + 1e-13
    for x in range(2 * t + 3):
        assert abs(found.coverage(x) - expected[x]) < 1e-12


def test_wide_noise_and_many_cells_approach_the_laws_of_the_continuum():
    """Scale 2**30: two Laplace draws sum to a law with P(|S| > x) = (1 + x/2) exp(-x); 100,000 cells are near normal."""
    t = noise(Fraction(1, 2**30), n_each=2).half_width(Fraction(19, 20)) / 2**30
    assert (1 + t / 2) * np.exp(-t) == pytest.approx(0.05, abs=1e-8)
    many = noise(1, n_each=100_000).half_width(Fraction(19, 20))
    e = np.exp(-1)
    assert many == pytest.approx(1.959964 * np.sqrt(100_000 * 2 * e / (1 - e) ** 2), abs=2)


def test_rates_far_apart_take_the_wider_and_no_more_than_seconds():
    wide = noise(Fraction(1, 2**16)).half_width(Fraction(19, 20))
    assert noise(Fraction(1, 2**16), 1).half_width(Fraction(19, 20)) == pytest.approx(wide, abs=2)


def test_no_noise_and_hardly_any():
    assert SummedNoise(()).half_width(Fraction(19, 20)) == 0
    assert SummedNoise(()).coverage(0) == 1
    assert noise(2**20).half_width(Fraction(19, 20)) == 0
    assert noise(2**20, 2**20, n_each=3).half_width(Fraction(999_999, 10**6)) == 0
    assert noise(1, 1).coverage(10**9) == 1


def covered(found, t, draws, scale_off=1):
    """How many sums of draws from the package's own sampler lie within t, with rates that may be off."""
    total = np.zeros(draws, np.int64)
    for number, (one, _) in enumerate(itertools.product(found.laws, range(found.n_each))):
        total += law(one.rate / Fraction(scale_off)).draw(draws, UnsafeSeededBytes(number))
    return int(np.count_nonzero(np.abs(total) <= t))


@pytest.mark.parametrize(
    "found", [noise("1/10"), noise("1/3", "1/5"), noise("1/4", n_each=5)], ids=["one", "two", "five"]
)
def test_draws_are_covered_as_often_as_is_said_and_wrong_intervals_are_found_out(found):
    level = Fraction(19, 20)
    t = found.half_width(level)
    assert level <= found.coverage(t) < level + Fraction(1, 100)

    def p_value(n_covered):
        return stats.binomtest(n_covered, DRAWS, found.coverage(t)).pvalue

    assert p_value(covered(found, t, DRAWS)) > FALSE_ALARM
    assert p_value(covered(found, t - 1, DRAWS)) < FALSE_ALARM
    assert p_value(covered(found, t, DRAWS, scale_off="1.1")) < FALSE_ALARM
    assert p_value(covered(found, t, DRAWS, scale_off="0.9")) < FALSE_ALARM


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, 0.9999999, float("nan"), "0.95", None, True])
def test_impossible_levels_are_refused(level):
    with pytest.raises(InvalidParameterError, match=r"level must be a number above 0 and at most 0\.999999"):
        as_level(level)


def test_a_level_is_the_number_that_was_written():
    assert as_level(0.95) == as_level(np.float64(0.95)) == as_level(Fraction(19, 20)) == Fraction(19, 20)


def test_a_sum_takes_the_next_width_where_its_coverage_is_too_close_to_call():
    """Coverages of sums are floats: one that passes the level by less than the slack does not count as passing."""
    noise = SummedNoise((DiscreteLaplace(Fraction(1, 2)),), 5)
    t = 9
    close, clear = (Fraction(noise.coverage(t)).limit_denominator(10**15) - Fraction(part, 10**10) for part in (5, 50))
    assert noise.half_width(close) == t + 1
    assert noise.half_width(clear) == t
