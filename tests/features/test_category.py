"""Categories: which level a value is, whatever it comes as."""

import copy
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpoutlier import Bounds, Category
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.category import LONGEST_LEVEL, MAX_LEVELS, text_of
from dpoutlier.tables import convert

SMOKING = Category(["never", "former", "current"])


class Rude:
    def __float__(self):
        raise ZeroDivisionError


@pytest.mark.parametrize("value", ["former", " former\n", b"former", np.str_("former"), np.bytes_(b" former ")])
def test_a_text_is_its_level_and_blanks_around_it_do_not_count(value):
    assert SMOKING.code(value) == 1


@pytest.mark.parametrize("value", ["Former", "formerly", "fo rmer", 7, True, b"\xff", "nan", math.inf])
def test_what_is_not_declared_is_other_or_missing_where_there_is_none(value):
    assert SMOKING.code(value) == 3
    assert Category(SMOKING.levels, other=False).code(value) is None
    assert Category(SMOKING.levels, ordered=True).code(value) is None


ABSENT = [None, "", "  \t", b"", math.nan, np.float32("nan"), Decimal("nan"), Decimal("sNaN"), pd.NA, pd.NaT, Rude()]


@pytest.mark.parametrize("value", ABSENT)
def test_missing_values_have_no_level(value):
    for category in (SMOKING, Category([1, 2]), Category([False, True])):
        assert category.code(value) is None


SAME = [2, 2.0, "2", "2.0", " +2e0 ", b"2.00", np.int8(2), np.uint64(2), np.float32(2), Decimal("2.0"), Fraction(4, 2)]


@pytest.mark.parametrize("value", SAME)
@pytest.mark.parametrize("level", [2, 2.0, np.int64(2), np.float32(2), Decimal(2), Fraction(2)], ids=repr)
def test_a_number_is_its_level_however_it_is_written(value, level):
    assert Category([1, level, 2.5]).code(value) == 1


@pytest.mark.parametrize(
    ("value", "code"),
    [("2.5", 1), (-0.0, 0), ("-0", 0), ("0x1", 2), ("1_0", 2), ("nan", None), ("-NaN", None), ("inf", 2), ("1e999", 2),
     (10**400, 2), (Fraction(10**400), 2), (-(10**400), 2), ("٢", 2)],
)  # fmt: skip
def test_numbers_at_the_edge(value, code):
    assert Category([0, 2.5]).code(value) == code


def test_large_whole_numbers_are_levels_by_their_float():
    assert Category([2**53 + 2, 1e300]).code(str(2**53 + 2)) == 0
    assert Category([2**53 + 2, 1e300]).code(1e300) == 1
    with pytest.raises(InvalidParameterError, match="given once each"):
        Category([2**53, 2**53 + 1])


@pytest.mark.parametrize("levels", [[False, True], ["false", "true"], ["False", "True"], ["FALSE", "TRUE"], [0, 1]])
def test_truth_values_find_their_level(levels):
    category = Category(levels)
    for false, true in [(False, True), (np.False_, np.True_)]:
        assert (category.code(false), category.code(true)) == (0, 1)


def test_text_that_looks_like_a_number_is_compared_as_it_stands():
    assert Category(["1", "01"]).code("01") == 1
    assert Category(["1", "01"]).code("1.0") == 2
    assert Category(["1", "01"]).code(1.0) == 0  # a number has no zeros before it


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"levels": "fm"}, "a list of texts or of numbers"),
        ({"levels": b"fm"}, "a list of texts or of numbers"),
        ({"levels": {"f", "m"}}, "a list of texts or of numbers"),  # a set has another order in every process
        ({"levels": {"f": 1}}, "a list of texts or of numbers"),
        ({"levels": 3}, "a list of texts or of numbers"),
        ({"levels": []}, "not empty"),
        ({"levels": ["f", 1]}, "a list of texts, or of finite numbers"),
        ({"levels": [0, True]}, "a list of texts, or of finite numbers"),
        ({"levels": [0, math.nan]}, "a list of texts, or of finite numbers"),
        ({"levels": [0, 10**400]}, "a list of texts, or of finite numbers"),
        ({"levels": [Decimal("sNaN")]}, "a list of texts, or of finite numbers"),
        ({"levels": [None, "a"]}, "a list of texts, or of finite numbers"),
        ({"levels": ["f", " "]}, "printable text of 1 to 200"),
        ({"levels": ["f", "a\nb"]}, "printable text"),
        ({"levels": ["f" * (LONGEST_LEVEL + 1)]}, "printable text"),
        ({"levels": ["f", "m", "f "]}, "given once each, got 'f'"),
        ({"levels": [1, 2, 1.0]}, "given once each, got '1'"),
        ({"levels": range(MAX_LEVELS + 1)}, "at most 10000"),
        ({"levels": ["f", "m"], "ordered": "yes"}, "ordered must be True or False"),
        ({"levels": ["f", "m"], "other": 1}, "other must be True or False"),
        ({"levels": ["f", "m"], "ordered": True, "other": True}, "False where levels are ordered"),
    ],
)
def test_levels_that_cannot_be_used(arguments, message):
    with pytest.raises(InvalidParameterError, match=message):
        Category(**arguments)


