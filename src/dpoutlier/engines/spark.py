"""Spark: data frames on a cluster, and functions of Arrow tables that it runs where their rows are."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpoutlier.engines.base import AddedColumns, ClusterEngine, append_columns, is_instance
from dpoutlier.engines.schema import is_text
from dpoutlier.exceptions import InvalidParameterError

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw


PROBES = 4  # tasks that look for a module
MISSING = "this needs Spark, which is not installed: pip install 'dpoutlier[spark]' (it needs Java 17 or newer)."


class SparkEngine(ClusterEngine):
    """Frames that are ``pyspark.sql.DataFrame``, of Spark Connect too."""

    name = "Spark"
    ignores_case = True
    how_to_install = "Install it where Spark's Python workers run, or send it with the job (spark.archives)"

    def holds(self, table: Any) -> bool:
        classic = is_instance(table, "pyspark.sql", "DataFrame")
        return classic or is_instance(table, "pyspark.sql.connect.dataframe", "DataFrame")

    def check(self, frame: Any, types: Mapping[str, Any]) -> None:  # noqa: ARG002 - its columns may have any types
        if frame.isStreaming:
            raise InvalidParameterError(
                "a Spark stream was passed, which has no end; fit on a frame, then score the stream."
            )

    def schema(self, frame: Any, names: Sequence[str] | None = None) -> Mapping[str, Any]:
        """Columns are renamed first, since Spark reads a dot in a name as a part of a column."""
        plain = {f"x{j}": name for j, name in enumerate(frame.columns)}
        chosen = [word for word, name in plain.items() if names is None or name in names]
        return {plain[word]: dtype for word, dtype in super().schema(frame.toDF(*plain), chosen).items()}

    def plain(self, frame: Any, types: Mapping[str, Any]) -> tuple[nw.LazyFrame[Any], dict[str, Any]]:
        """Text loses its collation. Columns are renamed, since Spark reads a dot in a name as a part of a column."""
        import narwhals.stable.v2 as nw  # noqa: PLC0415

        plain = {f"x{j}": dtype for j, dtype in enumerate(types.values())}
        chosen = [f"{name} COLLATE UTF8_BINARY AS {name}" if is_text(dtype) else name for name, dtype in plain.items()]
        return nw.from_native(frame.toDF(*plain).selectExpr(*chosen)), plain

    def with_columns(self, frame: Any, added: AddedColumns) -> Any:
        """Batch by batch on the executors."""
        new = _imported("pyspark.sql.pandas.types").from_arrow_schema(_imported("pyarrow").schema(added.fields()))
        schema = _imported("pyspark.sql.types").StructType([*frame.schema.fields, *new.fields])
        plain = frame.toDF(*(f"x{j}" for j in range(len(frame.columns))))  # a name may hold a dot
        return map_in_arrow(plain, partial(_added, added, list(frame.columns)), schema)

    def workers_have(self, frame: Any, module: str) -> bool:
        """Runs a few tasks, and asks the workers that get them."""

        def look(batches: Iterator[Any]) -> Iterator[Any]:  # travels by value: all it needs is imported there
            from importlib.util import find_spec  # noqa: PLC0415

            import pyarrow as pa  # noqa: PLC0415

            for batch in batches:
                yield pa.RecordBatch.from_pydict({"found": [find_spec(module) is not None] * len(batch)})

        tasks = frame.sparkSession.range(0, PROBES, numPartitions=PROBES)
        try:
            found = tasks.mapInArrow(look, "found boolean").toArrow()
        except Exception:  # noqa: BLE001 - no Python there at all, or no pyarrow
            return False
        return all(found.column("found").to_pylist())

    def map_tables(self, frame: Any, function: Callable[[Iterator[Any]], Iterator[Any]], schema: Any) -> Any:
        import pyarrow as pa  # noqa: PLC0415

        travelling = _Pickled(function)
        if isinstance(schema, pa.Schema):
            schema = _imported("pyspark.sql.pandas.types").from_arrow_schema(schema)
        context = getattr(frame.sparkSession, "_sc", None)  # Spark Connect has none
        shared = travelling if context is None else context.broadcast(travelling)
        return frame.mapInArrow(_each_batch(shared, sent=context is not None), schema)


def _added(added: AddedColumns, names: list[str], table: Any) -> Any:
    return append_columns(added, table.rename_columns(names))


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
    return ENGINE.map_tables(frame, partial(map, function), schema)


def _each_batch(shared: Any, *, sent: bool) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def each(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415 - on the executor

        function = shared.value if sent else shared
        for table in function(pa.Table.from_batches([batch]) for batch in batches):
            yield from table.to_batches()

    return each


ENGINE = SparkEngine()
