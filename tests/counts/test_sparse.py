"""The sparse counts: in law noise on all cells and then a threshold, whatever the size of the grid; and nothing else shows."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cell_numbers import cell_numbers
from dpoutlier import DPGridKNN
from dpoutlier.counts.sparse import MAX_SPARSE_SIZE, least_size_for, tau_for
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.noise.sources import UnsafeSeededBytes
from dpoutlier.partitions.base import cell_ids
from dpoutlier.trusted import release
from dpoutlier.trusted.counts import Counts
from dpoutlier.trusted.release import release_dense, release_sparse, release_vector
from noise_laws import log_probability
from sparse_law import LAW, N_CELLS, RELEASES, TAU

FALSE_ALARM = 1e-7
OCCUPIED = {2: 1, 3: 2, 9: 5, 14: 3, 19: 1}
COUNTS = Counts(cell_ids(OCCUPIED), np.array(list(OCCUPIED.values())))
NOTHING = Counts(np.empty((0, 2), np.uint64), np.empty(0, np.int64))
EMPTY = [cell for cell in range(N_CELLS) if cell not in OCCUPIED]


# A release equals in law a dense one and then the threshold ------------------------------------------------------------


def sparse(counts, n_cells, law, tau, source):
    held = release_sparse(counts, n_cells, law, tau, source)
    return dict(zip(cell_numbers(held.ids), held.noisy.tolist()))


def dense_then_threshold(counts, n_cells, law, tau, source):
    return {i: c for i, c in enumerate(release_dense(counts, n_cells, law, source).counts.tolist()) if c >= tau}


def released(how, seed=0, tau=TAU):
    """Counts of all cells in many releases; 0 where a cell is not listed."""
    source, out = UnsafeSeededBytes(seed), np.zeros((RELEASES, N_CELLS), np.int64)
    for row in out:
        for cell, count in how(COUNTS, N_CELLS, LAW, tau, source).items():
            row[cell] = count
    return out


def pooled(observed, expected):
    """(statistic, degrees of freedom) of a chi-square test in which classes of less than 30 expected are one."""
    keep = expected >= 30
    rest = expected[~keep].sum()
    observed = np.append(observed[keep], observed[~keep].sum())
    expected = np.append(expected[keep], rest)
    if rest < 30:  # with the smallest of the others
        smallest = np.argmin(expected[:-1])
        expected[smallest] += expected[-1]
        observed[smallest] += observed[-1]
        observed, expected = observed[:-1], expected[:-1]
    return ((observed - expected) ** 2 / expected).sum(), len(expected) - 1


def p_of_cells(counts):
    """Each cell's law: not listed, or listed with a count of tau, tau + 1, ... Cells are independent, so statistics add up."""
    statistic = freedom = 0
    for cell in range(N_CELLS):
        exact, most = OCCUPIED.get(cell, 0), 25
        chances = [math.exp(log_probability(LAW, value - exact)) for value in range(TAU, most)]
        chances = np.array([1 - LAW.at_least(TAU - exact), *chances, LAW.at_least(most - exact)])
        classes = np.where(counts[:, cell] == 0, 0, np.clip(counts[:, cell] - TAU + 1, 1, most - TAU + 1))
        found = pooled(np.bincount(classes, minlength=len(chances)), chances * len(counts))
        statistic, freedom = statistic + found[0], freedom + found[1]
    return stats.chi2.sf(statistic, freedom)


def p_of_false_cells(counts):
    """How many empty cells are listed: a binomial number."""
    number = (counts[:, EMPTY] > 0).sum(axis=1)
    law = stats.binom(len(EMPTY), LAW.at_least(TAU))
    expected = law.pmf(np.arange(len(EMPTY) + 1)) * len(counts)
    return stats.chi2.sf(*pooled(np.bincount(number, minlength=len(expected)), expected))


