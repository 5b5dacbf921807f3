"""Every form in which a value becomes a position is the definition of ``features.lattice``, to the bit."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import naive
from dpoutlier.features.domain import Domain
from dpoutlier.features.lattice import LAST, POSITIONS
from dpoutlier.kernels.count_grid import MAX_BINS
from dpoutlier.partitions.grid import Grid
from dpoutlier.sql.positions import place, places, values
from dpoutlier.tables.rows import Rows
from dpoutlier.trusted.counts import count_rows
from lazy_frames import EAGER, ENGINES, SPECIAL, around_edges, frame_of, numbered, positions_in

BOUNDS = [(-0.3, 1.7), (0.0, 1.0), (-1e308 / 2, 1e308 / 3), (1e-300, 3e-290), (-5.0, -4.999999999999), (0.1, 1e6)]
NAMES = tuple(f"x{j}" for j in range(len(BOUNDS)))


def domain_of(missing):
    return Domain(*map(tuple, zip(*BOUNDS)), NAMES, missing=(True,) * len(NAMES) if missing else None)


def columns():
    """For each feature values at the edges of bins and beside them, inside the bounds, of any bits, special ones, and NaN."""
    rng = np.random.default_rng(8)
    found = []
    for lower, upper in BOUNDS:
        near = [around_edges(lower, upper, bins) for bins in (2, 3, 5, 7, 10)]
        inside = lower + (upper - lower) * rng.random(100)
        of_any_bits = rng.integers(0, 2**64, 200, np.uint64).view(np.float64)
        subnormal = rng.integers(0, 2**52, 20, np.uint64).view(np.float64)
        found.append(np.concatenate([*near, inside, of_any_bits, subnormal, -subnormal, SPECIAL]))
    return found


def defined(domain):
    return np.column_stack([[*map(line.position, column.tolist())] for line, column in zip(domain.lines, columns())])


def by_book(domain, request):
    """As the tests' own reading of the paper has it."""
    each = zip(columns(), BOUNDS)
    last, absent = (LAST - 1, LAST) if domain.missing else (LAST, 0)
    return np.column_stack(
        [[absent if x != x else min(naive.position(x, *bounds), last) for x in own] for own, bounds in each]
    )


def by_kernel(domain, request):
    return Rows(columns(), domain)[:]


def by_kernel_of_an_array(domain, request):
    return Rows(np.column_stack(columns()), domain)[:]


def by_sql(domain, request):
    """A missing value without a cell has no position there; its point has no score."""
    table = numbered(dict(zip(NAMES, columns())))
    query = f"SELECT row, {', '.join(values(domain))} FROM points"
    made = duckdb.connect().from_arrow(table).query("points", query).project(f"row, {', '.join(places(domain))}")
    found = made.order("row").to_arrow_table()
    absent = np.column_stack([found[place(j)].is_null().to_numpy() for j in range(len(NAMES))])
    assert np.array_equal(absent, np.isnan(np.column_stack(columns())) & (domain.missing is None))
    return np.column_stack([found[place(j)].fill_null(0).to_numpy() for j in range(len(NAMES))])


def by_engine(engine):
    def found(domain, request):
        return positions_in(frame_of(engine, numbered(dict(zip(NAMES, columns()))), domain, request), domain)

    return found


FORMS = {
    "book": by_book,
    "kernel": by_kernel,
    "kernel of an array": by_kernel_of_an_array,
    "sql": by_sql,
    **{engine: by_engine(engine) for engine in [*ENGINES, *EAGER]},
}


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_each_form_finds_the_defined_position(form, missing, request):
    domain = domain_of(missing)
    assert np.array_equal(FORMS[form](domain, request), defined(domain))


LAYOUTS = {
    "rows": np.column_stack,
    "columns": lambda own: np.asfortranarray(np.column_stack(own)),
    "list of columns": list,
}


@pytest.mark.parametrize("bins", [1, 2, 3, 10, 1000, MAX_BINS - 1, MAX_BINS])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_kernel_that_counts_floats_finds_the_bin_of_the_defined_position(layout, bins):
    domain = domain_of(missing=False)
    rows, at = Rows(LAYOUTS[layout](columns()), domain), defined(domain)
    for j in range(len(NAMES)):
        grid = Grid(tuple(bins if i == j else 1 for i in range(len(NAMES))))
        found = count_rows([rows], grid)
        cells, counts = np.unique(at[:, j].astype(object) * bins // POSITIONS, return_counts=True)
        assert found.ids[:, 1].tolist() == cells.tolist()
        assert found.counts.tolist() == counts.tolist()


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("engine", [*ENGINES, *EAGER])
def test_null_has_the_position_of_a_missing_value(engine, missing, request):
    domain = domain_of(missing)
    table = numbered({name: pa.array([None, 0.5]) for name in NAMES})
    found = positions_in(frame_of(engine, table, domain, request), domain)
    assert found[0].tolist() == [line.missing for line in domain.lines]
