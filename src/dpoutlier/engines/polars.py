"""Polars: lazy frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dpoutlier.engines.base import AddedColumns, LocalEngine, is_instance, rows_of_a_batch, unused_name

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw


class PolarsEngine(LocalEngine):
    """Frames that are ``polars.LazyFrame``."""

    name = "Polars"

    def holds(self, table: Any) -> bool:
        return is_instance(table, "polars", "LazyFrame")

    def column_names(self, frame: Any) -> list[str]:
        return list(frame.collect_schema().names())

    def from_arrow(self, table: Any) -> Any:
        import polars as pl  # noqa: PLC0415

        frame: Any = pl.from_arrow(table)
        return frame.lazy()

    def run(self, query: nw.LazyFrame[Any]) -> Any:
        """In batches, which takes less memory than all at once."""
        return query.collect("polars", engine="streaming").to_arrow()

    def batches(self, frame: Any, names: Sequence[str]) -> Iterator[Any]:
        chosen = frame.select(list(names))
        if not hasattr(chosen, "collect_batches"):
            raise TypeError(
                "a LazyFrame can be read batch by batch with Polars 1.34 or newer; collect it, or update Polars."
            )
        return _batches(chosen, rows_of_a_batch(names))

    def with_columns(self, frame: Any, added: AddedColumns) -> Any:
        """An expression: Polars still reads only the columns and the rows that are asked for."""
        import polars as pl  # noqa: PLC0415
        import pyarrow as pa  # noqa: PLC0415

        names = frame.collect_schema().names()
        features = pl.nth(*(names.index(name) for name in added.features))  # by number: a name may be a pattern
        struct = pl.struct(features).map_batches(
            partial(_added, added),
            return_dtype=pl.Struct(pl.DataFrame(pa.schema(added.fields()).empty_table()).schema),
            is_elementwise=True,
        )
        aside = unused_name("added", [*names, *added.names])
        return frame.with_columns(struct.alias(aside)).unnest(aside)


def _batches(chosen: Any, rows: int) -> Iterator[Any]:
    for batch in chosen.collect_batches(chunk_size=rows, maintain_order=True, lazy=True):
        yield batch.to_arrow()


def _added(added: AddedColumns, features: Any) -> Any:
    """A series of structs, from one of features."""
    import polars as pl  # noqa: PLC0415

    arrays = added.arrays(features.struct.unnest())
    return pl.DataFrame(dict(zip(added.names, arrays, strict=True))).to_struct(features.name)


ENGINE = PolarsEngine()
