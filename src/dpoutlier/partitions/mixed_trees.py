"""Random trees over features of any kind: numbers, ordered and unordered levels, cells for missing values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import bad
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.axes import MISSING, Axes, Axis, axes_from_json, axes_to_json, plain
from dpoutlier.partitions.base import Coarser
from dpoutlier.partitions.leaf_axes import HasLeaves, LeafAxis
from dpoutlier.partitions.public_stream import CUTS, ORDER, deal, line_cuts, public_key, public_words, share_of
from dpoutlier.partitions.trees import LEVELS_PER_FEATURE, MOST_LEAVES, Trees, check_trees, tree_sizes

__all__ = ["MixedTrees", "TreeAxis", "trees_of"]

MOST_LEVELS = 2**25
SHUFFLE = 1024
"""What a word of the public stream is for: the order in which cuts see the levels of a tree's feature."""


class TreeAxis(NamedTuple):
    """One feature of a tree."""

    feature: int
    size: int
    """Cells."""
    cuts: tuple[int, ...]
    """On a line, ascending; one cell more than cuts."""
    cells: bytes
    """Where the feature has levels: the cell of each level, a byte each, since a file may name millions of them."""


@dataclass(frozen=True)
class MixedTrees(HasLeaves):
    """A forest of public trees where some features have levels or cells for missing values.

    Features are dealt to trees and levels of a tree to its features as in :class:`Trees`, but a feature of L levels is cut at most
    ``ceil(log2 L)`` times, and then skipped. A cut of ordered levels parts the lower from the higher; unordered levels are first
    put into a random order, anew in each tree. A cell for missing values is no cut: it comes on top. Leaf ids are the mixed-radix
    numbers of a tree's cells. All of it follows from the seed.
    """

    axes: Axes
    n_trees: int
    depth: int
    subspace: tuple[int, ...] = (4,)
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.axes or plain(self.axes) != self.axes:
            raise bad("axes", "of several kinds; trees over plain numbers are Trees", self.axes)
        check_trees(len(self.axes), self.n_trees, self.depth, self.subspace, self.seed)
        levels = self.n_trees * min(max(self.subspace), len(self.axes)) * max(axis.levels for axis in self.axes)
        if levels > MOST_LEVELS:
            raise InvalidParameterError(
                f"n_trees={self.n_trees} would part up to {levels:,} levels, and at most {MOST_LEVELS:,} are possible. Use fewer "
                "trees, or declare fewer levels."
            )
        if self.n_cells > MOST_LEAVES:
            raise InvalidParameterError(
                f"n_trees={self.n_trees} of depth={self.depth} have {self.n_cells:,} leaves, and at most {MOST_LEAVES:,} are "
                "possible. Use fewer trees or less depth."
            )

    @property
    def name(self) -> str:
        return "mixed-trees"

    @property
    def detail(self) -> str:
        return f"{self.n_trees} random trees of depth {self.depth} or less, grown from the public seed {self.seed}"

    @property
    def n_features(self) -> int:
        return len(self.axes)

    @property
    def n_cells(self) -> int:
        return sum(math.prod(shape) for shape in self.shapes)

    @cached_property
    def trees(self) -> tuple[tuple[TreeAxis, ...], ...]:
        """The axes of each tree that have more than one cell."""
        return _grown(self)

    @cached_property
    def leaf_axes(self) -> list[list[LeafAxis]]:
        """Each tree as a small uneven grid: what its features add to the number of a leaf."""
        return [
            [
                LeafAxis(own.feature, len(own.cells), own.cuts, tuple(c * stride for c in own.cells or range(own.size)))
                for own, stride in zip(tree, _strides(shape), strict=True)
            ]
            for tree, shape in zip(self.trees, self.shapes, strict=True)
        ]

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(axis.size for axis in tree) for tree in self.trees]

    @cached_property
    def first(self) -> NDArray[np.int64]:
        """Id of the first leaf of each tree."""
        return np.append(0, np.cumsum([math.prod(shape) for shape in self.shapes])[:-1]).astype(np.int64)

    def merges(self) -> Iterator[tuple[int, int]]:
        for shape in self.shapes:
            if len(shape) > 1:
                yield from ((size, len(shape)) for size in shape)

    def coarser(self, counts: NDArray[np.int64]) -> Iterator[Coarser]:
        for first, shape in zip(self.first.tolist(), self.shapes, strict=True):
            if len(shape) == 1:
                continue  # what is left without it is the number of all rows
            cells = slice(first, first + math.prod(shape))
            cube = counts[cells].reshape(shape)
            for at, size in enumerate(shape):
                merged = np.broadcast_to(cube.sum(axis=at, keepdims=True), shape).reshape(-1)
                yield Coarser(cells, merged, size, len(shape))

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            **axes_to_json(self.axes),
            "n_trees": self.n_trees,
            "depth": self.depth,
            "subspace": list(self.subspace),
            "seed": self.seed,
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> MixedTrees:
        numbers = (content["n_trees"], content["depth"], tuple(content["subspace"]), content["seed"])
        return cls(axes_from_json(content), *numbers)


