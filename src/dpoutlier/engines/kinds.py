"""Which engine holds a table. No engine is imported to find out."""

from __future__ import annotations

import sys
from enum import Enum
from typing import Any

__all__ = ["Engine", "engine_of", "quoted"]


class Engine(Enum):
    """Who holds a table whose rows are not in memory."""

    POLARS = "a Polars LazyFrame"
    DUCKDB = "a DuckDB relation"
    DASK = "a Dask frame"
    SPARK = "a Spark frame"
    ARROW = "an Arrow dataset"


def engine_of(table: Any) -> Engine | None:
    """The engine of a table; None for what is in memory, and for what is no table.

    >>> engine_of([[1.0]]) is None
    True
    """
    import narwhals.stable.v2 as nw  # noqa: PLC0415 - slow to import, and an array must not wait for it

    known = nw.dependencies
    if known.is_polars_lazyframe(table):
        return Engine.POLARS
    if known.is_duckdb_relation(table):
        return Engine.DUCKDB
    if known.is_dask_dataframe(table):
        return Engine.DASK
    if known.is_pyspark_dataframe(table) or known.is_pyspark_connect_dataframe(table):
        return Engine.SPARK
    datasets = sys.modules.get("pyarrow.dataset")
    if datasets is not None and isinstance(table, datasets.Dataset):
        return Engine.ARROW
    return None


def quoted(name: str) -> str:
    """A name in SQL.

    >>> quoted('the "b" column')
    '"the ""b"" column"'
    """
    return '"' + name.replace('"', '""') + '"'
