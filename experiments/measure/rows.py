"""One row of the result table: how well one run of one algorithm did."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

__all__ = ["SCHEMA", "Row", "rows_of_table", "table_of_rows"]


class Row(NamedTuple):
    """What was run, and what came out."""

    dataset: str
    variant: str
    algorithm: str
    control: bool
    """Fitted on no rows at all: what the scorer finds without data."""
    k: int
    bins: int | None
    epsilon: float | None
    split: int
    seed: int | None
    ran_out: float
    """Share of the points whose walk ended before it had gathered k rows."""
    auroc: float
    ap: float
    p_at_n: float


SCHEMA = pa.schema(
    [
        ("dataset", pa.string()),
        ("variant", pa.string()),
        ("algorithm", pa.string()),
        ("control", pa.bool_()),
        ("k", pa.int32()),
        ("bins", pa.int32()),
        ("epsilon", pa.float64()),
        ("split", pa.int32()),
        ("seed", pa.int32()),
        ("ran_out", pa.float64()),
        ("auroc", pa.float64()),
        ("ap", pa.float64()),
        ("p_at_n", pa.float64()),
    ]
)


def table_of_rows(rows: list[Row]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(SCHEMA)
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.table(arrays, SCHEMA)


def rows_of_table(table: pa.Table) -> list[Row]:
    return [Row(*values) for values in zip(*(column.to_pylist() for column in table.columns), strict=True)]
