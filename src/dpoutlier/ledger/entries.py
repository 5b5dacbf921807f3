"""Entries of a ledger, each sealed with the hash of the one before it."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from dpoutlier.exceptions import LedgerError

START = "0" * 64
"""What the first entry follows."""


@dataclass(frozen=True)
class Entry:
    """One entry of a ledger. ``Ledger.entries`` returns it.

    Attributes
    ----------
    number : int
        Number of the entry, from 1.
    previous : str
        Hash of the entry before it; 64 zeros for the first.
    body : str
        Content as JSON text, as it was hashed.
    hash : str
        Its hash, 64 hexadecimal digits.
    content : dict
        Content as data; ``kind`` is 'ledger', 'budget', 'reserve', 'commit' or 'anchor'.
    """

    number: int
    previous: str
    body: str
    hash: str

    @property
    def content(self) -> dict[str, Any]:
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise LedgerError(f"the ledger is damaged: entry {self.number} is not one that a ledger writes. {REMEDY}")
        return found


def sealed(number: int, previous: str, content: dict[str, Any]) -> Entry:
    """The entry that follows ``previous``."""
    body = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return Entry(number, previous, body, _hash(number, previous, body))


def _hash(number: int, previous: str, body: str) -> str:
    return hashlib.sha256(f"dpoutlier ledger 1\n{number}\n{previous}\n{body}".encode()).hexdigest()


def chained(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries; raises at the first one that is not what was written: edited, taken out, put in or moved.

    It cannot see that entries are missing at the *end*, or that somebody recomputed all hashes. Only an anchor shows that.
    """
    number, previous = 0, START
    for entry in entries:
        number += 1
        if entry.number != number or entry.previous != previous:
            raise LedgerError(f"the ledger is damaged: entry {number} is missing, or was moved or replaced. {REMEDY}")
        if entry.hash != _hash(number, previous, entry.body):
            raise LedgerError(f"the ledger is damaged: entry {number} was edited after it was written. {REMEDY}")
        previous = entry.hash
        yield entry
    if not number:
        raise LedgerError(f"the ledger is damaged: it has no entries. {REMEDY}")


REMEDY = (
    "Nothing can be charged to it. Put the newest copy back and check it with its anchor. Until then, count everything that may "
    "have been released as spent."
)
