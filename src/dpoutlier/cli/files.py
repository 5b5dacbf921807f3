"""Tables from and to files: CSV (RFC 4180, commas) and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from dpoutlier import tables
from dpoutlier._files import check_output, write_aside
from dpoutlier.category import NUMBER
from dpoutlier.exceptions import InvalidParameterError, PointsError, ReferenceDataError
from dpoutlier.parquet import ParquetTable

if TYPE_CHECKING:
    from dpoutlier.domain import Domain

__all__ = ["read_names", "read_points", "read_reference", "read_sample", "table_writer"]

FORMATS = (".csv", ".parquet")
BATCH = 20_000
LONGEST_FIELD = 2**31 - 1
UNREADABLE = (
    "{path} could not be read. The cause is withheld, since it could tell something about a row. Check that the file is "
    "complete and not damaged."
)


def _format(path: Path) -> str:
    if path.suffix.lower() not in FORMATS:
        raise InvalidParameterError(f"{path} must be a .csv or .parquet file.")
    return path.suffix.lower()


@contextmanager
def _records(path: Path, errors: str = "replace") -> Iterator[Any]:
    """A reader of records that takes any bytes: what is no UTF-8 becomes a mark that parses as no number."""
    before = csv.field_size_limit(LONGEST_FIELD)
    try:
        with path.open(newline="", encoding="utf-8-sig", errors=errors) as stream:
            yield csv.reader(stream)
    finally:
        csv.field_size_limit(before)


def _header(path: Path) -> list[str]:
    """Column names: the schema, which is public."""
    if not path.exists():
        raise InvalidParameterError(f"{path} does not exist.")
    if not path.is_file():
        raise InvalidParameterError(f"{path} is no file.")
    if _format(path) == ".parquet":
        try:
            return list(pq.read_schema(path).names)
        except (pa.ArrowException, OSError):
            raise InvalidParameterError(f"{path} is no Parquet file, or it is damaged.") from None
    with _records(path) as records:
        names: list[str] = next(records, [])
    if not names:
        raise InvalidParameterError(f"{path} needs a header line with the names of its columns.")
    return names


def _check_columns(path: Path, found: list[str], wanted: tuple[str, ...], *, show: bool) -> None:
    """The wanted columns must be there, once each. What else the header says is shown for points only."""
    absent = [name for name in wanted if name not in found]
    if absent:
        hint = f" Its columns are: {', '.join(map(repr, found))}." if show else " Does its first line name the columns?"
        if len(found) == 1 and any(mark in found[0] for mark in ";\t|"):
            hint += " Values must be separated by commas."
        if any("\0" in name or "\ufffd" in name for name in found):
            hint += " The file must be in UTF-8."
        raise InvalidParameterError(
            f"{path} has no column {', '.join(map(repr, absent))}, which the features or --person name.{hint}"
        )
    doubled = sorted({name for name in (found if show else wanted) if found.count(name) > 1})
    if doubled:
        raise InvalidParameterError(f"{path} has more than one column named {', '.join(map(repr, doubled))}.")


def read_reference(
    path: Path, names: tuple[str, ...], text: tuple[str, ...] = (), person: str | None = None
) -> pa.Table | ParquetTable:
    """The named columns of reference rows, read in silence: what does not parse is missing. Parquet is read by the fit.

    Columns named in ``text`` stay as they are written, and so does that of people, byte for byte: ids in an unknown encoding must
    not become one.
    """
    found = _header(path)
    names = names if person is None else (*names, person)
    _check_columns(path, found, names, show=False)
    if _format(path) == ".parquet":
        return ParquetTable(path, names)
    try:
        return _reference_csv(path, found, names, text, person)
    except Exception:  # noqa: BLE001, S110 - whatever it was, its text may hold a value
        pass
    raise ReferenceDataError(UNREADABLE.format(path=path))


def _reference_csv(
    path: Path, found: list[str], names: tuple[str, ...], text: tuple[str, ...], person: str | None
) -> pa.Table:
    """A record with too few or too many fields is no row. In a file of one column an empty line is a missing value."""
    wanted = [found.index(name) for name in names]
    kinds = {**dict.fromkeys(text, pa.string()), person: pa.binary()}
    schema = pa.schema([(name, kinds.get(name, pa.float64())) for name in names])
    parts = []
    with _records(path, "surrogateescape") as records:
        next(records)
        for batch in _batches(records):
            whole = [row or [""] for row in batch if len(row or [""]) == len(found)]
            columns = [
                _column([row[j] for row in whole], kinds.get(name)) for name, j in zip(names, wanted, strict=True)
            ]
            parts.append(pa.table(columns, schema))
    return pa.concat_tables(parts) if parts else schema.empty_table()


def _column(values: list[str], kind: pa.DataType | None) -> Any:
    """A column as text, as bytes, or as numbers."""
    if kind == pa.binary():
        return pa.array(
            [value.encode("utf-8", "surrogateescape").strip() for value in values], kind
        )  # of ASCII blanks only
    try:
        text = pa.array(values, pa.string())
    except UnicodeEncodeError:  # bytes that are no UTF-8
        readable = [value.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for value in values]
        text = pa.array(readable, pa.string())
    return tables.numbers(text) if kind is None else text


def _batches(records: Iterator[list[str]]) -> Iterator[list[list[str]]]:
    batch: list[list[str]] = []
    for row in records:
        batch.append(row)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def read_names(path: Path) -> pa.Schema:
    """Names of columns, and their types where the file tells them. No row is read, and none is shown."""
    found = _header(path)
    if _format(path) == ".parquet":
        return pq.read_schema(path).remove_metadata()
    numbers = [name for name in found if NUMBER.fullmatch(name)]
    if numbers and not any(numbers == [str(first + j) for j in range(len(numbers))] for first in (0, 1)):
        raise InvalidParameterError(
            f"the first line of {path} holds numbers, as a row would: it must name the columns."
        )
    return pa.schema([(name, pa.null()) for name in found])


def read_sample(path: Path) -> pa.Table:
    """All columns of a public sample."""
    found = _header(path)
    if len(found) == 1 and any(mark in found[0] for mark in ";\t|"):
        raise InvalidParameterError(f"{path} has one column {found[0]!r}. Values must be separated by commas.")
    _check_columns(path, found, (), show=True)
    return _public(path, found)


def read_points(path: Path, domain: Domain) -> pa.Table:
    """All columns of points to be scored; the features must be there. CSV values stay text, as they were written."""
    found = _header(path)
    _check_columns(path, found, domain.names or tuple(found), show=True)
    return _public(path, found)


def _public(path: Path, found: list[str]) -> pa.Table:
    if _format(path) == ".csv":
        return _points_csv(path, found)
    try:
        return pq.read_table(path)
    except pa.ArrowException as error:
        raise PointsError(f"{path} cannot be read: {error}") from None


def _points_csv(path: Path, found: list[str]) -> pa.Table:
    """Empty lines are no records, unless there is but one column."""
    rows = []
    with _records(path) as records:
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
    kind = _format(path)
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
