"""DuckDB: relations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from dpoutlier.engines.base import AddedColumns, LocalEngine, is_instance, rows_of_a_batch, unused_name
from dpoutlier.engines.schema import is_text
from dpoutlier.engines.sql_text import literal, quoted
from dpoutlier.exceptions import InvalidParameterError

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw


BY_TEXT = ("DECIMAL", "HUGEINT", "UHUGEINT")
"""Types that ``tables.convert.read_by_text`` means: Arrow has none for all numbers of 128 bits."""
SQL_TYPES = {"double": "DOUBLE", "bool": "BOOLEAN", "int64": "BIGINT"}

_numbers = count()


class DuckDBEngine(LocalEngine):
    """Frames that are ``duckdb.DuckDBPyRelation``."""

    name = "DuckDB"
    ignores_case = True

    def holds(self, table: Any) -> bool:
        return is_instance(table, "duckdb", "DuckDBPyRelation")

    def from_arrow(self, table: Any) -> Any:
        import duckdb  # noqa: PLC0415

        return duckdb.connect().from_arrow(table)

    def check(self, frame: Any, types: Mapping[str, Any]) -> None:  # noqa: ARG002 - the types say enough
        if len({name.lower() for name in types}) < len(types):
            raise InvalidParameterError(
                "two columns have names that differ only in upper and lower case, and DuckDB treats them as one. Rename "
                "one of them."
            )

    def plain(self, frame: Any, types: Mapping[str, Any]) -> tuple[nw.LazyFrame[Any], dict[str, Any]]:
        """Text loses its collation; ``*`` would be all columns."""
        import narwhals.stable.v2 as nw  # noqa: PLC0415

        chosen = [
            f'CAST({quoted(name)} AS VARCHAR) COLLATE "C" AS x{j}' if is_text(dtype) else f"{quoted(name)} AS x{j}"
            for j, (name, dtype) in enumerate(types.items())
        ]
        plain = {f"x{j}": nw.String() if is_text(dtype) else dtype for j, dtype in enumerate(types.values())}
        return nw.from_native(frame.project(", ".join(chosen))), plain

    def was_interrupted(self, error: BaseException) -> bool:
        """DuckDB has no other mark of it than this text."""
        return type(error) is RuntimeError and error.args == ("Query interrupted",)

    def in_one_column(self, frame: nw.LazyFrame[Any], parts: Sequence[nw.Expr], name: str) -> nw.LazyFrame[Any]:
        """By a union: narwhals unpivots on a connection that need not be the relation's."""
        import narwhals.stable.v2 as nw  # noqa: PLC0415

        return nw.concat([frame.select(part.alias(name)) for part in parts])

    def batches(self, frame: Any, names: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415

        chosen = frame.project(", ".join(map(quoted, names)))
        reader = getattr(chosen, "to_arrow_reader", None) or chosen.fetch_record_batch
        for batch in reader(rows_of_a_batch(names)):
            yield pa.Table.from_batches([batch])

    def with_columns(self, frame: Any, added: AddedColumns) -> Any:
        """A function of the connection: types of other columns stay, and rows are read when they are asked for."""
        import duckdb  # noqa: PLC0415

        types = dict(zip(frame.columns, frame.types, strict=True))
        by_text = {name for name in added.features if str(types[name]).startswith(BY_TEXT)}
        function = _registered(_connection(frame), added, types, by_text)
        aside, kept = quoted(unused_name("added", frame.columns)), ", ".join(map(quoted, frame.columns))
        fields = ", ".join(f"struct_extract({aside}, {literal(name)}) AS {quoted(name)}" for name in added.names)
        features = ", ".join(f"{quoted(name)} := {_value(name, by_text)}" for name in added.features)
        try:
            return frame.project(f"*, {function}(struct_pack({features})) AS {aside}").project(f"{kept}, {fields}")
        except duckdb.CatalogException:  # the function is not there
            pass
        raise TypeError(
            "this version of DuckDB does not say to which connection a relation belongs. Make it with the default connection, for "
            "example by duckdb.sql(...), or update DuckDB to 2.0."
        )


def _value(name: str, by_text: set[str]) -> str:
    return f"CAST(CAST({quoted(name)} AS VARCHAR) AS DOUBLE)" if name in by_text else quoted(name)


def _registered(connection: Any, added: AddedColumns, types: dict[str, Any], by_text: set[str]) -> str:
    """The name of a new function of the connection, from a struct of features to one of the added columns."""
    import duckdb  # noqa: PLC0415

    double = duckdb.type("DOUBLE")
    function = f"dpoutlier_score_{next(_numbers)}"
    connection.create_function(
        function,
        partial(_added, added),
        [duckdb.struct_type({name: double if name in by_text else types[name] for name in added.features})],
        duckdb.struct_type({field.name: duckdb.type(SQL_TYPES[str(field.type)]) for field in added.fields()}),
        type="arrow",
        null_handling="special",
        side_effects=True,  # else it might be called again for each column that it makes
    )
    return function


def _added(added: AddedColumns, structs: Any) -> Any:
    """An Arrow array of structs, from one of features."""
    import pyarrow as pa  # noqa: PLC0415

    features = [pa.chunked_array(parts) for parts in zip(*(one.flatten() for one in structs.chunks), strict=True)]
    return pa.StructArray.from_arrays(added.arrays(pa.table(features, added.features)), added.names)


def _connection(relation: Any) -> Any:
    """The connection of a relation, which only newer versions of DuckDB keep with it."""
    import duckdb  # noqa: PLC0415

    return getattr(relation, "_con", None) or duckdb.default_connection()


ENGINE = DuckDBEngine()