def test_names_of_levels():
    assert Category(["a", "other"]).names == ("a", "other", "(other)")
    assert Category(["other", "(other)"]).names == ("other", "(other)", "((other))")
    assert Category(["a"], other=False).names == ("a",)
    assert Category([3, 1, 2.5], ordered=True).names == ("3", "1", "2.5")


CATEGORIES = [
    SMOKING,
    Category([1, 2.5, 1e300, 2**53]),
    Category([False, True], other=False),
    Category(["b", "a"], ordered=True),
]


@pytest.mark.parametrize("category", CATEGORIES, ids=repr)
def test_a_category_survives_json_pickle_copies_and_its_own_text(category):
    assert category.code(category.levels[-1]) == len(category.levels) - 1  # what is kept for speed does not count
    for other in (
        Category.from_json(category.to_json()),
        pickle.loads(pickle.dumps(category)),
        copy.deepcopy(category),
        eval(repr(category)),
    ):
        assert other == category
        assert hash(other) == hash(category)
        assert [other.code(level) for level in category.levels] == list(range(len(category.levels)))


def test_levels_as_no_program_writes_them_are_refused():
    content = {"levels": ["1.0", "2"], "numeric": True, "ordered": False, "other": True}
    with pytest.raises(InvalidParameterError, match="as they are written to files"):
        Category.from_json(content)


anything = st.one_of(
    st.none(), st.text(), st.binary(), st.booleans(), st.integers(), st.floats(), st.decimals(), st.fractions(),
    st.dates(), st.lists(st.integers()),
)  # fmt: skip


@given(anything, st.sampled_from(CATEGORIES))
def test_every_value_has_a_level_or_is_missing(value, category):
    code = category.code(value)
    assert code is None or 0 <= code < len(category.names)
    assert (text_of(value) is None) <= (code is None)


texts = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=20)


@given(st.lists(texts, min_size=1, max_size=20, unique=True), st.sampled_from(["", " ", "\t", "\n "]))
def test_each_declared_text_is_its_own_level(levels, blank):
    category = Category(levels)
    assert [category.code(blank + level + blank) for level in levels] == list(range(len(levels)))


finite = st.one_of(st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False))


@given(st.lists(finite, min_size=1, max_size=20, unique_by=float))
def test_each_declared_number_is_its_own_level(levels):
    category = Category(levels)
    for value in (levels, map(repr, levels), map(float, levels), map(Decimal, levels)):
        assert [category.code(one) for one in value] == list(range(len(levels)))


# In tables ----------------------------------------------------------------------------------------------------------------


COLUMNS = {
    "pandas objects": lambda: pd.DataFrame({"x": ["a", None, "b", " a", 1, 2.0, True, b"b"]}, dtype=object),
    "a list": lambda: [["a"], [None], ["b"], [" a"], [1], [2.0], [True], [b"b"]],
    "an array of objects": lambda: np.array([["a"], [None], ["b"], [" a"], [1], [2.0], [True], [b"b"]], dtype=object),
}


@pytest.mark.parametrize("make", COLUMNS.values(), ids=COLUMNS)
def test_columns_of_all_kinds_of_values(make):
    levels = Category(["a", "b", "1", "true"])
    table = make()
    key = "x" if isinstance(table, pd.DataFrame) else 0
    domain = Bounds.of((0, 1), {key: levels}).domain(1, ["x"] if key == "x" else None)
    (found,) = convert.columns(table, domain)
    expected = [0.5, math.nan, 1.5, 0.5, 2.5, 4.5, 3.5, 1.5]
    np.testing.assert_array_equal(found, expected)


FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize(
    ("values", "levels", "codes"),
    [
        ([True, False, True], [0, 1], [1, 0, 1]),
        ([True, False, True], [True, False], [0, 1, 0]),
        ([1, 3, 2], [3, 2, 1], [2, 0, 1]),
        ([1.0, 3.5, 2.0], [1, 3.5], [0, 1, 2]),
        (["1", "3.50", "x"], [1, 3.5], [0, 1, 2]),
    ],
)
def test_columns_of_one_type(make, values, levels, codes):
    domain = Bounds.of(None, {"x": levels}).domain(1, ["x"])
    (found,) = convert.columns(make({"x": values}), domain)
    assert found.tolist() == [code + 0.5 for code in codes]
