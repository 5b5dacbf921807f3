"""Exact small cases: over all outcomes and all neighbours the log-ratio is the epsilon in use, and never more than asked."""

import itertools
import warnings
from fractions import Fraction

import numpy as np
import pytest

from dpoutlier import DPGridKNN
from dpoutlier.guarantee import Guarantee, Neighbours, sensitivity
from dpoutlier.noise.law import DiscreteLaplace
from dpoutlier.noise.sampling import draw_noise
from dpoutlier.noise.sources import UnsafeSeededBytes
from dpoutlier.partitions.grid import Grid
from dpoutlier.rows import Rows
from dpoutlier.scoring.threshold import bin_of
from dpoutlier.trusted.counts import count_rows

ADD, REPLACE = "add-or-remove-one", "replace-one"
MOST_ROWS = 3


def data_sets(cells):
    """Every data set of up to three rows, a row being the cell that it lies in."""
    return [rows for n in range(MOST_ROWS + 1) for rows in itertools.product(range(cells), repeat=n)]


def are_neighbours(one, other, relation):
    if relation == REPLACE:
        return len(one) == len(other) and sum(a != b for a, b in zip(one, other)) == 1
    shorter, longer = sorted((one, other), key=len)
    return len(longer) == len(shorter) + 1 and any(longer[:i] + longer[i + 1 :] == shorter for i in range(len(longer)))


