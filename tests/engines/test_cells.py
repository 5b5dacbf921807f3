"""Every engine puts every value into the same cell, to the bit, and what it counts is what our kernels count."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cell_numbers import cell_numbers
from dpoutlier.engines.expressions.cells import GridWords, cells_of, word
from dpoutlier.engines.expressions.positions import positions
from dpoutlier.engines.expressions.values import BLANKS
from dpoutlier.features.category import Category
from dpoutlier.features.domain import Domain
from dpoutlier.partitions.grid import Grid
from dpoutlier.partitions.marginals import Margins
from dpoutlier.partitions.trees import Trees
from dpoutlier.trusted.counts import count_rows
from dpoutlier.trusted.in_engine import counted
from lazy_frames import (
    EAGER,
    EMBEDDED,
    ENGINES,
    SPECIAL,
    around_edges,
    arrow,
    frame_of,
    numbered,
    positions_in,
    rows_of,
    values_of,
)

TEXTS = ["x", "y", "2", "é", "nan", "NaN", "", " ", "other", "X", "2.0", "true", None]
LEVELS = {
    "text": Category(["x", "y", "2", "é", "nan"]),
    "no other": Category(["x", "y"], other=False),
    "ordered": Category(["x", "é", "y"], ordered=True),
}


@pytest.mark.parametrize("engine", [*ENGINES, *EAGER])
@pytest.mark.parametrize("cell", [False, True])
def test_levels_that_are_text_are_the_same_everywhere(engine, cell, request):
    texts = [
        None if text is None else before + text + after
        for text in TEXTS
        for before in ("", BLANKS)
        for after in ("", " ", BLANKS)
    ]
    for category in LEVELS.values():
        table = numbered({"s": pa.array(texts, pa.string())})
        domain = _levels_domain(category, cell)
        assert np.array_equal(positions_in(frame_of(engine, table, domain, request), domain), rows_of(table, domain)[:])


def test_blanks_are_what_python_strips():
    assert set(BLANKS) == {chr(i) for i in range(0x110000) if chr(i).isspace()}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cell", [False, True])
def test_levels_of_numbers_and_truth_values_are_the_same_everywhere(engine, cell, request):
    values = [0.0, -0.0, 1.0, 2.0, 0.1, 1e300, np.inf, -np.inf, np.nan, None, 2.0**53, 3.0]
    table = numbered(
        {
            "f": pa.array(values),
            "i": pa.array([0, 1, 2, 3, None, 2**53 + 1] * 2),
            "t": pa.array([True, False, None] * 4),
        }
    )
    categories = [
        Category([0, 1, 0.1, 1e300]),
        Category([0, 1, 2**53], ordered=True),
        Category(["0", "1", "0.1", "inf", "x", "true"]),
        Category(["x", "y"], other=False),
        Category([True, False]),
        Category(["TRUE", "no"], other=False),
    ]
    for category in categories[cell::2] if engine == "spark" else categories:  # a query for each takes long there
        for name in ("f", "i", "t"):
            own, domain = table.select(["row", name]), _levels_domain(category, cell)
            found = positions_in(frame_of(engine, own, domain, request), domain)
            assert np.array_equal(found, rows_of(own, domain)[:]), (category, name)


def _levels_domain(category, cell):
    levels = len(category.names) + (cell and not category.ordered)
    return Domain((0.0,), (float(levels),), ("s",), categories=(category,), missing=(True,) if cell else None)


MIXED = Domain(
    (-0.3, 0.0, 0.0, 0.0, 2.0),
    (1.7, 1.0, 4.0, 3.0, 9.0),
    ("a", "b.c d", 'say "s"', "o", "e"),
    categories=(None, None, Category(["x", "y", "2"]), Category([1, 2, 3], ordered=True), None),
    missing=(False, True, False, True, False),
)
PARTITIONS = {
    "grid": Grid.of([7, 5, 1, 1, 2], MIXED.axes),
    "a word and more": Grid.of([2**24, 2**21 + 1, 1, 1, 2**24], MIXED.axes),
    "past 2**64": Grid.of([2**24, 2**24 - 1, 1, 1, 2**20], MIXED.axes),
    "margins": Margins.of([4, 2**16, 1, 1, 3], MIXED.axes),
    "forest": Trees.of(MIXED.axes, 7, 8, (4, 2), 11),
}


def mixed_table(n=400, seed=3):
    rng = np.random.default_rng(seed)
    near = np.concatenate([around_edges(-0.3, 1.7, 7), around_edges(0.0, 1.0, 5), SPECIAL])
    return numbered(
        {
            "a": pa.array(rng.choice(near, n), mask=rng.random(n) < 0.1),
            "b.c d": rng.choice(near, n),
            'say "s"': pa.array([*rng.choice(["x", " y ", "2", "z", ""], n - 1), None]),
            "o": pa.array(rng.choice([1.0, 2.0, 3.0, 4.0, np.nan], n)),
            "e": rng.normal(5, 3, n).astype(np.float32),
        }
    )


def test_the_partitions_of_these_tests_are_as_large_as_their_names_say():
    assert PARTITIONS["a word and more"].n_cells > 2**53
    assert PARTITIONS["past 2**64"].n_cells > 2**64
    assert len(GridWords(PARTITIONS["past 2**64"]).groups) == 2


@pytest.mark.parametrize("name", PARTITIONS)
@pytest.mark.parametrize("engine", [*ENGINES, *EAGER])
def test_each_row_lies_in_the_cells_of_the_partition(engine, name, request):
    """Row by row, not only in sum."""
    table, partition = mixed_table(), PARTITIONS[name]
    placed = frame_of(engine, table, MIXED, request).select("row", *positions(MIXED))
    wanted = partition.cells(rows_of(table, MIXED)[:])
    if isinstance(partition, Grid):
        words = GridWords(partition)
        found = arrow(placed.select("row", *words.expressions()).sort("row"))
        ids = words.ids([found.column(word(i)).to_numpy() for i in range(len(words.groups))])
        assert cell_numbers(ids) == cell_numbers(wanted[:, 0])
    else:
        cells = cells_of(partition)
        found = arrow(placed.select("row", *cells).sort("row"))
        each = np.column_stack([found.column(word(i)).to_numpy() for i in range(len(cells))])
        assert np.array_equal(each, wanted[:, :, 1].astype(np.int64))


@pytest.mark.parametrize("name", PARTITIONS)
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_counts_what_the_kernel_counts(engine, name, request):
    table, partition = mixed_table(), PARTITIONS[name]
    found = counted(*values_of(engine, table, MIXED, request), MIXED, partition)
    wanted = count_rows([rows_of(table, MIXED)], partition)
    assert np.array_equal(found.ids, wanted.ids)
    assert np.array_equal(found.counts, wanted.counts)
    assert found.counts.sum() == len(table) * partition.cells_per_row


@st.composite
def bounded_values(draw):
    """Bounds, a number of bins, and values most of which lie at edges or beside them."""
    number = st.floats(-1e300, 1e300)
    lower, width = draw(number), draw(st.floats(1e-200, 1e300))
    upper = lower + width
    if not lower < upper:
        lower, upper = 0.0, width
    bins = draw(st.integers(1, 2**24))
    values = []
    for _ in range(draw(st.integers(1, 12))):
        edge = lower + (upper - lower) * (draw(st.integers(0, bins)) / bins)
        steps = draw(st.integers(-3, 3))
        for _ in range(abs(steps)):
            edge = np.nextafter(edge, np.inf if steps > 0 else -np.inf)
        values.append(draw(st.one_of(st.just(edge), st.none(), st.floats(), st.sampled_from(SPECIAL))))
    return lower, upper, bins, values, draw(st.booleans())


def check_bounded(engines, case, request=None):
    lower, upper, bins, values, missing = case
    domain = Domain((lower,), (upper,), ("x",), missing=(True,) if missing else None)
    table = numbered({"x": pa.array(values, pa.float64())})
    partition = Grid.of(bins, domain.axes)
    at = rows_of(table, domain)[:]
    for engine in engines:
        frame = frame_of(engine, table, domain, request)
        assert np.array_equal(positions_in(frame, domain), at), engine
        words = GridWords(partition)
        found = arrow(frame.select("row", *positions(domain)).select("row", *words.expressions()).sort("row"))
        assert np.array_equal(words.ids([found.column(word(0)).to_numpy()]), partition.cells(at)[:, 0]), engine


@settings(max_examples=25)
@given(bounded_values())
def test_any_value_lies_in_the_same_bin_in_every_engine(case):
    check_bounded([*EMBEDDED, *EAGER], case)


def test_any_value_lies_in_the_same_bin_on_spark(spark, request):
    @settings(max_examples=5)
    @given(bounded_values())
    def check(case):
        check_bounded(["spark"], case, request)

    check()


@pytest.mark.parametrize("engine", ENGINES)
def test_numbers_as_large_as_a_word_may_be_are_exact(engine, request):
    """The last cells of a grid of more than 2**53 cells, and positions whose product with the bins is one short of an edge."""
    domain = Domain((0.0,) * 3, (1.0,) * 3, ("a", "b", "c"))
    grid = Grid.of([2**24, 2**24, 33], domain.axes)
    assert 2**53 < grid.n_cells <= 2**54
    bins = 2**22 - 1
    short = pow(bins, -1, 2**32) * (2**32 - 1) % 2**32  # short * bins is -1 modulo 2**32
    values = np.array([(short + k) / 2**32 for k in (-1, 0, 1)] + [1 - 2.0**-32, 1 - 2.0**-24])
    table = numbered(dict.fromkeys(("a", "b", "c"), values))
    for partition in (grid, Grid.of([bins, bins, 2], domain.axes)):
        found = counted(*values_of(engine, table, domain, request), domain, partition)
        wanted = count_rows([rows_of(table, domain)], partition)
        assert cell_numbers(found.ids) == cell_numbers(wanted.ids)


@pytest.mark.parametrize("engine", ENGINES)
def test_thousands_of_levels_are_no_trouble(engine, request):
    category = Category([f"level {i}" for i in range(3000)])
    table = numbered({"s": pa.array([f"level {i}" for i in range(0, 3100, 7)])})
    domain = _levels_domain(category, cell=False)
    assert np.array_equal(positions_in(frame_of(engine, table, domain, request), domain), rows_of(table, domain)[:])
