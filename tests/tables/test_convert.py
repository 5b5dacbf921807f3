"""Tables in: a value's number depends on that value alone, whatever stands in other rows."""

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpoutlier import DPGridKNN
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.tables import convert

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
    (alone,) = convert.numbers(pa.array([text]))
    beside, _ = convert.numbers(pa.array([text, "x"]))
    np.testing.assert_equal(alone, beside)


MORE_ROWS = [
    ["text"],
    [5],
    [2.5],
    [None],
    ["\udcff"],
    [b"\xff"],
    [np.timedelta64(7, "s")],
    ["\u0663"],
    [2**60 + 1],
    [(1, 2)],
]
some_value = st.one_of(
    st.booleans(),
    st.none(),
    st.floats(-5, 5),
    st.integers(-5, 5),
    numbers_as_text,
    st.sampled_from(["\u0663", "7\u00a0", np.float32(0.1), np.timedelta64(7, "s"), b"1", b"\xff", "\udcff", 2**60 + 1]),
)


def as_objects(values):
    column = np.empty(len(values), object)
    for i, value in enumerate(values):
        column[i] = value
    return column


TABLES = {
    "list": lambda v: [[x] for x in v],
    "pandas": lambda v: pd.DataFrame({"a": pd.Series(as_objects(v), dtype=object)}),
    "numpy": lambda v: as_objects(v).reshape(-1, 1),
    "polars": lambda v: pl.DataFrame({"a": pl.Series(list(v), dtype=pl.Object)}),
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
@given(st.lists(some_value, min_size=1, max_size=4), st.sampled_from(MORE_ROWS), st.sampled_from([0, 120]))
@example([np.float32(0.1)], [5], 120)
@example([np.timedelta64(7, "s")], [5], 120)
@example(["\u0663"], [5], 0)
@example(["7\u00a0"], ["\udcff"], 0)
def test_one_row_does_not_change_how_others_are_read(make, values, more, nones):
    """Not even which way a library guesses the type of a column, from its first hundred values or from all."""
    values = [None] * nones + values
    (before,) = convert.columns(make(values))
    (after,) = convert.columns(make([*values, *more]))
    (first,) = convert.columns(make([*more, *values]))
    np.testing.assert_array_equal(before, after[:-1])
    np.testing.assert_array_equal(before, first[1:])


def test_text_that_only_looks_like_a_number_is_not_a_number():
    """Arrow and Python differ on digits of other alphabets and on blanks outside ASCII, so they are text."""
    for value in ("\u0663", "7\u00a0", "\uff11", "1_000", "0x10", "1,5"):
        assert np.isnan(convert.columns([[value]])[0][0])
        assert np.isnan(convert.numbers(pa.array([value]))[0])


HUGE = np.longdouble("1e400")


MASKED = np.ma.array([1.0, 2.0], mask=[False, True])
ODD = [HUGE, np.float32("nan"), (1, 2), 10**400, np.complex128(1 + 2j), np.ma.masked, MASKED[:1], np.array([3.0]), 1j]


@pytest.mark.parametrize("rows", [np.array([[HUGE]]), *([[value]] for value in ODD), [[value] for value in MASKED]])
def test_reading_is_silent_whatever_a_value_does(rows):
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="raise"):
        warnings.simplefilter("always")
        DPGridKNN(1, features=(0, 1), bins=2).fit(rows)
        DPGridKNN(1, features=(0, 1), bins=2).fit(pd.DataFrame(rows))
    assert not caught


def test_a_number_past_all_floats_is_infinite_however_it_is_held():
    from decimal import Decimal
    from fractions import Fraction

    for sign in (1, -1):
        held = [
            sign * 10**400,
            Decimal(sign * 10**400),
            Fraction(sign * 10**400, 3),
            str(sign * 10**400),
            f"{sign}e400",
        ]
        (column,) = convert.columns([[value] for value in held])
        assert column.tolist() == [sign * np.inf] * len(held)


