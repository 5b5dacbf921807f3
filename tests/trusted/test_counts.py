"""Counting rows: every way of counting gives what one row after the other gives."""

import threading
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import naive
from cell_numbers import cell_numbers
from dpoutlier.features.domain import Domain
from dpoutlier.kernels.count_grid import BLOCK
from dpoutlier.partitions.grid import Grid
from dpoutlier.partitions.marginals import Margins
from dpoutlier.partitions.trees import Trees
from dpoutlier.tables import convert
from dpoutlier.tables.rows import Rows
from dpoutlier.trusted import counts as counting
from dpoutlier.trusted.counts import count_rows
from layouts import LAYOUTS

SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324, 1e308, -1e308, 0.1, 1 / 3, 0.5, 2 / 3, 1.0])


def one_by_one(rows, grid):
    """Cell numbers and counts, row by row."""
    positions = rows[:].tolist()
    return dict(sorted(Counter(naive.number_of(naive.home_of(p, grid.bins), grid.bins) for p in positions).items()))


def found(counts):
    return dict(zip(cell_numbers(counts.ids), counts.counts.tolist()))


def some_rows(n, d, seed):
    """Uniform values, many of them at and beside edges, some special."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.1, 1.1, (n, d))
    edges = rng.integers(0, 13, (n, d)) / 12
    X = np.where(rng.random((n, d)) < 0.3, edges, X)
    X = np.where(rng.random((n, d)) < 0.2, np.nextafter(edges, rng.choice([-1.0, 2.0], (n, d))), X)
    return np.where(rng.random((n, d)) < 0.1, rng.choice(SPECIAL, (n, d)), X)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@settings(max_examples=40)
@given(st.integers(0, 60), st.lists(st.integers(1, 12), min_size=1, max_size=9), st.integers(0, 99), st.integers(1, 3))
@example(7, [2, 3, 4, 5], 0, 1)
def test_every_layout_is_counted_as_row_by_row(layout, n, bins, seed, threads):
    while np.prod(bins) > 2**22:
        bins = bins[:-1]
    grid = Grid(tuple(bins))
    with np.errstate(over="ignore"):
        X = layout(some_rows(n, len(bins), seed))
    rows = Rows(X if isinstance(X, list) else convert.values(X), Domain((0.0,) * len(bins), (1.0,) * len(bins)))
    assert found(count_rows([rows], grid, threads)) == one_by_one(rows, grid)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("bins", [(3,) * 8, (7,), (2, 5, 1, 4, 3), (2**21, 2), (2**22,), (3,) * 30, (10,) * 30])
def test_large_tables_in_threads(bins, dtype, order):
    """Dense, past 2**21 bins, sparse, and ids past 64 bits; blocks, chunks and a remainder of rows."""
    d = len(bins)
    with np.errstate(over="ignore"):
        X = np.asarray(some_rows(2 * BLOCK + 3, d, 0), dtype, order=order)
    X[5000:, -1] = 0.25  # some cells with many rows
    grid = Grid(bins)
    rows = Rows(X, Domain((0.0,) * d, (1.0,) * d))
    expected = one_by_one(rows, grid)
    for threads in (1, 2, 5):
        assert found(count_rows([rows], grid, threads)) == expected
    assert found(count_rows([rows[:]], grid)) == expected  # from positions


def test_a_sparse_table_grows_and_chunks_add_up(monkeypatch):
    monkeypatch.setattr(counting, "CHUNK", 700)
    X = np.random.default_rng(0).uniform(size=(20_000, 12))
    grid, rows = Grid((9,) * 12), Rows(X, Domain((0.0,) * 12, (1.0,) * 12))
    expected = one_by_one(rows, grid)
    assert len(expected) > 4 * 1024
    for threads in (1, 3):
        counts = count_rows([rows], grid, threads)
        assert found(counts) == expected
        assert cell_numbers(counts.ids) == sorted(expected)


def test_threads_that_start_together_get_tallies_of_their_own():
    """A tally shared by two threads, or added up twice, would lose rows or count them twice: the sensitivity would be two."""
    rng = np.random.default_rng(0)

    def slowly(frame, event, argument):
        """Trace: a pause before each line of what a thread starts with, so that threads meet there."""
        if frame.f_code.co_name == "start":
            time.sleep(rng.uniform(0, 0.001))
            return slowly
        return None

    grid, rows = Grid((3, 3)), Rows(some_rows(5000, 2, 0), Domain((0.0,) * 2, (1.0,) * 2))
    expected = {cell: 2 * count for cell, count in one_by_one(rows, grid).items()}
    threading.settrace(slowly)
    try:
        for _ in range(60):
            assert found(count_rows([rows, rows], grid, 4)) == expected
    finally:
        threading.settrace(None)


def test_no_rows_have_no_cells():
    for bins in ((3, 3), (10,) * 30):
        domain = Domain((0.0,) * len(bins), (1.0,) * len(bins))
        counts = count_rows([Rows(np.empty((0, len(bins))), domain)], Grid(bins), 2)
        assert counts.ids.shape == (0, 2)
        assert counts.counts.shape == (0,)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("partition", [Trees(5, 7, 6, (2, 4), 3), Margins((10, 3, 1, 7, 2))], ids=lambda p: p.name)
@pytest.mark.parametrize("threads", [1, 3])
def test_forests_and_marginals_count_each_row_in_each_member(partition, order, threads, monkeypatch):
    """Over several blocks and chunks, from floats and from positions, against the cells of one row after the other."""
    monkeypatch.setattr(counting, "CHUNK", 900)
    monkeypatch.setattr(counting, "BLOCK_VALUES", 5 * 64)
    with np.errstate(over="ignore"):
        X = np.asarray(some_rows(2503, 5, 1), order=order)
    rows = Rows(X, Domain((0.0,) * 5, (1.0,) * 5))
    expected = Counter(cell_numbers(partition.cells(rows[:])))
    assert found(count_rows([rows], partition, threads)) == dict(sorted(expected.items()))
    assert found(count_rows([rows[:]], partition, threads)) == dict(sorted(expected.items()))
    assert sum(expected.values()) == 2503 * partition.cells_per_row
