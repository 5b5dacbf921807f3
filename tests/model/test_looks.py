"""The rule for looks: public, never above its maxima, and better with more rows."""

from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from dpoutlier.model.looks import CHEAP, LEAST, MOST, PRICES, STEPS, Kind, first_look, second_look

powers = st.fractions(Fraction(1, 1000), 10**9) | st.integers(1, 2000).map(Fraction)
numbers_of_features = st.integers(0, 40) | st.integers(0, 10_000)
BETTER = [None, Kind.TEST, Kind.TOGETHER, Kind.EACH]


def choices_of(look, n_features):
    return n_features if look.kind is Kind.EACH else 1


@given(powers, numbers_of_features)
@example(Fraction(160), 1)
@example(Fraction(80, 3), 1)
def test_no_look_costs_more_than_its_maximum_and_none_is_too_weak_to_be_useful(power, n_features):
    for look in (first_look(power, n_features), second_look(power, n_features) if n_features else None):
        if look is None:
            continue
        price = PRICES[look.kind]
        assert LEAST <= look.share <= price.most
        assert (look.share * STEPS).denominator == 1
        assert look.strength >= price.needed
        assert look.strength == float(look.share * power / choices_of(look, n_features))


@given(powers, st.integers(1, 10_000))
def test_all_looks_of_a_fit_leave_most_for_the_counts(power, n_features):
    first, second = first_look(power, n_features), second_look(power, n_features)
    assert second is None or second.kind is not Kind.TEST
    if first is None:
        return
    spent = first.share + (second.share if second is not None and first.kind is Kind.TEST else 0)
    assert spent <= MOST < 1
    assert first.kind is Kind.TEST or first.share <= CHEAP


@given(powers, powers, st.integers(1, 1000))
def test_with_more_rows_or_epsilon_looks_are_better_and_cheaper(one, other, n_features):
    less, more = sorted((one, other))
    for rule in (first_look, second_look):
        few, many = rule(less, n_features), rule(more, n_features)
        kinds = [look and look.kind for look in (few, many)]
        assert BETTER.index(kinds[0]) <= BETTER.index(kinds[1])
        if few is not None and kinds[0] == kinds[1]:
            assert many.share <= few.share


@given(powers)
def test_without_a_range_to_narrow_nothing_is_looked_at(power):
    assert first_look(power, 0) is None
    assert first_look(Fraction(0), 3) is None
