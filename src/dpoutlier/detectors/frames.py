"""Score the rows of a frame where they are: a frame in, the same kind of frame out, with columns more.

Everywhere it is the same kernel that scores, so equal rows have equal scores to the bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from dpoutlier._validate import bad, one_of
from dpoutlier.detectors.batches import BatchScorer
from dpoutlier.detectors.scores import ScoresPoints
from dpoutlier.engines.kinds import Engine, engine_of, quoted
from dpoutlier.engines.spark import add_in_arrow, arrow_schema
from dpoutlier.engines.streams import arrow_batches
from dpoutlier.exceptions import PointsError
from dpoutlier.tables import convert as tables

__all__ = ["ADDED", "batch_scorer", "check_columns", "score_frame"]

ADDED = ("outlier_score", "outside_bounds", "prediction")
"""What scoring adds to a table; the last only where there is a threshold."""
ANY_CASE = (Engine.DUCKDB, Engine.SPARK)  # names that differ in case only are one name there
BY_TEXT = ("DECIMAL", "HUGEINT", "UHUGEINT")
"""Types of DuckDB that ``tables.read_by_text`` means: Arrow has none for all numbers of 128 bits."""

_numbers = count()


@dataclass(frozen=True, eq=False)
class _Adding:
    """A function of a batch with all its columns, that adds what is told of its points."""

    scorer: BatchScorer
    features: list[str]

    def arrow(self, table: Any) -> Any:
        for field, values in zip(
            self.scorer.arrow_fields(), self.scorer.arrow(table.select(self.features)), strict=True
        ):
            table = table.append_column(field, values)
        return table

    def pandas(self, table: Any) -> Any:
        return _add_to_pandas(table, self.scorer, self.features)

    def polars(self, series: Any) -> Any:
        """A Polars series of structs from one of features."""
        import polars as pl  # noqa: PLC0415 - there is a frame of it

        told = self.scorer.arrow(series.struct.unnest())
        return pl.DataFrame(dict(zip(self.scorer.names, told, strict=True))).to_struct(series.name)

    def duckdb(self, structs: Any) -> Any:
        """An Arrow array of structs from one of features."""
        import pyarrow as pa  # noqa: PLC0415

        features = [pa.chunked_array(parts) for parts in zip(*(one.flatten() for one in structs.chunks), strict=True)]
        told = self.scorer.arrow(pa.table(features, self.features))
        return pa.StructArray.from_arrays(told, self.scorer.names)


def batch_scorer(
    detector: ScoresPoints,
    *,
    column: str = ADDED[0],
    outside: str | None = ADDED[1],
    prediction: str | None = ADDED[2],
    missing: str = "error",
) -> BatchScorer:
    """The function of a batch of points; it keeps the threshold of this moment."""
    for name, value in (("column", column), ("outside", outside), ("prediction", prediction)):
        if not isinstance(value, str) and (value is not None or name == "column"):
            raise bad(name, "the name of a column" + ("" if name == "column" else ", or None"), value)
    names = [name for name in (column, outside, prediction) if name is not None]
    if len(set(names)) < len(names):
        raise bad("column, outside and prediction", "different names", names)
    nulls = one_of(("error", "null"), missing=missing) == "null"
    detector = detector._only_scoring()
    return BatchScorer(detector, column, outside, prediction if detector._threshold() is not None else None, nulls)


def score_frame(frame: Any, scorer: BatchScorer) -> Any:
    """The frame with the columns that the scorer adds."""
    engine = engine_of(frame)
    if engine is None and not tables.is_frame(frame):
        raise TypeError(
            f"score_frame takes a frame of pandas, Polars, Arrow, DuckDB, Dask or Spark, got {type(frame).__name__}; "
            "outlier_scores takes arrays."
        )
    features = check_columns(_columns(frame, engine), scorer, engine)
    tables.check_types(_types(frame, features, engine))
    return (_in_memory if engine is None else _WAYS[engine])(frame, scorer, features)


def check_columns(
    found: list[Any], scorer: BatchScorer, engine: Engine | None = None, where: str = "the frame"
) -> list[Any]:
    """The columns that are features. Refuses a table that lacks one, or has one that would be added."""
    domain = scorer.detector._fitted_domain()
    spelled = [str(name).lower() for name in found] if engine in ANY_CASE else found
    times = Counter(spelled)
    doubled = next((name for name, own in zip(found, spelled, strict=True) if times[own] > 1), None)
    if doubled is not None:
        raise PointsError(f"{where} has more than one column named {doubled!r}.")
    known = {str(name).lower() if engine in ANY_CASE else name: name for name in found}
    for name in scorer.names:
        if (name.lower() if engine in ANY_CASE else name) in known:
            taken = known[name.lower() if engine in ANY_CASE else name]
            raise PointsError(f"{where} has a column {taken!r}, which scoring would add. Rename it, or leave it out.")
    if domain.names is None:
        if len(found) != domain.n_features:
            raise PointsError(
                f"{where} has {len(found)} columns, and the model, which knows no names, was fitted on {domain.n_features} "
                "features. Pass a frame of the features alone."
            )
        return list(found)
    there = set(found)
    absent = [name for name in domain.names if name not in there]
    if absent:
        raise PointsError(
            f"{where} has no column {', '.join(map(repr, absent))}, and the model has such a feature. Its columns are: "
            f"{', '.join(map(repr, found))}."
        )
    return list(domain.names)


def _columns(frame: Any, engine: Engine | None) -> list[Any]:
    if engine is Engine.POLARS:
        return list(frame.collect_schema().names())
    if engine is Engine.ARROW:
        return list(frame.schema.names)
    return list(frame.column_names if hasattr(frame, "column_names") else frame.columns)


def _types(frame: Any, features: list[Any], engine: Engine | None) -> Iterator[tuple[str, Any]]:
    """The types of the features, from the schema alone."""
    import narwhals.stable.v2 as nw  # noqa: PLC0415 - slow to import, and only needed here

    if engine is Engine.ARROW:
        frame = frame.schema.empty_table()
    if engine is Engine.SPARK:  # for which what follows a dot in a name is a part of a column
        frame = arrow_schema(frame, features).empty_table()
    chosen: Any = nw.from_native(frame)
    yield from (chosen if engine else chosen[:0]).select(nw.col(*features)).collect_schema().items()


# In memory ----------------------------------------------------------------------------------------------------------------


def _in_memory(frame: Any, scorer: BatchScorer, features: list[Any]) -> Any:
    import narwhals.stable.v2 as nw  # noqa: PLC0415

    if nw.dependencies.is_pandas_dataframe(frame):
        return _add_to_pandas(frame, scorer, features, whole=True)
    chosen = nw.to_native(nw.from_native(frame, eager_only=True).select(nw.col(*features)))
    if nw.dependencies.is_pyarrow_table(frame):
        for field, values in zip(scorer.arrow_fields(), scorer.arrow(chosen, 0, whole=True), strict=True):
            frame = frame.append_column(field, [values])
        return frame
    if nw.dependencies.is_polars_dataframe(frame):
        import polars as pl  # noqa: PLC0415 - there is a frame of it

        told = zip(scorer.names, scorer.arrow(chosen, 0, whole=True), strict=True)
        return frame.with_columns(pl.Series(name, values) for name, values in told)
    raise TypeError(f"score_frame knows no frames of {type(frame).__module__}; convert it to pandas, Polars or Arrow.")


def _add_to_pandas(frame: Any, scorer: BatchScorer, features: list[Any], *, whole: bool = False) -> Any:
    """Where there may be no score, its column holds NaN, and the others have pandas' types that know a missing value."""
    import pandas as pd  # noqa: PLC0415 - there is a frame of it

    told = scorer(frame[features], 0 if whole else None, whole=whole)
    added = {name: pd.Series(values, frame.index) for name, values in told.columns.items()}
    if scorer.nulls:
        for name in scorer.names[1:]:
            column = added[name].astype("boolean" if name == scorer.outside else "Int64")
            added[name] = column if told.known is None else column.mask(~told.known)
    return pd.concat([frame, pd.DataFrame(added, frame.index)], axis=1)


