"""Which model files a ledger has paid for."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from dpoutlier.detectors.load import read_model
from dpoutlier.exceptions import LedgerError
from dpoutlier.ledger.budgets import Book
from dpoutlier.ledger.ledger import Ledger
from dpoutlier.model.file import has_secret_name
from dpoutlier.model.merged import People
from dpoutlier.model.model import Model
from dpoutlier.model.release_id import release_id
from dpoutlier.privacy.guarantee import Guarantee
from dpoutlier.privacy.receipt import Receipt


class _Claim(NamedTuple):
    """A release that names the entry to which it was charged."""

    file: Path
    part: str
    receipt: Receipt
    release: str
    guarantee: Guarantee


def check_models(ledger: Ledger, files: list[Path]) -> tuple[int, list[str]]:
    """The number of files whose releases the ledger paid for, and remarks on files that it does not know, or not completely.

    Raises a LedgerError that names every file that fails, and why. The order of the files makes no difference.
    """
    book = Book.of(ledger.entries())
    models = [(file, read_model(file, secret=has_secret_name(file))) for file in files]
    claims = [claim for file, model in models for claim in _claims(file, model)]
    wrong = [problem for file, model in models for problem in _overlapping(file, model, book)]
    wrong += _claimed_twice(claims)
    held, remarks = 0, []
    for file, model in models:
        releases = 1 if model.merged is None else len(model.merged.parts)
        own = [one for one in claims if one.file == file]
        # Parts of a merge may come from other custodians. A model without any receipt of this ledger is not one of its models.
        here = [one for one in own if one.receipt.ledger == book.ledger] or own
        wrong += [problem for claim in here if (problem := _unpaid(ledger, claim)) is not None]
        held += bool(here)
        if here and model.merged is not None:
            remarks.append(f"{file} is a merge: the ledger cannot show whether its counts are the sum of its parts.")
        if not here:
            remarks.append(f"{file} was fitted without a ledger, so this ledger knows nothing about it.")
        elif len(here) < releases:
            remarks.append(
                f"{file} is a merge: {len(here)} of its {releases} parts were charged to this ledger. This ledger knows nothing "
                "about the others."
            )
    if wrong:
        raise LedgerError("\n".join(wrong))
    return held, remarks


def _claims(file: Path, model: Model) -> Iterator[_Claim]:
    if model.receipt is not None:
        yield _Claim(file, "", model.receipt, release_id(model), model.guarantee)
    for number, part in enumerate(model.merged.parts if model.merged is not None else (), 1):
        if part.receipt is not None:
            own = replace(model.guarantee, epsilon=part.epsilon)
            yield _Claim(file, f", part {number}", part.receipt, part.release, own)


def _unpaid(ledger: Ledger, claim: _Claim) -> str | None:
    """Why the ledger did not pay for a release, if it did not."""
    try:
        ledger.check_paid(claim.receipt, claim.release, claim.guarantee)
    except LedgerError as error:
        return f"{claim.file}{claim.part}: {error}"
    return None


def _claimed_twice(claims: list[_Claim]) -> list[str]:
    """Different releases that carry the receipt of one entry."""
    first: dict[Receipt, _Claim] = {}
    others = [(first.setdefault(claim.receipt, claim), claim) for claim in claims]
    return [
        f"{one.file}{one.part} and {other.file}{other.part} are different releases with the receipt of one entry, "
        f"{one.receipt.entry}: it paid for one of them at most."
        for one, other in others
        if one.release != other.release
    ]


def _overlapping(file: Path, model: Model, book: Book) -> list[str]:
    """A merge of disjoint people that has a data set and a part of it: only the ledger knows that these overlap."""
    if model.merged is None or model.merged.people is not People.DISJOINT:
        return []
    receipts = [part.receipt for part in model.merged.parts if part.receipt is not None]
    charged = {receipt.dataset for receipt in receipts if receipt.ledger == book.ledger}
    return [
        f"{file}: its parts are declared disjoint, and {name!r} is a part of {book.budgets[name].part_of!r} in the ledger. Merge "
        "them again with people='overlapping': their epsilons add up."
        for name in sorted(charged & book.budgets.keys())
        if book.budgets[name].part_of in charged
    ]
