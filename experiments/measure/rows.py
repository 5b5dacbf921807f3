"""Rows of the result tables: how well one run of one algorithm did."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar, get_args, get_type_hints

import pyarrow as pa


class Row(NamedTuple):
    """What was run of the six algorithms, and what came out."""

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


class Compared(NamedTuple):
    """What one run of one detector did in the comparison of all detectors."""

    dataset: str
    method: str
    control: bool
    epsilon: float | None
    split: int
    seed: int | None
    auroc: float
    ap: float
    p_at_n: float


class Ranged(NamedTuple):
    """The same under ranges that are declared too wide."""

    factor: float | None
    """Width of the declared range, where that of the file is 1; None: each feature has its own."""
    data: str
    """Where in it the data lies."""
    dataset: str
    method: str
    control: bool
    epsilon: float | None
    split: int
    seed: int | None
    auroc: float
    ap: float
    p_at_n: float


AnyRow = TypeVar("AnyRow", Row, Compared, Ranged)
COLUMN_TYPES = {str: pa.string(), bool: pa.bool_(), int: pa.int32(), float: pa.float64()}


def schema_of(kind: type[AnyRow]) -> pa.Schema:
    """The columns of a table of such rows."""
    hints = get_type_hints(kind)
    return pa.schema([(name, COLUMN_TYPES[(get_args(hint) or (hint,))[0]]) for name, hint in hints.items()])


def table_of_rows(rows: Sequence[AnyRow], kind: type[AnyRow]) -> pa.Table:
    schema = schema_of(kind)
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema)


def rows_of_table(table: pa.Table, kind: type[AnyRow]) -> list[AnyRow]:
    return [kind(*values) for values in zip(*(column.to_pylist() for column in table.columns), strict=True)]
