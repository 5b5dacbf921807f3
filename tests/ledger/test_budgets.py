"""What a fit costs in the unit of a budget, what fits cost together, and what is refused."""

import os
import tempfile
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpoutlier import Guarantee, Ledger
from dpoutlier.exceptions import BudgetExceededError, InvalidParameterError, LedgerError
from dpoutlier.ledger.budgets import Budget, Unit, cost_of, number_text, rounded_up
from dpoutlier.ledger.store import append
from ledger_budgets import ADD, REPLACE, of


@pytest.mark.parametrize(
    ("guarantee", "budget", "cost"),
    [
        (of(1), (ADD, Unit.ROW, None), 1),
        (of(1, neighbours=REPLACE), (ADD, Unit.ROW, None), Fraction(1, 2)),
        (of(1), (REPLACE, Unit.ROW, None), 2),
        (of(1, neighbours=REPLACE), (REPLACE, Unit.ROW, None), 1),
        (of(1, rows_per_person=4), (ADD, Unit.ROW, None), Fraction(1, 4)),
        (of(1), (ADD, Unit.PERSON, 4), 4),
        (of(1, rows_per_person=4), (ADD, Unit.PERSON, 4), 1),
        (of(1, rows_per_person=2), (REPLACE, Unit.PERSON, 6), 6),
        (of(1, rows_per_person=4, person="id"), (ADD, Unit.PERSON, 9), 1),
        (of(1, rows_per_person=4, person="id"), (ADD, Unit.PERSON, None), 1),
        (of(1, person="id"), (REPLACE, Unit.PERSON, None), 2),
    ],
)
def test_a_fit_is_charged_in_the_relation_and_unit_of_the_budget(guarantee, budget, cost):
    assert cost_of(guarantee, Budget("x", Fraction(9), *budget)) == cost


@pytest.mark.parametrize(
    ("guarantee", "budget", "message"),
    [
        (of(1, person="id"), (ADD, Unit.ROW, None), "protects rows"),
        (
            of(1, person="visit"),
            (ADD, Unit.PERSON, None, "id"),
            "identified by the column 'id', .* by 'visit'. Use column 'id'",
        ),
        (of(1), (ADD, Unit.PERSON, None), "nobody declared"),
        (of(1, voided_by=("a seed",)), (ADD, Unit.ROW, None), "not private"),
        (Guarantee(None), (ADD, Unit.ROW, None), "not private"),
    ],
)
def test_a_fit_without_a_price_in_the_unit_is_refused(guarantee, budget, message):
    with pytest.raises(LedgerError, match=message):
        cost_of(guarantee, Budget("x", Fraction(9), *budget))


@given(st.fractions(min_value=Fraction(1, 10**11), max_value=100, max_denominator=10**18))
def test_a_cost_is_rounded_up_and_by_less_than_a_billionth_of_a_thousandth(epsilon):
    up, unit = rounded_up(epsilon), Fraction(1, 10**12)
    assert epsilon <= up < epsilon + unit
    assert up.denominator <= 10**12
    for number in (up, -up):
        assert Fraction(number_text(number, down=True)) <= number <= Fraction(number_text(number))
        assert Fraction(number_text(number)) - Fraction(number_text(number, down=True)) <= unit


def test_three_thirds_are_a_whole(ledger):
    for _ in range(9):
        ledger.reserve("patients", of("1/3"), "DPForest")
    assert ledger.balance("patients").left == 0


# What fits cost together --------------------------------------------------------------------------------------------------

events = st.lists(
    st.tuples(st.sampled_from(["whole", "a", "b", "c"]), st.integers(1, 40).map(lambda n: Fraction(n, 16))), max_size=12
)


@pytest.fixture(scope="module")
def in_memory(tmp_path_factory):
    """A folder where it costs nothing to see that things are on disk."""
    place = Path("/dev/shm")
    if not os.access(place, os.W_OK):
        yield tmp_path_factory.mktemp("ledgers")
        return
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)


@settings(max_examples=60)
@given(events)
def test_nobody_ever_loses_more_than_the_budget(in_memory, tried):
    """The oracle adds up, person by person, the fits on data that the person is in."""
    ledger = Ledger.create(Path(tempfile.mkdtemp(dir=in_memory)) / "x.ledger")
    ledger.open_budget("whole", 4)
    for part in "abc":
        ledger.open_budget(part, part_of="whole")
    lost = dict.fromkeys("abc", Fraction(0))  # by somebody in this part
    for name, epsilon in tried:
        touched = "abc" if name == "whole" else name
        fits = all(lost[one] + epsilon <= 4 for one in touched)
        assert ledger.balance(name).left == 4 - max(lost[one] for one in touched)
        if fits:
            ledger.reserve(name, Guarantee(epsilon), "DPForest")
            lost |= {one: lost[one] + epsilon for one in touched}
        else:
            with pytest.raises(BudgetExceededError):
                ledger.reserve(name, Guarantee(epsilon), "DPForest")
        assert ledger.balance("whole").spent == max(lost.values())


