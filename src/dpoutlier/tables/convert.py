"""Tables in: arrays and data frames as columns of float64, where NaN means missing, and levels are numbered.

A value's number depends on that value alone. Where there is a fast way for a whole column, it gives the same numbers as the
slow way, value by value, or it fails and leaves the column to that one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier.exceptions import InvalidParameterError, PointsError
from dpoutlier.features.category import NUMBER, Category
from dpoutlier.features.domain import Domain
from dpoutlier.tables.batched import BatchedTable, not_a_number
from dpoutlier.tables.identity import identity
from dpoutlier.tables.rows import Rows

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw


KERNEL_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))  # of this machine's byte order


def is_frame(table: Any) -> bool:
    if isinstance(table, np.ndarray | list):
        return False
    import narwhals.stable.v2 as nw  # noqa: PLC0415 - an array must not wait for it

    return bool(nw.dependencies.is_into_dataframe(table))


def is_lazy(table: Any) -> bool:
    """Whether a table is a query of an engine that has not run."""
    if isinstance(table, np.ndarray | list | tuple | str):
        return False
    import narwhals.stable.v2 as nw  # noqa: PLC0415 - an array must not wait for it

    return isinstance(nw.from_native(table, pass_through=True), nw.LazyFrame)


def column_names(table: Any) -> list[str] | None:
    """Names of the columns, if the table has names that are text."""
    if isinstance(table, BatchedTable):
        return list(table.names)
    if is_lazy(table):
        return _lazy_names(table)
    if not is_frame(table):
        return None
    names = _frame(table).columns
    text = [isinstance(name, str) for name in names]
    if any(text) and not all(text):
        raise TypeError("some column names are text and some are not; make all of them text, or none.")
    return list(names) if all(text) else None


def number_of_columns(table: Any) -> int:
    """Number of columns. Refuses anything that is not a table, with a message that shows neither a row nor the number of rows."""
    if isinstance(table, BatchedTable):
        check_types(table.types().items())
        n_columns = len(table.names)
    elif is_lazy(table):
        n_columns = len(_lazy_names(table))
    else:
        n_columns = len(_frame(table).columns) if is_frame(table) else _array(table).shape[1]
    if n_columns == 0:
        raise ValueError("Found array with 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    return n_columns


def columns(table: Any, domain: Domain | None = None) -> list[NDArray[np.float64]]:
    """The columns as float64. A value that is not a number, or text that does not parse as one, becomes NaN.

    If the domain gives a feature levels, level i becomes ``i + 1/2``. Missing values, and values that are not a level, become NaN.
    """
    with np.errstate(all="ignore"):
        if (plain := _arrow_plain(table, domain)) is not None:
            return plain
        if is_frame(table):
            frame = _frame(table)
            each = _levels_of(domain, len(frame.columns))
            return [
                _series(frame[:, j]) if own is None else _mapped(frame[:, j], partial(_level, own), np.float64)
                for j, own in each
            ]
        array = _array(table)
        each = _levels_of(domain, array.shape[1])
        return [_values(array[:, j]) if own is None else level_values(array[:, j].tolist(), own) for j, own in each]


def _arrow_plain(table: Any, domain: Domain | None) -> list[NDArray[np.float64]] | None:
    """The columns of an Arrow table of float64 and of levels as text, without narwhals, which takes longer than a small batch. None
    if a column has another type.
    """
    pa = sys.modules.get("pyarrow")
    if pa is None or not isinstance(table, pa.Table) or not table.num_columns:
        return None
    each = [*_levels_of(domain, table.num_columns)]
    wanted = [pa.float64() if own is None else pa.string() for _, own in each]
    if table.schema.types != wanted:
        return None
    found = []
    for (_, own), column in zip(each, table.columns, strict=True):
        values = column.to_numpy() if own is None else _arrow_codes(column, own)
        if values is None:
            return None
        found.append(values)
    return found


def _arrow_codes(column: Any, category: Category) -> NDArray[np.float64] | None:
    """Levels of an Arrow column of text; None if some text cannot be decoded."""
    try:
        encoded = column.combine_chunks().dictionary_encode()
        known = level_values([*encoded.dictionary.to_pylist(), None], category)
    except Exception:  # noqa: BLE001 - the slow way knows what to make of it
        return None
    return np.asarray(known[encoded.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)])


def _levels_of(domain: Domain | None, n_columns: int) -> Iterable[tuple[int, Category | None]]:
    """The levels of each column; None for all columns if the domain has another number of features."""
    known = domain is not None and domain.n_features == n_columns
    return enumerate((domain.categories if known and domain is not None else None) or [None] * n_columns)


def values(table: Any, domain: Domain | None = None) -> NDArray[Any] | list[NDArray[np.float64]]:
    """The table as kernels read it: itself if it is an array of floats, which is then not copied, else its columns."""
    plain = isinstance(table, np.ndarray) and not isinstance(table, np.ma.MaskedArray)
    numbers_only = domain is None or domain.categories is None
    if plain and numbers_only and table.dtype in KERNEL_FLOATS and table.ndim == 2:
        return np.asarray(table)
    return columns(table, domain)


def without(table: Any, name: str) -> Any:
    """The table without one of its columns."""
    if isinstance(table, BatchedTable):
        return table.without(name)
    import narwhals.stable.v2 as nw  # noqa: PLC0415

    return nw.to_native(_frame(table).drop(name))


def without_person(table: Any, person: str | None) -> Any:
    """The table without the column that identifies people, if it has one: points may have it, and do not need it."""
    names = None if person is None else column_names(table)
    return table if names is None or person not in names else without(table, str(person))


def codes_of(table: Any, name: str, known: dict[str, int]) -> NDArray[np.int64]:
    """A number for each value of a column, -1 for those that are missing. ``known`` has the numbers so far, and takes new ones."""

    def code(value: Any) -> int:
        text = identity(value)
        return -1 if text is None else known.setdefault(text, len(known))

    return _mapped(_frame(table)[name], code, np.int64)


def read_by_text(dtype: Any) -> bool:
    """Whether a number of this type becomes float64 by way of its text.

    The text is exact, and everyone takes it to the nearest float. What Arrow and the engines make of decimals and of numbers of 128
    bits directly differs in the last bit.
    """
    return bool(dtype.is_decimal()) or str(dtype) in {"Int128", "UInt128"}


def numbers(column: Any) -> NDArray[np.float64]:
    """An Arrow column of text, or of bytes that may be text in any encoding, as float64."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import, and only needed for text
    import pyarrow.compute as pc  # noqa: PLC0415

    try:
        parsed = pc.cast(pc.cast(column, pa.string()), pa.float64())
        return np.asarray(pc.fill_null(parsed, np.nan).to_numpy(), np.float64)
    except pa.ArrowInvalid:  # some text is not a number
        return _parsed(pc.cast(column, pa.binary()).to_pylist())


