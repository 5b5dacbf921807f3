"""Rows of a table that an engine holds, as Arrow tables of some rows each: never the whole table at once.

The order is the engine's own: that of the rows for a LazyFrame, a Dask frame and an Arrow dataset, and for a relation whose query
keeps one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from dpoutlier.engines.kinds import Engine, engine_of, quoted
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.tables.batched import BatchedTable

__all__ = ["StreamedTable", "arrow_batches", "check_engine", "check_objects"]

BATCH = 1 << 20  # values: 8 MB of float64. Engines keep some batches ready, so that this is not all that they take


class StreamedTable(BatchedTable):
    """A table that an engine holds, read batch by batch as often as wanted. ``types`` are those of its columns, by name."""

    def __init__(self, frame: Any, types: dict[str, Any]) -> None:
        self.frame, self.names, self._types = frame, list(types), types

    def types(self) -> dict[str, Any]:
        return {name: self._types[name] for name in self.names}

    def batches(self) -> Iterator[Any]:
        return arrow_batches(self.frame, self.names)


def arrow_batches(frame: Any, names: Sequence[str]) -> Iterator[Any]:
    """The named columns, in this order, as Arrow tables of some rows each.

    Raises at once for what is no such table; no row is read before the first batch is asked for. A Dask frame is computed
    partition by partition, and what its partitions share is then computed for each of them.
    """
    engine, names = engine_of(frame), list(names)
    if engine is None or engine is Engine.SPARK:
        what = "a Spark frame" if engine else type(frame).__name__
        remedy = " Its rows stay where they are: use map_in_arrow." if engine else ""
        raise TypeError(f"{what} cannot be read batch by batch.{remedy}")
    if engine is Engine.DASK:
        check_objects(frame, names)
    return _READERS[engine](frame, names, max(1, BATCH // max(1, len(names))))


def _of_polars(frame: Any, names: list[str], rows: int) -> Iterator[Any]:
    chosen = frame.select(names)
    if not hasattr(chosen, "collect_batches"):
        raise TypeError(
            "a LazyFrame can be read batch by batch with Polars 1.34 or newer; collect it, or update Polars."
        )
    return _polars_batches(chosen, rows)


def _polars_batches(chosen: Any, rows: int) -> Iterator[Any]:
    batches = chosen.collect_batches(chunk_size=rows, maintain_order=True, lazy=True)
    for batch in batches:
        yield batch.to_arrow()


def _of_duckdb(frame: Any, names: list[str], rows: int) -> Iterator[Any]:
    import pyarrow as pa  # noqa: PLC0415 - slow to import, and only needed here

    chosen = frame.project(", ".join(map(quoted, names)))
    reader = getattr(chosen, "to_arrow_reader", None) or chosen.fetch_record_batch
    for batch in reader(rows):
        yield pa.Table.from_batches([batch])


def _of_dask(frame: Any, names: list[str], rows: int) -> Iterator[Any]:
    import pyarrow as pa  # noqa: PLC0415

    chosen = frame[names]
    for number in range(chosen.npartitions):
        whole = pa.Table.from_pandas(chosen.get_partition(number).compute(), preserve_index=False)
        for first in range(0, max(len(whole), 1), rows):
            yield whole.slice(first, rows)


def check_engine(frame: Any, types: dict[str, Any]) -> None:
    """Refuse what an engine cannot hand over, by the frame's types alone."""
    engine = engine_of(frame)
    if engine is Engine.DASK:
        check_objects(frame, list(types))
    if engine is Engine.SPARK and frame.isStreaming:
        raise InvalidParameterError(
            "a Spark stream was passed, which has no end; fit on a frame, then score the stream."
        )
    if engine is Engine.DUCKDB and len({name.lower() for name in types}) < len(types):
        raise InvalidParameterError(
            "two columns have names that differ in case only, which are one to DuckDB. Rename one of them."
        )


def check_objects(frame: Any, names: list[str]) -> None:
    """Objects of Python have no type in Arrow that does not depend on the rows; nor have categories that nobody knows."""
    for name in names:
        kind = frame.dtypes[name]
        if str(kind) == "category" and not _known_text(kind.categories):
            raise InvalidParameterError(
                f"column {name!r} holds categories that are not known to be text; convert it: frame[{name!r}].astype('string')."
            )
        if str(kind) == "object":
            raise InvalidParameterError(
                f"column {name!r} holds Python objects; convert it to numbers or to text: frame[{name!r}].astype('string')."
            )


def _known_text(categories: Any) -> bool:
    """Whether categories are texts that Dask knows; else it has a mark in their place."""
    text = "str" in str(getattr(categories, "dtype", "")).lower()
    return text and "__UNKNOWN_CATEGORIES__" not in set(categories)


def _of_dataset(frame: Any, names: list[str], rows: int) -> Iterator[Any]:
    import pyarrow as pa  # noqa: PLC0415

    for part in _parts_of_dataset(frame):
        for batch in part(columns=names, batch_size=rows, batch_readahead=1, fragment_readahead=1):
            yield pa.Table.from_batches([batch])


def _parts_of_dataset(dataset: Any) -> Iterator[Callable[..., Iterator[Any]]]:
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


_READERS: dict[Engine, Callable[[Any, list[str], int], Iterator[Any]]] = {
    Engine.POLARS: _of_polars,
    Engine.DUCKDB: _of_duckdb,
    Engine.DASK: _of_dask,
    Engine.ARROW: _of_dataset,
}
