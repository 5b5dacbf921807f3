"""A Parquet file as a table that is read batch by batch, as often as wanted, and never whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

__all__ = ["ParquetTable"]

BATCH = 1 << 23  # values: 64 MB of float64, enough to make the overhead of a batch small


class ParquetTable:
    """Columns of a Parquet file, found by name."""

    def __init__(self, path: str | Path, names: Sequence[str]) -> None:
        self.path, self.names = Path(path), list(names)

    def types(self) -> dict[str, Any]:
        """The types of the columns, as narwhals calls them: the schema, which is public."""
        import narwhals.stable.v2 as nw  # noqa: PLC0415 - slow to import, and only needed here
        import pyarrow.parquet as pq  # noqa: PLC0415

        empty = pq.read_schema(self.path).empty_table().select(self.names)
        return dict(nw.from_native(empty, eager_only=True).schema)

    def batches(self) -> Iterator[Any]:
        """Arrow tables of some rows each."""
        import pyarrow as pa  # noqa: PLC0415 - slow to import, and only needed here
        import pyarrow.parquet as pq  # noqa: PLC0415

        rows = max(1, BATCH // len(self.names))
        with pq.ParquetFile(self.path, memory_map=True) as file:
            for batch in file.iter_batches(rows, columns=self.names):
                yield pa.Table.from_batches([batch]).select(self.names)
