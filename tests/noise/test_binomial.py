"""Binomial numbers: bounds against exact fractions, draws word for word, and their law by chi-square up to 2**128 trials."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cell_numbers import cell_numbers
from dpoutlier.noise.binomial import BLOCK, chance_of_at_least, distribution, draw_binomial
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.noise.sources import UnsafeSeededBytes
from dpoutlier.noise.uniform import draw_below, draw_distinct_below

FALSE_ALARM = 1e-7
LAW = DiscreteLaplace(Fraction(1, 2))


class Words:
    """A source of these words, and of no others."""

    def __init__(self, words):
        self.words = list(words)

    def read(self, n):
        taken, self.words = self.words[: n // 8], self.words[n // 8 :]
        assert len(taken) == n // 8
        return b"".join(word.to_bytes(8, "little") for word in taken)


def exp_between(x):
    """Fractions around exp(-x), from the series of exp(x / 2**s), squared s times; cut to 700 bits."""
    squarings = max(0, math.ceil(math.log2(x)) + 1) if x > 1 else 0
    small, bits = Fraction(x) / 2**squarings, 700
    total, term = Fraction(0), Fraction(1)
    for i in range(1, 140):
        total, term = total + term, term * small / i
    low, high = Fraction(1) / (total + 2 * term), Fraction(1) / total
    for _ in range(squarings):
        low = Fraction(math.floor(low * 2**bits), 2**bits) ** 2
        high = Fraction(math.ceil(high * 2**bits), 2**bits) ** 2
    return Fraction(math.floor(low * 2**bits), 2**bits), Fraction(math.ceil(high * 2**bits), 2**bits)


def chance_between(law, tau):
    (a_low, a_high), (low, high) = exp_between(law.rate), exp_between(law.rate * tau)
    return low / (1 + a_high), high / (1 + a_low)


def distribution_between(n, law, tau):
    """(F(k) from below, from above) for k = 0..n: sums of exact fractions, the more the smaller the chance."""
    found = []
    for p in reversed(chance_between(law, tau)):
        terms = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
        found.append([sum(terms[: k + 1]) for k in range(n + 1)])
    return list(zip(*found))


rates = st.one_of(st.integers(2**36, 2**43), st.sampled_from([2**10, 2**40])).map(
    lambda u: DiscreteLaplace(Fraction(u, 2**40))
)


@given(rates, st.integers(1, 40), st.sampled_from([10, 50, 120]))
def test_the_chance_lies_between_its_bounds(law, tau, digits):
    low, high = chance_between(law, tau)
    below, above = map(Fraction, chance_of_at_least(law, tau, digits))
    assert below < low <= high < above
    assert above - below < above * Fraction(10) ** (2 - digits)
    assert float(below) == pytest.approx(law.at_least(tau), rel=1e-7)


@pytest.mark.slow
@settings(max_examples=60)
@given(rates, st.integers(1, 20), st.integers(1, 30), st.integers(1, 3))
def test_bounds_of_the_distribution_hold_the_exact_one_and_no_more_than_two_units(law, tau, n, words):
    made, unit = distribution(n, law, tau, words), 2 ** (64 * words)
    assert made.below[-1] == made.above[-1] == unit or len(made.below) <= n
    for (low, high), below, above in zip(distribution_between(n, law, tau), made.below, made.above):
        assert below <= low * unit <= high * unit <= above <= below + 2
    if len(made.below) <= n:  # cut where the rest is less than a unit
        assert unit - made.below[-1] <= 2


@pytest.mark.slow
@settings(max_examples=60)
@given(rates, st.integers(1, 8), st.integers(1, 30), st.data())
def test_words_that_agree_with_the_distribution_are_decided_by_the_next(law, tau, n, data):
    """U is one unit below, at and above the digits of some F(k), to 64, 128 and 192 bits."""
    exact = distribution_between(n, law, tau)
    k, words = data.draw(st.integers(0, n)), data.draw(st.integers(1, 3))
    at = math.floor(exact[k][0] * 2 ** (64 * words)) + data.draw(st.integers(-1, 1))
    at = min(max(at, 0), 2 ** (64 * words) - 1)
    rest = data.draw(st.integers(0, 2**128 - 1))
    u = Fraction(at << 128 | rest, 2 ** (64 * words + 128))
    digits = (at << 128 | rest).to_bytes(8 * words + 16, "big")
    source = Words([int.from_bytes(digits[i : i + 8], "big") for i in range(0, len(digits), 8)])
    expected = next(i for i, (low, _) in enumerate(exact) if u < low)
    assert draw_binomial(n, law, tau, source) == expected


def test_what_64_bits_cannot_decide_is_decided_by_more():
    """All ones lie past the end of every table: not before another word is it known how far."""
    source = Words([2**64 - 1, 2**64 - 1, 5, 7])
    assert draw_binomial(10**30, LAW, 140, source) > 20
    assert source.words == [7]
    source = Words([2**64 - 1, 5, 7])
    draw_binomial(10**30, LAW, 140, source)
    assert source.words == [7]


@pytest.mark.parametrize(("n", "tau"), [(10**30, 130), (2**128, 170), (10**12, 40), (10**30 // 1951, 110)])
def test_more_digits_refine_the_same_distribution_also_for_huge_numbers(n, tau):
    one, three = distribution(n, LAW, tau, 1), distribution(n, LAW, tau, 3)
    for below, above, low, high in zip(one.below, one.above, three.below, three.above):
        assert below << 128 <= low <= high <= above << 128
        assert above - below <= 2
        assert high - low <= 2
    mean = n * float(chance_of_at_least(LAW, tau, 30).below)
    poisson = stats.poisson(mean).cdf(np.arange(len(one.below)))
    assert np.array([below / 2**64 for below in one.below]) == pytest.approx(poisson, rel=1e-9, abs=1e-15 + mean / n)


def chi_square(draws, law):
    """p-value of draws against a law of scipy, in classes of at least 30 expected."""
    low, high = law.ppf([40 / len(draws), 1 - 40 / len(draws)])
    edges = np.unique(np.linspace(low, high, 40).astype(int))
    edges = edges[np.append(True, np.diff(law.cdf(edges)) * len(draws) > 30)]
    expected = np.diff(np.concatenate([[0], law.cdf(edges), [1]])) * len(draws)
    observed = np.histogram(draws, np.concatenate([[-np.inf], edges + 0.5, [np.inf]]))[0]
    keep = expected >= 30
    observed, expected = observed[keep], expected[keep]
    return stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue


def draws_of(n, law, tau, size, seed=0):
    source = UnsafeSeededBytes(seed)
    return np.array([draw_binomial(n, law, tau, source) for _ in range(size)])


CASES = [(7, 1), (40, 3), (1000, 1), (5000, 2), (10**6, 12), (10**9, 20)]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "tau"), CASES)
def test_draws_have_the_binomial_law(n, tau):
    draws = draws_of(n, LAW, tau, 10_000)
    assert chi_square(draws, stats.binom(n, LAW.at_least(tau))) > FALSE_ALARM
    for off in (0.9, 1.1):
        assert chi_square(draws, stats.binom(n, off * LAW.at_least(tau))) < FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize(("n", "tau"), [(10**30, 130), (10**30, 126), (2**128, 160)])
def test_draws_from_huge_numbers_of_trials_have_the_poisson_limit(n, tau):
    """Which is as far away as p, less than 1e-25."""
    mean = n * LAW.at_least(tau)
    draws = draws_of(n, LAW, tau, 10_000 if mean < 20 * BLOCK else 3000)
    assert chi_square(draws, stats.poisson(mean)) > FALSE_ALARM
    for off in (0.9, 1.1):
        assert chi_square(draws, stats.poisson(off * mean)) < FALSE_ALARM


def test_large_numbers_come_in_blocks_that_add_up_to_all_trials(monkeypatch):
    asked = []
    monkeypatch.setattr("dpoutlier.noise.binomial._draw", lambda n, *_: asked.append(n) or 1)
    assert draw_binomial(10**30, LAW, 110, UnsafeSeededBytes(0)) == len(asked) > 100
    assert sum(asked) == 10**30
    assert max(asked) - min(asked) <= 1
    assert (max(asked) - 1) * LAW.at_least(110) < BLOCK


@pytest.mark.parametrize("n", [1, 2, 3, 7, 1000, 2**64 - 1, 2**64, 2**64 + 1, 10**30, 2**128])
def test_numbers_below_any_limit_are_uniform(n):
    numbers = cell_numbers(draw_below(n, 20_000, UnsafeSeededBytes(1)))
    assert max(numbers) < n
    classes = min(n, 50)
    counted = np.bincount([number * classes // n for number in numbers], minlength=classes)
    shares = np.diff([-(-n * i // classes) / n for i in range(classes + 1)])
    assert classes == 1 or stats.chisquare(counted, 20_000 * shares).pvalue > FALSE_ALARM
    if n > 2**60:
        low = np.bincount([number % 64 for number in numbers], minlength=64)
        assert stats.chisquare(low).pvalue > FALSE_ALARM


@given(st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), st.integers(0, 100))
def test_a_set_of_numbers_is_ascending_and_has_its_size(n_and_size, seed):
    n, size = n_and_size
    numbers = cell_numbers(draw_distinct_below(n, size, UnsafeSeededBytes(seed)))
    assert numbers == sorted(set(numbers))
    assert len(numbers) == size
    assert not numbers or numbers[-1] < n


@pytest.mark.slow
def test_all_sets_of_a_size_are_equally_likely():
    source = UnsafeSeededBytes(3)
    sets = [tuple(cell_numbers(draw_distinct_below(7, 4, source))) for _ in range(20_000)]
    counted = np.unique(sets, axis=0, return_counts=True)[1]
    assert len(counted) == math.comb(7, 4)
    assert stats.chisquare(counted).pvalue > FALSE_ALARM