def p_of_sets(counts, cells=(0, 1, 2, 3, 9, 19)):
    """Which of these cells are listed together: of all sets, each as often as independence asks."""
    chances = [LAW.at_least(TAU - OCCUPIED.get(cell, 0)) for cell in cells]
    expected = [
        math.prod(c if bit else 1 - c for c, bit in zip(chances, bits))
        for bits in itertools.product((0, 1), repeat=len(cells))
    ]
    which = (counts[:, cells] > 0) @ (1 << np.arange(len(cells))[::-1])
    return stats.chi2.sf(*pooled(np.bincount(which, minlength=len(expected)), np.array(expected) * len(counts)))


EACH_LAW = (p_of_cells, p_of_false_cells, p_of_sets)


@pytest.mark.parametrize("how", [sparse, dense_then_threshold])
def test_a_sparse_release_is_a_dense_release_and_then_the_threshold(how):
    counts = released(how)
    for p_value in EACH_LAW:
        assert p_value(counts) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("factor", [Fraction(9, 10), Fraction(11, 10)])
def test_planted_errors_in_the_number_of_false_cells_are_noticed(factor, monkeypatch):
    drawn = release.draw_binomial
    monkeypatch.setattr(release, "draw_binomial", lambda n, *more: min(drawn(int(n * factor), *more), n))
    counts = released(sparse)
    assert p_of_cells(counts) < FALSE_ALARM
    assert p_of_false_cells(counts) < FALSE_ALARM


def marks_on_occupied_cells_that_did_not_pass(counts, n_cells, law, tau, source):
    noisy = release_vector(counts.counts, law, source).tolist()
    passed = {cell: count for cell, count in zip(cell_numbers(counts.ids), noisy) if count >= tau}
    return {**sparse(NOTHING, n_cells, law, tau, source), **passed}


def marks_for_empty_cells_alone_thrown_at_all(counts, n_cells, law, tau, source):
    with pytest.MonkeyPatch.context() as patch:
        drawn = release.draw_binomial
        patch.setattr(release, "draw_binomial", lambda n, *more: drawn(n - len(counts.ids), *more))
        return sparse(counts, n_cells, law, tau, source)


@pytest.mark.slow
@pytest.mark.parametrize("how", [marks_on_occupied_cells_that_did_not_pass, marks_for_empty_cells_alone_thrown_at_all])
def test_thinning_that_is_forgotten_is_noticed(how):
    counts = released(how)
    assert p_of_cells(counts) < FALSE_ALARM
    assert p_of_sets(counts) < FALSE_ALARM


def plant(monkeypatch, where):
    drawn, noise = release.draw_binomial, release._not_negative
    if where == "chance":
        monkeypatch.setattr(release, "draw_binomial", lambda n, law, tau, source: drawn(n, law, tau + 1, source))
    if where == "value":
        monkeypatch.setattr(release, "_not_negative", lambda *more: noise(*more) + 1)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["chance", "value", "occupied", "all"])
def test_a_threshold_off_by_one_is_noticed(where, monkeypatch):
    plant(monkeypatch, where)
    how = sparse
    if where == "occupied":

        def how(*more):
            return {cell: count for cell, count in sparse(*more).items() if cell not in OCCUPIED or count > TAU}

    assert p_of_cells(released(how, tau=TAU + (where == "all"))) < FALSE_ALARM


def test_the_same_bytes_give_the_same_release():
    one, other, another = (release_sparse(COUNTS, 10**30, LAW, 120, UnsafeSeededBytes(seed)) for seed in (1, 1, 2))
    assert (one.ids == other.ids).all()
    assert (one.noisy == other.noisy).all()
    assert cell_numbers(one.ids) != cell_numbers(another.ids)


@settings(max_examples=50)
@given(st.sampled_from([1, 2, 20, 2**64 - 1, 2**64, 2**64 + 1, 10**30, 2**128]), st.integers(0, 2**32), st.data())
def test_a_sparse_model_is_written_in_the_order_of_cells(n_cells, seed, data):
    numbers = sorted(data.draw(st.sets(st.integers(0, n_cells - 1), max_size=6)))
    counts = Counts(cell_ids(numbers), np.full(len(numbers), 100))
    tau = tau_for(n_cells, LAW, 50)
    held = release_sparse(counts, n_cells, LAW, tau, UnsafeSeededBytes(seed))
    found = cell_numbers(held.ids)
    assert found == sorted(set(found))
    assert set(found) <= set(range(n_cells)) if n_cells < 100 else max(found) < n_cells
    assert (held.noisy >= tau).all()
    assert len(found) < 150
    assert held.tau == tau
    if tau < 20:
        assert set(numbers) <= set(found)  # a count of 100 goes below 20 with chance exp(-40)


