"""All engines: a new one is its own file in this folder and one line here. No engine is imported before a table of it is there."""

from importlib import import_module
from typing import Any

from dpoutlier.engines.base import ClusterEngine, Engine, LocalEngine, QueryEngine
from dpoutlier.exceptions import InvalidParameterError

ENGINES: tuple[Engine, ...] = tuple(
    import_module(f"dpoutlier.engines.{module}").ENGINE
    for module in (
        "polars",
        "duckdb",
        "dask",
        "spark",
        "arrow",
    )
)


def engine_of(table: Any) -> Engine | None:
    """The engine that holds a table; None for a table in memory, and for anything that is not a table.

    >>> engine_of([[1.0]]) is None
    True
    """
    return next((engine for engine in ENGINES if engine.holds(table)), None)


def query_engine_of(table: Any) -> LocalEngine | ClusterEngine:
    """The engine of a lazy frame; refuses engines that nobody has tried."""
    engine = engine_of(table)
    if isinstance(engine, LocalEngine | ClusterEngine):
        return engine
    import narwhals.stable.v2 as nw  # noqa: PLC0415 - slow to import, and an array must not wait for it

    known = ", ".join(one.name for one in ENGINES if isinstance(one, QueryEngine))
    raise InvalidParameterError(
        f"a lazy frame of {nw.from_native(table).implementation.value} is not supported; supported: {known}. Collect it into a "
        "data frame first."
    )
