"""The last cell of a walk that visits all cells within its depth, found without visiting any.

It has the largest sum of costs and, among those that tie, the largest rank vector. Without a limit on depth each feature takes its
own last cell. With one, a table holds the largest cost that the features from j on can add within r steps. It is filled from the
last feature to the first; then each feature, from the first on, takes the largest rank that keeps the largest cost.
"""

from typing import Any

import numpy as np

from dpoutlier.kernels.jit import kernel, shared
from dpoutlier.kernels.ranks import GridArrays, Ranks, away_from_home, start_ranks


def new_cost_table(grid: GridArrays, max_depth: int) -> Any:
    """Room for ``last_cell``: a row for each feature and one more, a column for each number of steps that may be left."""
    limited = max_depth < int(np.sum(grid.cells - 1))
    return np.zeros((grid.bins.shape[0] + 1, max_depth + 1 if limited else 1), np.int64)


@shared
def first_and_end(feature: Any, steps: Any, grid: GridArrays, ranks: Ranks) -> Any:
    """The first cell of a feature's line within ``steps`` steps from home, and the one after the last."""
    if ranks.jumps[feature]:
        return (0, grid.cells[feature]) if steps > 0 else (ranks.home[feature], ranks.home[feature] + 1)
    home = ranks.home[feature]
    return max(home - steps, 0), min(home + steps + 1, grid.bins[feature])


@shared
def has_jump(feature: Any, steps: Any, grid: GridArrays, ranks: Ranks) -> Any:
    """Whether the cell for missing values is within ``steps`` steps, besides those of the line."""
    return steps > 0 and not ranks.jumps[feature] and grid.cells[feature] > grid.bins[feature]


@shared
def fill_row(feature: Any, cell: Any, grid: GridArrays, ranks: Ranks, table: Any) -> None:
    """Let a feature take this cell wherever that gives a larger cost."""
    cost, steps, _ = away_from_home(cell, feature, grid, ranks)
    row, rest = table[feature], table[feature + 1]
    for left in range(row.shape[0] - steps):
        row[left + steps] = max(row[left + steps], rest[left] + cost)


@shared
def later(cell: Any, than: Any, feature: Any, grid: GridArrays, ranks: Ranks) -> Any:
    """The one of two cells of a feature that has the larger rank: ranks go by (cost, steps, index)."""
    cost, steps, _ = away_from_home(cell, feature, grid, ranks)
    other_cost, other_steps, _ = away_from_home(than, feature, grid, ranks)
    if cost != other_cost:
        return cell if cost > other_cost else than
    if steps != other_steps:
        return cell if steps > other_steps else than
    return max(cell, than)


@shared
def choose(feature: Any, left: Any, grid: GridArrays, ranks: Ranks, table: Any) -> Any:
    """The cell of largest rank that keeps the largest cost with ``left`` steps left."""
    chosen: Any = np.int64(-1)
    first, end = first_and_end(feature, left, grid, ranks)
    for i in range(first, end + has_jump(feature, left, grid, ranks)):
        cell = i if i < end else grid.bins[feature]
        cost, steps, _ = away_from_home(cell, feature, grid, ranks)
        if cost + table[feature + 1, left - steps] == table[feature, left]:
            chosen = cell if chosen < 0 else later(cell, chosen, feature, grid, ranks)
    return chosen


@shared
def last_of_feature(feature: Any, grid: GridArrays, ranks: Ranks) -> Any:
    """The cell of largest rank: an end of the line, the cell for missing values, or the last level that is not home."""
    size = grid.cells[feature]
    inner = later(np.int64(0), max(size - 2, 0), feature, grid, ranks)
    return later(inner, size - 1, feature, grid, ranks)


@shared
def last_cell(grid: GridArrays, max_depth: Any, ranks: Ranks, table: Any, out: Any) -> None:
    """The last cell within ``max_depth`` of the point whose ranks were started, as one number for each feature."""
    features, deepest = grid.bins.shape[0], 0
    for j in range(features):
        out[j] = last_of_feature(j, grid, ranks)
        home = ranks.home[j]
        deepest += min(grid.cells[j] - 1, 1) if ranks.jumps[j] else max(home, grid.cells[j] - 1 - home)
    if max_depth >= deepest:
        return
    for j in range(features - 1, -1, -1):
        for left in range(max_depth + 1):
            table[j, left] = 0
        first, end = first_and_end(j, max_depth, grid, ranks)
        for cell in range(first, end):
            fill_row(j, cell, grid, ranks, table)
        if has_jump(j, max_depth, grid, ranks):
            fill_row(j, grid.bins[j], grid, ranks, table)
    left = max_depth
    for j in range(features):
        out[j] = choose(j, left, grid, ranks, table)
        left -= away_from_home(out[j], j, grid, ranks)[1]


@kernel
def find_last_cell(position: Any, grid: GridArrays, max_depth: Any, ranks: Ranks, table: Any, out: Any) -> None:
    """``last_cell`` of one point, to be called from outside."""
    start_ranks(position, grid, ranks)
    last_cell(grid, max_depth, ranks, table, out)
