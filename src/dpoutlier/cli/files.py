"""Public tables from files, CSV (RFC 4180, commas) and Parquet, and rows written as CSV."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from dpoutlier.exceptions import InvalidParameterError, PointsError
from dpoutlier.tables.csv import CsvPoints, CsvRecordError, check_columns, check_csv_names, csv_header, csv_stream
from dpoutlier.tables.parquet import parquet_schema
from dpoutlier.tables.paths import format_of

if TYPE_CHECKING:
    from dpoutlier.features.domain import Domain


BATCH = 20_000


def _header(path: Path) -> list[str]:
    """Column names: the schema, which is public."""
    if not path.exists():
        raise InvalidParameterError(f"{path} does not exist.")
    if not path.is_file():
        raise InvalidParameterError(f"{path} is not a regular file.")
    if format_of(path) == ".parquet":
        return list(parquet_schema(path).names)
    return csv_header(path)


def read_names(path: Path) -> pa.Schema:
    """Names of columns, and their types if the file has them. From a CSV file, only the first line is read."""
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
    """All columns of points to be scored. The features must be there. Values of CSV stay text, as they were written."""
    found = _header(path)
    check_columns(path, found, domain.names or tuple(found), show=True)
    return _public(path, found)


def _public(path: Path, found: list[str]) -> pa.Table:
    if format_of(path) == ".csv":
        empty = pa.schema([(name, pa.string()) for name in found]).empty_table()
        return pa.concat_tables([empty, *(table for table, _ in csv_points(path, found))])
    try:
        return pq.read_table(path)
    except pa.ArrowException as error:
        raise PointsError(f"{path} cannot be read: {error}") from None


def csv_points(path: Path, found: list[str]) -> Iterator[tuple[pa.Table, float]]:
    """Points in batches of text, each with the share of the file that has been read by then.

    Empty lines are skipped, except in a file of one column.
    """
    size = max(path.stat().st_size, 1)
    with csv_stream(path) as stream:
        try:
            records = iter(CsvPoints(stream))
            while rows := list(islice(records, BATCH)):
                columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
                yield pa.table(columns, found), min(1.0, stream.buffer.tell() / size)  # type: ignore[attr-defined] # typeshed's buffer cannot tell
        except CsvRecordError as error:
            raise PointsError(f"{path}, {error}") from None


def write_csv_rows(table: pa.Table, writer: Any) -> None:
    """Rows as ``csv.writer`` writes them."""
    for batch in table.to_batches(BATCH):
        columns = [_texts(column) for column in batch.columns]
        writer.writerows(zip(*columns, strict=True))


def _texts(column: Any) -> list[Any]:
    if pa.types.is_boolean(column.type):
        return ["" if value is None else str(value).lower() for value in column.to_pylist()]
    return list(column.to_pylist())
