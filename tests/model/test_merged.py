"""What a merge costs, and how wide its noise is, from its parts alone."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.model.merged import MAX_PARTS, Merged, Part, People
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.noise.mechanism import Sensitivity
from dpoutlier.privacy.guarantee import Charge, Purpose

UNIT = Fraction(1, 2**40)


def part(number, units=2**40, sensitivity=3, extra=()):
    rate = units * UNIT
    return Part(
        f"{number:064x}",
        rate * sensitivity,
        (Charge(Purpose.COUNTS, rate * sensitivity, Sensitivity(sensitivity), DiscreteLaplace(rate)), *extra),
    )


def merged(*parts, people=People.DISJOINT):
    return Merged(people, parts)


def test_disjoint_people_cost_the_largest_epsilon_and_overlapping_people_the_sum():
    extra = Charge(Purpose.THRESHOLD, Fraction(1), Sensitivity(1), DiscreteLaplace(Fraction(1)))
    parts = (part(1, 2**40), part(2, 2**39), part(3, 2**40, extra=(extra,)))
    assert merged(*parts).epsilon_in_use == 4
    assert merged(*parts, people=People.OVERLAPPING).epsilon_in_use == Fraction(17, 2)
    assert merged(*parts[:2]).epsilon == 3
    assert merged(*parts[:2], people=People.OVERLAPPING).epsilon == Fraction(9, 2)
    assert [charge.purpose for charge in merged(*parts).charges] == ["counts", "counts", "counts", "threshold"]


@given(st.lists(st.integers(2**10, 2**60), min_size=2, max_size=8))
def test_the_rate_is_the_largest_whose_scale_squared_is_no_less_than_the_sum_of_squares(units):
    """The definition, in rationals: 1 / r**2 >= sum of 1 / r_i**2, and not so for a rate one unit larger."""
    rate = merged(*(part(i, u) for i, u in enumerate(units))).rate
    wanted = sum(1 / (u * UNIT) ** 2 for u in units)
    assert (rate * 2**40).denominator == 1
    assert 1 / rate**2 >= wanted > 1 / (rate + UNIT) ** 2


def test_four_equal_noises_are_twice_as_wide():
    assert merged(*(part(i, 2**40) for i in range(4))).rate == Fraction(1, 2)


def test_many_parts_of_different_rates_take_no_time():
    """A forged file may name as many as there can be."""
    rate = merged(*(part(i, 2**59 - i) for i in range(MAX_PARTS))).rate
    assert abs(float(rate) * MAX_PARTS**0.5 / 2**19 - 1) < 1e-12


@pytest.mark.parametrize(
    "parts",
    [(1,), (), (1, 1), (2, 1), range(MAX_PARTS + 1)],
    ids=["one", "none", "the same twice", "out of order", "too many"],
)
def test_impossible_merges_are_refused(parts):
    with pytest.raises(InvalidParameterError, match="must be"):
        merged(*(part(i) for i in parts))


@pytest.mark.parametrize(
    ("release", "charges"),
    [
        ("xyz", part(1).charges),
        ("A" * 64, part(1).charges),
        ("0" * 64, ()),
        ("0" * 64, part(1).charges * 2),
    ],
)
def test_impossible_parts_are_refused(release, charges):
    with pytest.raises(InvalidParameterError, match="must be"):
        Part(release, Fraction(1), charges)
