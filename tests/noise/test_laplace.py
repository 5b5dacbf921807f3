"""The noise: SipHash by the book, the sampler word for word, its law by chi-square, and no low bits to attack."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import naive
from dpoutlier import DPForest, DPGridKNN, DPMarginals
from dpoutlier.counts.base import noisy_counts
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.kernels.laplace import RAN_OUT, draw, one_in
from dpoutlier.kernels.siphash import siphash_pairs, siphash_words
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.noise.laplace_table import guided_table
from dpoutlier.noise.mechanism import Cost, Sensitivity
from dpoutlier.noise.sources import SystemBytes, UnsafeSeededBytes, byte_source
from dpoutlier.partitions.base import cell_ids
from dpoutlier.tables.rows import Rows
from dpoutlier.trusted.release import release_keyed
from low_bits import unsafe_float_laplace
from noise_laws import DRAWS, EPSILONS, FALSE_ALARM, NOTHING, chi_square, dense_draws, keyed, law_of, words_of_64_bits


def test_the_oracle_is_siphash():
    """Test vector of the SipHash paper, Appendix A."""
    assert naive.siphash_2_4(bytes(range(16)), bytes(range(15))) == 0xA129CA6149BE45E5


@given(st.binary(min_size=16, max_size=16), st.tuples(words_of_64_bits, words_of_64_bits, words_of_64_bits))
def test_the_kernel_is_siphash_of_24_bytes(key, words):
    keys = np.frombuffer(key, "<u8")
    message = b"".join(word.to_bytes(8, "little") for word in words)
    assert int(siphash_words(keys[0], keys[1], *map(np.uint64, words))) == naive.siphash_2_4(key, message)


@settings(max_examples=300)
@given(st.integers(2**10, 2**60), st.integers(0, 2**32))
def test_the_sampler_takes_the_same_words_to_the_same_noise_as_the_oracle(rate, seed):
    words = np.random.default_rng(seed).integers(0, 2**64, 4000, dtype=np.uint64)
    stream = iter(words.tolist())
    at = 0
    for _ in range(50):
        expected = naive.discrete_laplace(rate, stream)
        noise, at = draw(np.uint64(rate), words, len(words), at)
        assert noise == expected
    assert next(stream) == words[at]


def test_a_word_past_the_last_whole_share_is_drawn_again():
    """Without rejection 1 of 3 would come up a little too rarely."""
    last, before_last = np.array([2**64 - 1, 0], np.uint64), np.array([2**64 - 2, 0], np.uint64)
    assert one_in(3, last, 2, 0) == (True, 2)
    assert one_in(3, last, 1, 0)[1] == RAN_OUT
    assert one_in(3, before_last, 2, 0) == (False, 1)


def test_words_that_end_in_the_middle_of_a_draw_are_read_again_from_its_start():
    """Whatever the size of the rounds, the stream gives the same noise: no draw is favoured for being short."""
    words = np.random.default_rng(1).integers(0, 2**64, 3000, dtype=np.uint64)
    rate = np.uint64(2**38)
    whole, at = [], 0
    for _ in range(100):
        noise, at = draw(rate, words, len(words), at)
        whole.append(noise)
    pieces, at = [], 0
    for _ in range(100):
        stop = at
        then = RAN_OUT
        while then == RAN_OUT:
            stop += 1
            noise, then = draw(rate, words, stop, at)
        pieces.append(noise)
        at = then
    assert pieces == whole


def test_seams_between_reads_do_not_show(monkeypatch):
    class Counting(UnsafeSeededBytes):
        """One fixed stream, however it is cut into reads."""

        def __init__(self):
            self.stream, self.at = np.random.default_rng(2).bytes(8 * 200_000), 0

        def read(self, n):
            part, self.at = self.stream[self.at : self.at + n], self.at + n
            return part

    law = law_of(1)
    together = law.draw(5000, Counting())
    monkeypatch.setattr("dpoutlier.noise.laplace.MAX_WORDS", 7)
    assert (law.draw(5000, Counting()) == together).all()


def words_of_cell(key, cell, version):
    """The words of a cell: of version 2, the first is a hash of the cell alone."""
    if version == 2:
        yield naive.siphash_2_4(key, cell.to_bytes(16, "little"))
    counter = version - 1
    while True:
        yield naive.siphash_2_4(key, cell.to_bytes(16, "little") + counter.to_bytes(8, "little"))
        counter += 1


@given(st.binary(min_size=32, max_size=32), st.integers(0, 2**128 - 1), st.sampled_from(EPSILONS))
def test_keyed_noise_is_the_oracle_on_the_words_of_the_cell(key, cell, epsilon):
    law = law_of(epsilon)
    first = keyed(law, 1, key)
    words = words_of_cell(first.subkey().tobytes(), cell, 1)
    assert noisy_counts(first, cell_ids([cell]))[0] == naive.discrete_laplace(law.rate_units, words)
    second = keyed(law, 2, key)
    words = words_of_cell(second.subkey().tobytes(), cell, 2)
    expected = naive.discrete_laplace_by_distribution(law.rate, guided_table(law.rate).n, words)
    assert noisy_counts(second, cell_ids([cell]))[0] == expected


@given(st.binary(min_size=16, max_size=16), st.lists(st.tuples(words_of_64_bits, words_of_64_bits), max_size=20))
def test_the_batch_is_siphash_of_16_bytes(key, pairs):
    keys, words = np.frombuffer(key, "<u8"), np.array(pairs, np.uint64).reshape(-1, 2).T.copy()
    out = np.empty(len(pairs), np.uint64)
    siphash_pairs(keys[0], keys[1], words[0], words[1], out)
    assert out.tolist() == [naive.siphash_2_4(key, b"".join(w.to_bytes(8, "little") for w in pair)) for pair in pairs]


def keyed_draws(law, n, seed=0):
    held = release_keyed(NOTHING, law, UnsafeSeededBytes(seed))
    return noisy_counts(held, cell_ids(range(n))).astype(np.int64)


SOURCES = pytest.mark.parametrize("draws", [dense_draws, keyed_draws])


@SOURCES
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_noise_has_its_exact_law(draws, epsilon):
    law = law_of(epsilon)
    assert chi_square(draws(law, DRAWS), law) > FALSE_ALARM


@SOURCES
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("factor", [Fraction(9, 10), Fraction(11, 10)])
def test_a_scale_ten_percent_off_is_noticed(draws, epsilon, factor):
    assert chi_square(draws(law_of(epsilon * factor), DRAWS), law_of(epsilon)) < FALSE_ALARM


FITS = {
    "grid": lambda: DPGridKNN(1, features=(0, 1), bins=64),
    "forest": lambda: DPForest(20, features=(0, 1), n_trees=32, depth=12),
    "marginals": lambda: DPMarginals(3, features=(0, 1), bins=2**15),
}


@pytest.mark.parametrize("make", FITS.values(), ids=FITS)
def test_what_a_fit_releases_has_the_noise_that_was_charged(make):
    """Counts of a whole fit, less the exact ones, for every partition; a scale 10 % off would be noticed."""
    rows = np.random.default_rng(0).uniform(size=(5000, 3))
    model = make().fit(rows).model_
    exact = np.zeros(model.partition.n_cells, np.int64)
    model.partition.tally(Rows(rows, model.domain)[:], exact)
    assert exact.sum() == 5000 * model.partition.cells_per_row
    noise, (charge,) = model.counts.counts - exact, model.charges
    assert charge.rate * charge.sensitivity.l1 <= model.guarantee.epsilon
    assert chi_square(noise, DiscreteLaplace(charge.rate)) > FALSE_ALARM
    for factor in (Fraction(9, 10), Fraction(11, 10)):
        assert chi_square(noise, DiscreteLaplace.costing(Cost(charge.rate * factor), Sensitivity(1))) < FALSE_ALARM


@SOURCES
def test_tails_are_as_heavy_as_they_should_be(draws):
    law = law_of(1)
    noise = np.abs(draws(law, DRAWS))
    for value in (4, 8):
        expected = 2 * law.at_least(value)
        assert stats.binomtest(int((noise >= value).sum()), DRAWS, expected).pvalue > FALSE_ALARM


def independent(a, b):
    """p-value of a contingency table of two paired samples."""
    table = np.histogram2d(np.clip(a, -3, 3), np.clip(b, -3, 3), bins=np.arange(-3.5, 4))[0]
    return stats.chi2_contingency(table).pvalue


@SOURCES
def test_neighbouring_cells_and_different_fits_are_independent(draws):
    law = law_of(1)
    one, other = draws(law, DRAWS, seed=0), draws(law, DRAWS, seed=1)
    assert independent(one[:-1], one[1:]) > FALSE_ALARM
    assert independent(one, other) > FALSE_ALARM
    assert independent(one, one) < FALSE_ALARM  # the test can fail


def test_the_same_key_with_a_fresh_salt_gives_independent_noise():
    """With key and salt both reused, the difference of two fits would be exact."""
    law, key = law_of(1), bytes(32)
    source = UnsafeSeededBytes(5)
    ids = cell_ids(range(DRAWS))
    one, other = (noisy_counts(release_keyed(NOTHING, law, source, key=key), ids) for _ in range(2))
    assert independent(one, other) > FALSE_ALARM


GOLDEN = {
    1: [19, 2, 162, 24, 93, 102, -55, 139],
    2: [7, -14, -27, -56, -27, 101, -15, -21],
}


@pytest.mark.parametrize("version", GOLDEN)
def test_the_keyed_noise_of_each_version_is_frozen(version):
    """The noise of a secret file must stay the same: these values may never change."""
    salt = bytes.fromhex("ee976d66208696567c8b48f878f8026a")
    held = keyed(law_of(Fraction("0.015")), version, key=bytes(range(32)), salt=salt)
    cells = [0, 1, 2, 10**6, 2**63, 2**64, 10**30, 2**128 - 1]
    assert noisy_counts(held, cell_ids(cells)).astype(int).tolist() == GOLDEN[version]


def certainly_from_count_0(outputs):
    """Mironov's attack: which outputs cannot come from count 1.

    Between 0 and 1/2 an output of count 1 is 1 minus a float between 1/2 and 1, hence a multiple of 2**-53. The floats there
    are finer, and outputs of count 0 use them.
    """
    inside = (outputs > 0) & (outputs < 0.5)
    return inside & (np.mod(outputs * 2.0**53, 1) != 0)


def test_low_bits_tell_counts_apart_under_float_noise():
    noise = unsafe_float_laplace(1.0, 100_000, UnsafeSeededBytes(1))
    from_0, from_1 = certainly_from_count_0(noise), certainly_from_count_0(1 + noise)
    assert from_0.mean() > 0.1  # one look in ten gives the count away for certain, whatever epsilon promises
    assert not from_1.any()


@SOURCES
def test_low_bits_tell_nothing_under_our_noise(draws):
    noise = draws(law_of(1), DRAWS)
    zero, one = noise[::2], noise[1::2] + 1
    assert not certainly_from_count_0(zero.astype(float)).any()
    # The last bit differs as often as the law says, and no output belongs to one count alone.
    assert set(range(-6, 8)) <= set(zero.tolist()) & set(one.tolist())
    a = math.exp(-1)
    odd = 2 * a / (1 + a) ** 2
    assert stats.binomtest(int((zero % 2).sum()), len(zero), odd).pvalue > FALSE_ALARM
    assert stats.binomtest(int((one % 2).sum()), len(one), 1 - odd).pvalue > FALSE_ALARM


@pytest.mark.system_noise
def test_the_systems_generator_is_read_afresh_after_a_fork():
    import multiprocessing

    SystemBytes().read(16)  # bytes kept from this read would be the same in all children
    with multiprocessing.get_context("fork").Pool(2) as pool:
        draws = pool.map(_draw_in_child, [0, 1], chunksize=1)
    assert draws[0] != draws[1]


def _draw_in_child(_):
    return law_of(Fraction("0.015")).draw(200, SystemBytes()).tolist()


@pytest.mark.system_noise
def test_seeds_repeat_and_the_system_does_not():
    assert byte_source(7).read(16) == byte_source(7).read(16)
    assert byte_source(7).read(16) != byte_source(8).read(16)
    assert byte_source(None).read(16) != byte_source(None).read(16)


@pytest.mark.system_noise
def test_without_a_seed_every_byte_is_the_systems(monkeypatch):
    """Another generator would not be noticed by what it draws: it is uniform too, and may be predicted."""
    monkeypatch.setattr("os.urandom", bytes)
    assert byte_source(None).read(24) == bytes(24)


@given(st.fractions(Fraction(1, 10**6), 1000), st.integers(1, 64))
def test_rates_are_rounded_down_and_little(epsilon, sensitivity):
    law = DiscreteLaplace.costing(Cost(epsilon), Sensitivity(sensitivity))
    assert 0 <= epsilon - law.rate * sensitivity <= Fraction(sensitivity, 2**40)


def test_an_epsilon_too_small_for_any_use_is_refused():
    with pytest.raises(InvalidParameterError, match="too small"):
        DiscreteLaplace.costing(Cost(Fraction(1, 2**40)), Sensitivity(1))