def trees_of(axes: Sequence[Axis], n_trees: int, depth: int, subspace: Any, seed: int) -> Trees | MixedTrees:
    """Trees over these features, from what a user may pass as ``subspace``: a number or several."""
    trees = Trees.of(len(axes), n_trees, depth, subspace, seed)
    mixed = plain(axes)
    return MixedTrees(mixed, trees.n_trees, trees.depth, trees.subspace, trees.seed) if mixed else trees


def _strides(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[at + 1 :]) for at in range(len(shape))]


def most_cuts(axis: Axis) -> int:
    """How often a feature can be cut in two."""
    return min(LEVELS_PER_FEATURE, (axis.levels - 1).bit_length()) if axis.levels else LEVELS_PER_FEATURE


@lru_cache(maxsize=8)
def _grown(trees: MixedTrees) -> tuple[tuple[TreeAxis, ...], ...]:
    key = public_key(trees.seed)
    dealt = deal(key, tree_sizes(trees.subspace, trees.n_trees, trees.n_features), trees.n_features)
    grown = []
    for t, own in enumerate(dealt):
        axes = [trees.axes[j] for j in own.tolist()]
        cuts = _cuts_of_each(key, t, trees.depth, [most_cuts(axis) for axis in axes])
        made = [_axis(key, t, i, int(j), axes[i], cuts[i]) for i, j in enumerate(own)]
        grown.append(tuple(axis for axis in made if axis.size > 1))
    return tuple(grown)


def _cuts_of_each(key: NDArray[np.uint64], tree: int, depth: int, most: list[int]) -> list[int]:
    """How often each of a tree's features is cut: once in each round, in random order, while it can be and depth is left."""
    cuts = [0] * len(most)
    for turn in range(LEVELS_PER_FEATURE):
        for i in np.argsort(public_words(key, tree, ORDER + turn, len(most)), kind="stable").tolist():
            if cuts[i] < most[i] and sum(cuts) < depth:
                cuts[i] += 1
    return cuts


def _axis(key: NDArray[np.uint64], tree: int, i: int, feature: int, axis: Axis, cuts: int) -> TreeAxis:
    words = public_words(key, tree, CUTS + i, 2**LEVELS_PER_FEATURE).tolist()
    if not axis.levels:
        found = line_cuts(words, 1, 0, 2**32, cuts)
        found += [MISSING] * axis.missing
        return TreeAxis(feature, len(found) + 1, tuple(found), b"")
    if not cuts and not axis.missing:
        return TreeAxis(feature, 1, (), bytes(axis.levels))
    groups = _level_groups(words, 1, range(axis.levels), cuts)
    cells = np.repeat(np.arange(len(groups), dtype=np.uint8), [len(group) for group in groups])
    if axis.unordered:
        order = np.argsort(public_words(key, tree, SHUFFLE + i, axis.levels), kind="stable")
        cells[order] = cells.copy()
    if axis.missing:  # ordered levels lie on a line, whose last position is that of missing values
        edges = [-(-(group[0] << 32) // axis.levels) for group in groups[1:]]
        return TreeAxis(feature, len(groups) + 1, (*edges, MISSING), b"")
    return TreeAxis(feature, len(groups), (), cells.tobytes())


def _level_groups(words: list[int], k: int, levels: range, cuts: int) -> list[range]:
    """Levels cut so many times over, in two parts that are not empty; a single one is left alone."""
    if not cuts or len(levels) == 1:
        return [levels]
    at = min(max((2 * len(levels) * share_of(words[k]) + 2**32) >> 33, 1), len(levels) - 1)
    below = _level_groups(words, 2 * k, levels[:at], cuts - 1)
    return [*below, *_level_groups(words, 2 * k + 1, levels[at:], cuts - 1)]
