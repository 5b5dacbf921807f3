"""Tables in: arrays and data frames as columns of float64, where NaN means missing."""

from __future__ import annotations

import re
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from dpoutlier.domain import Domain
from dpoutlier.exceptions import PointsError

__all__ = ["column_names", "columns", "is_frame", "numbers", "points_array", "shape_of"]

NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*|\s*[+-]?inf(inity)?\s*", re.IGNORECASE)


def is_frame(table: Any) -> bool:
    return bool(nw.dependencies.is_into_dataframe(table))


def column_names(table: Any) -> list[str] | None:
    """Names of the columns, if the table has names that are text."""
    if not is_frame(table):
        return None
    names = nw.from_native(table, eager_only=True).columns
    return list(names) if all(isinstance(name, str) for name in names) else None


def shape_of(table: Any) -> int:
    """Number of columns; refuses what is no table. The messages hold no row and no number of rows."""
    if is_frame(table):
        n_columns = len(nw.from_native(table, eager_only=True).columns)
    else:
        if hasattr(table, "toarray"):
            raise TypeError("Sparse data was passed, but dense data is required. Use '.toarray()'.")
        if type(table).__name__ in {"LazyFrame", "DuckDBPyRelation"}:
            raise TypeError(f"a {type(table).__name__} was passed; collect it into a data frame first.")
        n_columns = _array(table).shape[1]
    if n_columns == 0:
        raise ValueError("Found array with 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    return n_columns


def _array(table: Any) -> NDArray[Any]:
    try:
        array = np.asarray(table)
    except ValueError:  # numpy's text would hold the number of rows
        raise ValueError("the rows of the table differ in their number of values; all must have one for each feature.") from None
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported.")
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead. Reshape your data using array.reshape(-1, 1) "
            "if it has a single feature, or array.reshape(1, -1) if it is a single row."
        )
    return array


def columns(table: Any) -> list[NDArray[np.float64]]:
    """The columns as float64. What is no number, or does not parse as one, is NaN."""
    if is_frame(table):
        frame = nw.from_native(table, eager_only=True)
        return [_series(frame[:, j]) for j in range(len(frame.columns))]
    array = _array(table)
    return [_values(array[:, j]) for j in range(array.shape[1])]


def _series(series: nw.Series[Any]) -> NDArray[np.float64]:
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return np.asarray(series.cast(nw.Float64).to_numpy(), np.float64)
    if series.dtype == nw.String:
        return numbers(series.to_arrow())
    return _parsed(series.to_list())


def numbers(column: Any) -> NDArray[np.float64]:
    """An Arrow column of text, or of bytes that may be text in any encoding, as float64."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import, and only needed for text
    import pyarrow.compute as pc  # noqa: PLC0415

    try:
        parsed = pc.cast(pc.cast(column, pa.string()), pa.float64())
        return np.asarray(pc.fill_null(parsed, np.nan).to_numpy(), np.float64)
    except pa.ArrowInvalid:  # some text is no number: the same numbers, one by one
        return _parsed(pc.cast(column, pa.binary()).to_pylist())


def _values(values: NDArray[Any]) -> NDArray[np.float64]:
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    return _parsed(values.tolist())


def _parsed(values: list[Any]) -> NDArray[np.float64]:
    return np.array([_number(value) for value in values], np.float64)


def _number(value: Any) -> float:
    if isinstance(value, str | bytes) and not NUMBER.fullmatch(
        value if isinstance(value, str) else value.decode("latin-1")
    ):
        return np.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def points_array(table: Any, domain: Domain) -> NDArray[np.float64]:
    """Points to be scored, of shape (n, n_features). Public, so the first bad value is shown."""
    found = columns(table)
    if len(found) != domain.n_features:
        raise PointsError(f"points have {len(found)} features, the model was fitted on {domain.n_features}.")
    for label, values, j in zip(domain.labels, found, range(len(found)), strict=True):
        missing = np.flatnonzero(np.isnan(values))
        if len(missing):
            row = int(missing[0])
            raise PointsError(
                f"points have a missing value or no number in {label}, row {row}: {_original(table, row, j)!r}. "
                f"Remove or fill such rows ({len(missing)} in this column); input contains NaN or text."
            )
    return np.stack(found, axis=1)


def _original(table: Any, row: int, column: int) -> Any:
    if is_frame(table):
        return nw.from_native(table, eager_only=True)[:, column].to_list()[row]
    return np.asarray(table)[row, column].item()
