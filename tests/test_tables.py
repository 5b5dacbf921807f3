"""Tables in: a value's number depends on that value alone, whatever stands in other rows."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpoutlier import tables
from dpoutlier.exceptions import InvalidParameterError

numbers_as_text = st.one_of(
    st.floats().map(repr),
    st.integers(-(10**30), 10**30).map(str),
    st.from_regex(r"[ +-]?[0-9]{0,4}[.,_]?[0-9]{0,4}([eE][+-]?[0-9]{1,3})?[ ]?", fullmatch=True),
    st.text(max_size=8),
    st.sampled_from(
        ["inf", "-Infinity", "NaN", "nan", "0x10", "1_000", "1,5", " 7", "7\n", "+3", ".5", "5.", "٣", "1e400"]
    ),
)


@given(numbers_as_text)
def test_text_is_parsed_alike_alone_and_beside_text_that_is_no_number(text):
    """Alone the column goes the fast way, beside 'x' the slow one: a row must not change how another is read."""
    (alone,) = tables.numbers(pa.array([text]))
    beside, _ = tables.numbers(pa.array([text, "x"]))
    np.testing.assert_equal(alone, beside)


@given(
    st.lists(st.one_of(st.booleans(), st.floats(-5, 5), st.integers(-5, 5), numbers_as_text), min_size=1, max_size=4)
)
def test_one_row_does_not_change_how_others_are_read(values):
    for make in (
        lambda v: [[x] for x in v],
        lambda v: pd.DataFrame({"a": pd.Series(v, dtype=object)}),
        lambda v: np.array([[x] for x in v], dtype=object),
    ):
        (before,) = tables.columns(make(values))
        (after,) = tables.columns(make([*values, "text"]))
        np.testing.assert_array_equal(before, after[:-1])


class Odd:
    def __float__(self):
        raise RuntimeError("row 17")


@pytest.mark.parametrize("value", [Odd(), object(), {}, [1], "\udcff", b"\xff", pd.NA, None, 1j, "x" * 10**5, 10**400])
def test_no_value_is_an_error(value):
    frame = pd.DataFrame({"a": pd.Series([1.0, value], dtype=object)})
    (column,) = tables.columns(frame)
    assert column[0] == 1.0
    assert np.isnan(column[1])


def test_booleans_are_numbers():
    assert tables.columns(pl.DataFrame({"a": [True, None, False]}))[0].tolist()[::2] == [1.0, 0.0]
    assert tables.columns([[True], ["x"], [False]])[0].tolist()[::2] == [1.0, 0.0]


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame({"a": [[1.0]]}),
        pd.DataFrame({"a": pd.to_datetime(["2020-01-01"])}),
        pa.table({"a": pa.array([0], pa.date32())}),
    ],
)
def test_types_that_hold_no_numbers_are_refused_by_the_schema(frame):
    with pytest.raises(InvalidParameterError, match="column 'a' has type"):
        tables.number_of_columns(frame)


ODD_COLUMNS = {
    "arrow integers past 2**53": (pa.table({"a": [2**60 + 1, None]}), [2.0**60, np.nan]),
    "arrow unsigned": (pa.table({"a": pa.array([2**63 + 1, 3], pa.uint64())}), [2.0**63, 3.0]),
    "pandas arrow integers": (
        pd.DataFrame({"a": pd.array([2**60 + 1, None], dtype="int64[pyarrow]")}),
        [2.0**60, np.nan],
    ),
    "polars 128 bits": (pl.DataFrame({"a": [2**100, None]}, schema={"a": pl.Int128}), [2.0**100, np.nan]),
    "decimals": (pa.table({"a": [Decimal("1.5"), None]}), [1.5, np.nan]),
    "wide decimals": (
        pa.table({"a": pa.array([Decimal("1" * 60), None], pa.decimal256(76, 0))}),
        [float("1" * 60), np.nan],
    ),
    "half floats": (pa.table({"a": pa.array([np.float16(1.5), None], pa.float16())}), [1.5, np.nan]),
    "dictionary": (pa.table({"a": pa.array(["1", "x"]).dictionary_encode()}), [1.0, np.nan]),
    "bytes": (pa.table({"a": [b"1", b"\xff"]}), [1.0, np.nan]),
    "views": (pa.table({"a": pa.array(["1", "x"], pa.string_view())}), [1.0, np.nan]),
    "nulls": (pa.table({"a": pa.nulls(2)}), [np.nan, np.nan]),
    "polars categories": (pl.DataFrame({"a": ["1", "x"]}, schema={"a": pl.Categorical}), [1.0, np.nan]),
    "polars objects": (pl.DataFrame({"a": pl.Series([object(), 1], dtype=pl.Object)}), [np.nan, 1.0]),
    "pandas categories": (pd.DataFrame({"a": pd.Categorical(["1", None])}), [1.0, np.nan]),
    "pandas booleans": (pd.DataFrame({"a": pd.array([True, None], dtype="boolean")}), [1.0, np.nan]),
    "pandas strings": (pd.DataFrame({"a": ["1", None]}, dtype="string"), [1.0, np.nan]),
    "numpy text": (np.array([["1"], ["x"]]), [1.0, np.nan]),
    "numpy bytes": (np.array([[b"1"], [b"\xff"]]), [1.0, np.nan]),
    "numpy masked": (np.ma.array([[1.0], [2.0]], mask=[[False], [True]]), [1.0, np.nan]),
    "numpy dates": (np.array([["2020-01-01"], ["NaT"]], "datetime64[D]"), [np.nan, np.nan]),
    "big-endian": (np.array([[1.5], [2.0]], ">f8"), [1.5, 2.0]),
}


@pytest.mark.parametrize(("table", "expected"), ODD_COLUMNS.values(), ids=ODD_COLUMNS)
def test_columns_of_every_type_are_read_without_an_error(table, expected):
    np.testing.assert_array_equal(tables.columns(table)[0], expected)


def test_missing_integers_of_every_frame_are_missing():
    for frame in (
        pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}),
        pl.DataFrame({"a": [1, None]}),
        pa.table({"a": [1, None]}),
    ):
        np.testing.assert_array_equal(tables.columns(frame)[0], [1.0, np.nan])
