"""CSV (RFC 4180, commas): files of reference rows, which are read in silence, and records of points, from a file or a request."""

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any

from dpoutlier.exceptions import InvalidParameterError, PointsError
from dpoutlier.features.category import DATE, NUMBER
from dpoutlier.tables.batched import FileTable

RECORDS = 20_000
LONGEST_FIELD = 2**31 - 1


class CsvTable(FileTable):
    """Columns of CSV files, found by name. The first line of every file is checked at once, and no row is read yet.

    A record with too few or too many fields is not a row. In a file of one column an empty line is a missing value. Values are
    text, in which bytes that are not UTF-8 become a mark that does not parse as a number. But ids of people are bytes: two ids in
    an unknown encoding must not become one.

    Parameters
    ----------
    paths : sequence of Path
    names : sequence of str, optional
        The columns; default: those of the first file, and then every file must have the same.
    person : str, optional
        The column that identifies people.
    """

    def __init__(self, paths: Sequence[Path], names: Sequence[str] | None = None, person: str | None = None) -> None:
        self.paths, self.person = list(paths), person
        headers = [csv_header(path) for path in self.paths]
        self.names = list(headers[0] if names is None else names)
        for path, found in zip(self.paths, headers, strict=True):
            if names is None:
                check_csv_names(path, found)
            check_columns(path, found, self.names, show=False, once=self.names)
            if names is None and len(found) != len(self.names):
                raise InvalidParameterError(
                    f"{path} and {self.paths[0]} do not have the same columns. Declare features by name, for the columns that all "
                    "files have."
                )

    def types(self) -> dict[str, Any]:
        import narwhals.stable.v2 as nw  # noqa: PLC0415 - slow to import, and only needed here

        return {name: nw.Binary() if name == self.person else nw.String() for name in self.names}

    def _batches(self, path: Path) -> Iterator[tuple[Any, float]]:
        import pyarrow as pa  # noqa: PLC0415 - slow to import, and only needed here

        size = max(path.stat().st_size, 1)
        found = csv_header(path)
        with csv_stream(path, "surrogateescape") as stream:
            records = csv.reader(stream)
            next(records)
            places = {name: j for j, name in enumerate(found)}
            wanted = [places[name] for name in self.names]
            for batch in _in_batches(records):
                whole = [row or [""] for row in batch if len(row or [""]) == len(found)]
                columns = [
                    self._column(name, [row[j] for row in whole]) for name, j in zip(self.names, wanted, strict=True)
                ]
                yield pa.table(columns, self.names), stream.buffer.tell() / size  # type: ignore[attr-defined] # typeshed's buffer cannot tell

    def _column(self, name: str, values: list[str]) -> Any:
        import pyarrow as pa  # noqa: PLC0415

        if name == self.person:  # stripped of ASCII blanks only: others may be letters in the file's own encoding
            return pa.array([value.encode("utf-8", "surrogateescape").strip() for value in values], pa.binary())
        try:
            return pa.array(values, pa.string())
        except UnicodeEncodeError:  # bytes that are no UTF-8
            readable = [value.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for value in values]
            return pa.array(readable, pa.string())


