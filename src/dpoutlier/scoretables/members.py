"""The members of a partition as sums: a row's cell is the member's first cell plus one whole number for each of its features."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpoutlier.axes import MISSING, level_position
from dpoutlier.domain import Domain
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.partitions.margins import Margins
from dpoutlier.partitions.mixed_trees import MixedTrees
from dpoutlier.partitions.partition import Partition
from dpoutlier.partitions.trees import Trees

__all__ = ["Bins", "Cuts", "Levels", "Member", "members_of"]


class Cuts(NamedTuple):
    """A line that is cut: what is added is ``adds[number of cuts at or below the position]``."""

    feature: int
    cuts: tuple[int, ...]
    """Ascending."""
    adds: tuple[int, ...]


class Bins(NamedTuple):
    """A line in bins of equal width, with one more after them for the position of missing values if ``missing``."""

    feature: int
    bins: int
    missing: bool


class Levels(NamedTuple):
    """A feature with levels: ``adds[level]``. Missing values that have a cell are one level more, the last."""

    feature: int
    adds: tuple[int, ...]


class Member(NamedTuple):
    """One tree, or the histogram of one feature."""

    first: int
    """Id of its first cell."""
    size: int
    parts: tuple[Cuts | Bins | Levels, ...]


def members_of(partition: Partition, domain: Domain) -> list[Member]:
    """The members of a forest or of marginals, in the order of their cells."""
    match partition:
        case Trees():
            return [_of_tree(partition, t) for t in range(partition.n_trees)]
        case MixedTrees():
            return [_of_mixed_tree(partition, domain, t) for t in range(partition.n_trees)]
        case Margins():
            return [_of_margin(partition, domain, j) for j in range(partition.n_features)]
    raise InvalidParameterError(
        f"a {partition.name} has no score table: in which order it visits cells, and so the score, depends on where a point lies "
        "inside its cell, not on the cell alone. Fit a DPForest or DPMarginals to score in SQL."
    )


def _of_tree(trees: Trees, t: int) -> Member:
    """Leaf ids are paths from the root, and all nodes of a level cut the same feature: each feature sets bits of its own."""
    arrays = trees.arrays()
    depth, first = int(arrays.depth[t]), int(arrays.first[t])
    levels = arrays.feature[t, :depth].tolist()
    parts = []
    for feature in dict.fromkeys(levels):
        own = [level for level, cut in enumerate(levels) if cut == feature]
        bits = [1 << (depth - 1 - level) for level in own]
        paths = range(1 << len(own))
        adds = [sum(bit for k, bit in enumerate(bits) if path >> (len(own) - 1 - k) & 1) for path in paths]
        parts.append(Cuts(feature, tuple(_cuts(arrays.cut[first:], own, 1, 0)), tuple(adds)))
    return Member(first, 1 << depth, tuple(parts))


def _cuts(cut: NDArray[np.uint32], own: list[int], node: int, level: int) -> list[int]:
    """A feature's cuts below a node, ascending. Cuts of other features make no difference to them: there the path turns left."""
    if not own:
        return []
    node <<= own[0] - level
    below = [_cuts(cut, own[1:], 2 * node + right, own[0] + 1) for right in (0, 1)]
    return [*below[0], int(cut[node]), *below[1]]


def _of_mixed_tree(trees: MixedTrees, domain: Domain, t: int) -> Member:
    axes = trees.trees[t]
    size = stride = math.prod(axis.size for axis in axes)
    parts: list[Cuts | Bins | Levels] = []
    for axis in axes:
        stride //= axis.size
        if domain.category(axis.feature) is None:
            parts.append(Cuts(axis.feature, axis.cuts, tuple(stride * cell for cell in range(axis.size))))
        else:
            cells = axis.cells or [bisect_right(axis.cuts, at) for at in _level_positions(domain, axis.feature)]
            parts.append(Levels(axis.feature, tuple(stride * cell for cell in cells)))
    return Member(int(trees.first[t]), size, tuple(parts))


def _level_positions(domain: Domain, feature: int) -> list[int]:
    """Of ordered levels that have a cell for missing values after them."""
    levels = domain.axes[feature].levels
    return [*(level_position(level, levels) for level in range(levels)), MISSING]


def _of_margin(margins: Margins, domain: Domain, j: int) -> Member:
    first, size = int(margins.first[j]), margins.sizes[j]
    if domain.category(j) is None:
        return Member(first, size, (Bins(j, margins.bins[j], domain.has_missing_cell(j)),))
    return Member(first, size, (Levels(j, tuple(range(size))),))