def points_rows(table: Any, domain: Domain) -> Rows:
    """Points to be scored. A block of them raises ``MissingValueError`` if one is missing; see ``missing_value``."""
    found = values(table, domain)
    n_features = found.shape[1] if isinstance(found, np.ndarray) else len(found)
    if n_features != domain.n_features:
        raise PointsError(f"points have {n_features} features, but the model was fitted on {domain.n_features}.")
    return Rows(found, domain, complete=True)


def missing_value(table: Any, domain: Domain, first: int | None = 0, *, whole: bool = True) -> PointsError:
    """What to say of points that miss a value. They are public, so the first bad value is shown.

    ``first`` is the number of the table's first row; None if the table is a part of a larger one and nobody knows which. Only for a
    ``whole`` table, the message says how many values are missing.
    """
    j, row, n_missing, must = first_missing(columns(table, domain), domain)
    label = domain.labels[j]
    place = "" if first is None else f", row {first + row} (counted from 0)"
    many = f" ({n_missing} in this column)" if whole else ""
    return PointsError(
        f"a point has a missing value or a value that is not {must} in {label}{place}: {_original(table, row, j)!r}.",
        remedy=f"Input contains NaN or text: remove or fill such rows{many}, or fit with a cell for missing values "
        "(missing='cell').",
        code="missing-value",
        row=None if first is None else first + row,
        column=label,
    )


def first_missing(found: Sequence[NDArray[np.float64]], domain: Domain) -> tuple[int, int, int, str]:
    """The first column that lacks a value and has no cell for it: its number, the first such row, how many, what values must be."""
    for j, column in enumerate(found):
        missing = np.flatnonzero(np.isnan(column))
        if len(missing) and not domain.has_missing_cell(j):
            category = domain.category(j)
            must = "a number" if category is None else f"one of the levels {', '.join(category.levels[:10])}"
            return j, int(missing[0]), len(missing), must
    raise AssertionError("no value is missing")