class CsvRecordError(PointsError):
    """A record of points that cannot be read. ``line`` is the line where it ends, counted from 1."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line, self.problem = line, problem


class CsvPoints:
    """The records of points, as lists of text. The command line and the server read CSV with it.

    Every record must have as many values as the header. Empty lines are not records, unless there is only one column.

    Parameters
    ----------
    lines : iterable of str
        With the header first.
    most_commas : int, optional
        The most commas in a record, quoted ones included: each of them may become an object of Python. No bound by default.

    Raises
    ------
    CsvRecordError
        While it is read, at the first record that cannot be used.
    """

    def __init__(self, lines: Iterable[str], most_commas: int | None = None) -> None:
        self._bounded = None if most_commas is None else _BoundedLines(lines, most_commas)
        self._records = csv.reader(lines if self._bounded is None else self._bounded)
        self.header = next(self._all(), [])

    def _all(self) -> Iterator[list[str]]:
        try:
            if self._bounded is None:
                yield from self._records
                return
            for record in self._records:
                self._bounded.commas = 0
                yield record
        except csv.Error as error:  # its text holds no value
            raise CsvRecordError(self._records.line_num, f"{error}.") from None

    def __iter__(self) -> Iterator[list[str]]:
        n_columns = len(self.header)
        for record in self._all():
            if not record and n_columns > 1:
                continue
            row = record or [""]
            if len(row) != n_columns:
                raise CsvRecordError(
                    self._records.line_num,
                    f"the record has {len(record)} value{'' if len(record) == 1 else 's'}, but the header names {n_columns} "
                    f"column{'' if n_columns == 1 else 's'}.",
                )
            yield row


class _BoundedLines:
    """Lines whose commas are counted, so that a record is refused before it is read."""

    def __init__(self, lines: Iterable[str], most_commas: int) -> None:
        self.lines, self.most_commas = enumerate(lines, 1), most_commas
        self.commas = 0
        """Commas in the record so far. The reader of records resets it."""

    def __iter__(self) -> Iterator[str]:
        for number, line in self.lines:
            self.commas += line.count(",")
            if self.commas > self.most_commas:
                raise CsvRecordError(
                    number, f"a record has more than {self.most_commas} commas. Give one value for each column."
                )
            yield line


@contextmanager
def csv_stream(path: Path, errors: str = "replace") -> Iterator[TextIOWrapper]:
    """A file for ``csv.reader`` that takes any bytes: bytes that are not UTF-8 become a mark that does not parse as a number."""
    csv.field_size_limit(
        LONGEST_FIELD
    )  # and left so: to put it back while another file is read would make a long field fail
    with path.open(newline="", encoding="utf-8-sig", errors=errors) as stream:
        yield stream


def csv_header(path: Path) -> list[str]:
    """Column names: the schema, which is public."""
    with csv_stream(path) as stream:
        names: list[str] = next(csv.reader(stream), [])
    if not names:
        raise InvalidParameterError(f"{path} needs a header line with the names of its columns.")
    return names


def check_csv_names(path: Path, names: Sequence[str]) -> None:
    """Refuse a first line that may be a row, before its values become names. They are not shown: they may be a person's."""
    numbers = [name for name in names if NUMBER.fullmatch(name)]
    counted = any(numbers == [str(first + j) for j in range(len(numbers))] for first in (0, 1))
    what = next((what for what, seen in _UNLIKELY.items() if any(seen(name.strip()) for name in names[1:])), None)
    what = "numbers" if numbers and not counted else what
    if what is not None:
        raise InvalidParameterError(
            f"the first line of {path} contains {what}, so it looks like a row. It must name the columns. Put a line with their "
            "names first."
        )


_UNLIKELY: dict[str, Callable[[str], object]] = {
    "an empty value": lambda name: not name,
    "a date or a time": DATE.fullmatch,
    "a truth value or a missing one": lambda name: name.lower() in {"true", "false", "nan", "null", "<na>"},
}
"""What is hardly ever a column name. The first column is exempt: a column of row numbers often has no name."""


def check_columns(
    path: Path, found: Sequence[str], wanted: Sequence[str], *, show: bool, once: Sequence[str] | None = None
) -> None:
    """Check that the wanted columns exist, and those in ``once`` only once (default: all). ``show``: the columns are public."""
    known = Counter(found)
    absent = [name for name in wanted if name not in known]
    if absent:
        hint = f" Its columns are: {', '.join(map(repr, found))}." if show else " Does its first line name the columns?"
        if len(found) == 1 and any(mark in found[0] for mark in ";\t|"):
            hint += " Values must be separated by commas."
        if any("\0" in name or "\ufffd" in name for name in found):
            hint += " The file must be in UTF-8."
        raise InvalidParameterError(
            f"{path} has no column {', '.join(map(repr, absent))}, but the features or the person column need it.{hint}"
        )
    doubled = sorted({name for name in (found if once is None else once) if known[name] > 1})
    if doubled:
        raise InvalidParameterError(f"{path} has more than one column named {', '.join(map(repr, doubled))}.")


def _in_batches(records: Iterator[list[str]]) -> Iterator[list[list[str]]]:
    while batch := list(islice(records, RECORDS)):
        yield batch
