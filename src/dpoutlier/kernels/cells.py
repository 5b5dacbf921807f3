"""Home cells on a grid: mixed-radix numbers of the bins ``(p * b) // 2**32``, the first feature most significant.

A missing value that has a cell of its own is one bin past the last.
"""

from typing import Any

import numpy as np

from dpoutlier.kernels.jit import kernel, shared
from dpoutlier.kernels.ranks import GridArrays
from dpoutlier.kernels.wide import multiply_add

HALF = np.uint64(32)


@shared
def find_home_cells(positions: Any, grid: GridArrays, high: Any, low: Any) -> None:
    """Ids of the home cells of each row of ``positions``. Feature by feature: each loop becomes vector code."""
    for i in range(low.shape[0]):
        high[i] = 0
        low[i] = 0
    for j in range(grid.bins.shape[0]):
        bins, cells, stride = np.uint64(grid.bins[j]), np.uint64(grid.cells[j]), grid.low[j]
        if grid.wide:
            for i in range(low.shape[0]):
                p = np.uint64(positions[i, j])
                own = ((p * bins) >> HALF) + np.uint64(p == grid.absent[j])
                high[i], low[i] = multiply_add(high[i], low[i], cells, own)
        elif cells > bins:
            for i in range(low.shape[0]):
                p = np.uint64(positions[i, j])
                low[i] += (((p * bins) >> HALF) + np.uint64(p == grid.absent[j])) * stride
        else:
            for i in range(low.shape[0]):
                low[i] += ((np.uint64(positions[i, j]) * bins) >> HALF) * stride


@kernel
def home_cells(positions: Any, grid: GridArrays, high: Any, low: Any) -> None:
    """``find_home_cells``, to be called from outside."""
    find_home_cells(positions, grid, high, low)
