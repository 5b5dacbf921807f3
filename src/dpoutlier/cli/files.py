"""Tables from and to files: CSV and Parquet."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dpoutlier import tables
from dpoutlier._files import write_aside
from dpoutlier.exceptions import InvalidParameterError, PointsError, ReferenceDataError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_points", "read_reference", "table_writer"]

FORMATS = (".csv", ".parquet")
UNREADABLE = (
    "{path} could not be read as a {kind} file. The cause is withheld, since it could tell something about a row. Check that "
    "the file is complete and not damaged."
)


def _format(path: Path) -> str:
    if path.suffix.lower() not in FORMATS:
        raise InvalidParameterError(f"{path} must be a .csv or .parquet file.")
    return path.suffix.lower()


def _header(path: Path) -> list[str]:
    """Column names: the schema, which is public."""
    if not path.is_file():
        raise InvalidParameterError(f"{path} does not exist.")
    if _format(path) == ".parquet":
        import pyarrow.parquet as pq  # noqa: PLC0415

        return list(pq.read_schema(path).names)
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as stream:
        names = next(csv.reader(stream), [])
    if not names:
        raise InvalidParameterError(f"{path} is empty: it needs a header line with the names of its columns.")
    return names


def _check_columns(path: Path, found: list[str], wanted: tuple[str, ...] | None) -> list[str]:
    if wanted is None:
        return found
    absent = [name for name in wanted if name not in found]
    if absent:
        raise InvalidParameterError(
            f"{path} has no column {', '.join(map(repr, absent))}, which the features name. Its columns are: {', '.join(found)}."
        )
    doubled = sorted({name for name in wanted if found.count(name) > 1})
    if doubled:
        raise InvalidParameterError(f"{path} has more than one column named {', '.join(map(repr, doubled))}.")
    return list(wanted)


def _read_csv(path: Path, columns: list[str], text: Any, on_bad_row: Callable[[Any], str]) -> pa.Table:
    from pyarrow import csv as arrow_csv  # noqa: PLC0415

    return arrow_csv.read_csv(
        path,
        parse_options=arrow_csv.ParseOptions(invalid_row_handler=on_bad_row),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(columns, text), include_columns=columns, strings_can_be_null=False
        ),
    )


def read_reference(path: Path, names: tuple[str, ...]) -> pa.Table:
    """The named columns of reference rows. Rows are read in silence: what does not parse is missing."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    columns = _check_columns(path, _header(path), names)
    try:
        if _format(path) == ".parquet":
            return pq.read_table(path, columns=columns)
        # As bytes, so that text in an unknown encoding is no error; a line with too few or too many fields is no row.
        table = _read_csv(path, columns, pa.binary(), lambda _row: "skip")
        return pa.table({name: tables.numbers(table.column(name)) for name in columns})
    except Exception:  # noqa: BLE001 - whatever it was, its text may hold a value
        raise ReferenceDataError(UNREADABLE.format(path=path, kind=_format(path)[1:].upper())) from None


def read_points(path: Path, names: tuple[str, ...] | None) -> pa.Table:
    """All columns of points to be scored; the named ones must be there. CSV values stay text, as they were written."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    found = _header(path)
    _check_columns(path, found, names)
    try:
        if _format(path) == ".parquet":
            return pq.read_table(path)
        return _read_csv(path, found, pa.string(), lambda _row: "error")
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        raise PointsError(f"{path} cannot be read: {error}") from None


def table_writer(path: Path) -> Callable[[pa.Table, bool], Path]:
    """A function that writes a table aside and renames it; the format is by the suffix, checked before any work."""
    kind = _format(path)

    def write(table: pa.Table, overwrite: bool) -> Path:
        def content(stream: IO[bytes]) -> None:
            if kind == ".parquet":
                import pyarrow.parquet as pq  # noqa: PLC0415

                pq.write_table(table, stream)
            else:
                from pyarrow import csv as arrow_csv  # noqa: PLC0415

                arrow_csv.write_csv(table, stream, arrow_csv.WriteOptions(quoting_style="needed"))

        return write_aside(path, content, overwrite=overwrite)

    return write
