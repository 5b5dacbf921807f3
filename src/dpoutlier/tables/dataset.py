"""A ``pyarrow.dataset.Dataset`` as a table that is read batch by batch."""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.tables.batched import BatchedTable, ahead, rows_of_a_batch
from dpoutlier.tables.parquet import agreed, decoded, open_parquet, types_of


def is_dataset(table: Any) -> bool:
    """Whether this is a data set of pyarrow. Does not import pyarrow."""
    module = sys.modules.get("pyarrow.dataset")
    return module is not None and isinstance(table, module.Dataset)


class DatasetTable(BatchedTable):
    """All columns of a data set. Its rows must be readable more than once."""

    def __init__(self, dataset: Any) -> None:
        _check_formats(dataset)
        self.dataset, self.names = dataset, list(dataset.schema.names)
        self._check_types()

    def types(self) -> dict[str, Any]:
        import narwhals.stable.v2 as nw  # noqa: PLC0415 - slow to import, and only needed here

        return dict(nw.from_native(self.dataset.schema.empty_table().select(self.names), eager_only=True).schema)

    def batches(self) -> Iterator[Any]:
        return ahead(self._decoded())

    def _decoded(self) -> Iterator[Any]:
        fragments = self._parquet_fragments()
        if fragments is not None:  # a scanner would hold a whole row group
            for fragment in fragments:
                yield from self._of_fragment(fragment)
            return
        import pyarrow as pa  # noqa: PLC0415

        rows = rows_of_a_batch(len(self.names))
        scanner = self.dataset.scanner(columns=self.names, batch_size=rows, batch_readahead=1, fragment_readahead=1)
        for batch in scanner.to_batches():
            yield pa.Table.from_batches([batch]).select(self.names)

    def _check_types(self) -> None:
        """Refuse files whose types differ: a conversion could fail because of a row, or make two people of one."""
        fragments = self._parquet_fragments()
        if fragments is not None:
            agreed({one.path: types_of(one.physical_schema, self._own(one.physical_schema)) for one in fragments})
            return
        for path, schema in _schemas(self.dataset):
            for name in self._own(schema):
                kind, wanted = schema.field(name).type, self.dataset.schema.field(name).type
                if kind != wanted and not _widens(kind, wanted):
                    raise InvalidParameterError(
                        f"column {name!r} has type {kind} in {path} and {wanted} in the data set. Give the data set the types "
                        "of its files, or write the files again."
                    )

    def _own(self, schema: Any) -> list[str]:
        return [name for name in self.names if schema.names.count(name) == 1]

    def _parquet_fragments(self) -> list[Any] | None:
        """The files, if all are Parquet and no filter stands before them."""
        import pyarrow.dataset as ds  # noqa: PLC0415

        try:
            fragments = list(self.dataset.get_fragments())
        except ValueError:  # there is a filter
            return None
        return fragments if all(isinstance(one, ds.ParquetFileFragment) for one in fragments) else None

    def _of_fragment(self, fragment: Any) -> Iterator[Any]:
        """One file's rows with the data set's columns: those that its path names are added, the others are missing.

        A column keeps the type that it has in the file: a conversion could fail because of a row.
        """
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.dataset as ds  # noqa: PLC0415

        known = ds.get_partition_keys(fragment.partition_expression)
        with fragment.open() as source, open_parquet(source) as file:
            own = [name for name in self.names if name in file.schema_arrow.names and name not in known]
            for table in decoded(file, own, [group.id for group in fragment.row_groups]):
                added = {name: pa.scalar(known.get(name)) for name in self.names if name not in own}
                columns = [table[name] if name in own else pa.repeat(added[name], len(table)) for name in self.names]
                yield pa.table(columns, self.names)


def _widens(kind: Any, wanted: Any) -> bool:
    """Whether every number of one type is one of the other: then no row can fail."""
    import pyarrow as pa  # noqa: PLC0415

    numbers = all(pa.types.is_integer(one) or pa.types.is_floating(one) for one in (kind, wanted))
    return (
        numbers and np.can_cast(kind.to_pandas_dtype(), wanted.to_pandas_dtype()) and kind.bit_width < wanted.bit_width
    )


def _schemas(dataset: Any) -> Iterator[tuple[str, Any]]:
    """The schema of each file of a data set, where it is one of files."""
    for child in getattr(dataset, "children", []):
        yield from _schemas(child)
    for path in getattr(dataset, "files", []):
        yield path, dataset.format.inspect(path, dataset.filesystem)


def _check_formats(dataset: Any) -> None:
    """Refuse text: Arrow fails at a row that it cannot parse, and that would tell something about the row."""
    import pyarrow.dataset as ds  # noqa: PLC0415

    for child in getattr(dataset, "children", []):
        _check_formats(child)
    if isinstance(getattr(dataset, "format", None), ds.CsvFileFormat | ds.JsonFileFormat):
        raise InvalidParameterError(
            f"a data set of {dataset.format.default_extname} files was passed, and Arrow's reader could fail because of a row. "
            "Pass the path of CSV files, or a pattern such as 'rows/*.csv', instead; or write the rows as Parquet."
        )