def live_counts(rows, cells):
    """The rows through the package's own counting."""
    positions = np.array([[(2 * row + 1) * 2**31 // cells] for row in rows], np.uint32).reshape(-1, 1)
    found = count_rows([positions], Grid((cells,)))
    counts = np.zeros(cells, int)
    counts[found.ids[:, 1].astype(int)] = found.counts
    return counts


def largest_log_ratio(rate, cells, relation):
    """Largest over neighbours and outcomes of log P(outcome | one) / P(outcome | other), exactly.

    The noise of a cell has log-probability -rate * |z| plus a constant, so that the ratio is rate times a difference of L1 norms.
    """
    sets = data_sets(cells)
    counts = {rows: live_counts(rows, cells) for rows in sets}
    outcomes = np.array(list(itertools.product(range(-1, MOST_ROWS + 2), repeat=cells)))
    distance = {rows: np.abs(outcomes - count).sum(axis=1) for rows, count in counts.items()}
    pairs = [pair for pair in itertools.permutations(sets, 2) if are_neighbours(*pair, relation)]
    return rate * max(int((distance[other] - distance[one]).max()) for one, other in pairs)


def live_fit(cells, relation, epsilon, rows=(), seed=0, **arguments):
    X = np.array([[(row + 0.5) / cells] for row in rows]).reshape(-1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DPGridKNN(epsilon, bounds=(0, 1), bins=cells, neighbours=relation, unsafe_seed=seed, **arguments).fit(X)


@pytest.mark.parametrize("cells", [2, 3])
@pytest.mark.parametrize("epsilon", ["1", "0.3", "1/3", "5", "0.015"])
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_the_largest_log_ratio_is_the_epsilon_in_use(cells, epsilon, relation):
    model = live_fit(cells, relation, epsilon).model_
    (charge,) = model.charges
    found = largest_log_ratio(charge.rate, cells, relation)
    assert found == model.epsilon_in_use <= Fraction(epsilon)
    assert Fraction(epsilon) - found < Fraction(1, 2**38)


@pytest.mark.parametrize("cells", [2, 3])
def test_replace_one_at_epsilon_is_add_or_remove_one_at_half(cells):
    assert live_fit(cells, REPLACE, 1).model_.charges[0].rate == live_fit(cells, ADD, "0.5").model_.charges[0].rate


@pytest.mark.parametrize("cells", [2, 3])
def test_the_papers_calibration_costs_twice_epsilon_under_its_own_relation(cells):
    """Lemma 1 of the paper takes sensitivity 1 for replaced rows; both cells change, so its noise costs 2 epsilon."""
    rate = DiscreteLaplace.costing(Fraction(1), sensitivity=1).rate
    assert largest_log_ratio(rate, cells, REPLACE) == 2
    assert largest_log_ratio(rate, cells, ADD) == 1


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("rows_per_person", [1, 4])
def test_the_noise_that_is_drawn_is_the_noise_that_is_charged(relation, rows_per_person):
    rows = (0, 0, 2, 1)
    model = live_fit(3, relation, "0.7", rows, seed=9, rows_per_person=rows_per_person).model_
    (charge,) = model.charges
    assert charge.sensitivity == (1 if relation == ADD else 2) * rows_per_person
    expected = live_counts(rows, 3) + draw_noise(DiscreteLaplace(charge.rate), 3, UnsafeSeededBytes(9))
    assert model.counts.counts.tolist() == expected.tolist()


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_frozen_noise_on_neighbours_moves_the_release_by_at_most_the_sensitivity(relation):
    largest = 0
    for one, other in itertools.permutations(data_sets(3), 2):
        if are_neighbours(one, other, relation):
            released = [live_fit(3, relation, 1, rows).model_.counts.counts for rows in (one, other)]
            largest = max(largest, int(np.abs(released[0] - released[1]).sum()))
    assert largest == sensitivity(Neighbours(relation))


@pytest.mark.parametrize("epsilon", ["1", "0.3"])
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_all_parts_together_cost_at_most_epsilon(epsilon, relation):
    fitted = live_fit(3, relation, epsilon, target_fpr=0.1).set_params(bins="auto", n_hint="buy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fitted.fit(np.zeros((5, 1))).model_
    assert [charge.purpose for charge in model.charges] == ["number of rows", "counts", "threshold"]
    assert sum(charge.epsilon for charge in model.charges) == Fraction(epsilon)
    assert Fraction(epsilon) - Fraction(1, 2**30) < model.epsilon_in_use <= Fraction(epsilon)
    shares = [charge.epsilon / Fraction(epsilon) for charge in model.charges]
    assert shares == [Fraction(1, 20), Fraction(18, 20), Fraction(1, 20)]


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("rows_per_person", [1, 4])
def test_small_releases_carry_the_noise_that_is_charged(relation, rows_per_person):
    """The bought number of rows and the histogram of scores, against draws made here from the same seed."""
    rows = (0, 0, 2, 1, 1)
    arguments = {"rows_per_person": rows_per_person, "target_fpr": 0.1, "n_hint": "buy"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detector = DPGridKNN("0.4", bounds=(0, 1), neighbours=relation, unsafe_seed=11, **arguments)
        model = detector.fit(np.array([[(row + 0.5) / 3] for row in rows])).model_
    assert {charge.sensitivity for charge in model.charges} == {(1 if relation == ADD else 2) * rows_per_person}
    laws = {charge.purpose: DiscreteLaplace(charge.rate) for charge in model.charges}
    source = UnsafeSeededBytes(11)
    assert model.n_hint == max(1, len(rows) + int(draw_noise(laws["number of rows"], 1, source)[0]))
    draw_noise(laws["counts"], model.partition.n_cells, source)
    histogram = model.score_histogram
    exact = np.bincount(
        bin_of(
            model.outlier_scores(Rows(np.array([[(row + 0.5) / 3] for row in rows]), model.domain)),
            histogram.levels,
        ),
        minlength=len(histogram.levels),
    )
    assert exact.sum() == len(rows)
    assert (histogram.counts == exact + draw_noise(laws["threshold"], len(exact), source)).all()


@pytest.mark.system_noise
def test_small_releases_draw_from_the_system():
    """Fits without a seed on the same rows repeat neither the bought number of rows nor the histogram of scores.

    The noise has scale 2,000: five equal numbers of rows, or two equal histograms, have a probability below 1e-9.
    """
    rows = np.zeros((50_000, 1))
    fits = [DPGridKNN("0.01", bounds=(0, 1), n_hint="buy", target_fpr=0.1).fit(rows).model_ for _ in range(5)]
    assert len({tuple(model.score_histogram.counts.tolist()) for model in fits}) == 5
    assert len({model.n_hint for model in fits}) > 1


def test_both_relations_are_stated_and_one_is_twice_the_other():
    add = Guarantee(Fraction(1), Neighbours.ADD_OR_REMOVE_ONE)
    replace = Guarantee(Fraction(1), Neighbours.REPLACE_ONE)
    assert add.epsilon_for(Neighbours.REPLACE_ONE) == 2
    assert replace.epsilon_for(Neighbours.ADD_OR_REMOVE_ONE) == Fraction(1, 2)
