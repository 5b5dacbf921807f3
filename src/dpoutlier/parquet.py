"""A Parquet file as a table that is read batch by batch, as often as wanted, and never whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

__all__ = ["ParquetTable"]

BATCH = 1 << 17


class ParquetTable:
    """Columns of a Parquet file, found by name."""

    def __init__(self, path: str | Path, names: Sequence[str]) -> None:
        self.path, self.names = Path(path), list(names)

    def batches(self) -> Iterator[Any]:
        """Arrow tables of some rows each."""
        import pyarrow as pa  # noqa: PLC0415 - slow to import, and only needed here
        import pyarrow.parquet as pq  # noqa: PLC0415

        with pq.ParquetFile(self.path, pre_buffer=True) as file:
            for batch in file.iter_batches(BATCH, columns=self.names):
                yield pa.Table.from_batches([batch]).select(self.names)
