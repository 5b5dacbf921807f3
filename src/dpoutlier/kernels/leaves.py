"""Leaves of many rows at once. A tree is a small uneven grid, so that a row's leaf is a sum of what each feature adds to its id.

On a line, a row's cell is the number of cuts at or below its position. A cell for missing values is one cut more, at the last
position of all. This is twice as fast as going down the tree, since all rows take the same steps. A table says what each cell or
level adds.
"""

from typing import Any, NamedTuple

import numpy as np

from dpoutlier.kernels.jit import inlined, kernel

BLOCK = 512  # rows that are looked at together
HALF = np.uint64(32)


class LeafArrays(NamedTuple):
    """All trees of a forest."""

    first: Any  # per tree: id of its first leaf
    axes: Any  # per tree, and the end: index of its first axis
    feature: Any  # per axis
    levels: Any  # per axis: 0 for a line
    cuts: Any  # per axis, and the end: index of its first cut
    adds: Any  # per axis: index of what its first cell, or level, adds
    cut: Any  # ascending within an axis; a position below it lies before it
    add: Any  # to the number of the leaf


@inlined
def find_leaves(positions: Any, start: Any, n: Any, trees: LeafArrays, t: Any, cell: Any, leaf: Any) -> None:
    """The leaves of rows start..start + n - 1 in tree t, counted from 0."""
    for i in range(n):
        leaf[i] = 0
    for a in range(trees.axes[t], trees.axes[t + 1]):
        column, add = positions[start : start + n, trees.feature[a]], trees.add[trees.adds[a] :]
        if trees.levels[a] > 0:
            levels = np.uint64(trees.levels[a])
            for i in range(n):
                leaf[i] += add[(np.uint64(column[i]) * levels) >> HALF]
        else:
            for i in range(n):
                cell[i] = 0
            for at in range(trees.cuts[a], trees.cuts[a + 1]):
                cut = trees.cut[at]
                for i in range(n):
                    cell[i] += np.uint32(column[i] >= cut)
            for i in range(n):
                leaf[i] += add[cell[i]]


@kernel
def tally_leaves(positions: Any, trees: LeafArrays, cell: Any, leaf: Any, counters: Any) -> None:
    """Add one to the counter of each leaf of each row. ``cell`` and ``leaf`` are buffers of BLOCK entries."""
    for start in range(0, positions.shape[0], BLOCK):
        n = min(BLOCK, positions.shape[0] - start)
        for t in range(trees.first.shape[0]):
            find_leaves(positions, start, n, trees, t, cell, leaf)
            own = counters[trees.first[t] :]
            for i in range(n):
                own[leaf[i]] += 1


@kernel
def add_leaf_terms(positions: Any, trees: LeafArrays, terms: Any, cell: Any, leaf: Any, out: Any) -> None:
    """Add the terms of each row's leaves to ``out``."""
    for start in range(0, positions.shape[0], BLOCK):
        n = min(BLOCK, positions.shape[0] - start)
        for t in range(trees.first.shape[0]):
            find_leaves(positions, start, n, trees, t, cell, leaf)
            own = terms[trees.first[t] :]
            for i in range(n):
                out[start + i] += own[leaf[i]]


@kernel
def leaf_ids(positions: Any, trees: LeafArrays, cell: Any, leaf: Any, out: Any) -> None:
    """The leaf of each row in each tree, numbered over all trees, into ``out`` of shape (n, trees)."""
    for start in range(0, positions.shape[0], BLOCK):
        n = min(BLOCK, positions.shape[0] - start)
        for t in range(trees.first.shape[0]):
            find_leaves(positions, start, n, trees, t, cell, leaf)
            for i in range(n):
                out[start + i, t] = trees.first[t] + np.int64(leaf[i])
