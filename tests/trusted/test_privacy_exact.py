"""Exact small cases: over all outcomes and all neighbours the log-ratio is the epsilon in use, and never more than asked."""

import itertools
import warnings
from fractions import Fraction

import numpy as np
import pytest

from dpoutlier import DPForest, DPGridKNN, DPMarginals, merge
from dpoutlier.detectors.registry import DETECTOR_NAMES, detector_class
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.noise.mechanism import Cost, Sensitivity
from dpoutlier.noise.sources import UnsafeSeededBytes
from dpoutlier.partitions.grid import Grid, bins_by_rule
from dpoutlier.partitions.marginals import Margins
from dpoutlier.partitions.trees import Trees, trees_by_rule
from dpoutlier.privacy.guarantee import Guarantee, Neighbours, sensitivity
from dpoutlier.scoring.threshold import bin_of
from dpoutlier.tables.rows import Rows
from dpoutlier.trusted.counts import count_rows

ADD, REPLACE = "add-or-remove-one", "replace-one"
MAX_ROWS = 3


class Case:
    """A small partition, the detector that makes it, and rows that together lie in all of its cells."""

    def __init__(self, partition, make, values):
        self.partition, self.make = partition, make
        self.values = np.array(values, float).reshape(len(values), -1)

    def positions(self, rows):
        return np.floor(self.rows(rows) * 2**32).astype(np.uint32)

    def rows(self, rows):
        return self.values[np.array(rows, int)]


def grid_case(cells):
    return Case(
        Grid((cells,)),
        lambda epsilon, **kw: DPGridKNN(epsilon, features=(0, 1), bins=cells, **kw),
        [(i + 0.5) / cells for i in range(cells)],
    )


CASES = {
    "grid of 2": grid_case(2),
    "grid of 3": grid_case(3),
    "2 trees": Case(
        Trees(1, 2, 1, (1,), 0),
        lambda epsilon, **kw: DPForest(epsilon, features=(0, 1), n_trees=2, depth=1, subspace=1, **kw),
        [0.1, 0.5, 0.9],
    ),
    "2 margins": Case(
        Margins((2, 2)),
        lambda epsilon, **kw: DPMarginals(epsilon, features=(0, 1), bins=2, **kw),
        [(0.1, 0.1), (0.1, 0.9), (0.9, 0.1), (0.9, 0.9)],
    ),
}
EACH_CASE = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def data_sets(case):
    """Every data set of up to three rows."""
    return [rows for n in range(MAX_ROWS + 1) for rows in itertools.product(range(len(case.values)), repeat=n)]


def test_every_detector_is_here():
    assert {type(case.make(1)) for case in CASES.values()} == set(map(detector_class, DETECTOR_NAMES))


@EACH_CASE
def test_the_rows_reach_every_cell(case):
    """Else a case would not look at all outcomes that can differ."""
    assert (live_counts(range(len(case.values)), case) > 0).all()


def are_neighbours(one, other, relation):
    if relation == REPLACE:
        return len(one) == len(other) and sum(a != b for a, b in zip(one, other)) == 1
    shorter, longer = sorted((one, other), key=len)
    return len(longer) == len(shorter) + 1 and any(longer[:i] + longer[i + 1 :] == shorter for i in range(len(longer)))


def live_counts(rows, case):
    """The rows through the package's own counting."""
    found = count_rows([case.positions(rows)], case.partition)
    counts = np.zeros(case.partition.n_cells, int)
    counts[found.ids[:, 1].astype(int)] = found.counts
    return counts


def largest_log_ratio(rate, case, relation):
    """Largest over neighbours and outcomes of log P(outcome | one) / P(outcome | other), exactly.

    The noise of a cell has log-probability -rate * |z| plus a constant, so that the ratio is rate times a difference of L1 norms.
    """
    sets = data_sets(case)
    counts = {rows: live_counts(rows, case) for rows in sets}
    outcomes = np.array(list(itertools.product(range(-1, MAX_ROWS + 2), repeat=case.partition.n_cells)))
    distance = {rows: np.abs(outcomes - count).sum(axis=1) for rows, count in counts.items()}
    pairs = [pair for pair in itertools.permutations(sets, 2) if are_neighbours(*pair, relation)]
    return rate * max(int((distance[other] - distance[one]).max()) for one, other in pairs)


