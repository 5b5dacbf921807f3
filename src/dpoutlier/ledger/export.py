"""A ledger as a table, to check it without this program."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

from dpoutlier.ledger.entries import Entry

__all__ = ["as_csv", "as_json"]

NAMES = ("number", "previous", "body", "hash")


def as_csv(entries: Sequence[Entry]) -> bytes:
    """One line for each entry, as it was hashed."""
    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(NAMES)
    rows.writerows((entry.number, entry.previous, entry.body, entry.hash) for entry in entries)
    return text.getvalue().encode()


def as_json(entries: Sequence[Entry]) -> bytes:
    content = [
        {"number": e.number, "previous": e.previous, "body": e.body, "hash": e.hash, "content": e.content}
        for e in entries
    ]
    return (json.dumps({"entries": content}, indent=2) + "\n").encode()