def test_a_type_that_cannot_be_read_is_refused():
    table = pa.table({"x": pa.array([], pa.decimal128(20, -3))})
    with pytest.raises(InvalidParameterError, match="types of the columns cannot be read"):
        DPGridKNN(1, features=(0, 1), bins=2).fit(table)


class Odd:
    def __float__(self):
        raise RuntimeError("row 17")


NO_NUMBERS = [Odd(), object(), {}, [1], "\udcff", b"\xff", pd.NA, None, 1j, np.complex128(1), np.ma.masked, "x" * 10**5]


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_no_value_is_an_error(value):
    frame = pd.DataFrame({"a": pd.Series([1.0, value], dtype=object)})
    (column,) = convert.columns(frame)
    assert column[0] == 1.0
    assert np.isnan(column[1])


@pytest.mark.parametrize("masked", [[["1", "2"], ["secret", "3"]], [[1, "x"], [2.5, None]]])
@pytest.mark.parametrize("dtype", [None, object])
def test_masked_arrays_are_read_value_by_value(masked, dtype):
    array = np.ma.array(np.array(masked, dtype or object), mask=[[True, False], [False, False]])
    first, _ = convert.columns(array)
    assert np.isnan(first[0])
    assert convert.number_of_columns(array) == 2


@pytest.mark.parametrize(
    "text", ["1" * 10**6 + "x", " " * 10**6 + "x", "1." + "1" * 10**6 + "e", "." * 10**6, "1" * 10**6]
)
def test_a_long_value_does_not_take_long(text):
    """Quadratic work on a million characters would take hours: the test would never end."""
    (column,) = convert.columns([[text]])
    assert np.isnan(column[0]) or column[0] == np.inf


def test_arrow_values_that_have_no_python_value_are_missing():
    far = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array([0, 10**15], pa.timestamp("s")))
    assert np.isnan(convert.columns(pa.table({"a": far}))[0]).all()


@pytest.mark.parametrize("bounds", [{"a": (0, 1), "b": (0, 1)}, ([0, 0], [1, 1]), (0, [1, 1])])
def test_an_empty_list_is_a_table_of_no_rows_where_bounds_tell_its_columns(bounds):
    detector = DPGridKNN(1, features=bounds, bins=2).fit([])
    assert detector.n_features_in_ == 2


def test_booleans_are_numbers():
    assert convert.columns(pl.DataFrame({"a": [True, None, False]}))[0].tolist()[::2] == [1.0, 0.0]
    assert convert.columns([[True], ["x"], [False]])[0].tolist()[::2] == [1.0, 0.0]


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
        convert.number_of_columns(frame)


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
    "dictionary of an unknown encoding": (
        pa.table({"a": pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array([b"1", b"\xff"]).view(pa.string()))}),
        [1.0, np.nan],
    ),
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
    np.testing.assert_array_equal(convert.columns(table)[0], expected)


def test_missing_integers_of_every_frame_are_missing():
    for frame in (
        pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}),
        pl.DataFrame({"a": [1, None]}),
        pa.table({"a": [1, None]}),
    ):
        np.testing.assert_array_equal(convert.columns(frame)[0], [1.0, np.nan])


def test_people_whose_numbers_are_close_stay_apart():
    """Two people under one name would lose rows to each other, and one of them could then change twice as many."""
    ids = [2**53, 2**53 + 1, 2**62, 2**62 + 1, 2**53]
    for table in (pa.table({"id": ids}), pd.DataFrame({"id": ids}), pd.DataFrame({"id": ids}, dtype=object)):
        assert convert.codes_of(table, "id", {}).tolist() == [0, 1, 2, 3, 0]


def test_equal_values_of_a_column_are_looked_at_once():
    """Text of a million rows has few levels: a look at each row would take seconds."""
    calls = []
    table = pa.table({"a": ["x", "y"] * 500 + [None]})
    found = convert._mapped(convert._frame(table)["a"], lambda value: calls.append(value) or len(calls), np.int64)
    assert len(calls) == 3
    assert found[:4].tolist() == [1, 2, 1, 2]
    assert found[-1] == 3
