"""Functions of Arrow tables that Spark runs where its rows are. The only module that imports pyspark, and only when it is used."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import Any

__all__ = ["add_in_arrow", "arrow_schema", "executors_have", "map_in_arrow", "map_tables"]

PROBES = 4  # tasks that look for a module
MISSING = "this needs Spark, which is not installed: pip install 'dpoutlier[spark]' (it needs Java 17 or newer)."


class _Pickled:
    """A function that becomes itself again where it is unpickled. It is pickled now: what cannot travel fails at once."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        dumps: Any = _imported("pyspark.cloudpickle").dumps
        self.content: bytes = dumps(function)

    def __reduce__(self) -> tuple[Any, ...]:
        return pickle.loads, (self.content,)


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ModuleNotFoundError(MISSING) from None


def map_in_arrow(frame: Any, function: Callable[[Any], Any], schema: Any) -> Any:
    """A Spark frame of what a function makes of each batch of rows, an Arrow table. Lazy: no row is read.

    The function is sent once to each executor where there is a Spark context (``SparkContext.broadcast``), else, on Spark Connect,
    as a part of the query. Executors import by name what the function imports, so dpoutlier must be installed there.

    Parameters
    ----------
    frame : Spark frame
    function : callable
        From Arrow table to Arrow table; called once for each batch of some thousand rows, in any order and perhaps again.
    schema : Spark schema, or Arrow schema
        Of what the function returns.
    """
    return map_tables(frame, partial(_one_by_one, function), schema)


def _one_by_one(function: Callable[[Any], Any], tables: Iterator[Any]) -> Iterator[Any]:
    return map(function, tables)


def map_tables(frame: Any, function: Callable[[Iterator[Any]], Iterator[Any]], schema: Any) -> Any:
    """The same where the function takes all batches of a task in turn, and may keep something from one to the next."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import, and only needed here

    travelling = _Pickled(function)
    if isinstance(schema, pa.Schema):
        schema = _imported("pyspark.sql.pandas.types").from_arrow_schema(schema)
    context = getattr(frame.sparkSession, "_sc", None)  # Spark Connect has none
    shared = travelling if context is None else context.broadcast(travelling)
    return frame.mapInArrow(_each_batch(shared, sent=context is not None), schema)


def add_in_arrow(frame: Any, function: Callable[[Any], Any], fields: Sequence[Any]) -> Any:
    """``map_in_arrow`` of a function that keeps all columns and adds some, whose Arrow fields are given."""
    names = list(frame.columns)
    added = _imported("pyspark.sql.pandas.types").from_arrow_schema(_imported("pyarrow").schema(fields))
    schema = _imported("pyspark.sql.types").StructType([*frame.schema.fields, *added.fields])
    plain = frame.toDF(*(f"x{j}" for j in range(len(names))))  # to Spark, what follows a dot is a part of a column
    return map_in_arrow(plain, partial(_with_names, function, names), schema)


def _with_names(function: Callable[[Any], Any], names: list[str], table: Any) -> Any:
    return function(table.rename_columns(names))


def _each_batch(shared: Any, *, sent: bool) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def each(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415 - on the executor

        function = shared.value if sent else shared
        for table in function(pa.Table.from_batches([batch]) for batch in batches):
            yield from table.to_batches()

    return each


def executors_have(session: Any, name: str) -> bool:
    """Whether Python workers of a cluster can import a module: those that get one of a few tasks. No row is read."""

    def look(batches: Iterator[Any]) -> Iterator[Any]:  # travels by value: all it needs is imported there
        from importlib.util import find_spec  # noqa: PLC0415

        import pyarrow as pa  # noqa: PLC0415

        for batch in batches:
            yield pa.RecordBatch.from_pydict({"found": [find_spec(name) is not None] * len(batch)})

    try:
        found = session.range(0, PROBES, numPartitions=PROBES).mapInArrow(look, "found boolean").toArrow()
    except Exception:  # noqa: BLE001 - no Python there at all, or no pyarrow
        return False
    return all(found.column("found").to_pylist())


def arrow_schema(frame: Any, names: Sequence[str] | None = None) -> Any:
    """The schema of a Spark frame, or of some of its columns, as Arrow sees it in a batch."""
    chosen = [field for field in frame.schema.fields if names is None or field.name in names]
    return _imported("pyspark.sql.pandas.types").to_arrow_schema(_imported("pyspark.sql.types").StructType(chosen))
