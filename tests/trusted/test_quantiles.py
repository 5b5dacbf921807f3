"""Private bounds: the public lattice, counts by the definition, what a row can change, what a choice costs, and what comes out."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpoutlier.features.domain import Domain
from dpoutlier.noise.permute_and_flip import permute_and_flip
from dpoutlier.noise.sources import UnsafeSeededBytes
from dpoutlier.trusted import quantiles
from dpoutlier.trusted.quantiles import (
    HIGH,
    LOW,
    EdgeCounts,
    candidates,
    choose_quantiles,
    spread,
    utilities,
    widened,
)
from naive_choice import exact_law

OUTERS = [
    (-1e6, 1e6),
    (0.0, 1e9),
    (1900.0, 2100.0),
    (1e9, 1e9 + 1),
    (-3.0, -2.0),
    (-5.0, 0.0),
    (0.0, 1e-290),
    (-8e307, 8e307),
    (5e-324, 1.0),
    (1.0, math.nextafter(1.0, 2.0)),
]
EACH_OUTER = pytest.mark.parametrize("outer", OUTERS, ids=str)
outers = (
    st.tuples(st.floats(-8e307, 8e307), st.floats(-8e307, 8e307))
    .map(sorted)
    .map(tuple)
    .filter(lambda o: o[1] - o[0] > 1e-290)
)
quantile_pairs = st.tuples(st.integers(1, 30), st.integers(1, 30)).map(lambda ab: Fraction(ab[0], sum(ab)))
values = st.floats(width=64) | st.floats(-3, 3) | st.sampled_from([0.0, -0.0, 5e-324, -5e-324])


# The lattice ------------------------------------------------------------------------------------------------------------------


@EACH_OUTER
def test_edges_ascend_from_one_end_of_the_outer_range_to_the_other(outer):
    edges = candidates(outer)
    assert (edges[0], edges[-1]) == outer
    assert (np.diff(edges) > 0).all()
    assert not edges.flags.writeable
    assert len(edges) <= quantiles.STEPS + 2 * quantiles.OCTAVES * 2**quantiles.BITS + 2


@pytest.mark.parametrize(("outer", "n"), [((-1e6, 1e6), 6135), ((0.0, 1e9), 3577), ((1900.0, 2100.0), 1035)])
def test_the_number_of_edges_is_known(outer, n):
    assert len(candidates(outer)) == n


def test_edges_are_steps_and_floats_of_few_bits():
    edges = set(candidates((-10.0, 300.0)).tolist())
    steps = {-10 + 310 * (i / quantiles.STEPS) for i in range(quantiles.STEPS + 1)}
    floats = {
        sign * (1 + i / 2**quantiles.BITS) * 2.0**e
        for sign in (-1, 1)
        for i in range(2**quantiles.BITS)
        for e in range(-31, 9)
    }
    assert edges == steps | {0.0} | {x for x in floats if -10 < x < 300}


@given(outers)
def test_every_outer_range_has_edges(outer):
    edges = candidates(outer)
    assert (edges[0], edges[-1]) == outer
    assert (np.diff(edges) > 0).all()
    assert 0.0 in edges or outer[0] > 0 or outer[1] < 0


# Counting ---------------------------------------------------------------------------------------------------------------------


def naive_counts(edges, column):
    """One value after the other, by the definition of a bin."""
    counts = np.zeros(len(edges) - 1, int)
    for value in column.tolist():
        if not math.isnan(value):
            at = (
                sum(edge <= value for edge in edges[1:-1].tolist())
                if len(edges) < 50
                else np.searchsorted(edges[1:-1], value, "right")
            )
            counts[at] += 1
    return counts


@settings(max_examples=200)
@given(outers | st.sampled_from(OUTERS), st.lists(values, max_size=60))
@example((5e-324, 1.0), [0.0, 5e-324, 1e-323])
def test_counting_is_the_definition(outer, column):
    edges, counts = candidates(outer), EdgeCounts([outer])
    near = np.array(column) if column else np.zeros(0)
    column = np.concatenate([near, np.clip(near, *outer)])
    counts.add([column])
    assert counts.between(0).tolist() == naive_counts(edges, column).tolist()
    assert counts.below(0).tolist()[1:-1] == [np.count_nonzero(column < edge) for edge in edges[1:-1]]
    assert counts.above(0).tolist()[1:-1] == [np.count_nonzero(column >= edge) for edge in edges[1:-1]]
    assert counts.above(0)[0] == counts.below(0)[-1] == np.count_nonzero(~np.isnan(column))
    assert counts.below(0)[0] == counts.above(0)[-1] == 0


@EACH_OUTER
def test_a_value_on_an_edge_lies_above_it_and_the_next_float_below_lies_below(outer):
    edges = candidates(outer)
    for column, expected in (
        (edges[:-1], np.ones(len(edges) - 1)),
        (np.nextafter(edges[1:], -np.inf), np.ones(len(edges) - 1)),
    ):
        counts = EdgeCounts([outer])
        counts.add([column])
        assert (counts.between(0) == expected).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_every_type_layout_and_cut_into_blocks_is_counted_alike(dtype, monkeypatch):
    monkeypatch.setattr(quantiles, "BLOCK", 1000)
    rows = (np.random.default_rng(0).normal(size=(5000, 3)) * [1, 100, 0.01]).astype(dtype)
    rows[::7, 1] = np.nan
    outer = [(-10.0, 10.0), (-1e6, 1e6), (0.0, 1.0)]
    whole, parts = EdgeCounts(outer), EdgeCounts(outer)
    whole.add([rows[:, j] for j in range(3)])
    for part in np.array_split(np.asfortranarray(rows), [0, 17, 1017, 4999]):
        parts.add([part[:, j] for j in range(3)])
    for j in range(3):
        expected = naive_counts(candidates(outer[j]), rows[:, j].astype(float))
        assert whole.between(j).tolist() == parts.between(j).tolist() == expected.tolist()


def test_a_row_counts_once_for_each_feature_or_nowhere_if_missing():
    rows = np.random.default_rng(1).normal(size=(50, 2))
    for row, changes in (([0.3, np.inf], [1, 1]), ([np.nan, -np.inf], [0, 1])):
        before, after = EdgeCounts([(-1.0, 1.0)] * 2), EdgeCounts([(-1.0, 1.0)] * 2)
        before.add(list(rows.T))
        after.add(list(np.vstack([rows, row]).T))
        assert [int(np.abs(after.between(j) - before.between(j)).sum()) for j in range(2)] == changes


# Utilities --------------------------------------------------------------------------------------------------------------------


def sides(between):
    below = np.concatenate([[0], np.cumsum(between)])
    return below, below[-1] - below


def naive_utilities(between, quantile):
    """The definition with fractions: rows too many on the wrong side, weighed so that both ends are equally bad."""
    n, found = int(sum(between)), []
    for i in range(len(between)):
        too_many = sum(between[:i]) - quantile * n  # below the bin
        too_few = quantile * n - sum(between[: i + 1])  # below its upper edge
        a, b = quantile.numerator, quantile.denominator
        found.append(-max(Fraction(0), a * b * too_many, (b - a) * b * too_few))
    return found


bins = st.lists(st.integers(0, 50), min_size=1, max_size=12)


@given(bins, quantile_pairs)
def test_utilities_are_the_definition(between, quantile):
    found = utilities(*sides(between), quantile)
    assert found.dtype == np.int64
    assert found.tolist() == naive_utilities(between, quantile)


@given(bins, quantile_pairs)
def test_a_bin_has_utility_zero_if_and_only_if_it_holds_a_quantile(between, quantile):
    found, (below, _), n = utilities(*sides(between), quantile), sides(between), sum(between)
    held = [below[i] <= quantile * n <= below[i + 1] for i in range(len(between))]
    assert (found == 0).tolist() == held
    assert any(held)


@given(st.integers(0, 1000), quantile_pairs)
def test_both_ends_past_all_rows_are_equally_bad(n, quantile):
    a, b = quantile.numerator, quantile.denominator
    assert utilities(*sides([0, n, 0]), quantile).tolist() == [-a * (b - a) * n, 0, -a * (b - a) * n]


@settings(max_examples=300)
@given(bins, quantile_pairs, st.data())
def test_a_row_changes_all_utilities_within_an_interval_of_the_length_that_is_charged(between, quantile, data):
    at = data.draw(st.integers(0, len(between) - 1))
    more = [count + (i == at) for i, count in enumerate(between)]
    change = utilities(*sides(more), quantile) - utilities(*sides(between), quantile)
    a, b = quantile.numerator, quantile.denominator
    assert change.min() >= -a * (b - a)
    assert change.max() <= max(a, b - a) ** 2
    assert max(a, b - a) ** 2 + a * (b - a) == spread(quantile)


QUANTILES = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 4), Fraction(9, 10)]


@pytest.mark.parametrize("quantile", QUANTILES)
def test_that_length_is_reached(quantile):
    """A row past one end makes that end better, and the other worse."""
    lengths = []
    for more in ([1, 100, 0], [0, 100, 1]):
        change = utilities(*sides(more), quantile) - utilities(*sides([0, 100, 0]), quantile)
        lengths.append(int(np.ptp(change)))
    assert max(lengths) == spread(quantile)


# What a choice costs ----------------------------------------------------------------------------------------------------------


def largest_log_ratio(n_bins, most_rows, quantile, rate):
    """Over all data sets of up to ``most_rows`` rows, one row more, and all outcomes: exact probabilities."""
    largest = 0.0
    for between in itertools.product(range(most_rows + 1), repeat=n_bins):
        if sum(between) > most_rows:
            continue
        law = exact_law(utilities(*sides(between), quantile).tolist(), rate)
        for at in range(n_bins):
            more = [count + (i == at) for i, count in enumerate(between)]
            other = exact_law(utilities(*sides(more), quantile).tolist(), rate)
            largest = max(largest, *(abs(math.log(p / q)) for p, q in zip(law, other)))
    return largest


@pytest.mark.parametrize("quantile", QUANTILES)
@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_a_choice_costs_at_most_its_rate_and_not_much_less(quantile, rate):
    found = largest_log_ratio(4, 5, quantile, rate / spread(quantile))
    assert float(rate) / 2 < found <= float(rate) * (1 + 1e-9)  # the more bins, the nearer
    assert largest_log_ratio(4, 5, quantile, 2 * rate / spread(quantile)) > float(rate)  # twice the rate is noticed


# Choosing -----------------------------------------------------------------------------------------------------------------------


def counts_of(*columns, outer=(-1e6, 1e6)):
    counts = EdgeCounts([outer] * len(columns))
    counts.add([np.asarray(column, float) for column in columns])
    return counts


def test_each_choice_is_one_draw_at_its_rate_over_its_spread():
    """Replayed from the same seed: two draws for each feature, low then high."""
    rng, rate = np.random.default_rng(2), Fraction(1, 50)
    counts = counts_of(rng.normal(size=300), rng.lognormal(size=300), np.zeros(300))
    source, expected = UnsafeSeededBytes(8), []
    for j in range(3):
        drawn = [
            permute_and_flip(
                utilities(counts.below(j), counts.above(j), q),
                rate / (q.denominator * max(q.numerator, q.denominator - q.numerator)),
                source,
            )
            for q in (LOW, HIGH)
        ]
        expected.append((candidates((-1e6, 1e6))[min(drawn)], candidates((-1e6, 1e6))[max(drawn) + 1]))
    assert choose_quantiles(counts, rate, UnsafeSeededBytes(8)) == expected


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=50), quantile_pairs)
def test_without_a_rate_the_bins_of_the_exact_quantiles_are_taken(column, quantile):
    low, high = sorted([quantile, 1 - quantile])
    ((lower, upper),) = choose_quantiles(counts_of(column), None, UnsafeSeededBytes(0), low, high)
    inner = np.sort(column)
    assert lower <= inner[math.ceil(low * len(column)) - 1]
    assert upper > inner[math.floor(high * len(column))]
    assert lower < upper


def test_no_rows_at_all_without_a_rate_is_the_outer_range():
    assert choose_quantiles(counts_of([]), None, UnsafeSeededBytes(0)) == [(-1e6, 1e6)]


@pytest.mark.parametrize("rate", [Fraction(1, 2**30), Fraction(1, 10), Fraction(100)])
@pytest.mark.parametrize("column", [[], [0.0] * 100, [np.nan] * 5, [np.inf, -np.inf], [1e308, -1e308, 5e-324]])
def test_whatever_the_rows_and_the_noise_bounds_can_be_used(column, rate):
    source = UnsafeSeededBytes(3)
    for outer in OUTERS[:-1]:
        ((lower, upper),) = choose_quantiles(counts_of(column, outer=outer), rate, source)
        assert outer[0] <= lower < upper <= outer[1]
        Domain(*((side,) for side in widened(lower, upper, outer)))


def test_a_mass_at_one_value_is_found():
    """More than half of the rows share a value, and the bin that holds it is chosen for both quantiles."""
    rows = np.concatenate([np.full(9000, 5.0), np.linspace(6, 1000, 500), np.linspace(-1000, 4, 500)])
    ((lower, upper),) = choose_quantiles(counts_of(rows), Fraction(1, 10), UnsafeSeededBytes(0))
    assert lower <= 5 < upper < 5.2


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_with_enough_rows_the_choice_is_near_the_quantile(scale):
    """A bin that is 800 rows off has p = exp(-800 rate / 3) = exp(-26) or less, and there are 6,135: below 1e-7."""
    n, rate = 20_000, Fraction(1, 10)
    rows = np.random.default_rng(5).normal(size=n) * scale
    ((lower, upper),) = choose_quantiles(counts_of(rows), rate, UnsafeSeededBytes(1))
    off = 800 / n + 0.005  # and what lies in the bin itself
    assert abs(np.mean(rows < lower) - float(LOW)) < off
    assert abs(np.mean(rows < upper) - float(HIGH)) < off


# After the choice -----------------------------------------------------------------------------------------------------------------


@given(outers, st.floats(0, 10), st.data())
def test_widened_bounds_are_valid_hold_the_edges_and_stay_within_the_outer_range(outer, by, data):
    edges = candidates(outer)
    first, last = sorted(data.draw(st.lists(st.integers(0, len(edges) - 1), min_size=2, max_size=2, unique=True)))
    lower, upper = widened(float(edges[first]), float(edges[last]), outer, by)
    Domain((lower,), (upper,))
    assert outer[0] <= lower <= edges[first]
    assert edges[last] <= upper <= outer[1]


def test_what_is_too_narrow_to_be_bounds_becomes_the_outer_range():
    assert widened(0.0, 5e-324, (-1.0, 1.0)) == (-1.0, 1.0)