def test_false_cells_of_a_huge_grid_lie_anywhere_and_have_geometric_counts():
    n, tau = 10**30, tau_for(10**30, LAW, 100_000)
    held = release_sparse(NOTHING, n, LAW, tau, UnsafeSeededBytes(0))
    expected = n * LAW.at_least(tau)
    assert stats.poisson(expected).cdf(len(held.ids)) == pytest.approx(0.5, abs=0.5 - FALSE_ALARM)
    numbers = cell_numbers(held.ids)
    for classes in (np.array([number * 100 // n for number in numbers]), np.array([number % 97 for number in numbers])):
        assert stats.chisquare(np.bincount(classes)).pvalue > FALSE_ALARM
    a, reach = math.exp(-0.5), 12
    chances = np.append((1 - a) * a ** np.arange(reach), a**reach)
    found = np.bincount(np.minimum(held.noisy - tau, reach), minlength=reach + 1)
    assert stats.chisquare(found, chances * len(numbers)).pvalue > FALSE_ALARM
    low, high = held.noisy[: len(numbers) // 2], held.noisy[len(numbers) // 2 :]
    assert stats.ks_2samp(low, high).pvalue > FALSE_ALARM  # no order but that of cells


# The threshold ---------------------------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(st.integers(2**10, 2**60), st.integers(1, 2**128), st.integers(1, MAX_SPARSE_SIZE))
def test_the_threshold_is_the_least_that_few_empty_cells_pass(units, n_cells, size):
    law = DiscreteLaplace(Fraction(units, 2**40))
    tau = tau_for(n_cells, law, size)
    rate = Decimal(units) / Decimal(2**40)

    def expected(threshold):
        return Decimal(n_cells) * (-rate * threshold).exp() / (1 + (-rate).exp())

    assert tau >= 1
    assert expected(tau) <= size * (1 + Decimal("1e-15"))
    assert tau == 1 or expected(tau - 1) >= size * (1 - Decimal("1e-15"))
    again = least_size_for(n_cells, law, tau)
    assert again <= size
    assert tau_for(n_cells, law, again) == tau


def test_the_threshold_depends_on_public_numbers_only():
    """Many rows, one, none; the grid, epsilon and size set it."""
    rows = np.random.default_rng(0).uniform(size=(5000, 3))

    def tau(n, **arguments):
        arguments = {"epsilon": 1, "bins": 1000, "sparse_size": 500, **arguments}
        return DPGridKNN(features=(0, 1), counts="sparse", **arguments).fit(rows[:n]).model_.counts.tau

    assert tau(5000) == tau(1) == tau(0) == tau_for(10**9, DiscreteLaplace(Fraction(1)), 500)
    assert tau(1, sparse_size=5) > tau(1) > tau(1, bins=100)
    assert tau(1, epsilon=2) < tau(1)
    assert tau(1, bins=2) == 1


def test_how_many_cells_are_occupied_does_not_move_the_threshold():
    """Of 20 cells from none to all but one. The threshold for the empty ones alone would be another for some of them."""
    rows = (np.arange(19)[:, None] + 0.5) / 20

    def tau(n, size):
        detector = DPGridKNN(1, features=(0, 1), bins=20, counts="sparse", sparse_size=size)
        return detector.fit(rows[:n]).model_.counts.tau

    law = DiscreteLaplace(Fraction(1))
    for size in (1, 2, 5):
        assert {tau(n, size) for n in range(20)} == {tau_for(20, law, size)}
        assert len({tau_for(20 - n, law, size) for n in range(20)}) > 1
