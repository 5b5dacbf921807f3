"""A ledger as a table, to check it without this program."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, fields

from dpoutlier.ledger.entries import Entry


def as_csv(entries: Sequence[Entry]) -> bytes:
    """One line for each entry, as it was hashed."""
    text = io.StringIO(newline="")
    rows = csv.DictWriter(text, [field.name for field in fields(Entry)], lineterminator="\n")
    rows.writeheader()
    rows.writerows(map(asdict, entries))
    return text.getvalue().encode()


def as_json(entries: Sequence[Entry]) -> bytes:
    content = [{**asdict(entry), "content": entry.content} for entry in entries]
    return (json.dumps({"entries": content}, indent=2) + "\n").encode()
