"""Random trees that never look at the data: a row lies in one leaf of each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import at_least_one, bad, is_whole
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.axes import Axes
from dpoutlier.kernels.trees import TreeArrays, grow
from dpoutlier.partitions.base import Coarser
from dpoutlier.partitions.leaf_axes import HasLeaves, LeafAxis
from dpoutlier.partitions.public_stream import CUTS, ORDER, deal, line_cuts, public_key, public_words

__all__ = ["LEVELS_PER_FEATURE", "MOST_LEAVES", "Trees", "check_trees", "tree_sizes", "trees_by_rule"]

MOST_TREES, MOST_DEPTH, MOST_LEAVES = 4096, 16, 2**22
LEVELS_PER_FEATURE = 3
MOST_EPSILON = 16.0  # of the rule: past that there is hardly any noise, and more depth would only spread the rows


@dataclass(frozen=True)
class Trees(HasLeaves):
    """A forest of public trees.

    Tree t has ``s = subspace[t % len(subspace)]`` features, or all if there are fewer, and a depth of ``min(depth, 3 s)``. Features
    are dealt like cards, so that none comes up twice before all others came up once. The levels of a tree run through its
    features in a random order, then in another one. Where a feature is cut depends on its own earlier cuts alone, so a tree is a
    small grid with uneven bins: leaves can be added up over one of its features. All of it follows from the seed.

    >>> Trees(n_features=3, n_trees=2, depth=5, subspace=(1, 2)).depths
    (3, 5)
    """

    n_features: int
    n_trees: int
    depth: int
    subspace: tuple[int, ...] = (4,)
    seed: int = 0

    def __post_init__(self) -> None:
        check_trees(self.n_features, self.n_trees, self.depth, self.subspace, self.seed)
        if self.n_cells > MOST_LEAVES:
            raise InvalidParameterError(
                f"n_trees={self.n_trees} of depth={self.depth} have {self.n_cells:,} leaves, and at most {MOST_LEAVES:,} are "
                "possible. Use fewer trees or less depth."
            )

    @classmethod
    def of(cls, n_features: int, n_trees: int, depth: int, subspace: Any, seed: int) -> Trees:
        """Trees from what a user may pass as ``subspace``: a number or several."""
        several = isinstance(subspace, Sequence | np.ndarray) and np.ndim(subspace) == 1
        sizes = subspace if several else (subspace,)
        if isinstance(subspace, str) or not len(sizes):
            raise bad("subspace", "a number of features, or several that trees take in turn", subspace)
        checked = tuple(at_least_one(MOST_DEPTH, subspace=size) for size in sizes)
        at_least_one(n_trees=n_trees)
        at_least_one(depth=depth)
        return cls(n_features, int(n_trees), int(depth), checked, int(seed) if is_whole(seed) else seed)

    @property
    def name(self) -> str:
        return "trees"

    @property
    def detail(self) -> str:
        return f"{self.n_trees} random trees of depth {max(self.depths)}, grown from the public seed {self.seed}"

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of features of each tree."""
        return tree_sizes(self.subspace, self.n_trees, self.n_features)

    @property
    def depths(self) -> tuple[int, ...]:
        return tuple(min(self.depth, LEVELS_PER_FEATURE * size) for size in self.sizes)

    @property
    def n_cells(self) -> int:
        return sum(1 << depth for depth in self.depths)

    @property
    def axes(self) -> Axes:
        return ()

    def merges(self) -> Iterator[tuple[int, int]]:
        for depth, size in zip(self.depths, self.sizes, strict=True):
            own = min(size, depth)
            rounds, more = divmod(depth, own)
            if own > 1:
                yield from ((1 << (rounds + (i < more)), own) for i in range(own))

    def coarser(self, counts: NDArray[np.int64]) -> Iterator[Coarser]:
        arrays = self.arrays()
        for t, depth in enumerate(self.depths):
            first, levels = int(arrays.first[t]), arrays.feature[t, :depth]
            own = np.unique(levels)
            if len(own) == 1:
                continue  # what is left without it is the number of all rows
            cells = slice(first, first + (1 << depth))
            cube = counts[cells].reshape((2,) * depth)
            for j in own:
                axes = tuple(np.flatnonzero(levels == j).tolist())
                merged = np.broadcast_to(cube.sum(axis=axes, keepdims=True), cube.shape).reshape(-1)
                yield Coarser(cells, merged, 1 << len(axes), len(own))

    @cached_property
    def first(self) -> NDArray[np.int64]:
        """Id of the first leaf of each tree; its first cut stands there as well."""
        return np.append(0, np.cumsum([1 << depth for depth in self.depths])[:-1]).astype(np.int64)

    @cached_property
    def leaf_axes(self) -> list[list[LeafAxis]]:
        """Each tree as a small uneven grid: what its features add to the number of a leaf."""
        return _leaf_axes(self)

    def arrays(self) -> TreeArrays:
        """The trees node by node."""
        return _arrays(self)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "n_features": self.n_features,
            "n_trees": self.n_trees,
            "depth": self.depth,
            "subspace": list(self.subspace),
            "seed": self.seed,
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Trees:
        numbers = (content["n_features"], content["n_trees"], content["depth"])
        return cls(*numbers, tuple(content["subspace"]), content["seed"])


