"""Arrow: data sets of pyarrow. They are scored here; a fit reads them as ``tables.dataset`` does."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from dpoutlier.engines.base import AddedColumns, Engine, append_columns, rows_of_a_batch
from dpoutlier.tables.dataset import is_dataset


class ArrowEngine(Engine):
    """Frames that are ``pyarrow.dataset.Dataset``."""

    name = "Arrow"

    def holds(self, table: Any) -> bool:
        return is_dataset(table)

    def column_names(self, frame: Any) -> list[str]:
        return list(frame.schema.names)

    def schema(self, frame: Any, names: Sequence[str] | None = None) -> Any:
        return super().schema(frame.schema.empty_table(), names)

    def batches(self, frame: Any, names: Sequence[str]) -> Iterator[Any]:
        """The named columns, in this order, as Arrow tables of some rows each."""
        import pyarrow as pa  # noqa: PLC0415

        rows = rows_of_a_batch(names)
        for part in _parts(frame):
            for batch in part(columns=list(names), batch_size=rows, batch_readahead=1, fragment_readahead=1):
                yield pa.Table.from_batches([batch])

    def with_columns(self, frame: Any, added: AddedColumns) -> Any:
        """A ``RecordBatchReader``, which gives each row once."""
        import pyarrow as pa  # noqa: PLC0415

        tables = (append_columns(added, table) for table in self.batches(frame, frame.schema.names))
        batches = (batch for table in tables for batch in table.to_batches())
        return pa.RecordBatchReader.from_batches(
            pa.schema([*frame.schema, *added.fields()], frame.schema.metadata), batches
        )


def _parts(dataset: Any) -> Iterator[Callable[..., Iterator[Any]]]:
    """Scans of a part each: a scan of all would run ahead of a slow reader by up to a gigabyte."""
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # it has a filter
        yield dataset.to_batches
        return
    for fragment in fragments:
        split = getattr(fragment, "split_by_row_group", None)
        for part in [fragment] if split is None else split():
            yield partial(part.to_batches, schema=dataset.schema)


ENGINE = ArrowEngine()
