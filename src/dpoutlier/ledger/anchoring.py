"""A ledger with its anchor: checked and tried before an entry is written, and updated afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpoutlier.exceptions import LedgerError
from dpoutlier.ledger.anchor import Head, announce, check_heads, create_anchor, write_head
from dpoutlier.ledger.budgets import Book
from dpoutlier.ledger.entries import Entry
from dpoutlier.ledger.store import read_entries


def check_anchor(place: Path, heads: list[Head], entries: list[Entry]) -> None:
    if not heads and len(entries) > 1:
        raise LedgerError(
            f"the anchor {place} is empty, so nobody can tell whether the ledger is an old copy. Put it back. If it is lost: "
            "dpoutlier ledger anchor --help"
        )
    check_heads(entries, heads, f"the anchor {place}")


@contextmanager
def new_anchor(place: Path, ledger: Path) -> Iterator[None]:
    """Make an anchor. If the block fails, remove it, unless the ledger already names it or cannot be read."""
    create_anchor(place)
    try:
        yield
    except BaseException:
        try:
            named = Book.of(read_entries(ledger)).anchor if ledger.exists() else None
        except (LedgerError, OSError):
            named = str(place)
        if named != str(place):
            place.unlink(missing_ok=True)
        raise


def try_anchor(place: Path, number: int) -> None:
    try:
        announce(place, number)
    except OSError as error:
        raise LedgerError(
            f"the anchor {place} cannot be written ({error.strerror}), so nothing was added to the ledger. Free some space, or "
            "permit writing. If the anchor was moved, give its new place with anchor=... (--anchor)."
        ) from None


def update_anchor(place: Path, entry: Entry) -> None:
    try:
        write_head(place, entry)
    except OSError as error:
        raise LedgerError(
            f"the anchor {place} could not be written ({error.strerror}). Entry {entry.number} is in the ledger all the same, and "
            "counts; the next entry brings the anchor up to date."
        ) from None
