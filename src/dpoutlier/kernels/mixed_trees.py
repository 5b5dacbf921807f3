"""Trees over lines and levels: each is a small uneven grid, and a row's leaf is the number of its cell, the first axis first.

On a line a row's cell is the number of cuts at or below its position, where a cell for missing values is one cut more, at the last
position of all. Where a feature has levels, a table says which cell a level lies in.
"""

from typing import Any, NamedTuple

import numpy as np

from dpoutlier.kernels.jit import inlined, kernel

__all__ = ["BLOCK", "MixedArrays", "add_mixed_terms", "mixed_leaf_ids", "tally_mixed_leaves"]

BLOCK = 512  # rows that are looked at together
HALF = np.uint64(32)


class MixedArrays(NamedTuple):
    """All trees of a forest."""

    first: Any  # per tree: id of its first leaf
    axes: Any  # per tree, and the end: index of its first axis
    feature: Any  # per axis
    size: Any  # per axis: its cells
    levels: Any  # per axis: 0 for a line
    start: Any  # per axis: where its cuts, or the cells of its levels, begin
    cut: Any  # of lines, ascending; a position below it lies before it
    cell: Any  # of levels


@inlined
def find_leaves(positions: Any, start: Any, n: Any, trees: MixedArrays, t: Any, cell: Any, leaf: Any) -> None:
    """The leaves of rows start..start + n - 1 in tree t, counted from 0."""
    for i in range(n):
        leaf[i] = 0
    for a in range(trees.axes[t], trees.axes[t + 1]):
        column = positions[start : start + n, trees.feature[a]]
        size, begin = np.uint32(trees.size[a]), trees.start[a]
        if trees.levels[a] > 0:
            levels, own = np.uint64(trees.levels[a]), trees.cell[begin:]
            for i in range(n):
                leaf[i] = leaf[i] * size + own[(np.uint64(column[i]) * levels) >> HALF]
        else:
            for i in range(n):
                cell[i] = 0
            for at in range(begin, begin + trees.size[a] - 1):
                cut = trees.cut[at]
                for i in range(n):
                    cell[i] += np.uint32(column[i] >= cut)
            for i in range(n):
                leaf[i] = leaf[i] * size + cell[i]


@kernel
def tally_mixed_leaves(positions: Any, trees: MixedArrays, cell: Any, leaf: Any, counters: Any) -> None:
    """Add one to the counter of each leaf of each row. ``cell`` and ``leaf`` are buffers of BLOCK entries."""
    for start in range(0, positions.shape[0], BLOCK):
        n = min(BLOCK, positions.shape[0] - start)
        for t in range(trees.first.shape[0]):
            find_leaves(positions, start, n, trees, t, cell, leaf)
            own = counters[trees.first[t] :]
            for i in range(n):
                own[leaf[i]] += 1


@kernel
def add_mixed_terms(positions: Any, trees: MixedArrays, terms: Any, cell: Any, leaf: Any, out: Any) -> None:
    """Add the terms of each row's leaves to ``out``."""
    for start in range(0, positions.shape[0], BLOCK):
        n = min(BLOCK, positions.shape[0] - start)
        for t in range(trees.first.shape[0]):
            find_leaves(positions, start, n, trees, t, cell, leaf)
            own = terms[trees.first[t] :]
            for i in range(n):
                out[start + i] += own[leaf[i]]


@kernel
def mixed_leaf_ids(positions: Any, trees: MixedArrays, cell: Any, leaf: Any, out: Any) -> None:
    """The leaf of each row in each tree, numbered over all trees, into ``out`` of shape (n, trees)."""
    for start in range(0, positions.shape[0], BLOCK):
        n = min(BLOCK, positions.shape[0] - start)
        for t in range(trees.first.shape[0]):
            find_leaves(positions, start, n, trees, t, cell, leaf)
            for i in range(n):
                out[start + i, t] = trees.first[t] + np.int64(leaf[i])