def test_what_is_left_is_read_when_nobody_else_can_spend_it(ledger, monkeypatch):
    """Somebody charges just before we hold the file: what was left until then is left no more."""

    @contextmanager
    def after_another(path):
        monkeypatch.undo()
        Ledger(path).reserve("patients", of(2), "DPForest")
        with append(path) as appending:
            yield appending

    monkeypatch.setattr("dpoutlier.ledger.ledger.append", after_another)
    with pytest.raises(LedgerError) as refused:
        ledger.reserve("patients", of(2), "DPForest")
    assert isinstance(refused.value, BudgetExceededError)  # by the budget, not only as an entry that no ledger writes
    assert "has 1 left of 3" in str(refused.value)
    assert ledger.balance("patients").spent == 2


def test_what_is_reserved_is_spent_whether_it_is_released_or_not(ledger):
    ledger.reserve("patients", of(1), "DPForest")
    balance = ledger.balance("patients")
    assert (balance.spent, balance.left, balance.fits, balance.unfinished) == (1, 2, 1, 1)
    receipt = ledger.reserve("patients", of("1/2"), "DPForest")
    ledger.commit(receipt, "a" * 64)
    balance = ledger.balance("patients")
    assert (balance.spent, balance.left, balance.fits, balance.unfinished) == (Fraction(3, 2), Fraction(3, 2), 2, 1)
    assert [one.release for one in ledger.spendings()] == [None, "a" * 64]


def test_a_refusal_names_the_numbers_and_charges_nothing(ledger):
    ledger.reserve("patients", of("2.75"), "DPForest")
    before = ledger.entries()
    with pytest.raises(
        BudgetExceededError, match=r"'patients' has 0\.25 left of 3.* would cost 0\.3 .*No row was read"
    ):
        ledger.reserve("patients", of("3/10"), "DPForest")
    assert ledger.entries() == before
    ledger.reserve("patients", of("1/4"), "DPForest")
    assert ledger.balance("patients").left == 0


def test_check_tells_the_cost_and_charges_nothing(ledger):
    assert ledger.check("patients", of(2, neighbours=REPLACE)) == 1
    with pytest.raises(BudgetExceededError):
        ledger.check("patients", of(4))
    assert ledger.balance("patients").spent == 0


def test_what_was_released_elsewhere_is_charged_even_past_the_budget(ledger):
    ledger.charge("patients", 5, "a table of 2024")
    assert ledger.balance("patients").left == -2
    with pytest.raises(BudgetExceededError, match="-2 left"):
        ledger.reserve("patients", of("1/1000"), "DPForest")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dataset": "patients", "epsilon": 9}, "has a budget already"),
        ({"dataset": "x"}, "epsilon must be"),
        ({"dataset": "x", "epsilon": float("inf")}, "epsilon must be finite"),
        ({"dataset": "x", "epsilon": 1, "part_of": "patients"}, "no epsilon"),
        ({"dataset": "x", "part_of": "nobody"}, "must have a budget"),
        ({"dataset": "x", "part_of": "january"}, "parts have no parts"),
        ({"dataset": "x", "epsilon": 1, "rows_per_person": 3}, "left out for the unit row"),
        ({"dataset": "x", "epsilon": 1, "unit": "house"}, "unit must be one of"),
        ({"dataset": "x", "epsilon": 1, "neighbours": "all"}, "neighbours must be one of"),
        ({"dataset": " x", "epsilon": 1}, "dataset must be a name"),
        ({"dataset": "x\n", "epsilon": 1}, "dataset must be a name"),
        ({"dataset": "", "epsilon": 1}, "dataset must be a name"),
    ],
)
def test_budgets_that_cannot_be_are_refused_and_nothing_is_written(ledger, arguments, message):
    ledger.open_budget("january", part_of="patients")
    before = ledger.entries()
    with pytest.raises((LedgerError, InvalidParameterError), match=message):
        ledger.open_budget(**arguments)
    assert ledger.entries() == before


def test_a_part_under_replace_one_takes_no_charge_by_hand(tmp_path):
    """That one person more or less costs half of one replaced holds of our noise, and not of all that was ever published."""
    ledger = Ledger.create(tmp_path / "x.ledger")
    ledger.open_budget("all", 3, neighbours="replace-one")
    ledger.open_budget("january", part_of="all")
    with pytest.raises(LedgerError, match="Charge 'all' instead"):
        ledger.charge("january", 1, "a table")
    ledger.charge("all", 1, "a table")
    assert ledger.balance("january").left == 2


@pytest.mark.parametrize("name", ["cafe\u0301", "a" * 201, "tab\t", " x"])
def test_names_that_look_like_others_are_refused(ledger, name):
    with pytest.raises(InvalidParameterError, match="dataset must be a name"):
        ledger.open_budget(name, 1)
