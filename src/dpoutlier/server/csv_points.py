"""Points from CSV, as ``dpoutlier score`` reads them: a header line, and values that stay text until a feature parses them."""

from __future__ import annotations

import csv
import io
from typing import Any

import pyarrow as pa

from dpoutlier.features.domain import Domain
from dpoutlier.server.points import Points, chosen_columns, too_many_rows
from dpoutlier.server.refusals import Refusal
from dpoutlier.tables import convert as tables

__all__ = ["csv_points"]

MOST_COLUMNS, LONGEST_FIELD = 20_000, 1 << 17
MOST_COMMAS = MOST_COLUMNS + LONGEST_FIELD
"""Of one record, those within quotes included."""


def csv_points(body: bytes, domain: Domain, person: str | None, most_rows: int) -> Points:
    """The points of a body; other columns are ignored. Empty lines are no records, unless there is but one column."""
    csv.field_size_limit(LONGEST_FIELD)
    lines = Lines(body)
    records = csv.reader(
        lines if body.count(b",") > MOST_COMMAS else lines.stream
    )  # most bodies need no look at each line
    try:
        header = next(records, [])
        if not header or len(header) > MOST_COLUMNS:
            raise Refusal(
                "malformed-body", f"CSV needs a header line that names its columns, at most {MOST_COLUMNS} of them."
            )
        places = chosen_columns(header, domain, person)
        rows = list(_whole(records, lines, len(header), most_rows))
    except csv.Error:
        rows = None
    if rows is None:
        raise Refusal(
            "malformed-body",
            f"line {records.line_num} of the CSV cannot be read: a value of more than {LONGEST_FIELD} characters, or quotes that "
            "do not match.",
        )
    values = [[row[place] for row in rows] for place in places]
    table = pa.table([pa.array(column, pa.string()) for column in values], list(domain.labels))
    return Points(tables.columns(table, domain), lambda row, j: values[j][row])


class Lines:
    """The lines of a body. Each comma may become an object of Python, so lines are refused before one record has too many."""

    def __init__(self, body: bytes) -> None:
        self.stream = io.TextIOWrapper(io.BytesIO(body), "utf-8-sig", "replace", newline="")
        self.number = self.commas = 0

    def __iter__(self) -> Lines:
        return self

    def __next__(self) -> str:
        line = next(self.stream)
        self.number += 1
        self.commas += line.count(",")
        if self.commas > MOST_COMMAS:
            raise Refusal(
                "malformed-body",
                f"the record at line {self.number} of the CSV has more than {MOST_COMMAS} commas. Give one value for each column.",
            )
        return line

    def end_record(self) -> None:
        self.commas = 0


def _whole(records: Any, lines: Lines, n_columns: int, most_rows: int) -> Any:
    found = 0
    lines.end_record()  # the header
    for row in records:
        lines.end_record()
        if not row and n_columns > 1:
            continue
        if len(row or [""]) != n_columns:
            raise Refusal(
                "malformed-body",
                f"line {records.line_num} of the CSV has {len(row)} values, and the header names {n_columns} columns.",
            )
        found += 1
        if found > most_rows:
            raise too_many_rows(most_rows)
        yield row or [""]
