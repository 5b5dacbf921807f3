"""The ledger: a budget for each data set, charged before any row is read."""

import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from dpoutlier._validate import one_of, parameter_error, positive_int
from dpoutlier.exceptions import InvalidParameterError, LedgerError
from dpoutlier.ledger.anchor import Head, check_heads, heads_in, write_head
from dpoutlier.ledger.anchoring import check_anchor, new_anchor, try_anchor, update_anchor
from dpoutlier.ledger.budgets import AnchorChange, Balance, Book, Spending, Unit, cost_of, number_text, rounded_up
from dpoutlier.ledger.entries import Entry
from dpoutlier.ledger.store import Appending, append, check_free, create_file, read_entries
from dpoutlier.privacy.guarantee import Guarantee, Neighbours, as_epsilon
from dpoutlier.privacy.receipt import Receipt, checked_name

OUTSIDE = "outside of dpoutlier"
NOTHING_CHARGED = "Nothing was charged."


class Ledger:
    """A file with the privacy budget of each data set, and every fit that was charged to it.

    A fit is charged before it reads a row; after a crash the charge still counts. Entries are chained by hash and never change.
    Only something outside the file can show that the file is not an old copy: the anchor, a hash that was noted elsewhere, or
    the models, each of which holds the hash of its own entry.

    Parameters
    ----------
    path : str or Path
        An existing ledger; ``Ledger.create`` makes a new one.
    anchor : str or Path, default=None
        Where the anchor is now, if it was moved after the ledger was created. The next entry records it.

    Attributes
    ----------
    path : Path
        The file.
    anchor : Path or None
        The anchor that was given.
    receipt : Receipt or None
        Receipt of the last charge that was made through this object.
    tried : Receipt or None
        Receipt of the last charge that was begun through this object; ``outcome`` says whether it was made.

    See Also
    --------
    DPForest : Pass the ledger as ``ledger=`` with ``dataset=`` to charge a fit.

    References
    ----------
    .. [1] R. Rogers, A. Roth, J. Ullman and S. Vadhan, "Privacy odometers and filters: pay-as-you-go composition", NeurIPS 2016: a
       fixed limit on the sum of adaptively chosen epsilons.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from dpoutlier import DPMarginals, Ledger
    >>> ledger = Ledger.create(Path(tempfile.mkdtemp()) / "budget.ledger")
    >>> ledger.open_budget("patients", epsilon=1)
    >>> detector = DPMarginals(0.4, features=(0, 1), bins=3, ledger=ledger, dataset="patients").fit(np.full((9, 1), 0.2))
    >>> balance = ledger.balance("patients")
    >>> balance.spent, balance.left
    (Fraction(2, 5), Fraction(3, 5))
    """

    def __init__(self, path: str | Path, *, anchor: str | Path | None = None) -> None:
        self.path = Path(path)
        self.anchor = None if anchor is None else Path(anchor)
        self.receipt: Receipt | None = None
        self.tried: Receipt | None = None

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    @classmethod
    def create(cls, path: str | Path, *, anchor: str | Path | None = None) -> Self:
        """Make a new ledger, without budgets.

        Parameters
        ----------
        path : str or Path
            File to make; it must not exist. Use a local disk: SQLite's locks do not work on network file systems.
        anchor : str or Path, default=None
            Second file to make elsewhere, on another disk or where data can only be appended. Each entry is noted there too, so
            that an old copy of the ledger is refused.

        Returns
        -------
        Ledger
            The new ledger.

        Raises
        ------
        OutputExistsError
            If the ledger exists already.
        LedgerError
            If the anchor exists already.
        InvalidParameterError
            If there is no such folder, or if the anchor is the same file as the ledger.

        See Also
        --------
        open_budget : Open a budget for a data set.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from dpoutlier import Ledger
        >>> folder = Path(tempfile.mkdtemp())
        >>> ledger = Ledger.create(folder / "budget.ledger", anchor=folder / "budget.anchor")
        >>> ledger.has_anchor(), ledger.datasets()
        (True, [])
        """
        place = None if anchor is None else Path(anchor).absolute()
        if place is not None and place == Path(path).absolute():
            raise InvalidParameterError(f"anchor must be another file than the ledger, got {str(anchor)!r} for both.")
        check_free(Path(path))
        first = {
            "kind": "ledger",
            "id": secrets.token_hex(16),
            "anchor": None if place is None else str(place),
            "time": _now(),
        }
        if place is None:
            create_file(Path(path), first)
            return cls(path)
        with new_anchor(place, Path(path)):
            try_anchor(place, 1)
            entry = create_file(Path(path), first)
        update_anchor(place, entry)
        return cls(path)

    # Reading -------------------------------------------------------------------------------------------------------------

    def entries(self) -> list[Entry]:
        """Read all entries, and check their chain and the anchor.

        Returns
        -------
        list of Entry
            Each with ``number``, ``hash``, ``previous`` (the hash before it) and ``content``.

        Raises
        ------
        LedgerError
            If there is no ledger, or it is damaged or an old copy.

        See Also
        --------
        verify : Check the ledger against hashes that were noted elsewhere.
        """
        anchors = self._anchors(Book.of(read_entries(self.path)))
        entries = read_entries(self.path)  # after the anchor: an entry that is written meanwhile is in both, or here
        for place, heads in anchors:
            check_anchor(place, heads, entries)
        return entries

    def datasets(self) -> list[str]:
        """List the data sets that have a budget or are a part of one.

        Returns
        -------
        list of str
            Their names.

        Raises
        ------
        LedgerError
            If there is no ledger, or it is damaged or an old copy.
        """
        return list(Book.of(self.entries()).budgets)

    def balances(self) -> list[Balance]:
        """Show what is spent and left of all budgets, at one moment.

        Returns
        -------
        list of Balance
            One for each data set, as ``balance`` returns it.

        Raises
        ------
        LedgerError
            If there is no ledger, or it is damaged or an old copy.
        """
        book = Book.of(self.entries())
        return [book.balance(name) for name in book.budgets]

    def balance(self, dataset: str) -> Balance:
        """Show what is spent and left of one budget.

        Parameters
        ----------
        dataset : str
            Name of the data set.

        Returns
        -------
        Balance
            With ``total``, ``spent`` and ``left`` as fractions; ``fits``, the number of fits; and ``unfinished``, those without
            a release.

        Raises
        ------
        LedgerError
            If the data set has no budget; or if there is no ledger, or it is damaged or an old copy.
        InvalidParameterError
            If an argument has no meaning.
        """
        return Book.of(self.entries()).balance(checked_name(dataset=dataset))

    def spendings(self, dataset: str | None = None) -> list[Spending]:
        """List the charges, in their order.

        Parameters
        ----------
        dataset : str, default=None
            Name of the data set. None: all data sets.

        Returns
        -------
        list of Spending
            Each with ``number``, ``dataset``, ``epsilon``, ``time``, ``what`` and ``release``.

        Raises
        ------
        LedgerError
            If there is no ledger, or it is damaged or an old copy.
        """
        found = Book.of(self.entries()).spendings.values()
        return [one for one in found if dataset is None or one.dataset == dataset]

    def anchor_changes(self) -> list[AnchorChange]:
        """List the changes of the anchor, in their order.

        Returns
        -------
        list of AnchorChange
            Each with ``old``, ``new`` and ``how``. The last may be the argument ``anchor``, if no entry has recorded it yet.

        Raises
        ------
        LedgerError
            If there is no ledger, or it is damaged or an old copy.
        """
        book = Book.of(self.entries())
        given = self._override(book)
        pending = [] if given is None else [AnchorChange(None, None, book.anchor, given, "override")]
        return [*book.anchor_changes, *pending]

    def outcome(self, receipt: Receipt | None) -> str:
        """Say what became of a charge, for a message after a failure.

        The anchor is not read, because it may be what failed.

        Parameters
        ----------
        receipt : Receipt or None
            The attribute ``receipt`` or ``tried``.

        Returns
        -------
        str
            Whether the charge was made, what is left, and whether its release is noted.
        """
        if receipt is None:
            return NOTHING_CHARGED
        try:
            entries = read_entries(self.path)
            book = Book.of(entries)
        except (LedgerError, OSError) as error:
            return (
                f"It is not known whether entry {receipt.entry} was charged to {receipt.dataset!r}: {error} Count it as spent "
                f"until the ledger can be read (dpoutlier ledger show {self.path})."
            )
        if receipt.head not in {entry.hash for entry in entries}:
            return NOTHING_CHARGED
        one = book.spendings[receipt.entry]
        charged = (
            f"Charged {number_text(one.epsilon)} to {one.dataset!r} in {self.path}, entry {one.number}; "
            f"{number_text(book.left(one.dataset), down=True)} is left."
        )
        if one.release is not None:
            return f"{charged} The ledger names its release."
        return (
            f"{charged} It counts as spent. The ledger names no release for it; if there is a model of this fit, note it with "
            "Ledger.commit(model.receipt, release_id(model))."
        )

    def verify(self, *, head: str | None = None, receipts: Iterable[Receipt] = ()) -> Head:
        """Check the whole chain, and that it contains what is known of it elsewhere.

        Parameters
        ----------
        head : str, default=None
            A hash that was noted before.
        receipts : iterable of Receipt, default=()
            Receipts of models: ``model_.receipt``.

        Returns
        -------
        Head
            ``number`` and ``hash`` of the last entry. Note the hash elsewhere, for the next check.

        Raises
        ------
        LedgerError
            If the ledger is absent or damaged, is an old copy, or is not the one that was charged.

        See Also
        --------
        check_paid : Check that a receipt paid for a release.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from dpoutlier import Ledger
        >>> ledger = Ledger.create(Path(tempfile.mkdtemp()) / "budget.ledger")
        >>> noted = ledger.verify().hash
        >>> ledger.open_budget("patients", epsilon=1)
        >>> ledger.verify(head=noted).number
        2
        """
        entries = self.entries()
        book = Book.of(entries)
        if head is not None and head.strip().lower() not in {entry.hash for entry in entries}:
            raise LedgerError(
                f"the ledger has no entry with the hash {head[:80]!r}: it is an old copy or another ledger, or the hash is "
                "mistyped."
            )
        for receipt in receipts:
            if receipt.ledger != book.ledger:
                raise LedgerError(
                    f"the model was charged to another ledger ({receipt.ledger}); this one is {book.ledger}."
                )
            check_heads(entries, [Head(receipt.entry, receipt.head)], "the model")
        return Head(entries[-1].number, entries[-1].hash)

    def check_paid(self, receipt: Receipt, release: str, guarantee: Guarantee) -> None:
        """Check that a receipt paid for a release with a guarantee.

        An entry that names no release fails, because nothing shows what it paid for. An entry pays for the one release that it
        names.

        Parameters
        ----------
        receipt : Receipt
            What ``reserve`` returned; a model has it as ``model_.receipt``.
        release : str
            SHA-256 of what was released: ``dpoutlier.model.release_id.release_id(model)``.
        guarantee : Guarantee
            Guarantee of the model.

        Raises
        ------
        LedgerError
            If the entry is absent, or did not pay for this release with this guarantee.
        """
        self.verify(receipts=[receipt])
        book = Book.of(self.entries())
        spending = book.spendings.get(receipt.entry)
        if spending is None or spending.dataset != receipt.dataset:
            raise LedgerError(f"entry {receipt.entry} is not a charge to {receipt.dataset!r}: the receipt is forged.")
        if spending.release is None:
            raise LedgerError(
                f"entry {receipt.entry} names no release, so it is not known what it paid for. If this is the one model of that "
                "fit, note it with Ledger.commit(model.receipt, release_id(model)). Otherwise this model is not paid for."
            )
        if spending.release != release:
            raise LedgerError(
                f"entry {receipt.entry} paid for another release: the receipt was taken from another model."
            )
        if cost_of(guarantee, book.budget(spending.dataset)) > spending.epsilon:
            raise LedgerError(f"entry {receipt.entry} paid for a smaller epsilon than the model has.")

    # Writing -------------------------------------------------------------------------------------------------------------

    def open_budget(
        self,
        dataset: str,
        epsilon: Any = None,
        *,
        neighbours: str = "add-or-remove-one",
        unit: str = "row",
        rows_per_person: int | None = None,
        person: str | None = None,
        part_of: str | None = None,
    ) -> None:
        """Open a budget for a data set. It can never be changed.

        Parameters
        ----------
        dataset : str
            Name of the data set, such as "patients". All tables with rows of the same people must be charged under the same name.
        epsilon : float, Fraction or str, default=None
            Largest sum of the epsilons of all fits on the data set. Required, unless ``part_of`` is given.
        neighbours : {'add-or-remove-one', 'replace-one'}, default='add-or-remove-one'
            Which two data sets must be hard to distinguish.
        unit : {'row', 'person'}, default='row'
            Who is protected by ``epsilon``.
        rows_per_person : int, default=None
            For the unit 'person': largest number of rows of one person. None: every fit must identify people (``person``).
        person : str, default=None
            For the unit 'person': column that identifies people. Fits that identify them by another column are refused.
        part_of : str, default=None
            Instead of ``epsilon``: the data set that this one is a part of. It declares that nobody has rows in two parts: then
            only the part that spent most counts in the whole. Relation and unit are those of the whole.

        Raises
        ------
        LedgerError
            If the data set has a budget already, or the whole has none or is itself a part; or if there is no ledger, or it is
            damaged or an old copy.
        InvalidParameterError
            If an argument has no meaning, or if arguments do not go together: a part has no ``epsilon``, and the unit 'row' has no
            ``rows_per_person`` or ``person``.

        See Also
        --------
        balance : What is spent and left.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from dpoutlier import Ledger
        >>> ledger = Ledger.create(Path(tempfile.mkdtemp()) / "budget.ledger")
        >>> ledger.open_budget("patients", epsilon="1/2", unit="person", rows_per_person=3)
        >>> ledger.open_budget("patients of 2020", part_of="patients")
        >>> ledger.balance("patients of 2020").left
        Fraction(1, 2)
        """
        content = check_budget(
            dataset,
            epsilon,
            neighbours=neighbours,
            unit=unit,
            rows_per_person=rows_per_person,
            person=person,
            part_of=part_of,
        )
        with self._appending() as appending:
            book = Book.of(appending.entries)
            if dataset in book.budgets:
                raise LedgerError(
                    f"{dataset!r} has a budget already, and a budget never changes. See it: dpoutlier ledger show {self.path}"
                )
            if part_of is not None:
                whole = book.budget(part_of, "part_of (--part-of)")
                if whole.part_of is not None:
                    raise LedgerError(f"{part_of!r} is itself a part of {whole.part_of!r}; parts have no parts.")
                content = {
                    "epsilon": None,
                    "neighbours": whole.neighbours.value,
                    "unit": whole.unit.value,
                    "rows_per_person": whole.rows_per_person,
                    "person": whole.person,
                }
            appending.add({"kind": "budget", "dataset": dataset, **content, "part_of": part_of, "time": _now()})

    def has_anchor(self) -> bool:
        """Say whether there is an anchor to check against.

        Returns
        -------
        bool
            Whether an anchor was given, or the ledger names one.

        Raises
        ------
        LedgerError
            If there is no ledger, or it is damaged or an old copy.
        """
        return self.anchor is not None or Book.of(self.entries()).anchor is not None

    def check(self, dataset: str, guarantee: Guarantee) -> Fraction:
        """Compute what a fit would cost. Nothing is charged.

        Parameters
        ----------
        dataset : str
            Name of the data set.
        guarantee : Guarantee
            Guarantee of the fit.

        Returns
        -------
        Fraction
            The cost, in the relation and unit of the budget.

        Raises
        ------
        BudgetExceededError
            If the budget does not cover the fit.
        LedgerError
            If the data set has no budget, or the fit has no price in its unit; or if there is no ledger, or it is damaged or an old
            copy.
        InvalidParameterError
            If an argument has no meaning.
        """
        book = Book.of(self.entries())
        cost = cost_of(guarantee, book.budget(checked_name(dataset=dataset)))
        book.check_covers(dataset, cost)
        return cost

    def reserve(self, dataset: str, guarantee: Guarantee, detector: str) -> Receipt:
        """Charge a fit, before it reads a row. ``fit`` of a detector with ``ledger=`` calls it.

        When it returns, the charge is on disk, and only then may a row be read.

        Parameters
        ----------
        dataset : str
            Name of the data set.
        guarantee : Guarantee
            Guarantee of the fit.
        detector : str
            Class of the detector, for the entry.

        Returns
        -------
        Receipt
            Where in the ledger the charge is written down.

        Raises
        ------
        BudgetExceededError
            If the budget does not cover the fit. Nothing is charged then.
        LedgerError
            If the data set has no budget, or the fit has no price in its unit; or if there is no ledger, or it is damaged, an old
            copy, or cannot be written.
        InvalidParameterError
            If an argument has no meaning.
        """  # (P10)
        dataset = checked_name(dataset=dataset)
        with self._appending() as appending:
            book = Book.of(appending.entries)
            cost = cost_of(guarantee, book.budget(dataset))
            book.check_covers(dataset, cost)
            entry = _add_charge(appending, dataset, cost, _described(detector, guarantee), outside=False)
            receipt = self.tried = Receipt(book.ledger, dataset, entry.number, entry.hash)
        self.receipt = receipt
        return receipt

    def commit(self, receipt: Receipt, release: str) -> None:
        """Note what was released for a charge. ``fit`` of a detector with ``ledger=`` calls it.

        It makes the ledger complete; the charge counts with or without it.

        Parameters
        ----------
        receipt : Receipt
            What ``reserve`` returned; a model has it as ``model_.receipt``.
        release : str
            SHA-256 of what was released: ``dpoutlier.model.release_id.release_id(model)``.

        Raises
        ------
        LedgerError
            If there is no such charge, or its release was noted before; or if there is no ledger, or it is damaged, an old copy, or
            cannot be written.
        """
        with self._appending() as appending:
            book = Book.of(appending.entries)
            check_heads(appending.entries, [Head(receipt.entry, receipt.head)], "the fit")
            if receipt.entry not in book.spendings:
                raise LedgerError(f"entry {receipt.entry} is not a charge, so there is nothing to commit.")
            if book.spendings[receipt.entry].release is not None:
                raise LedgerError(f"entry {receipt.entry} has been committed before.")
            # Without a time: how long a fit took would tell something about the number of rows.
            appending.add({"kind": "commit", "reservation": receipt.entry, "release": release})

    def charge(self, dataset: str, epsilon: Any, note: str) -> None:
        """Charge what was released without this ledger: by another program, or before the ledger existed.

        Parameters
        ----------
        dataset : str
            Name of the data set.
        epsilon : float, Fraction or str
            What it cost, in the relation and unit of the budget. It is charged even if it exceeds the budget, because it is spent.
        note : str
            What was released.

        Raises
        ------
        LedgerError
            If the data set has no budget, or is a part of one with the relation 'replace-one'; or if there is no ledger, or it is
            damaged, an old copy, or cannot be written.
        InvalidParameterError
            If ``epsilon`` is not positive and finite, or if ``note`` is empty or longer than 200 characters.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from dpoutlier import Ledger
        >>> ledger = Ledger.create(Path(tempfile.mkdtemp()) / "budget.ledger")
        >>> ledger.open_budget("patients", epsilon=1)
        >>> ledger.charge("patients", 0.25, "table of counts in the report of 2020")
        >>> ledger.balance("patients").left
        Fraction(3, 4)
        """
        cost = as_epsilon(epsilon)
        if cost is None:
            raise parameter_error("epsilon", "finite", epsilon)
        note, dataset = checked_name(note=note), checked_name(dataset=dataset)
        with self._appending() as appending:
            budget = Book.of(appending.entries).budget(dataset)
            if budget.part_of is not None and budget.neighbours is Neighbours.REPLACE_ONE:
                raise LedgerError(
                    f"{dataset!r} is a part of {budget.part_of!r} under replace-one. A charge by hand cannot go to such a part, "
                    "because only for dpoutlier's own noise is it known that one person more or less costs half. Charge "
                    f"{budget.part_of!r} instead."
                )
            entry = _add_charge(appending, dataset, rounded_up(cost), note, outside=True)
            appending.add({"kind": "commit", "reservation": entry.number, "release": OUTSIDE})

    def move_anchor(self, anchor: str | Path, *, lost: bool = False) -> None:
        """Make a new anchor, and use it from now on. The ledger notes the change.

        Parameters
        ----------
        anchor : str or Path
            File to make; it must not exist.
        lost : bool, default=False
            Confirm that the old anchor is gone. Then nothing shows that this ledger is not an old copy: first check it with
            ``verify`` against every model and every hash that was noted.

        Raises
        ------
        LedgerError
            If the ledger does not agree with the old anchor, or the new anchor exists already; or if there is no ledger, or it is
            damaged or cannot be written.
        InvalidParameterError
            If there is no such folder.
        """
        place = Path(anchor).absolute()
        with new_anchor(place, self.path), self._appending(lost=bool(lost)) as appending:
            known = appending.entries[appending.known - 1]
            try_anchor(place, known.number)
            write_head(place, known)  # so that it is never empty, whatever happens next
            _change_anchor(appending, str(place), lost=bool(lost))
        self.anchor = None

    # ----------------------------------------------------------------------------------------------------------------------

    def _anchors(self, book: Book, *, lost: bool = False) -> list[tuple[Path, list[Head]]]:
        """The anchor and its heads. If another anchor is given or ``lost`` is set, also the one that the ledger names.

        The latter is left out only if it cannot be read or is empty: then it may really be gone.
        """
        own = None if book.anchor is None else Path(book.anchor)
        place = self.anchor or own
        found = [] if place is None or lost else [(place, heads_in(place))]
        if own is not None and (lost or self._override(book) is not None):
            with suppress(LedgerError):
                found += [(own, heads) for heads in [heads_in(own)] if heads]
        return found

    def _override(self, book: Book) -> str | None:
        """The anchor that was given, if it is not the one that the ledger names."""
        given = None if self.anchor is None else str(self.anchor.absolute())
        return None if given == book.anchor else given

    @contextmanager
    def _appending(self, *, lost: bool = False) -> Iterator[Appending]:
        """``append`` with the anchor: checked first, tried before anything is kept, and updated when the last entry is on disk.

        The last hash stands for all entries before it. If another anchor was given than the ledger names, that is recorded first.
        """
        with append(self.path) as appending:
            book = Book.of(appending.entries)
            for place, heads in self._anchors(book, lost=lost):
                check_anchor(place, heads, appending.entries)
            given = None if lost else self._override(book)
            if given is not None:
                _change_anchor(appending, given, override=True)
            yield appending
            named, last = Book.of(appending.entries).anchor, appending.entries[-1]
            if named is not None:
                try_anchor(Path(named), last.number)
        if named is not None:
            update_anchor(Path(named), last)


