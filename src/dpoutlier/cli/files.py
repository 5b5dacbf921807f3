"""Tables from and to files: CSV (RFC 4180, commas) and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from dpoutlier import tables
from dpoutlier._files import check_output, write_aside
from dpoutlier._paths import format_of
from dpoutlier.batched import FileTable
from dpoutlier.csvfile import check_columns, check_csv_names, csv_header, csv_stream
from dpoutlier.exceptions import InvalidParameterError, PointsError
from dpoutlier.parquet import parquet_schema
from dpoutlier.tablefiles import file_table

if TYPE_CHECKING:
    from dpoutlier.domain import Domain

__all__ = ["read_names", "read_points", "read_reference", "read_sample", "table_writer"]

BATCH = 20_000


def _header(path: Path) -> list[str]:
    """Column names: the schema, which is public."""
    if not path.exists():
        raise InvalidParameterError(f"{path} does not exist.")
    if not path.is_file():
        raise InvalidParameterError(f"{path} is no file.")
    if format_of(path) == ".parquet":
        return list(parquet_schema(path).names)
    return csv_header(path)


def read_reference(path: Path, names: tuple[str, ...], person: str | None = None) -> FileTable:
    """The named columns of reference rows, in a file, a folder or what a pattern matches. The fit reads them, in silence."""
    return file_table(path, names, person)


def read_names(path: Path) -> pa.Schema:
    """Names of columns, and their types where the file tells them. No row is read, and none is shown."""
    found = _header(path)
    if format_of(path) == ".parquet":
        return parquet_schema(path).remove_metadata()
    check_csv_names(path, found)
    return pa.schema([(name, pa.null()) for name in found])


def read_sample(path: Path) -> pa.Table:
    """All columns of a public sample."""
    found = _header(path)
    if len(found) == 1 and any(mark in found[0] for mark in ";\t|"):
        raise InvalidParameterError(f"{path} has one column {found[0]!r}. Values must be separated by commas.")
    check_columns(path, found, (), show=True)
    return _public(path, found)


def read_points(path: Path, domain: Domain) -> pa.Table:
    """All columns of points to be scored; the features must be there. CSV values stay text, as they were written."""
    found = _header(path)
    check_columns(path, found, domain.names or tuple(found), show=True)
    return _public(path, found)


def _public(path: Path, found: list[str]) -> pa.Table:
    if format_of(path) == ".csv":
        return _points_csv(path, found)
    try:
        return pq.read_table(path)
    except pa.ArrowException as error:
        raise PointsError(f"{path} cannot be read: {error}") from None


def _points_csv(path: Path, found: list[str]) -> pa.Table:
    """Empty lines are no records, unless there is but one column."""
    rows = []
    with csv_stream(path) as stream:
        records = csv.reader(stream)
        next(records)
        for row in records:
            if not row and len(found) > 1:
                continue
            if len(row or [""]) != len(found):
                raise PointsError(
                    f"{path}, line {records.line_num}: {len(row)} values, and the header names {len(found)} columns."
                )
            rows.append(row or [""])
    columns = zip(*rows, strict=True) if rows else [()] * len(found)
    return pa.table([pa.array(column, pa.string()) for column in columns], found)


def table_writer(path: Path, *, overwrite: bool) -> Callable[[pa.Table, list[str]], Path]:
    """A function that writes a table aside and renames it. Format and name are checked now, before any work."""
    kind = format_of(path)
    check_output(path, overwrite=overwrite)

    def write(table: pa.Table, features: list[str]) -> Path:
        def content(stream: IO[bytes]) -> None:
            if kind == ".parquet":
                pq.write_table(_typed(table, features), stream)
            else:
                text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
                _write_csv(table, text)
                text.detach()

        return write_aside(path, content, overwrite=overwrite)

    return write


def _typed(table: pa.Table, features: list[str]) -> pa.Table:
    """Features that came as text, as numbers."""
    for name in features:
        kind = table.schema.field(name).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            (values,) = tables.columns(table.select([name]))
            table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return table


def _write_csv(table: pa.Table, stream: IO[str]) -> None:
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table.column_names)
    for batch in table.to_batches(BATCH):
        columns = [_texts(column) for column in batch.columns]
        writer.writerows(zip(*columns, strict=True))
    stream.flush()


def _texts(column: Any) -> list[Any]:
    if pa.types.is_boolean(column.type):
        return ["" if value is None else str(value).lower() for value in column.to_pylist()]
    return list(column.to_pylist())
