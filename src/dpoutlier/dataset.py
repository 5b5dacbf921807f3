"""A ``pyarrow.dataset.Dataset`` as a table that is read batch by batch."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from dpoutlier.batched import BatchedTable, ahead, rows_of_a_batch

__all__ = ["DatasetTable", "is_dataset"]


def is_dataset(table: Any) -> bool:
    """Whether this is a data set of pyarrow, which is not imported for the question."""
    module = sys.modules.get("pyarrow.dataset")
    return module is not None and isinstance(table, module.Dataset)


class DatasetTable(BatchedTable):
    """All columns of a data set, or those that are named. It must give its rows as often as it is asked."""

    def __init__(self, dataset: Any, names: list[str] | None = None) -> None:
        self.dataset = dataset
        self.names = list(dataset.schema.names) if names is None else list(names)

    def types(self) -> dict[str, Any]:
        import narwhals.stable.v2 as nw  # noqa: PLC0415 - slow to import, and only needed here

        return dict(nw.from_native(self.dataset.schema.empty_table().select(self.names), eager_only=True).schema)

    def batches(self) -> Iterator[Any]:
        return ahead(self._decoded())

    def _decoded(self) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.dataset as ds  # noqa: PLC0415

        options: dict[str, Any] = {}
        if isinstance(getattr(self.dataset, "format", None), ds.ParquetFileFormat):
            # Else whole row groups would be read at once, whatever the size of a batch.
            options["fragment_scan_options"] = ds.ParquetFragmentScanOptions(use_buffered_stream=True, pre_buffer=False)
        for part in self._parts():
            batches = part.to_batches(
                columns=self.names,
                batch_size=rows_of_a_batch(len(self.names)),
                batch_readahead=1,
                fragment_readahead=1,
                **options,
            )
            for batch in batches:
                yield pa.Table.from_batches([batch]).select(self.names)

    def _parts(self) -> Iterator[Any]:
        """The data set in parts: a scan of all of it would run ahead of a slow reader by up to a gigabyte."""
        try:
            fragments = list(self.dataset.get_fragments())
        except ValueError:  # it has a filter
            yield self.dataset
            return
        for fragment in fragments:
            split = getattr(fragment, "split_by_row_group", None)
            for part in [fragment] if split is None else split():
                yield _Part(part, self.dataset.schema)


class _Part:
    """A fragment that has all columns of its data set."""

    def __init__(self, fragment: Any, schema: Any) -> None:
        self.fragment, self.schema = fragment, schema

    def to_batches(self, **options: Any) -> Iterator[Any]:
        batches: Iterator[Any] = self.fragment.to_batches(schema=self.schema, **options)
        return batches
