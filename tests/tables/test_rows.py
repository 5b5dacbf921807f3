"""Rows become positions block by block, whatever their layout, and exactly as the lattice says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import naive
from dpoutlier.exceptions import PointsError
from dpoutlier.features.domain import Domain
from dpoutlier.tables import convert
from dpoutlier.tables.rows import MissingValueError, Rows
from layouts import LAYOUTS

DOMAIN = Domain((-1.5, 0.0, 1e-3), (2.0, 1.0, 1e5))
FLOATS = st.one_of(
    st.floats(),
    st.sampled_from([np.nan, np.inf, -np.inf, -0.0, 5e-324, 1e308, -1e308]),
    st.sampled_from([-1.5, 2.0, 0.0, 1.0, 0.25, 0.5]).flatmap(
        lambda edge: st.sampled_from([edge, np.nextafter(edge, -np.inf), np.nextafter(edge, np.inf)])
    ),
)
TABLES = hnp.arrays(np.float64, st.tuples(st.integers(0, 70), st.just(3)), elements=FLOATS)


def expected(X, domain):
    X = np.stack(X, axis=1) if isinstance(X, list) else X
    columns = zip(X.T.astype(np.float64).tolist(), domain.lower, domain.upper)
    return [[0 if v != v else naive.position(v, low, high) for v in column] for column, low, high in columns]


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@given(TABLES)
def test_positions_are_those_of_the_definition(layout, X):
    with np.errstate(over="ignore"):
        X = layout(X)
    rows = Rows(X if isinstance(X, list) else convert.values(X), DOMAIN)
    assert rows[:].T.tolist() == expected(X, DOMAIN)
    assert rows[:].dtype == np.uint32
    n = len(rows)
    assert (rows[n // 3 : n // 2] == rows[:][n // 3 : n // 2]).all()


numbers = st.floats(-1e12, 1e12, allow_nan=False)


@given(numbers, numbers, st.lists(FLOATS, max_size=20))
def test_positions_follow_the_formula_for_any_bounds(lower, width, values):
    upper = lower + abs(width) + 1e-3
    values += [lower, upper, np.nextafter(lower, -np.inf), np.nextafter(upper, np.inf)]
    domain = Domain((lower,), (upper,))
    assert Rows([np.array(values)], domain)[:].T.tolist() == expected([np.array(values)], domain)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64, np.uint8, np.bool_])
def test_every_type_of_number_is_cast_first(dtype):
    rows = Rows(convert.values(np.array([[0], [1]], dtype)), Domain((0.0,), (2.0,)))
    assert rows[:].ravel().tolist() == [0, 2**31]


def test_floats_are_not_copied_and_others_are_read_column_by_column():
    X = np.zeros((5, 3), np.float32)
    assert convert.values(X) is X
    assert isinstance(convert.values(X.astype(np.float16)), list)
    assert isinstance(convert.values(np.ma.array(X)), list)
    assert isinstance(convert.values(X.astype(int)), list)


def test_missing_values_are_silent_in_reference_rows_and_named_in_points():
    X = np.full((200, 3), 0.5)
    X[150, 1] = np.nan
    assert Rows(X, DOMAIN)[150:151].tolist()[0][1] == 0
    with pytest.raises(MissingValueError):
        Rows(X, DOMAIN, complete=True)[100:200]
    assert len(Rows(X, DOMAIN, complete=True)[:150]) == 150
    assert str(convert.missing_value(X, DOMAIN)).startswith(
        "a point has a missing value or a value that is not a number in feature 1, row 150 (counted from 0): nan."
    )
    with pytest.raises(PointsError, match="row 150"):
        convert.points_array(X, DOMAIN)
