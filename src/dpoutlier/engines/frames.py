"""Lazy frames: a query of an engine that has not run. Which of them are known, and whether their columns can be features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals.stable.v2 as nw

from dpoutlier.engines.kinds import Engine, engine_of, quoted
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.category import Category
from dpoutlier.features.domain import Domain
from dpoutlier.tables.batched import type_text

__all__ = ["check_columns", "collected", "lazy_frame", "plain_frame"]


def lazy_frame(table: Any) -> nw.LazyFrame[Any]:
    """The frame behind narwhals; refuses engines that nobody has tried."""
    frame = nw.from_native(table)
    assert isinstance(frame, nw.LazyFrame)
    if engine_of(table) is None:
        raise InvalidParameterError(
            f"a lazy frame of {frame.implementation.value} was passed; those of Polars, DuckDB, PySpark, Dask are known. Collect "
            "it into a data frame first."
        )
    return frame


def plain_frame(table: Any, types: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The same table without what its engine reads into names and text, and the types of its columns: now x0, x1, ...

    To Spark, what follows a dot in a name is a part of a column; to Polars ``^x$`` is a pattern, to DuckDB ``*`` is all columns.
    To Spark and DuckDB, texts that are spelled differently may be equal, if a collation says so. Two people could become one.
    """
    engine, plain = engine_of(table), {f"x{j}": dtype for j, dtype in enumerate(types.values())}
    if engine is Engine.SPARK:
        chosen = [f"{name} COLLATE UTF8_BINARY AS {name}" if _is_text(dtype) else name for name, dtype in plain.items()]
        return table.toDF(*plain).selectExpr(*chosen), plain
    if engine is Engine.DUCKDB:
        chosen = [
            f'CAST({own} AS VARCHAR) COLLATE "C" AS {name}' if _is_text(dtype) else f"{own} AS {name}"
            for own, (name, dtype) in zip(map(quoted, types), plain.items(), strict=True)
        ]
        text = {name: nw.String() for name, dtype in plain.items() if _is_text(dtype)}
        return table.project(", ".join(chosen)), plain | text
    names = dict(zip(types, plain, strict=True))
    return (table.rename(names) if engine is Engine.POLARS else table.rename(columns=names)), plain


def collected(frame: nw.LazyFrame[Any]) -> Any:
    """The result of a query as an Arrow table. Polars runs it in batches, which takes less memory than all at once."""
    polars = frame.implementation == nw.Implementation.POLARS
    if polars:
        return frame.collect("polars", engine="streaming").to_arrow()
    return frame.collect("pyarrow").to_native()


def check_columns(types: Mapping[str, Any], domain: Domain, person: str | None = None) -> None:
    """Refuse a column whose type is not that of its feature. The types are public, and no row is read.

    Text is not read as numbers: what an engine takes for a number is its own affair.
    """
    features = (name for name in types if name != person)
    for j, name in enumerate(features):
        dtype, category = types[name], domain.category(j)
        if _is_number(dtype) or (category is not None and not category.numeric and _is_text(dtype)):
            continue
        raise InvalidParameterError(
            f"column {name!r} has type {type_text(dtype)}; {_wanted(category)}. Convert it in the query that you pass, or leave it "
            "out."
        )
    if person is not None and not (_is_number(types[person]) or _is_text(types[person])):
        raise InvalidParameterError(
            f"column {person!r}, which tells people apart, has type {type_text(types[person])}; it must be text or a number. "
            "Convert it in the query that you pass."
        )


def _is_number(dtype: Any) -> bool:
    return bool(dtype.is_numeric()) or dtype == nw.Boolean


def _is_text(dtype: Any) -> bool:
    return any(dtype == kind for kind in (nw.String, nw.Categorical, nw.Enum))


def _wanted(category: Category | None) -> str:
    if category is None:
        return "a feature must be a number"
    return "its levels are numbers, so it must be a number" if category.numeric else "levels must be text or numbers"
