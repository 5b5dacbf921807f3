"""Tables in: arrays and data frames as columns of float64, where NaN means missing."""

from __future__ import annotations

import re
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from dpoutlier.domain import Domain
from dpoutlier.exceptions import InvalidParameterError, PointsError

__all__ = ["column_names", "columns", "is_frame", "numbers", "points_array", "shape_of"]

NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*|\s*[+-]?inf(inity)?\s*", re.IGNORECASE)


def is_frame(table: Any) -> bool:
    return bool(nw.dependencies.is_into_dataframe(table))


def column_names(table: Any) -> list[str] | None:
    """Names of the columns, if the table has names that are text."""
    if not is_frame(table):
        return None
    names = nw.from_native(table, eager_only=True).columns
    text = [isinstance(name, str) for name in names]
    if any(text) and not all(text):
        raise TypeError("some column names are text and some are not; make all of them text, or none.")
    return list(names) if all(text) else None


def shape_of(table: Any) -> int:
    """Number of columns; refuses what is no table. The messages hold no row and no number of rows."""
    if is_frame(table):
        frame = nw.from_native(table, eager_only=True)
        _check_types(frame)
        n_columns = len(frame.columns)
    else:
        if hasattr(table, "toarray"):
            raise TypeError("Sparse data was passed, but dense data is required. Use '.toarray()'.")
        if type(table).__name__ in {"LazyFrame", "DuckDBPyRelation"}:
            raise TypeError(f"a {type(table).__name__} was passed; collect it into a data frame first.")
        n_columns = _array(table).shape[1]
    if n_columns == 0:
        raise ValueError("Found array with 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    return n_columns


def _check_types(frame: nw.DataFrame[Any]) -> None:
    """Refuse columns whose type can hold no numbers: the schema is public."""
    for name, dtype in frame.schema.items():
        if dtype.is_temporal() or dtype.is_nested():
            raise InvalidParameterError(
                f"column {name!r} has type {dtype}; a feature must be a number. Convert or leave it out."
            )


def _array(table: Any) -> NDArray[Any]:
    try:
        # Lists as objects: numpy would make text of every number as soon as one value is text, and True would not parse.
        array = np.asarray(table, None if hasattr(table, "dtype") else object)
        if isinstance(table, np.ma.MaskedArray):
            array = np.asarray(np.ma.filled(table.astype(np.float64), np.nan))
    except Exception:  # noqa: BLE001 - numpy's text would hold the number of rows, and another's a row
        raise ValueError("the data could not be read as a table: it is no array and no data frame.") from None
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported.")
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead. Reshape your data using array.reshape(-1, 1) "
            "if it has a single feature, or array.reshape(1, -1) if it is a single row; see that every row has one value for "
            "each feature."
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
    """The fast way where there is one. It must give the numbers of the slow way, or fail and leave it to that one."""
    try:
        if series.dtype.is_numeric() or series.dtype == nw.Boolean:
            return np.asarray(series.cast(nw.Float64).to_numpy(), np.float64)
        if series.dtype == nw.String:
            return numbers(series.to_arrow())
    except Exception:  # noqa: BLE001, S110 - Arrow refuses integers past 2**53, or half of a surrogate pair
        pass
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
    """A value as a float; NaN for whatever is no number. No value can make this fail."""
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    if isinstance(text, str) and not NUMBER.fullmatch(text):
        return np.nan
    try:
        return float(text)
    except Exception:  # noqa: BLE001 - objects may raise what they like
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
