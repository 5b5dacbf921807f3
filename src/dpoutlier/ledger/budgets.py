"""Budgets: what a fit costs in the unit of a budget, and what fits cost together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any

from dpoutlier._validate import exact_number, positive_int
from dpoutlier.exceptions import BudgetExceededError, LedgerError
from dpoutlier.ledger.entries import REMEDY, Entry
from dpoutlier.privacy.guarantee import MAX_EPSILON, Guarantee, Neighbours
from dpoutlier.privacy.receipt import checked_name

PLACES = 12


class Unit(StrEnum):
    """Whom a budget protects."""

    ROW = "row"
    PERSON = "person"


def rounded_up(epsilon: Fraction) -> Fraction:
    """Epsilon, rounded up to twelve decimal places if its denominator is long. Rounding down would lose a part of it."""
    return epsilon if epsilon.denominator <= 10**PLACES else Fraction(math.ceil(epsilon * 10**PLACES), 10**PLACES)


def number_text(epsilon: Fraction, *, down: bool = False) -> str:
    """Epsilon in at most twelve decimals. It is rounded up, for what was spent, or down, for what is left."""
    units = math.floor(epsilon * 10**PLACES) if down else math.ceil(epsilon * 10**PLACES)
    return f"{Decimal(units).scaleb(-PLACES).normalize():f}"


@dataclass(frozen=True)
class Budget:
    """The most that may ever be spent on a data set, in one relation and one unit. It never changes.

    Attributes
    ----------
    dataset : str
        Name of the data set.
    epsilon : Fraction or None
        Largest sum of the epsilons of all fits. None for a part, which spends from the whole.
    neighbours : Neighbours
        Which two data sets are hard to distinguish.
    unit : Unit
        Who is protected: 'row' or 'person'.
    rows_per_person : int or None
        For the unit 'person': largest number of rows of one person, as declared. None: not declared, so every fit must identify
        people.
    person : str or None
        For the unit 'person': column that identifies people. None: not declared, so each fit names its own.
    part_of : str or None
        The data set that this one is a part of.
    """

    dataset: str
    epsilon: Fraction | None
    neighbours: Neighbours
    unit: Unit
    rows_per_person: int | None
    person: str | None = None
    part_of: str | None = None

    @property
    def protects(self) -> str:
        if self.unit is Unit.ROW:
            return "one row"
        rows = self.rows_per_person
        return "one person" if rows is None else f"one person, with at most {rows} row{'' if rows == 1 else 's'}"


def cost_of(guarantee: Guarantee, budget: Budget) -> Fraction:
    r"""What a fit costs in the relation and unit of a budget.

    The noise of a fit costs :math:`\epsilon / (s m)` for each row that comes or goes, where m is its ``rows_per_person`` and s is 1
    under add-or-remove-one and 2 under replace-one. So replace-one costs twice add-or-remove-one, and somebody with M rows costs M
    times a row. A fit that tells people apart keeps at most m rows of each, and costs its epsilon for anyone, however many rows
    they have. In a budget of rows it has no price: one row more of somebody may put another one out.

    Raises LedgerError for a fit that is not private, or has no price in this unit.
    """
    if not guarantee.private or guarantee.epsilon is None:
        raise LedgerError(
            "a fit that is not private (epsilon=inf, unsafe_seed, bounds from the rows) cannot be charged to "
            "a ledger: no budget covers it. Leave ledger out, on data that nobody needs to protect."
        )
    if guarantee.delta:
        raise LedgerError(
            f"a ledger adds up epsilon alone so far, and this fit has delta = {guarantee.delta}. Fit with delta = 0."
        )
    cost = guarantee.epsilon_for(budget.neighbours)
    assert cost is not None
    if budget.unit is Unit.ROW:
        if guarantee.person is not None:
            raise LedgerError(
                f"the budget of {budget.dataset!r} protects rows, but this fit identifies people (person={guarantee.person!r}). "
                "Its cost in rows is not defined. Open a budget with unit='person' for these people."
            )
        return rounded_up(cost / guarantee.rows_per_person)
    if guarantee.person is not None:
        if budget.person not in {None, guarantee.person}:
            raise LedgerError(
                f"the budget of {budget.dataset!r} protects people identified by the column {budget.person!r}, but this fit "
                f"identifies them by {guarantee.person!r}. Use column {budget.person!r}."
            )
        return rounded_up(cost)
    if budget.rows_per_person is None:
        raise LedgerError(
            f"the budget of {budget.dataset!r} protects people, and nobody declared how many rows a person has. Fit with person=<"
            "column that identifies people>, or open a budget with rows_per_person."
        )
    return rounded_up(cost * Fraction(budget.rows_per_person, guarantee.rows_per_person))


class _ForgedError(Exception):
    """What is wrong with an entry."""


def _hold(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _ForgedError(otherwise)


def _amount(text: str) -> Fraction:
    """An epsilon as it stands in an entry."""
    found = exact_number(text, digits=60)
    if found is None or not 0 < found <= MAX_EPSILON * 2**31:
        raise _ForgedError("has an invalid epsilon")
    return found


@dataclass
class Spending:
    """One charge, and its release. It counts as spent from the first moment on. ``Ledger.spendings`` returns it.

    Attributes
    ----------
    number : int
        Number of the entry.
    dataset : str
        Name of the data set.
    epsilon : Fraction
        What it cost, in the relation and unit of the budget.
    time : str
        When it was charged, in ISO 8601 (UTC).
    what : str
        What was fitted or, for ``Ledger.charge``, the note.
    release : str or None
        SHA-256 of what was released. None: nothing that the ledger knows of, as after a crash.
    """

    number: int
    dataset: str
    epsilon: Fraction
    time: str
    what: str
    release: str | None = None


@dataclass(frozen=True)
class Balance:
    """How a budget stands. ``Ledger.balance`` returns it.

    Attributes
    ----------
    budget : Budget
        The budget as it was opened.
    total : Fraction
        Largest sum of the epsilons of all fits; of a part, that of the whole.
    spent : Fraction
        Sum of the epsilons of fits on the data set itself, plus the largest such sum among its parts.
    left : Fraction
        The most that one more fit may cost.
    fits : int
        Number of fits, with those on the parts.
    unfinished : int
        Number of fits without a release: still running, or crashed. They count as spent.
    """

    budget: Budget
    total: Fraction
    spent: Fraction
    left: Fraction
    fits: int
    unfinished: int


@dataclass(frozen=True)
class AnchorChange:
    """A change of the anchor. ``Ledger.anchor_changes`` returns it.

    Attributes
    ----------
    number : int or None
        Number of the entry. None: the next entry will record the change.
    time : str or None
        When it was changed, in ISO 8601 (UTC). None: it is not recorded yet.
    old : str or None
        The anchor before. None: there was none.
    new : str
        The anchor after.
    how : {'moved', 'lost', 'override'}
        'moved': the old anchor was there and agreed. 'lost': it was declared lost. 'override': another was given instead of it.
    """

    number: int | None
    time: str | None
    old: str | None
    new: str
    how: str


@dataclass
class Book:
    """What the entries of a ledger add up to."""

    ledger: str
    anchor: str | None
    budgets: dict[str, Budget] = field(default_factory=dict)
    spendings: dict[int, Spending] = field(default_factory=dict)
    sums: dict[str, Fraction] = field(default_factory=dict)
    """Sum of the charges to each data set itself."""
    anchor_changes: list[AnchorChange] = field(default_factory=list)

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Book:
        """Add the entries up, one by one, and hold each to the rules by which it was written.

        The chain shows that nothing was changed, and not who appended: an entry that a ledger would not have written is refused.
        """
        first, *others = entries
        content = first.content
        if content.get("kind") != "ledger":
            raise LedgerError("the ledger is damaged: its first entry does not start a ledger.")
        anchor = content.get("anchor")
        if anchor is not None and not isinstance(anchor, str):
            raise LedgerError("the ledger is damaged: its first entry does not start a ledger.")
        book = cls(str(content.get("id")), anchor)
        for entry in others:
            try:
                book._add(entry.number, entry.content)
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
                problem = "is not one that a ledger writes"
            except _ForgedError as error:
                problem = str(error)
            else:
                continue
            raise LedgerError(f"the ledger is damaged: entry {entry.number} {problem}. {REMEDY}")
        return book

    def _add(self, number: int, content: dict[str, Any]) -> None:
        match content.get("kind"):
            case "budget":
                self._add_budget(content)
            case "reserve":
                self._add_reserve(number, content)
            case "commit":
                spending = self.spendings[int(content["reservation"])]
                _hold(spending.release is None, "commits a charge for the second time")
                spending.release = str(content["release"])
            case "anchor":
                self._add_anchor(number, content)
            case kind:
                raise LedgerError(
                    f"entry {number} of the ledger is a {str(kind)[:40]!r}, which this dpoutlier does not know: upgrade it."
                )

    def _add_budget(self, content: dict[str, Any]) -> None:
        name, whole = checked_name(dataset=content["dataset"]), content["part_of"]
        _hold(name not in self.budgets, "opens a budget that exists already")
        budget = Budget(
            name,
            None if content["epsilon"] is None else _amount(content["epsilon"]),
            Neighbours(content["neighbours"]),
            Unit(content["unit"]),
            None
            if content["rows_per_person"] is None
            else positive_int(2**31, rows_per_person=content["rows_per_person"]),
            None if content["person"] is None else checked_name(person=content["person"]),
            whole,
        )
        if whole is None:
            _hold(budget.epsilon is not None, "opens a budget without a limit")
        else:
            same = replace(self.budgets[whole], dataset=name, epsilon=None, part_of=whole)
            _hold(self.budgets[whole].part_of is None and budget == same, "opens a part in another unit than the whole")
        self.budgets[name] = budget

    def _add_reserve(self, number: int, content: dict[str, Any]) -> None:
        name, cost = str(content["dataset"]), _amount(content["epsilon"])
        _hold(name in self.budgets, "charges a data set without a budget")
        outside = content["outside"] is True
        _hold(outside or cost <= self.left(name), "charges more than was left")
        self.spendings[number] = Spending(number, name, cost, str(content["time"]), str(content["what"]))
        self.sums[name] = self._own(name) + cost

    def _add_anchor(self, number: int, content: dict[str, Any]) -> None:
        old, new = self.anchor, content["anchor"]
        _hold(isinstance(new, str), "names no anchor")
        _hold(content.get("old", old) == old, "replaces another anchor than the ledger has")
        how = "override" if content.get("override") else "lost" if content.get("lost") else "moved"
        self.anchor_changes.append(AnchorChange(number, str(content.get("time")), old, new, how))
        self.anchor = new

    def budget(self, dataset: str, argument: str = "dataset") -> Budget:
        if dataset not in self.budgets:
            known = ", ".join(map(repr, self.budgets)) or "none yet"
            raise LedgerError(
                f"{argument} must have a budget in this ledger (budgets: {known}), got {dataset!r}. Open one: dpoutlier ledger "
                "create LEDGER --dataset NAME --epsilon 3"
            )
        return self.budgets[dataset]

    def parts(self, dataset: str) -> list[str]:
        return [name for name, budget in self.budgets.items() if budget.part_of == dataset]

    def _own(self, dataset: str) -> Fraction:
        return self.sums.get(dataset, Fraction(0))

    def spent(self, dataset: str) -> Fraction:
        """Fits on the same people add up. The people of parts are declared disjoint, so only the part that spent most counts."""
        return self._own(dataset) + max((self._own(part) for part in self.parts(dataset)), default=Fraction(0))

    def left(self, dataset: str) -> Fraction:
        """The most that one more fit on this data set may cost."""
        budget = self.budget(dataset)
        if budget.part_of is None:
            return self._total(dataset) - self.spent(dataset)
        return self._total(dataset) - self._own(budget.part_of) - self._own(dataset)

    def _total(self, dataset: str) -> Fraction:
        budget = self.budget(dataset)
        total = self.budget(budget.part_of).epsilon if budget.part_of is not None else budget.epsilon
        assert total is not None
        return total

    def check_covers(self, dataset: str, cost: Fraction) -> None:
        left, budget = self.left(dataset), self.budget(dataset)
        if cost > left:
            remedy = (
                "Use a smaller epsilon, or fit on other people." if left > 0 else "It is used up: fit on other people."
            )
            raise BudgetExceededError(
                f"the budget of {dataset!r} has {number_text(left, down=True)} left of {number_text(self._total(dataset))}, and "
                f"this fit would cost {number_text(cost)} ({budget.neighbours.value}, {budget.protects}). No row was read and "
                f"nothing was charged. {remedy}"
            )

    def balance(self, dataset: str) -> Balance:
        """How a budget stands. The fits of a whole include those of its parts."""
        names = {dataset, *self.parts(dataset)}
        fits = [one for one in self.spendings.values() if one.dataset in names]
        return Balance(
            self.budget(dataset),
            self._total(dataset),
            self.spent(dataset),
            self.left(dataset),
            len(fits),
            sum(one.release is None for one in fits),
        )
