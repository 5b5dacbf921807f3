"""Points from CSV, as ``dpoutlier score`` reads them: a header line, and values that stay text until a feature parses them."""

from __future__ import annotations

import csv
import io
from typing import Any

import pyarrow as pa

from dpoutlier import tables
from dpoutlier.domain import Domain
from dpoutlier.server.points import Points, chosen_columns, too_many_rows
from dpoutlier.server.refusals import Refusal

__all__ = ["csv_points"]

MOST_COLUMNS, LONGEST_FIELD = 20_000, 1 << 17


def csv_points(body: bytes, domain: Domain, person: str | None, most_rows: int) -> Points:
    """The points of a body; other columns are ignored. Empty lines are no records, unless there is but one column."""
    csv.field_size_limit(LONGEST_FIELD)
    records = csv.reader(io.StringIO(body.decode("utf-8-sig", "replace"), newline=""))
    try:
        header = next(records, [])
        if not header or len(header) > MOST_COLUMNS:
            raise Refusal(
                "malformed-body", f"CSV needs a header line that names its columns, at most {MOST_COLUMNS} of them."
            )
        places = chosen_columns(header, domain, person)
        rows = list(_whole(records, len(header), most_rows))
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


def _whole(records: Any, n_columns: int, most_rows: int) -> Any:
    found = 0
    for row in records:
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
