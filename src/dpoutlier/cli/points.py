"""Points to be scored, batch by batch from files of any size, and their scores into one."""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from dpoutlier.cli.files import csv_points, write_csv_rows
from dpoutlier.exceptions import PointsError
from dpoutlier.features.domain import Domain
from dpoutlier.tables import convert
from dpoutlier.tables.batched import rows_of_a_batch
from dpoutlier.tables.csv import check_columns, csv_header
from dpoutlier.tables.parquet import open_parquet, parquet_schema
from dpoutlier.tables.paths import files_of, format_of


class Batch(NamedTuple):
    """Some rows of a file."""

    table: pa.Table
    file: int
    """Which of the files."""
    first: int
    """The number of the first row, in its file."""
    share: tuple[float, float]
    """Share of all files that is read before the batch, and after it."""


class Points:
    """The rows of files with the same columns, all CSV or all Parquet. Their schemas are checked at once.

    Parameters
    ----------
    given : sequence of str or Path
        Files, patterns, or folders with ``*.parquet``.
    domain : Domain
        Of the model: its features must be there. CSV values stay text, as they were written.
    """

    def __init__(self, given: Sequence[str | Path], domain: Domain) -> None:
        self.files = [file for one in given for file in files_of(one)]
        self.schema = self._schema(self.files[0], domain)
        for file in self.files[1:]:
            if format_of(file) != format_of(self.files[0]) or not self._schema(file, domain).equals(self.schema):
                raise PointsError(
                    f"{self.files[0]} and {file} do not have the same format, columns and types. Score them separately."
                )

    @staticmethod
    def _schema(file: Path, domain: Domain) -> pa.Schema:
        parquet = format_of(file) == ".parquet"
        schema = parquet_schema(file) if parquet else pa.schema([(name, pa.string()) for name in csv_header(file)])
        check_columns(file, schema.names, domain.names or schema.names, show=True)
        return schema

    def __iter__(self) -> Iterator[Batch]:
        sizes = [file.stat().st_size or 1 for file in self.files]
        for i, file in enumerate(self.files):
            first, before = 0, 0.0
            for table, after in self._batches(file):
                behind = tuple((sum(sizes[:i]) + share * sizes[i]) / sum(sizes) for share in (before, after))
                yield Batch(table, i, first, (behind[0], behind[1]))
                first, before = first + len(table), after

    def _batches(self, file: Path) -> Iterator[tuple[pa.Table, float]]:
        """Tables of one file, each with the share of the file that is then read."""
        try:
            if format_of(file) == ".csv":
                yield from csv_points(file, self.schema.names)
                return
            with open_parquet(file) as source:
                rows, done = max(source.metadata.num_rows, 1), 0
                for batch in source.iter_batches(rows_of_a_batch(4 * len(self.schema.names))):
                    done += len(batch)
                    yield pa.Table.from_batches([batch]).replace_schema_metadata(self.schema.metadata), done / rows
        except (pa.ArrowException, OSError) as error:
            raise PointsError(f"{file} cannot be read: {error}") from None


@contextmanager
def points_writer(
    stream: IO[bytes], kind: str, schema: pa.Schema, numbers: list[str]
) -> Iterator[Callable[[pa.Table], None]]:
    """A function that writes more rows. In Parquet, the columns ``numbers``, which may be text so far, become numbers."""
    if kind == ".parquet":
        with pq.ParquetWriter(stream, _typed(schema.empty_table(), numbers).schema) as writer:
            yield lambda table: writer.write_table(_typed(table, numbers))
        return
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    try:
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(schema.names)
        yield lambda table: write_csv_rows(table, rows)
        text.flush()
    finally:
        text.detach()


def _typed(table: pa.Table, numbers: list[str]) -> pa.Table:
    for name in numbers:
        kind = table.schema.field(name).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            (values,) = convert.columns(table.select([name]))
            table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return table
