"""Windows: what a fit chooses from when it looks for where the rows lie, by the definition, and from public numbers alone."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpoutlier.features import windows
from dpoutlier.features.domain import Domain
from dpoutlier.features.windows import CELLS, LEVELS, UNIT, eighths, widened

strengths = st.floats(0, 1e6) | st.sampled_from([0.0, 1e-300, 8.0, 16.0, 20.0])
CHOICES = {"windows": windows.windows(16.0), "eighths": eighths()}
EACH_CHOICE = pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)


def levels_of(choice):
    return [int(math.log2(CELLS // width)) for width in (choice.last - choice.first).tolist()]


@EACH_CHOICE
def test_windows_are_the_halves_quarters_and_so_on_that_overlap_by_half(choice):
    levels = levels_of(choice)
    expected = [(0, CELLS)]
    for level in sorted(set(levels) - {0}):
        width = CELLS // 2**level
        expected += [(start, start + width) for start in range(0, CELLS - width + 1, max(width // 2, 1))]
    assert list(zip(choice.first.tolist(), choice.last.tolist())) == expected
    assert set(levels) == {*range(LEVELS + 1)} if choice is CHOICES["windows"] else {0, 3}


@EACH_CHOICE
def test_what_is_expected_of_all_windows_together_is_one(choice):
    """The range has its part, each level an equal part of the rest, and its first, middle and last window half of that."""
    shares, levels = np.exp(choice.expected), np.array(levels_of(choice))
    assert shares.sum() == pytest.approx(1)
    assert shares[0] == pytest.approx(1 / 3 if choice is CHOICES["windows"] else 1 / 2)
    for level in sorted(set(levels.tolist()) - {0}):
        own = shares[levels == level]
        assert own.sum() == pytest.approx((1 - shares[0]) / (len(set(levels.tolist())) - 1))
        special = own[[0, len(own) // 2, -1]]
        assert special.sum() == pytest.approx(own.sum() * (1 / 2 + 3 / (2 * len(own))))


@given(strengths)
def test_a_row_adds_at_most_a_unit_and_no_less_to_a_narrower_window(strength):
    choice = windows.windows(strength)
    by_level = dict(zip(levels_of(choice), choice.weight.tolist()))
    weights = [by_level[level] for level in range(LEVELS + 1)]
    assert weights == sorted(weights)
    assert (weights[0] > 0, weights[-1]) == (True, UNIT)
    assert UNIT - weights[0] == round(UNIT * min(0.7, max(14 / max(strength, 1e-9), 0.001)))


def test_what_is_chosen_from_depends_on_public_numbers_alone_and_cannot_be_changed():
    """Windows are made once, for all fits: nothing of a fit may stay in them."""
    one, other = windows.windows(16.0), windows.windows(16.0)
    assert all(np.array_equal(a, b) for a, b in zip(one, other))
    for array in (one.first, one.last, one.expected, eighths().expected):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def naive_utilities(choice, counts, rate):
    found = []
    for first, last, weight, expected in zip(*(part.tolist() for part in choice)):
        own = sum(counts.tolist()[first:last]) * weight
        found.append(own if rate is None else own + round(expected / float(rate)))
    return found


@EACH_CHOICE
@settings(max_examples=15)
@given(
    st.lists(st.tuples(st.integers(0, CELLS - 1), st.integers(0, 10**9)), max_size=20),
    st.none() | st.fractions(Fraction(1, 2**30), 100),
)
def test_utilities_are_the_definition(choice, rows, rate):
    counts = np.zeros(CELLS, np.int64)
    for cell, n in rows:
        counts[cell] += n
    rate = None if rate is None else rate / UNIT
    found = choice.utilities(counts, rate)
    assert found.dtype == np.int64
    assert found.tolist() == naive_utilities(choice, counts, rate)


def test_at_the_least_rate_and_with_trillions_of_rows_no_utility_overflows():
    """Rows times features below 9.2e14, as docs/privacy.md assumes."""
    counts = np.zeros(CELLS, np.int64)
    counts[-1] = 9.2e14
    for choice in CHOICES.values():
        assert choice.utilities(counts, Fraction(1, 2**30) / UNIT).tolist() == naive_utilities(
            choice, counts, Fraction(1, 2**30) / UNIT
        )
        assert (choice.utilities(counts, None) >= 0).all()


@EACH_CHOICE
def test_bounds_are_a_window_and_half_its_width_on_both_sides(choice):
    for number, (first, last) in enumerate(zip(choice.first.tolist(), choice.last.tolist())):
        more = Fraction(last - first, 2 * CELLS)
        expected = max(Fraction(first, CELLS) - more, Fraction(0)), min(Fraction(last, CELLS) + more, Fraction(1))
        assert widened(choice, number) == expected
    assert widened(choice, 0) == (0, 1)


RANGES = [(0.0, 1.0), (-1e308, 7e307), (0.0, 1e-290), (5e-324, 1.0), (1.0, math.nextafter(1.0, 2.0)), (1e9, 1e9 + 1e-5)]


@pytest.mark.parametrize("outer", RANGES, ids=str)
def test_whatever_is_chosen_bounds_can_be_used_and_lie_within_what_was_declared(outer):
    declared = Domain(*((side,) for side in outer))
    choice = CHOICES["windows"]
    for number in [*range(0, len(choice.first), 7), len(choice.first) - 1]:
        found = declared.narrowed({0: widened(choice, number)})
        if found is declared:
            continue
        assert outer[0] <= found.lower[0] < found.upper[0] <= outer[1]
        assert found.declared == (outer,)
        assert found.loose == (0,)
    assert declared.narrowed({0: widened(choice, 0)}) is declared
