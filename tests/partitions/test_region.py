"""Regions of a grid: the cells within a number of steps, by the oracle's own list."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from cell_numbers import cell_numbers
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.partitions.grid import Grid
from dpoutlier.partitions.region import cells_within, check_steps, home_bins
from strategies import grids_with_points


@settings(max_examples=200)
@given(grids_with_points(most_cells=300), st.integers(0, 6))
def test_a_region_is_all_cells_within_the_given_steps(grid, steps):
    bins, points = grid
    for point in points:
        home = home_bins(Grid(tuple(bins)), np.array([point], np.uint32))[0]
        assert tuple(home.tolist()) == naive.home_of(point, bins)
        found = cell_numbers(cells_within(Grid(tuple(bins)), home, steps))
        expected = [naive.number_of(cell, bins) for cell in naive.visiting_order(point, bins, steps)]
        assert sorted(found) == sorted(expected)


def test_cells_past_64_bits_are_exact():
    grid = Grid((2**24,) * 5)
    home = np.array([2**24 - 1, 0, 5, 2**23, 7])
    found = {naive.number_of(home.tolist(), grid.bins)}
    for j in range(5):
        for step in (-1, 1):
            cell = home.tolist()
            cell[j] += step
            if 0 <= cell[j] < 2**24:
                found.add(naive.number_of(cell, grid.bins))
    assert set(cell_numbers(cells_within(grid, home, 1))) == found
    assert len(found) == 9


def test_regions_that_are_too_large_are_refused():
    check_steps(Grid((300, 300)), 10**9)
    with pytest.raises(InvalidParameterError, match=r"at most 100,000 cells, got 1000000000. Up to 1\.6e\+05 cells"):
        check_steps(Grid((400, 400)), 10**9)
    check_steps(Grid((10,) * 30), 3)
    with pytest.raises(InvalidParameterError, match="steps must be small enough"):
        check_steps(Grid((10,) * 30), 4)