def check_trees(n_features: int, n_trees: int, depth: int, subspace: tuple[int, ...], seed: int) -> None:
    """Refuse numbers that make no trees."""
    at_least_one(n_features=n_features)
    at_least_one(MOST_TREES, n_trees=n_trees)
    at_least_one(MOST_DEPTH, depth=depth)
    if not 1 <= len(subspace) <= MOST_TREES:
        raise bad("subspace", "a number of features, or several that trees take in turn", subspace)
    for size in subspace:
        at_least_one(MOST_DEPTH, subspace=size)
    if not is_whole(seed) or not 0 <= seed < 2**64:
        raise bad("tree_seed", "a whole number from 0 to 2**64 - 1", seed, "It is public: it makes the trees.")


def tree_sizes(subspace: tuple[int, ...], n_trees: int, n_features: int) -> tuple[int, ...]:
    """Number of features of each tree."""
    return tuple(min(subspace[t % len(subspace)], n_features) for t in range(n_trees))


@lru_cache(maxsize=8)
def _arrays(trees: Trees) -> TreeArrays:
    key = public_key(trees.seed)
    depths = np.array(trees.depths, np.int64)
    first = trees.first
    feature = np.zeros((trees.n_trees, int(depths.max())), np.int64)
    cut = np.zeros(trees.n_cells, np.uint32)
    dealt = deal(key, trees.sizes, trees.n_features)
    for t, (depth, own) in enumerate(zip(trees.depths, dealt, strict=True)):
        places = _levels(key, t, depth, len(own))
        feature[t, :depth] = own[places]
        words = np.stack([public_words(key, t, CUTS + i, 2**LEVELS_PER_FEATURE) for i in range(len(own))])
        grow(places, words, cut[first[t] : first[t] + (1 << depth)])
    return TreeArrays(first, depths, feature, cut)


def _leaf_axes(trees: Trees) -> list[list[LeafAxis]]:
    """Of a tree of depth h a feature sets the bits h - 1 - level of the leaf's number, for each level that cuts it."""
    key, found = public_key(trees.seed), []
    for t, (depth, own) in enumerate(zip(trees.depths, deal(key, trees.sizes, trees.n_features), strict=True)):
        places, tree = _levels(key, t, depth, len(own)), []
        for i, feature in enumerate(own.tolist()):
            levels = np.flatnonzero(places == i).tolist()
            words = public_words(key, t, CUTS + i, 2**LEVELS_PER_FEATURE).tolist()
            bits = [1 << (depth - 1 - level) for level in reversed(levels)]
            add = tuple(sum(bit for b, bit in enumerate(bits) if cell >> b & 1) for cell in range(2 ** len(levels)))
            if levels:
                tree.append(LeafAxis(feature, 0, tuple(line_cuts(words, 1, 0, 2**32, len(levels))), add))
        found.append(tree)
    return found


def _levels(key: NDArray[np.uint64], tree: int, depth: int, size: int) -> NDArray[np.int64]:
    """Which of the tree's own features each level cuts: all of them, in a new random order for each round."""
    rounds = -(-depth // size)
    orders = [np.argsort(public_words(key, tree, ORDER + r, size), kind="stable") for r in range(rounds)]
    return np.concatenate(orders)[:depth]


def trees_by_rule(n_rows: float, epsilon_counts: float) -> tuple[int, int]:
    r"""(n_trees, depth) from public numbers alone: more and deeper trees the more rows and epsilon there are.

    With :math:`x = n \epsilon`, at least 4: :math:`T = \sqrt{x} / 2`, in 2..32, and :math:`H = 2 + 0.7 \log_2 x + g`, in 3..14,
    both rounded; g grows from 0 at 256 rows to 0.6 at 2,048. The constants were found on public tables: docs/detectors.md.

    >>> trees_by_rule(n_rows=1000, epsilon_counts=1.0)
    (16, 9)
    """
    x = max(n_rows * min(epsilon_counts, MOST_EPSILON), 4.0)
    more = min(max(0.2 * math.log2(n_rows / 256), 0.0), 0.6)
    n_trees = min(max(round(0.5 * math.sqrt(x)), 2), 32)
    return n_trees, min(max(round(2 + 0.7 * math.log2(x) + more), 3), 14)
