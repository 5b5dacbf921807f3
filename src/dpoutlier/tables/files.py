"""Files of reference rows as tables that are read batch by batch."""

from collections.abc import Sequence
from pathlib import Path

from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.tables.batched import FileTable
from dpoutlier.tables.csv import CsvTable
from dpoutlier.tables.parquet import ParquetTable
from dpoutlier.tables.paths import files_of, format_of


def file_table(
    path: str | Path | Sequence[str | Path], names: Sequence[str] | None = None, person: str | None = None
) -> FileTable:
    """The named columns of files: of one, of all Parquet files in a folder, or of those that a pattern matches.

    Without ``names``, all columns are read. ``person`` is an additional column that identifies people.
    """
    given = [path] if isinstance(path, str | Path) else path
    paths = [file for one in given for file in files_of(one)]
    other = next((one for one in paths if format_of(one) != format_of(paths[0])), None)
    if other is not None:
        raise InvalidParameterError(f"{paths[0]} and {other} have different formats. Fit on files of one format.")
    columns = None if names is None else [*names, *([] if person is None or person in names else [person])]
    return ParquetTable(paths, columns) if format_of(paths[0]) == ".parquet" else CsvTable(paths, columns, person)
