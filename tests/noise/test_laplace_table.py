"""The guided table: the same law as the first sampler, word for word by the distribution function, digit for digit."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import naive
from dpoutlier.counts.base import noisy_counts
from dpoutlier.kernels.counts import look_up, new_scratch
from dpoutlier.kernels.laplace import RAN_OUT
from dpoutlier.kernels.laplace_by_table import UNDECIDED, guided_draw, guided_fill
from dpoutlier.noise import laplace_table
from dpoutlier.noise.laplace_table import guided_table, has_table
from dpoutlier.noise.sources import UnsafeSeededBytes
from dpoutlier.partitions.base import cell_ids
from dpoutlier.trusted.release import release_keyed
from noise_laws import DRAWS, EPSILONS, FALSE_ALARM, NOTHING, chi_square, dense_draws, keyed, law_of, words_of_64_bits

RATES = st.one_of(
    st.sampled_from([*EPSILONS, Fraction(44), Fraction(60)]), st.fractions(Fraction(1, 100), 30, max_denominator=2**20)
).map(law_of)


def digits_of(threshold, n):
    """The first n words of a number in [0, 1), given as a whole number of 2**-BITS."""
    return [(threshold >> (naive.BITS - 64 * (i + 1))) & (2**64 - 1) for i in range(n)]


def complement(threshold):
    return (1 << naive.BITS) - threshold


@settings(max_examples=150)
@given(RATES, st.data())
def test_the_table_takes_the_same_words_to_the_same_noise_as_the_oracle(law, data):
    """Words anywhere, and words that agree with a value of the distribution function in one or two digits."""
    table = guided_table(law.rate, digits=4)
    n = table.n
    tail = naive.tails(law.rate, n)[data.draw(st.integers(1, min(n, 60))) - 1]
    exact = digits_of(tail if data.draw(st.booleans()) else complement(tail), 3)
    agree = data.draw(st.integers(0, 3))
    off = data.draw(st.integers(-2, 2))
    words = [*exact[:agree], *([min(max(exact[agree] + off, 0), 2**64 - 1)] if agree < 3 else [])]
    words += data.draw(st.lists(words_of_64_bits, min_size=60, max_size=60))
    words += [2**62] * 10  # an end: words of zeros alone would begin anew for ever
    stream = iter(words)
    expected = naive.discrete_laplace_by_distribution(law.rate, n, stream)
    noise, at = guided_draw(table, np.array(words, np.uint64), len(words), 0)
    assert (noise, at) == (expected, len(words) - len(list(stream)))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("side", [0, 2**64 - 1])
def test_past_the_table_the_noise_begins_anew(epsilon, side):
    """A first word at either end, then draws of which the negative ones do not count, and perhaps the end once more."""
    law = law_of(epsilon)
    table = guided_table(law.rate)
    rng = np.random.default_rng(0)
    lengths = set()
    for _ in range(100):
        words = rng.integers(0, 2**64, 60, dtype=np.uint64)
        words[0] = side
        words[1] = rng.choice(np.array([0, 2**64 - 1, words[1]], np.uint64))
        stream = iter(words.tolist())
        expected = naive.discrete_laplace_by_distribution(law.rate, table.n, stream)
        noise, at = guided_draw(table, words, len(words), 0)
        assert (noise, at) == (expected, len(words) - len(list(stream)))
        assert abs(noise) >= table.n
        assert (noise < 0) == (side == 0)
        lengths.add(int(at))
    assert len(lengths) >= 2


def test_a_word_that_equals_the_table_is_decided_by_the_next_or_by_more_digits():
    law = law_of(1)
    first, second, third = digits_of(naive.tails(law.rate, 1)[0], 3)  # between -1 and 0
    table = guided_table(law.rate)
    below, above = np.array([first, second - 1], np.uint64), np.array([first, second + 1], np.uint64)
    assert guided_draw(table, below, 2, 0) == (-1, 2)
    assert guided_draw(table, above, 2, 0) == (0, 2)
    equal = np.array([first, second, third - 1], np.uint64)
    assert guided_draw(table, equal, 3, 0)[1] == UNDECIDED
    assert guided_draw(guided_table(law.rate, digits=3), equal, 3, 0) == (-1, 3)
    assert guided_draw(table, equal, 1, 0)[1] == RAN_OUT


def test_a_draw_that_needs_more_digits_gets_them_and_changes_no_other(monkeypatch):
    """With tables of one digit a word that equals an entry, made to come up, asks for a longer table."""
    law = law_of(1)
    words = np.random.default_rng(0).integers(0, 2**64, 300, dtype=np.uint64)
    words[5], words[6] = digits_of(naive.tails(law.rate, 1)[0], 2)
    words[6] += np.uint64(1)

    class Fixed:
        at = 0

        def read(self, n):
            part = words.astype("<u8").tobytes()[self.at : self.at + n]
            self.at += n
            return part

    expected = law.draw(100, Fixed())
    monkeypatch.setattr("dpoutlier.noise.laplace.DIGITS", 1)
    asked = []
    monkeypatch.setattr(
        "dpoutlier.noise.laplace.guided_table", lambda rate, n: asked.append(n) or guided_table(rate, n)
    )
    assert (law.draw(100, Fixed()) == expected).all()
    assert expected[5] == 0
    assert asked == [1, 2]


def test_a_stream_or_a_table_too_short_is_noticed_and_never_guessed():
    """Tails take more words than one: a stream of one word must be refused, and then lengthened."""
    law = law_of(Fraction("0.3"))
    held = keyed(law, 2)
    ids = cell_ids(range(400_000))
    low, high, out = ids[:, 1].copy(), ids[:, 0].copy(), np.empty(len(ids), np.int64)
    assert not look_up(held.table(), low, high, new_scratch(len(ids), 1), out)
    assert look_up(held.table(), low, high, new_scratch(len(ids), 64), out)
    assert np.abs(out).max() > guided_table(law.rate).n  # the tail did come up
    assert not look_up(keyed(law, 1).table(), low, high, new_scratch(len(ids), 5), out)


@pytest.mark.parametrize("epsilon", [*EPSILONS, 44, 100, Fraction(1, 2000)])
def test_tables_are_exact_to_the_last_digit(epsilon):
    law = law_of(epsilon)
    table = guided_table(law.rate)
    for j, tail in enumerate(naive.tails(law.rate, table.n), start=1):
        assert table.digits[table.n - j].tolist() == digits_of(tail, 2)
        assert table.digits[table.n + j - 1].tolist() == digits_of(complement(tail), 2)
    assert (np.diff(table.first.astype(object))[:-1] > 0).all()  # no two share a first digit: one comparison decides
    assert tail >> (naive.BITS - 16) == 0  # so rarely is a draw past the table


def test_noise_that_never_comes_up_has_a_table_too():
    law = law_of(2**20)
    assert guided_table(law.rate).n == 1
    assert not law.draw(1000, UnsafeSeededBytes(0)).any()


def test_too_few_bits_are_noticed_and_more_are_taken(monkeypatch):
    """Without guard bits the last digits of the powers would be wrong."""
    law = law_of(Fraction("0.3"))
    expected = guided_table(law.rate)
    monkeypatch.setattr(laplace_table, "GUARD_BITS", 8)
    assert laplace_table._tails(law.rate, expected.n, 2)[0] == int.from_bytes(
        expected.digits[expected.n - 1].astype(">u8").tobytes(), "big"
    )


def test_both_samplers_have_the_same_law():
    """Sampler 1 and sampler 2 from one stream of words, by a two-sample chi-square; a scale ten percent off is noticed."""

    def histogram(noise):
        return np.bincount(np.clip(noise, -20, 20) + 20, minlength=41)

    for epsilon in (Fraction(1), Fraction("0.3")):
        law = law_of(epsilon)
        ids = cell_ids(range(DRAWS))
        one, two = (histogram(noisy_counts(keyed(law, version), ids).astype(int)) for version in (1, 2))
        off = histogram(noisy_counts(keyed(law_of(epsilon * Fraction(9, 10)), 2), ids).astype(int))
        assert stats.chi2_contingency(np.stack([one, two])[:, one + two > 30]).pvalue > FALSE_ALARM
        assert stats.chi2_contingency(np.stack([one, off])[:, one + off > 30]).pvalue < FALSE_ALARM


def test_noise_too_wide_for_a_table_takes_the_first_sampler():
    wide = law_of(Fraction(1, 3000))
    assert not has_table(wide.rate)
    assert release_keyed(NOTHING, wide, UnsafeSeededBytes(0)).sampler_version == 1
    assert release_keyed(NOTHING, law_of(1), UnsafeSeededBytes(0)).sampler_version == 2
    assert chi_square(dense_draws(wide, DRAWS), wide) > FALSE_ALARM


def test_a_round_ends_between_draws():
    table, words = guided_table(law_of(1).rate), np.random.default_rng(3).integers(0, 2**64, 50, dtype=np.uint64)
    out = np.zeros(100, np.int64)
    done, used, why = guided_fill(table, words, out, 0)
    assert (why, used <= 50, done) == (RAN_OUT, True, 50)