def points_array(table: Any, domain: Domain) -> NDArray[np.float64]:
    """Points to be scored, of shape (n, n_features): missing values only where there is a cell for them, levels as numbers."""
    rows = points_rows(table, domain)
    if any(np.isnan(column).any() and not domain.has_missing_cell(j) for j, column in enumerate(rows.columns)):
        raise missing_value(table, domain)
    return np.stack(rows.columns, axis=1).astype(np.float64, copy=False)


# Frames ------------------------------------------------------------------------------------------------------------------


def _lazy_names(table: Any) -> list[str]:
    import narwhals.stable.v2 as nw  # noqa: PLC0415

    names = None
    with suppress(Exception):  # its text may hold a value: of text files an engine reads rows to find the types
        names = [*nw.from_native(table).collect_schema()]
    if names is None:
        raise InvalidParameterError(
            "the columns of the lazy frame could not be determined. The cause is not shown, because it could reveal something "
            "about a row. Ask the frame itself for its schema to see it."
        )
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise InvalidParameterError(f"two columns are called {doubled[0]!r}; give each a name of its own.")
    return names


def _frame(table: Any) -> nw.DataFrame[Any]:
    """The table as a frame of narwhals. Refuses columns that cannot be features, by the schema, which is public."""
    import narwhals.stable.v2 as nw  # noqa: PLC0415

    try:
        frame = nw.from_native(table, eager_only=True)
        schema = frame.schema
    except nw.exceptions.DuplicateError:
        raise InvalidParameterError("two columns have the same name; give each a name of its own.") from None
    except ValueError as error:  # a decimal of a negative scale: the schema, which is public
        raise InvalidParameterError(f"the types of the columns cannot be read: {error}. Convert them.") from None
    check_types(schema.items())
    return frame  # type: ignore[no-any-return] # narwhals' overloads lose it


def check_types(types: Iterable[tuple[str, Any]]) -> None:
    """Refuse types that hold neither numbers nor levels."""
    for name, dtype in types:
        if dtype.is_temporal() or dtype.is_nested():
            raise not_a_number(name, dtype)


def _series(series: nw.Series[Any]) -> NDArray[np.float64]:
    import narwhals.stable.v2 as nw  # noqa: PLC0415

    # What narwhals calls the type of a pandas column of objects depends on its values, hence on all rows.
    objects = _holds_objects(series)
    try:
        if not objects and read_by_text(series.dtype):
            return numbers(series.cast(nw.String).to_arrow())
        if not objects and (series.dtype.is_numeric() or series.dtype == nw.Boolean):
            return np.asarray(series.cast(nw.Float64).to_numpy(), np.float64)
        if not objects and series.dtype == nw.String:
            return numbers(series.to_arrow())
    except Exception:  # noqa: BLE001, S110 - Arrow refuses integers past 2**53, or half of a surrogate pair
        pass
    return _parsed(_objects(series))


def _mapped(series: nw.Series[Any], function: Callable[[Any], Any], dtype: Any) -> NDArray[Any]:
    """A function of each value, called once for equal ones where the column's type makes that possible."""
    try:
        if not _holds_objects(series):
            import pyarrow as pa  # noqa: PLC0415
            import pyarrow.compute as pc  # noqa: PLC0415

            column = series.to_arrow()
            if pa.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            encoded = pc.dictionary_encode(column, null_encoding="mask")
            encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
            found = np.array([*map(function, encoded.dictionary.to_pylist()), function(None)], dtype)
            return np.asarray(found[pc.fill_null(encoded.indices, len(found) - 1).to_numpy(zero_copy_only=False)])
    except Exception:  # noqa: BLE001, S110 - text in an unknown encoding, or a type that Arrow cannot encode
        pass
    return np.array([function(value) for value in _objects(series)], dtype)


def _holds_objects(series: nw.Series[Any]) -> bool:
    """Whether a column holds Python objects. Arrow would get their addresses, or a type that depends on all of them."""
    import narwhals.stable.v2 as nw  # noqa: PLC0415

    dtype = getattr(nw.to_native(series), "dtype", "")
    categories = getattr(getattr(dtype, "categories", None), "dtype", "")  # of a pandas column of categories
    return "object" in f"{dtype} {categories}".lower()


