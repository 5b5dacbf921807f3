"""Synthetic data, what a user would do instead: its noise has the size that its budget says, and its samples follow the data."""

import math

import numpy as np
import pytest

from experiments.measure import synthetic
from experiments.measure.synthetic import (
    BINS,
    DELTA,
    Binned,
    _noisy,
    _outwards,
    _spanning_tree,
    rho_of,
    sample_by_marginals,
    sample_by_tree,
)

N = 4000


@pytest.fixture(scope="module")
def binned():
    """Five features: 0 and 3 tell each other, 1 follows 4; 2 is on its own."""
    rng = np.random.default_rng(0)
    a, b, c = rng.random((3, N)) ** 2
    noise = rng.normal(0, 0.02, (2, N))
    return Binned.of(np.clip(np.stack([a, b + noise[0], c, a + noise[1], b], axis=1), 0, 0.999))


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
def test_rho_is_what_the_conversion_gives_back(epsilon):
    rho = rho_of(epsilon)
    assert rho + 2 * math.sqrt(rho * math.log(1 / DELTA)) == pytest.approx(epsilon)


def test_histograms_count_every_row(binned):
    assert (binned.ones.sum(axis=1) == N).all()
    assert (binned.twos.sum(axis=(1, 2)) == N).all()
    for p, (i, j) in enumerate(binned.pairs):
        assert (binned.twos[p].sum(axis=1) == binned.ones[i]).all()
        assert (binned.twos[p].sum(axis=0) == binned.ones[j]).all()


def test_the_noise_has_the_size_that_rho_asks_for():
    """Gaussian of variance members / (2 rho); 200,000 draws: a deviation of 5 % has a probability below 1e-30."""
    noise = _noisy(np.full((2000, 100), 1000.0), 0.3, 7, np.random.default_rng(1)) - 1000
    assert noise.var() == pytest.approx(7 / 0.6, rel=0.05)
    small = _noisy(np.zeros((2000, 100)), 0.3, 7, np.random.default_rng(1))
    assert small[small > 0].min() >= (7 / 0.6) ** 0.5  # less than the noise counts as nothing
    assert 0.15 < (small > 0).mean() < 0.17


@pytest.mark.parametrize("sample", [sample_by_marginals, sample_by_tree])
def test_with_a_large_epsilon_samples_follow_the_histograms(binned, sample):
    rows = sample(binned, 1e4, N, np.random.default_rng(2))
    assert rows.shape == (N, 5)
    assert rows.min() >= 0
    assert rows.max() < 1
    for j in range(5):
        found = np.bincount((rows[:, j] * BINS).astype(int), minlength=BINS)
        assert np.abs(found - binned.ones[j]).max() < 0.05 * N


def test_the_tree_keeps_what_belongs_together_and_marginals_do_not(binned):
    both = [sample(binned, 1e4, N, np.random.default_rng(3)) for sample in (sample_by_tree, sample_by_marginals)]
    for i, j in ((0, 3), (1, 4)):
        tree, marginals = (np.corrcoef(rows[:, i], rows[:, j])[0, 1] for rows in both)
        assert tree > 0.9
        assert abs(marginals) < 0.1


def test_the_spanning_tree_has_the_strong_pairs_and_spans(binned):
    ones = binned.ones / N
    edges = binned.pairs[_spanning_tree(binned, ones, 1e4, np.random.default_rng(4))]
    assert len(edges) == 4
    assert {(0, 3), (1, 4)} <= {tuple(edge) for edge in edges.tolist()}
    tables = np.arange(4)[:, None, None] * np.ones((4, 2, 2))
    ordered = _outwards(edges, tables)
    reached = {0}
    for parent, child, _ in ordered:
        assert parent in reached
        assert child not in reached
        reached.add(child)
    assert reached == set(range(5))


def test_with_a_tiny_epsilon_nothing_of_the_data_is_left(binned):
    rows = sample_by_marginals(binned, 1e-6, N, np.random.default_rng(5))
    assert abs(rows.mean() - 0.5) < 0.2
    assert sample_by_tree(binned, 1e-6, 50, np.random.default_rng(6)).shape == (50, 5)


def test_one_feature_and_no_rows():
    one = Binned.of(np.array([[0.05], [0.05], [0.95]]))
    assert sample_by_tree(one, 1e4, 20, np.random.default_rng(7)).shape == (20, 1)
    none = Binned.of(np.empty((0, 3)))
    assert sample_by_tree(none, 1.0, 20, np.random.default_rng(8)).shape == (20, 3)


@pytest.mark.parametrize("sample", [sample_by_marginals, sample_by_tree])
def test_all_noise_together_spends_rho_and_no_more(binned, sample, monkeypatch):
    """Gaussian noise of variance v on members histograms costs members / (2 v); the choice of the tree has its share."""
    spent = []

    def noisy(counts, rho, members, rng):
        assert members == len(counts)  # a row is counted once in each
        spent.append(rho)
        return _noisy(counts, rho, members, rng)

    def tree(given, ones, rho, rng):
        spent.append(rho)
        return _spanning_tree(given, ones, rho, rng)

    monkeypatch.setattr(synthetic, "_noisy", noisy)
    monkeypatch.setattr(synthetic, "_spanning_tree", tree)
    sample(binned, 1.5, 100, np.random.default_rng(9))
    assert sum(spent) == pytest.approx(rho_of(1.5))
    assert len(spent) == (1 if sample is sample_by_marginals else 3)


def test_the_tree_is_chosen_by_the_exponential_mechanism():
    """The odds of a pair are exp(epsilon * score / (2 * sensitivity)), with sensitivity 2 and epsilon**2 / 8 the step's rho.

    20,000 choices: the share is within 5 standard deviations of its law, except once in a million times.
    """
    rows = np.random.default_rng(0).random((300, 3))
    rows[:150, 1] = rows[:150, 0]
    three = Binned.of(rows)
    i, j = three.pairs.T
    ones = three.ones / 300
    scores = np.abs(three.twos - 300 * ones[i][:, :, None] * ones[j][:, None, :]).sum(axis=(1, 2))
    rho = 1e-4
    odds = np.exp(math.sqrt(8 * rho / 2) * scores / 4)
    rng = np.random.default_rng(1)
    first = np.bincount([_spanning_tree(three, ones, rho, rng)[0] for _ in range(20_000)], minlength=3) / 20_000
    expected = odds / odds.sum()
    assert expected.max() > 0.36  # not all alike, so that another scale would be noticed
    assert np.abs(first - expected).max() < 5 * math.sqrt(0.25 / 20_000)
