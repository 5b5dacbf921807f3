"""Points from CSV, read as the command line reads them, with bounds on what one request may bring."""

import csv
import io
from itertools import islice

import pyarrow as pa

from dpoutlier.features.domain import Domain
from dpoutlier.server.error_responses import Refusal
from dpoutlier.server.points import Points, chosen_columns, too_many_rows
from dpoutlier.tables import convert
from dpoutlier.tables.csv import CsvPoints, CsvRecordError

MAX_COLUMNS, LONGEST_FIELD = 20_000, 1 << 17
MAX_COMMAS = MAX_COLUMNS + LONGEST_FIELD
"""Largest number of commas in a record, those within quotes included."""


def csv_points(body: bytes, domain: Domain, person: str | None, most_rows: int) -> Points:
    """The points of a body; other columns are ignored."""
    csv.field_size_limit(LONGEST_FIELD)
    text = io.TextIOWrapper(io.BytesIO(body), "utf-8-sig", "replace", newline="")
    try:
        records = CsvPoints(text, MAX_COMMAS if body.count(b",") > MAX_COMMAS else None)  # most bodies have fewer
        if not records.header or len(records.header) > MAX_COLUMNS:
            raise Refusal(
                "malformed-body", f"CSV needs a header line that names its columns, at most {MAX_COLUMNS} of them."
            )
        places = chosen_columns(records.header, domain, person)
        rows = list(islice(records, most_rows + 1))
    except CsvRecordError as error:
        refusal = Refusal("malformed-body", f"the CSV cannot be read: {error}")
    else:
        if len(rows) > most_rows:
            raise too_many_rows(most_rows)
        values = [[row[place] for row in rows] for place in places]
        table = pa.table([pa.array(column, pa.string()) for column in values], list(domain.labels))
        return Points(convert.columns(table, domain), lambda row, j: values[j][row])
    raise refusal
