"""Parquet files as one table that is read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.tables.batched import FileTable, ahead, not_a_number, rows_of_a_batch, type_text
from dpoutlier.tables.csv import check_columns
from dpoutlier.tables.paths import files_of

if TYPE_CHECKING:
    import pyarrow as pa


BUFFER = 1 << 18  # bytes of a column that are read at once: a row group of any size takes no more


class ParquetTable(FileTable):
    """Columns of Parquet files, found by name. The schema of every file is checked at once, and no row is read yet.

    Parameters
    ----------
    files : str, Path, or a sequence of them
        A file, a pattern such as ``rows/*.parquet``, or a folder, of which all ``*.parquet`` are taken. They are read in the
        order of their names.
    names : sequence of str, optional
        The columns. Default: all columns, and then every file must have the same ones. The type of a number may differ between
        files.
    """

    def __init__(self, files: str | Path | Sequence[str | Path], names: Sequence[str] | None = None) -> None:
        self.paths = files_of(files) if isinstance(files, str | Path) else [Path(file) for file in files]
        schemas = {path: parquet_schema(path) for path in self.paths}
        first = next(iter(schemas.values()))
        self.names = list(first.names if names is None else names)
        for path, schema in schemas.items():
            check_columns(path, schema.names, self.names, show=True, once=self.names)
            if names is None and set(schema.names) != set(self.names):
                more = next(name for name in schema.names if name not in self.names)
                raise InvalidParameterError(
                    f"{path} has a column {more!r} that {self.paths[0]} lacks. Declare features by name, for the columns that all "
                    "files have."
                )
        self._types = agreed({path: types_of(schema, self.names) for path, schema in schemas.items()})

    def types(self) -> dict[str, Any]:
        return {name: self._types[name] for name in self.names}

    def number_of_rows(self) -> int:
        """From the metadata of the files, without reading the rows."""
        import pyarrow.parquet as pq  # noqa: PLC0415 - slow to import, and only needed here

        return sum(pq.read_metadata(path).num_rows for path in self.paths)

    def _batches(self, path: Path) -> Iterator[tuple[Any, float]]:
        return ahead(self._decoded(path))

    def _decoded(self, path: Path) -> Iterator[tuple[Any, float]]:
        done = 0
        with open_parquet(path) as file:
            rows = max(file.metadata.num_rows, 1)
            for batch in decoded(file, self.names):
                done += len(batch)
                yield batch, done / rows


def open_parquet(source: Any) -> Any:
    """A file whose columns are read through small buffers.

    From a memory map instead its pages would count as memory in use, and without buffers a row group is read at once.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - slow to import, and only needed here

    return pq.ParquetFile(source, memory_map=False, buffer_size=BUFFER, pre_buffer=False)


def decoded(file: Any, names: Sequence[str], row_groups: Sequence[int] | None = None) -> Iterator[Any]:
    """Arrow tables of some rows each, however large the row groups are."""
    import pyarrow as pa  # noqa: PLC0415

    for batch in file.iter_batches(rows_of_a_batch(len(names)), row_groups, columns=names):
        yield pa.Table.from_batches([batch]).select(names)


def parquet_schema(path: Path) -> pa.Schema:
    """Names and types of the columns: the schema, which is public."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import, and only needed here
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError):
        raise InvalidParameterError(f"{path} is not a Parquet file, or it is damaged.") from None


def types_of(schema: pa.Schema, names: Sequence[str]) -> dict[str, Any]:
    import narwhals.stable.v2 as nw  # noqa: PLC0415 - slow to import, and only needed here

    return dict(nw.from_native(schema.empty_table().select(names), eager_only=True).schema)


def agreed(types: Mapping[Any, dict[str, Any]]) -> dict[str, Any]:
    """One type for each column: where files hold different numbers, the one that all of them become."""
    import narwhals.stable.v2 as nw  # noqa: PLC0415

    found: dict[str, tuple[Any, Any]] = {}
    for path, own in types.items():
        for name, dtype in own.items():
            if dtype.is_temporal() or dtype.is_nested():
                raise not_a_number(name, dtype, f" of {path}")
            before, known = found.setdefault(name, (path, dtype))
            if dtype in {known, nw.Unknown}:
                continue
            if known != nw.Unknown and _kind(known) != _kind(dtype):
                raise InvalidParameterError(
                    f"column {name!r} has type {type_text(known)} in {before} and {type_text(dtype)} in {path}. Files may differ "
                    "in the type of a number; else write a column with one type in all of them."
                )
            found[name] = (path, dtype if known == nw.Unknown else nw.Float64() if _kind(dtype) == "number" else known)
    return {name: dtype for name, (_, dtype) in found.items()}


def _kind(dtype: Any) -> str:
    import narwhals.stable.v2 as nw  # noqa: PLC0415

    if dtype == nw.Boolean:  # as an id, true is not 1
        return "truth"
    if dtype.is_numeric():
        return "number"
    return "bytes" if dtype == nw.Binary else "text"