def _add_charge(appending: Appending, dataset: str, cost: Fraction, what: str, *, outside: bool) -> Entry:
    nonce = secrets.token_hex(16)  # so that the hash in a model reveals nothing else
    content = {"kind": "reserve", "dataset": dataset, "epsilon": str(cost), "what": what, "outside": outside}
    return appending.add({**content, "nonce": nonce, "time": _now()})


def _change_anchor(appending: Appending, new: str, *, lost: bool = False, override: bool = False) -> None:
    old = Book.of(appending.entries).anchor
    appending.add({"kind": "anchor", "old": old, "anchor": new, "lost": lost, "override": override, "time": _now()})


def check_budget(
    dataset: str,
    epsilon: Any,
    *,
    neighbours: str,
    unit: str,
    rows_per_person: int | None,
    person: str | None,
    part_of: str | None,
) -> dict[str, Any]:
    """The checked content of a budget's entry. Empty for a part of a data set: the whole decides."""
    checked_name(dataset=dataset)
    if part_of is not None:
        checked_name(part_of=part_of)
        if epsilon is not None or rows_per_person is not None or person is not None:
            raise InvalidParameterError(
                "a part has no epsilon, rows_per_person or person of its own: it spends from the whole, in the unit of the whole. "
                "Leave them out, or leave part_of out."
            )
        return {}
    exact = None if str(epsilon).strip().lower() in {"inf", "infinity"} else as_epsilon(epsilon)
    if exact is None:
        raise parameter_error("epsilon", "finite", epsilon, "A budget needs a limit.")
    for name, value in (("rows_per_person", rows_per_person), ("person", person)):
        if one_of(Unit, unit=unit) == Unit.ROW and value is not None:
            raise parameter_error(name, "left out for the unit row", value, "Say unit='person' (--unit person).")
    return {
        "epsilon": str(exact),
        "neighbours": one_of(Neighbours, neighbours=neighbours),
        "unit": unit,
        "rows_per_person": None if rows_per_person is None else positive_int(2**31, rows_per_person=rows_per_person),
        "person": None if person is None else checked_name(person=person),
    }


def _described(detector: str, guarantee: Guarantee) -> str:
    """A fit in one line."""
    rows = guarantee.rows_per_person
    people = "" if rows == 1 and guarantee.person is None else f", {rows} row{'' if rows == 1 else 's'} of a person"
    column = "" if guarantee.person is None else f" by column {guarantee.person}"
    epsilon = number_text(guarantee.epsilon or Fraction(0))
    return f"{detector}, epsilon {epsilon} ({guarantee.neighbours.value}{people}{column})"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
