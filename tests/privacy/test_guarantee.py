"""Epsilon as written, the sensitivity, and the statement."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpoutlier import DPGridKNN, GridKNN, PrivateBounds
from dpoutlier.exceptions import InvalidParameterError, UnsafeWarning
from dpoutlier.model.release_id import release_id
from dpoutlier.privacy.guarantee import Guarantee, Neighbours, as_epsilon, sensitivity


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (0.1, Fraction(1, 10)),
        (1, Fraction(1)),
        ("0.3", Fraction(3, 10)),
        ("1/3", Fraction(1, 3)),
        (Decimal("0.015"), Fraction(15, 1000)),
        (Fraction(2, 7), Fraction(2, 7)),
        (np.float64(0.5), Fraction(1, 2)),
        (np.int64(2), Fraction(2)),
        (1e-3, Fraction(1, 1000)),
    ],
)
def test_epsilon_is_the_number_that_was_written(given, meant):
    assert as_epsilon(given) == meant


@pytest.mark.parametrize("given", [float("inf"), np.inf, "inf", "Infinity"])
def test_infinite_epsilon_is_none(given):
    assert as_epsilon(given) is None


@pytest.mark.parametrize(
    "given",
    [
        0,
        -1,
        0.0,
        -0.5,
        float("nan"),
        "nan",
        "-inf",
        "one",
        "",
        None,
        True,
        [1],
        "1/0",
        1j,
        "1e999999999",
        "9" * 10**5,
        "1e400",
        5e-324,
        10**400,
    ],
)
def test_epsilon_that_is_no_positive_number_is_refused_with_its_value(given):
    with pytest.raises(InvalidParameterError, match=r"epsilon must be a positive number"):
        as_epsilon(given)


@pytest.mark.parametrize("number", [np.uint8(129), np.uint16(32769), np.int64(129), np.int8(127)])
def test_numpy_integers_do_not_wrap_around(number):
    guarantee = Guarantee(Fraction(1), "replace-one", rows_per_person=number)
    assert guarantee.sensitivity().l1 == 2 * int(number)
    assert type(guarantee.rows_per_person) is int
    assert sensitivity(Neighbours.REPLACE_ONE, number) == (2 * int(number), int(number))


@pytest.mark.parametrize(
    ("epsilon", "stated"), [("1.0000049", "1.0000049"), ("100000.4", "100000.4"), ("1/3", "0.333333334")]
)
def test_the_statement_never_rounds_epsilon_down(epsilon, stated):
    assert statement_of(epsilon=epsilon).epsilon == stated


EVERYTHING = {"n_rows_hint": "estimate", "bins": "auto", "target_fpr": 0.1, "features": PrivateBounds(0.2, (0, 9))}


@pytest.mark.parametrize("epsilon", ["1/3", "0.7", "1/7", "2/3", "1e-4", "3", "1.000000001"])
def test_what_is_shown_of_the_charges_adds_up_to_the_total_that_is_shown(epsilon):
    """Before, each was rounded up by itself: 1/3 in four parts was 0.333333337."""
    statement = statement_of(epsilon=epsilon, **EVERYTHING)
    assert sum(Decimal(charge["epsilon"]) for charge in statement.charges) == Decimal(statement.epsilon)
    assert [charge["purpose"] for charge in statement.charges] == ["number of rows", "bounds", "counts", "threshold"]


def test_bounds_have_no_noise_on_rows():
    statement = statement_of(**EVERYTHING)
    scales = {charge["purpose"]: charge["noise_scale_rows"] for charge in statement.charges}
    assert scales.pop("bounds") is None
    assert all(float(scale) > 0 for scale in scales.values())
    (line,) = [line for line in str(statement).splitlines() if line.startswith("  bounds ")]
    assert line.endswith("none (chosen)")


def test_the_sensitivity_counts_cells_rows_and_relations():
    assert sensitivity(Neighbours.ADD_OR_REMOVE_ONE, rows_per_person=3, cells_per_row=8) == (24, 3)
    assert sensitivity(Neighbours.REPLACE_ONE, rows_per_person=3, cells_per_row=8) == (48, 3)


@pytest.mark.parametrize("arguments", [{"neighbours": "swap"}, {"rows_per_person": 0}, {"rows_per_person": 1.5}])
def test_an_impossible_guarantee_is_refused(arguments):
    with pytest.raises(InvalidParameterError, match=next(iter(arguments))):
        Guarantee(Fraction(1), **arguments)


def statement_of(**arguments):
    detector = DPGridKNN(**{"epsilon": 0.5, "features": {"age": (0, 120), "bmi": (10, 80)}, "bins": 4, **arguments})
    return detector.fit(np.zeros((3, 2))).privacy_statement()


def test_with_a_delta_epsilon_is_known_in_the_relation_of_the_guarantee_alone():
    """Noise of epsilon 1 under replace-one, at a delta, may cost more than half of that where a row comes or goes."""
    guarantee = Guarantee(Fraction(1), "replace-one", delta=Fraction(1, 10**6))
    assert guarantee.epsilon_for("replace-one") == 1
    assert guarantee.epsilon_for("add-or-remove-one") is None


def test_a_delta_is_in_the_statement_and_in_the_id_of_the_release():
    model = DPGridKNN(1, features=(0, 1), bins=2).fit(np.zeros((5, 1))).model_
    other = replace(model, guarantee=replace(model.guarantee, delta=Fraction(1, 10**6)))
    assert "at most exp(1) (relation" in " ".join(str(model.privacy_statement()).split())
    statement = other.privacy_statement()
    assert "at most exp(1), plus 1/1000000 (relation" in " ".join(str(statement).split())
    assert (statement.epsilon_add_or_remove_one, statement.epsilon_replace_one) == ("1", "none")
    assert release_id(model) != release_id(other)


def test_the_statement_says_what_an_officer_must_know():
    statement = statement_of(target_fpr=0.1)
    page = str(statement)
    for text in (
        "one row",
        "add-or-remove-one",
        "0.5",
        "1 (replace-one)",
        "discrete Laplace",
        "age",
        "120",
        "declared",
    ):
        assert text in page
    assert statement.to_dict()["charges"][0]["purpose"] == "counts"
    assert "Not protected" in page
    assert statement.publishable


def test_the_statement_says_per_person_and_who_vouches_for_the_cap():
    page = str(statement_of(rows_per_person=5))
    assert "one person, with at most 5 rows" in page
    assert "The custodian declares" in page


def test_the_statement_of_a_keyed_model_says_computational_and_secret():
    statement = statement_of(counts="keyed")
    assert "computational" in str(statement)
    assert "SECRET" in str(statement)
    assert not statement.publishable


@pytest.mark.parametrize("arguments", [{"epsilon": "inf"}, {"unsafe_seed": 1}, {"unsafe_seed": 0}])
def test_modes_that_are_not_private_warn_and_say_so(arguments):
    with pytest.warns(UnsafeWarning, match="NOT PRIVATE"):
        statement = statement_of(**arguments)
    assert not statement.private
    assert not statement.publishable
    assert statement.epsilon == statement.epsilon_in_use == "none"
    assert "NOT PRIVATE" in str(statement)


def test_the_twin_promises_nothing():
    statement = GridKNN((0, 1)).fit(np.zeros((3, 2))).privacy_statement()
    assert not statement.private
    assert "non-private twin" in str(statement)