# In an engine -------------------------------------------------------------------------------------------------------------


def _polars(frame: Any, scorer: BatchScorer, features: list[str]) -> Any:
    """An expression: Polars still reads only the columns and the rows that are asked for."""
    import polars as pl  # noqa: PLC0415 - there is a frame of it

    types = {pl.Float64: scorer.score, pl.Boolean: scorer.outside, pl.Int64: scorer.prediction}
    names = frame.collect_schema().names()
    told = pl.struct(
        pl.nth(*(names.index(name) for name in features))
    ).map_batches(  # by number: a name may be a pattern
        _Adding(scorer, features).polars,
        return_dtype=pl.Struct({name: kind for kind, name in types.items() if name is not None}),
        is_elementwise=True,
    )
    aside = _unused("told", names)
    return frame.with_columns(told.alias(aside)).unnest(aside)


def _duckdb(frame: Any, scorer: BatchScorer, features: list[str]) -> Any:
    """A function of the connection: types of other columns stay, and rows are read when they are asked for."""
    import duckdb  # noqa: PLC0415 - there is a relation of it

    types = dict(zip(frame.columns, frame.types, strict=True))
    kinds = {scorer.score: "DOUBLE", scorer.outside: "BOOLEAN", scorer.prediction: "BIGINT"}
    by_text = {name for name in features if str(types[name]).startswith(BY_TEXT)}
    taken = duckdb.struct_type({name: duckdb.type("DOUBLE") if name in by_text else types[name] for name in features})
    given = duckdb.struct_type({name: duckdb.type(kind) for name, kind in kinds.items() if name is not None})
    function = f"dpoutlier_score_{next(_numbers)}"
    connection = _connection(frame)
    connection.create_function(
        function,
        _Adding(scorer, features).duckdb,
        [taken],
        given,
        type="arrow",
        null_handling="special",
        side_effects=True,  # else it might be called again for each column that it makes
    )
    row = ", ".join(
        f"{quoted(name)} := "
        + (f"CAST(CAST({quoted(name)} AS VARCHAR) AS DOUBLE)" if name in by_text else quoted(name))
        for name in features
    )
    aside = quoted(_unused("told", frame.columns))
    kept = ", ".join(quoted(name) for name in frame.columns)
    added = ", ".join(f"struct_extract({aside}, {_text(name)}) AS {quoted(name)}" for name in scorer.names)
    try:
        return frame.project(f"*, {function}(struct_pack({row})) AS {aside}").project(f"{kept}, {added}")
    except duckdb.CatalogException:  # the function is not there
        pass
    raise TypeError(
        "this version of DuckDB does not tell to which connection a relation belongs. Make it with the default connection, say by "
        "duckdb.sql(...), or update DuckDB to 2.0."
    )