def _objects(series: nw.Series[Any]) -> list[Any]:
    try:
        return list(series.to_list())
    except Exception:  # noqa: BLE001 - a dictionary of text in an unknown encoding, or of dates past all calendars
        return [_object(value) for value in series.to_arrow()]


def _object(value: Any) -> Any:
    try:
        return value.as_py()
    except Exception:  # noqa: BLE001 - a value without a Python equivalent is not a number
        return None


# Arrays and lists ---------------------------------------------------------------------------------------------------------


def _array(table: Any) -> NDArray[Any]:
    if hasattr(table, "toarray"):
        raise TypeError("Sparse data was passed, but dense data is required. Use '.toarray()'.")
    if is_lazy(table):
        raise TypeError(
            f"a lazy frame ({type(table).__name__}) was passed. Use score_frame, which scores it where it is, or collect it into a "
            "data frame first."
        )
    array = _rectangle(table) if isinstance(table, list | tuple) else _as_numpy(table)
    if array is None:
        raise ValueError("the data could not be read as a table: it is neither an array nor a data frame.")
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported.")
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead, from {type(table).__name__}; arrays, data frames, lazy frames, "
            "Arrow data sets and paths of files are supported. Reshape your data using array.reshape(-1, 1) "
            "if it has a single feature, or array.reshape(1, -1) if it is a single row; check that every row has one value for "
            "each feature."
        )
    return array


def _as_numpy(table: Any) -> NDArray[Any] | None:
    if isinstance(table, np.ma.MaskedArray):
        values = np.array(table.data, dtype=object)
        values[np.ma.getmaskarray(table)] = None
        return values
    try:
        return np.asarray(table)
    except Exception:  # noqa: BLE001 - its text might hold a row
        return None


def _rectangle(rows: Any) -> NDArray[Any]:
    """Lists as an array of objects: numpy would make text of every number as soon as one value is text."""
    if not rows or not all(isinstance(row, list | tuple | np.ndarray) and len(row) == len(rows[0]) for row in rows):
        return np.empty(0, object)  # not two-dimensional
    array = np.empty((len(rows), len(rows[0])), object)
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            array[i, j] = value
    return array


def _values(values: NDArray[Any]) -> NDArray[np.float64]:
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    return _parsed(values.tolist())


# Values -------------------------------------------------------------------------------------------------------------------


def level_values(values: Sequence[Any], category: Category) -> NDArray[np.float64]:
    """Level i as ``i + 1/2``; NaN for a missing value, and for a value that is not a level."""
    if set(map(type, values)) <= {str, NoneType}:  # equal texts are of one level, which need not hold of 1 and True
        known = {value: _level(category, value) for value in set(values)}
        return np.array([known[value] for value in values], np.float64)
    return np.array([_level(category, value) for value in values], np.float64)


def _parsed(values: list[Any]) -> NDArray[np.float64]:
    return np.array([_number(value) for value in values], np.float64)


def _level(category: Category, value: Any) -> float:
    """Where the level of a value lies in its feature's bounds."""
    code = category.code(value)
    return np.nan if code is None else code + 0.5


def _number(value: Any) -> float:
    """A value as a float; NaN if it is not a number. No value can make this fail."""
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    if isinstance(text, str) and not NUMBER.fullmatch(text):
        return np.nan
    if isinstance(text, np.ndarray | np.generic) and _warns(text):
        return np.nan
    try:
        return float(text)
    except OverflowError:  # as the same number written out would be
        return np.nan if not isinstance(text, int | Fraction) else np.inf if text > 0 else -np.inf
    except Exception:  # noqa: BLE001 - objects may raise what they like
        return np.nan


def _warns(value: Any) -> bool:
    """Whether numpy would warn when it makes a number of this: it has several parts, or is masked. Then it is not a number."""
    return bool(np.ndim(value)) or np.iscomplexobj(value) or isinstance(value, np.ma.MaskedArray)


def _original(table: Any, row: int, column: int) -> Any:
    """The value as it was given, for a message about a public point."""
    if is_frame(table):
        return _frame(table)[:, column].to_list()[row]
    return _array(table)[row : row + 1, column].tolist()[0]
