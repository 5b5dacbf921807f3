"""Permute-and-flip: its coins word for word, its law by chi-square, and what it costs by exact probabilities."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.kernels.permute_and_flip import RAN_OUT, TABLE_ENDS, flip_coins
from dpoutlier.noise import laplace
from dpoutlier.noise import permute_and_flip as choice
from dpoutlier.noise.permute_and_flip import permute_and_flip, uniform_below
from dpoutlier.noise.sources import UnsafeSeededBytes
from naive_choice import exact_law, integral_law, naive_choice, naive_coin

# A test of a correct sampler fails with at most this probability, and its seed is fixed besides.
FALSE_ALARM = 1e-7
rates = st.builds(Fraction, st.integers(1, 2**60), st.integers(1, 2**45).map(lambda n: 2**16 * n))
EVERY = 2**64


# Coins ------------------------------------------------------------------------------------------------------------------------


def flipped(gaps, rate, words, limits=None):
    """What the kernel says of (coins, first coin not flipped, words taken, why it stopped)."""
    up = np.zeros(len(gaps), bool)
    limits = choice._limits(rate, choice.LIMITS) if limits is None else limits
    ratio = np.uint64(rate.numerator % EVERY), np.uint64(rate.denominator)
    return up, *flip_coins(np.array(gaps, np.uint64), *ratio, limits, words, up, 0)


def words_of(seed, n):
    return np.random.default_rng(seed).integers(0, EVERY, n, dtype=np.uint64)


class Unreduced:
    """part / whole, not reduced, as the kernel has it."""

    def __init__(self, part, whole):
        self.numerator, self.denominator = part, whole

    def __gt__(self, other):
        return self.numerator > other * self.denominator

    def __lt__(self, other):
        return self.numerator < other * self.denominator

    def __ge__(self, other):
        return not self < other

    def __sub__(self, other):
        return Unreduced(self.numerator - other * self.denominator, self.denominator)


@settings(max_examples=300)
@given(rates, st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 100), min_size=1, max_size=20), st.integers(0, 2**32))
def test_coins_take_the_same_words_to_the_same_sides_as_the_oracle(rate, gaps, seed):
    words = words_of(seed, 4000)
    stream = iter(words.tolist())
    expected = [naive_coin(Unreduced(rate.numerator * gap, rate.denominator), stream) for gap in gaps]
    up, done, used, why = flipped(gaps, rate, words)
    assert (up.tolist(), done, why) == (expected, len(gaps), 0)
    assert used == len(words) - len(list(stream))


@given(st.integers(0, 2**32), st.integers(0, 60))
def test_a_coin_that_finds_too_few_words_starts_again_from_its_first(seed, cut):
    gaps, rate, words = list(range(0, 60, 3)), Fraction(1, 7), words_of(seed, 1000)
    whole, *_ = flipped(gaps, rate, words)
    up, done, used, why = flipped(gaps, rate, words[:cut])
    assert why == (RAN_OUT if done < len(gaps) else 0)
    rest, *_ = flipped(gaps[done:], rate, words[used:])
    assert [*up[:done], *rest] == whole.tolist()


class Recorded:
    """A seeded source that keeps what was read."""

    def __init__(self, seed):
        self.source, self.bytes = UnsafeSeededBytes(seed), b""

    def read(self, n):
        self.bytes += self.source.read(n)
        return self.bytes[-n:]


@pytest.mark.parametrize("limits", [1, 64])
@pytest.mark.parametrize("most_words", [7, 2**20])
def test_reads_have_no_seams_and_a_table_of_limits_that_ends_is_made_longer(monkeypatch, limits, most_words):
    monkeypatch.setattr(choice, "LIMITS", limits)
    monkeypatch.setattr(laplace, "MAX_WORDS", most_words)
    source, gaps, rate = Recorded(3), list(range(400)), Fraction(2, 131)
    up = choice._flipped(np.array(gaps, np.uint64), rate, source)
    stream = iter(np.frombuffer(source.bytes, "<u8").tolist())
    assert up.tolist() == [naive_coin(Unreduced(2 * gap, 131), stream) for gap in gaps]
    assert up[150:].any()  # with an exponent above 2, hence past the first two limits


def test_a_table_that_ends_decides_no_coin():
    up, done, _, why = flipped([10**6] * 2000, Fraction(1), words_of(1, 20_000), choice._limits(Fraction(1), 1))
    assert why == TABLE_ENDS
    assert done < len(up)


@given(rates, st.integers(1, 70))
def test_limits_are_the_largest_gaps_below_each_whole_number(rate, n):
    limits = choice._limits(rate, n).tolist()
    for i, limit in enumerate(limits):
        assert rate * limit < i + 1
        assert rate * (limit + 1) >= i + 1 or limit == EVERY - 1


@pytest.mark.parametrize("exponent", [Fraction(1, 100), Fraction(1, 3), Fraction(1), Fraction(9, 4), Fraction(19, 3)])
def test_a_coin_is_up_with_its_probability_and_five_percent_more_would_be_noticed(exponent):
    n, gap = 400_000, 12
    up = int(choice._flipped(np.full(n, gap, np.uint64), exponent / gap, UnsafeSeededBytes(11)).sum())
    assert stats.binomtest(up, n, math.exp(-exponent)).pvalue > FALSE_ALARM
    assert stats.binomtest(up, n, min(math.exp(-exponent * Fraction(21, 20)), 1.0)).pvalue < 1e-3
    assert up < n


def test_a_uniform_integer_is_uniform_and_never_too_large():
    source = UnsafeSeededBytes(5)
    drawn = np.bincount([uniform_below(7, source) for _ in range(70_000)], minlength=7)
    assert len(drawn) == 7
    assert stats.chisquare(drawn).pvalue > FALSE_ALARM
    assert uniform_below(1, source) == 0


def test_words_past_the_last_whole_share_are_rejected():
    class Given:
        def __init__(self, *words):
            self.words = list(words)

        def read(self, n):
            return self.words.pop(0).to_bytes(n, "little")

    n = 2**63 + 1
    assert uniform_below(n, Given(EVERY - 1, n, 5)) == 5
    assert uniform_below(n, Given(n - 1)) == n - 1


# The law ----------------------------------------------------------------------------------------------------------------------

CHOICES = {
    "two": ([0, -3], Fraction(1, 3)),
    "ties": ([0, -1, -3, 0], Fraction(1, 3)),
    "one stands out": ([5, -1, -1, -1, -2], Fraction(2, 7)),
    "a run": ([-2] * 6 + [0], Fraction(1, 2)),
}
EACH = pytest.mark.parametrize(("utilities", "rate"), CHOICES.values(), ids=CHOICES)


def p_value(chosen, law):
    observed = np.bincount(chosen, minlength=len(law))
    return stats.chisquare(observed, np.array(law) * len(chosen) / sum(law)).pvalue


@pytest.mark.slow
@EACH
def test_the_choice_has_its_exact_law(utilities, rate):
    source, law = UnsafeSeededBytes(1), exact_law(utilities, rate)
    assert integral_law(utilities, rate) == pytest.approx(law, abs=1e-12)
    assert sum(law) == pytest.approx(1)
    chosen = [permute_and_flip(np.array(utilities), rate, source) for _ in range(30_000)]
    assert p_value(chosen, law) > FALSE_ALARM
    assert p_value(chosen, exact_law(utilities, rate * 2)) < FALSE_ALARM  # a rate twice as large would be noticed


@EACH
def test_all_coins_at_once_are_the_definition_in_a_random_order(utilities, rate):
    words = iter(words_of(2, 2_000_000).tolist())
    chosen = [naive_choice(utilities, rate, words) for _ in range(30_000)]
    assert p_value(chosen, exact_law(utilities, rate)) > FALSE_ALARM


@given(st.lists(st.integers(-(2**61), 2**61), min_size=1, max_size=50))
def test_at_a_high_rate_the_best_is_chosen(utilities):
    chosen = permute_and_flip(np.array(utilities, np.int64), Fraction(2**20), UnsafeSeededBytes(0))
    assert utilities[chosen] == max(utilities)


def test_the_law_does_not_depend_on_where_candidates_stand_in_a_long_list():
    """The good ones are the first, one in the middle, and the last."""
    utilities = np.full(9_000, -(10**12))
    good = [0, 5_432, 8_999]
    utilities[good] = 7
    source = UnsafeSeededBytes(4)
    chosen = [permute_and_flip(utilities, Fraction(50, 10**12), source) for _ in range(900)]
    assert set(chosen) == set(good)  # another one has a probability below 900 * 9,000 * exp(-50)
    assert stats.chisquare([chosen.count(r) for r in good]).pvalue > FALSE_ALARM


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(-1), Fraction(1, 2**62)])
def test_a_rate_that_cannot_be_used_is_refused(rate):
    with pytest.raises(InvalidParameterError, match="rate must be"):
        permute_and_flip(np.zeros(2, np.int64), rate, UnsafeSeededBytes(0))


def test_a_choice_needs_a_candidate():
    with pytest.raises(InvalidParameterError, match="at least one candidate"):
        permute_and_flip(np.zeros(0, np.int64), Fraction(1), UnsafeSeededBytes(0))


# What it costs ----------------------------------------------------------------------------------------------------------------


def largest_log_ratio(n, rate, changes):
    """Over all utilities of n candidates in -4..0, all changes of each within ``changes``, and all outcomes."""
    largest = 0.0
    for utilities in itertools.product(range(-4, 1), repeat=n):
        if max(utilities) < 0:
            continue  # the same as one that is shifted
        law = exact_law(utilities, rate)
        for change in itertools.product(changes, repeat=n):
            other = exact_law([u + c for u, c in zip(utilities, change)], rate)
            largest = max(largest, *(abs(math.log(p / q)) for p, q in zip(law, other)))
    return largest


@pytest.mark.parametrize(("n", "changes"), [(2, (-1, 0, 1)), (3, (-1, 1)), (4, (-1, 1)), (3, (-1, 2)), (2, (0, 3))])
@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1), Fraction(3)])
def test_the_largest_log_ratio_is_the_rate_times_the_length_of_the_interval_of_changes(n, changes, rate):
    found, cost = largest_log_ratio(n, rate, changes), float(rate) * (max(changes) - min(changes))
    assert found == pytest.approx(cost, rel=1e-9)
    # A mechanism at twice the rate, or one that forgets that some utilities may rise while others fall, costs more than is charged.
    assert largest_log_ratio(n, 2 * rate, changes) > 1.5 * cost
    assert max(map(abs, changes)) == max(changes) - min(changes) or found > 1.2 * float(rate) * max(map(abs, changes))