def _connection(relation: Any) -> Any:
    """The connection of a relation, which only newer versions of DuckDB keep with it."""
    import duckdb  # noqa: PLC0415

    return getattr(relation, "_con", None) or duckdb.default_connection()


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


def _unused(name: str, taken: list[str]) -> str:
    while name.lower() in {other.lower() for other in taken}:
        name += "_"
    return name


def _dask(frame: Any, scorer: BatchScorer, features: list[str]) -> Any:
    adding = _Adding(scorer, features)
    return frame.map_partitions(_part, adding, meta=adding.pandas(frame._meta))  # noqa: SLF001 - its schema; there is no other way


def _part(part: Any, adding: Any) -> Any:
    return adding.pandas(part)


def _spark(frame: Any, scorer: BatchScorer, features: list[str]) -> Any:
    return add_in_arrow(frame, _Adding(scorer, features).arrow, scorer.arrow_fields())


def _dataset(frame: Any, scorer: BatchScorer, features: list[str]) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - slow to import, and only needed here

    adding, schema = _Adding(scorer, features), frame.schema
    for field in scorer.arrow_fields():
        schema = schema.append(field)

    def batches() -> Iterator[Any]:
        for table in arrow_batches(frame, frame.schema.names):
            yield from adding.arrow(table).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())


_WAYS: dict[Engine, Callable[[Any, BatchScorer, list[Any]], Any]] = {
    Engine.POLARS: _polars,
    Engine.DUCKDB: _duckdb,
    Engine.DASK: _dask,
    Engine.SPARK: _spark,
    Engine.ARROW: _dataset,
}