def live_fit(case, relation, epsilon, rows=(), seed=0, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detector = case.make(epsilon, neighbours=relation, unsafe_seed=seed, **arguments)
        return detector.fit(case.rows(rows))


@EACH_CASE
@pytest.mark.parametrize("epsilon", ["1", "0.3", "1/3", "5", "0.015"])
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_the_largest_log_ratio_is_the_epsilon_in_use(case, epsilon, relation):
    model = live_fit(case, relation, epsilon).model_
    assert model.partition == case.partition
    (charge,) = model.charges
    found = largest_log_ratio(charge.rate, case, relation)
    assert found == model.epsilon_in_use <= Fraction(epsilon)
    assert Fraction(epsilon) - found < Fraction(1, 2**38)


def largest_joint_log_ratio(rates, case, neighbours, most_rows=2):
    """The same for two releases published together, over pairs of data sets: in units of 2**-40, all in integers.

    ``neighbours`` says of two pairs of data sets whether they must be hard to tell apart.
    """
    units = [int(rate * 2**40) for rate in rates]
    sets = [rows for rows in data_sets(case) if len(rows) <= most_rows]
    outcomes = np.array(list(itertools.product(range(-1, most_rows + 2), repeat=case.partition.n_cells)))
    distance = {rows: np.abs(outcomes - live_counts(rows, case)).sum(axis=1) for rows in sets}
    largest = 0
    for one, other in itertools.permutations(itertools.product(sets, sets), 2):
        if neighbours(one, other):
            changes = [unit * (distance[b] - distance[a]) for unit, a, b in zip(units, one, other)]
            largest = max(largest, int((changes[0][:, None] + changes[1][None, :]).max()))  # over pairs of outcomes
    return Fraction(largest, 2**40)


def in_part(which, relation):
    """One row in one part; the other part is the same."""
    return lambda one, other: one[1 - which] == other[1 - which] and are_neighbours(one[which], other[which], relation)


def in_both_parts(relation):
    """A person who has a row in each part."""
    return lambda one, other: all(a == b or are_neighbours(a, b, relation) for a, b in zip(one, other))


def moved(one, other):
    """A row leaves one part, and a row enters the other: the number of all rows stays."""
    return all(are_neighbours(a, b, ADD) for a, b in zip(one, other)) and sum(map(len, one)) == sum(map(len, other))


MERGED_CASES = pytest.mark.parametrize("case", [CASES["grid of 2"], CASES["2 trees"]], ids=["grid of 2", "2 trees"])


@MERGED_CASES
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_a_merge_costs_each_row_what_its_own_part_costs_and_several_what_all_of_them_do(case, relation):
    parts = [case.make(epsilon, neighbours=relation).fit(case.rows(())) for epsilon in ("1", "1/3")]
    rates = [fit.model_.charges[0].rate for fit in parts]
    in_use = [fit.model_.epsilon_in_use for fit in parts]
    costs = [largest_joint_log_ratio(rates, case, in_part(which, relation)) for which in (0, 1)]
    assert costs == in_use
    assert merge(parts, people="disjoint").model_.epsilon_in_use == max(costs)
    both = largest_joint_log_ratio(rates, case, in_both_parts(relation))
    assert merge(parts, people="overlapping").model_.epsilon_in_use == both == sum(in_use)


@MERGED_CASES
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_moving_between_parts_costs_at_most_the_replace_one_figure(case, relation):
    """Two parts change, each by one row: the sum of both under add-or-remove-one, half of it under replace-one."""
    parts = [case.make(epsilon, neighbours=relation).fit(case.rows(())) for epsilon in ("1", "1/3")]
    rates = [fit.model_.charges[0].rate for fit in parts]
    found = largest_joint_log_ratio(rates, case, moved)
    assert found == sum(fit.model_.epsilon_in_use for fit in parts) / (1 if relation == ADD else 2)
    assert found <= merge(parts, people="disjoint").model_.guarantee.epsilon_for(Neighbours.REPLACE_ONE)


@EACH_CASE
def test_replace_one_at_epsilon_is_add_or_remove_one_at_half(case):
    assert live_fit(case, REPLACE, 1).model_.charges[0].rate == live_fit(case, ADD, "0.5").model_.charges[0].rate


@EACH_CASE
def test_the_papers_calibration_costs_twice_epsilon_under_its_own_relation(case):
    """Lemma 1 of the paper takes sensitivity 1 for replaced rows; both cells change, so its noise costs 2 epsilon.

    Likewise what forgets that a row lies in several cells costs as many times epsilon.
    """
    rate, members = DiscreteLaplace.costing(Cost(Fraction(1)), Sensitivity(1)).rate, case.partition.cells_per_row
    assert largest_log_ratio(rate, case, REPLACE) == 2 * members
    assert largest_log_ratio(rate, case, ADD) == members


@EACH_CASE
@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("rows_per_person", [1, 4])
def test_the_noise_that_is_drawn_is_the_noise_that_is_charged(case, relation, rows_per_person):
    rows = (0, 0, 1, len(case.values) - 1)
    model = live_fit(case, relation, "0.7", rows, seed=9, rows_per_person=rows_per_person).model_
    (charge,) = model.charges
    assert charge.sensitivity.l1 == (1 if relation == ADD else 2) * rows_per_person * case.partition.cells_per_row
    noise = DiscreteLaplace(charge.rate).draw(case.partition.n_cells, UnsafeSeededBytes(9))
    assert model.counts.counts.tolist() == (live_counts(rows, case) + noise).tolist()


@EACH_CASE
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_frozen_noise_on_neighbours_moves_the_release_by_at_most_the_sensitivity(case, relation):
    sets = data_sets(case)
    released = {rows: live_fit(case, relation, 1, rows).model_.counts.counts for rows in sets}
    pairs = [pair for pair in itertools.permutations(sets, 2) if are_neighbours(*pair, relation)]
    largest = max(int(np.abs(released[one] - released[other]).sum()) for one, other in pairs)
    assert largest == sensitivity(Neighbours(relation), cells_per_row=case.partition.cells_per_row).l1


BY_RULE = {
    "grid": lambda epsilon, **kw: DPGridKNN(epsilon, features=(0, 1), n_rows_hint="estimate", unsafe_seed=0, **kw),
    "forest": lambda epsilon, **kw: DPForest(epsilon, features=(0, 1), n_rows_hint="estimate", unsafe_seed=0, **kw),
}


@pytest.mark.parametrize("make", BY_RULE.values(), ids=BY_RULE)
@pytest.mark.parametrize("epsilon", ["1", "0.3"])
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_all_parts_together_cost_at_most_epsilon(make, epsilon, relation):
    fitted = make(epsilon, neighbours=relation, target_fpr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fitted.fit(np.zeros((5, 1))).model_
    assert [charge.purpose for charge in model.charges] == ["number of rows", "counts", "threshold"]
    assert sum(charge.epsilon for charge in model.charges) == Fraction(epsilon)
    assert Fraction(epsilon) - Fraction(1, 2**30) < model.epsilon_in_use <= Fraction(epsilon)
    shares = [charge.epsilon / Fraction(epsilon) for charge in model.charges]
    assert shares == [Fraction(1, 20), Fraction(15, 20), Fraction(4, 20)]


@pytest.mark.parametrize("make", BY_RULE.values(), ids=BY_RULE)
@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("rows_per_person", [1, 4])
def test_small_releases_carry_the_noise_that_is_charged(make, relation, rows_per_person):
    """The estimated number of rows and the histogram of scores, against draws made here from the same seed."""
    rows = (0, 0, 2, 1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detector = make("0.4", neighbours=relation, rows_per_person=rows_per_person, target_fpr=0.1)
        model = detector.fit(np.array([[(row + 0.5) / 3] for row in rows])).model_
    small = {charge.sensitivity.l1 for charge in model.charges if charge.purpose != "counts"}
    assert small == {(1 if relation == ADD else 2) * rows_per_person}
    laws = {charge.purpose: DiscreteLaplace(charge.rate) for charge in model.charges}
    source = UnsafeSeededBytes(0)
    assert model.n_rows_hint == max(1, len(rows) + int(laws["number of rows"].draw(1, source)[0]))
    laws["counts"].draw(model.partition.n_cells, source)
    histogram = model.score_histogram
    exact = np.bincount(
        bin_of(
            model.own_scores(Rows(np.array([[(row + 0.5) / 3] for row in rows]), model.domain)),
            histogram.levels,
        ),
        minlength=len(histogram.levels),
    )
    assert exact.sum() == len(rows)
    assert (histogram.counts == exact + laws["threshold"].draw(len(exact), source)).all()


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("rows_per_person", [1, 4])
def test_rules_use_the_number_that_was_estimated_and_the_epsilon_of_one_row(relation, rows_per_person):
    """Twice the noise, or four times, is half or a quarter of epsilon for a rule."""
    rows, arguments = np.zeros((3000, 3)), {"neighbours": relation, "rows_per_person": rows_per_person}
    model = DPForest(4, features=(0, 1), n_rows_hint="estimate", **arguments).fit(rows).model_
    per_row = 4 * 0.95 / ((1 if relation == ADD else 2) * rows_per_person)
    assert 2900 < model.n_rows_hint < 3100
    assert (model.partition.n_trees, model.partition.depth) == trees_by_rule(model.n_rows_hint, per_row)
    grid = DPGridKNN(4, features=(0, 1), n_rows_hint="estimate", **arguments).fit(rows).model_
    assert grid.partition.bins[0] == bins_by_rule(grid.n_rows_hint, per_row, 3)


@pytest.mark.parametrize(
    ("detector", "columns"),
    [
        (DPForest(1, features=(0, 1), n_rows_hint="estimate", n_trees=4000), 8),
        (DPGridKNN(100, features=(0, 1), n_rows_hint="estimate", counts="dense"), 2),
    ],
    ids=["forest", "grid"],
)
def test_an_error_after_a_charge_shows_nothing_that_was_estimated(detector, columns):
    texts = set()
    for n in (10**6, 2 * 10**6):
        with pytest.raises(InvalidParameterError, match="5 % of epsilon is spent") as caught:
            detector.fit(np.zeros((n if columns == 2 else n // 10, columns)))
        assert caught.value.__context__ is None
        texts.add(str(caught.value))
    assert len(texts) == 1


@pytest.mark.system_noise
def test_small_releases_draw_from_the_system():
    """Fits without a seed on the same rows repeat neither the estimated number of rows nor the histogram of scores.

    The noise has scale 2,000: five equal numbers of rows, or two equal histograms, have a probability below 1e-9.
    """
    rows = np.zeros((50_000, 1))
    fits = [
        DPGridKNN("0.01", features=(0, 1), n_rows_hint="estimate", target_fpr=0.1).fit(rows).model_ for _ in range(5)
    ]
    assert len({tuple(model.score_histogram.counts.tolist()) for model in fits}) == 5
    assert len({model.n_rows_hint for model in fits}) > 1


def test_both_relations_are_stated_and_one_is_twice_the_other():
    add = Guarantee(Fraction(1), Neighbours.ADD_OR_REMOVE_ONE)
    replace = Guarantee(Fraction(1), Neighbours.REPLACE_ONE)
    assert add.epsilon_for(Neighbours.REPLACE_ONE) == 2
    assert replace.epsilon_for(Neighbours.ADD_OR_REMOVE_ONE) == Fraction(1, 2)
