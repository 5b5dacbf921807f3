"""Random trees that never look at the data: a row lies in one leaf of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import is_whole, parameter_error, positive_int
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.axes import Axes, Axis, axes_from_json, axes_to_json, each_axis, plain
from dpoutlier.kernels.leaves import BLOCK, LeafArrays, add_leaf_terms, leaf_ids, tally_leaves
from dpoutlier.partitions.base import CellIds, ids_below_64_bits
from dpoutlier.partitions.grow import LEVELS_PER_FEATURE, grow
from dpoutlier.partitions.members import MAX_MEMBER_CELLS, Member, kernel_arrays

MAX_TREES, MAX_DEPTH, MAX_LEVELS = 4096, 16, 2**25
MAX_EPSILON = 16.0  # of the rule: past that there is hardly any noise, and more depth would only spread the rows


@dataclass(frozen=True)
class Trees:
    """A forest of public trees.

    Tree t has ``s = subspace[t % len(subspace)]`` features, or all if there are fewer, and a depth of ``min(depth, 3 s)`` at most.
    Features are dealt like cards, so that none comes up twice before all others came up once. The levels of a tree run through its
    features in a random order, then in another one. Where a feature is cut depends on its own earlier cuts alone, so a tree is a
    small grid with uneven cells: leaves can be added up over one of its features. All of it follows from the seed.

    A feature of L levels is cut at most ``ceil(log2 L)`` times, and then skipped. A cut of ordered levels parts the lower from the
    higher; unordered levels are first put into a random order, a new one in each tree. A cell for missing values needs no
    cut: it is added. If all features are plain lines, the number of a leaf has a binary digit for each level of its tree; else it
    has a digit for each feature. Files keep both forms: "trees" and "mixed-trees".

    >>> Trees(n_features=3, n_trees=2, depth=5, subspace=(1, 2)).depths
    (3, 5)
    """

    kind: ClassVar[str] = "trees"

    n_features: int
    n_trees: int
    depth: int
    subspace: tuple[int, ...] = (4,)
    seed: int = 0
    axes: Axes = ()

    def __post_init__(self) -> None:
        self._check_numbers()
        self._check_axes()
        if self.n_cells > MAX_MEMBER_CELLS:
            raise InvalidParameterError(
                f"n_trees={self.n_trees} of depth={self.depth} have {self.n_cells:,} leaves, and at most {MAX_MEMBER_CELLS:,} are "
                "possible. Use fewer trees or less depth."
            )

    def _check_numbers(self) -> None:
        positive_int(n_features=self.n_features)
        positive_int(MAX_TREES, n_trees=self.n_trees)
        positive_int(MAX_DEPTH, depth=self.depth)
        if not 1 <= len(self.subspace) <= MAX_TREES:
            raise parameter_error("subspace", "a number of features, or several that trees take in turn", self.subspace)
        for size in self.subspace:
            positive_int(MAX_DEPTH, subspace=size)
        if not is_whole(self.seed) or not 0 <= self.seed < 2**64:
            raise parameter_error(
                "tree_seed", "a whole number from 0 to 2**64 - 1", self.seed, "It is public: it makes the trees."
            )

    def _check_axes(self) -> None:
        if self.axes and (len(self.axes) != self.n_features or self.axes != plain(self.axes)):
            raise parameter_error("axes", "one for each feature, or none where all are plain", self.axes)
        levels = self.n_trees * max(self.sizes) * max((axis.levels for axis in self.axes), default=0)
        if levels > MAX_LEVELS:
            raise InvalidParameterError(
                f"n_trees={self.n_trees} would part up to {levels:,} levels, and at most {MAX_LEVELS:,} are possible. Use fewer "
                "trees, or declare fewer levels."
            )

    @classmethod
    def of(cls, axes: Sequence[Axis], n_trees: int, depth: int, subspace: Any, seed: int) -> Trees:
        """Trees over these features, from what a user may pass as ``subspace``: a number or several."""
        several = isinstance(subspace, Sequence | np.ndarray) and np.ndim(subspace) == 1
        sizes = subspace if several else (subspace,)
        if isinstance(subspace, str) or not len(sizes):
            raise parameter_error("subspace", "a number of features, or several that trees take in turn", subspace)
        checked = tuple(positive_int(MAX_DEPTH, subspace=size) for size in sizes)
        positive_int(n_trees=n_trees)
        positive_int(depth=depth)
        return cls(len(axes), int(n_trees), int(depth), checked, int(seed) if is_whole(seed) else seed, plain(axes))

    @property
    def name(self) -> str:
        return "mixed-trees" if self.axes else "trees"

    @property
    def detail(self) -> str:
        depth = f"{self.depth} or less" if self.axes else str(max(self.depths))
        return f"{self.n_trees} random trees of depth {depth}, grown from the public seed {self.seed}"

    @property
    def brief(self) -> str:
        depth = f"at most {self.depth}" if self.axes else str(max(self.depths))
        return f"{self.n_trees} trees, {depth} deep"

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of features of each tree."""
        return tuple(min(self.subspace[t % len(self.subspace)], self.n_features) for t in range(self.n_trees))

    @property
    def depths(self) -> tuple[int, ...]:
        """Levels of each tree; an upper limit if some features have levels."""
        return tuple(min(self.depth, LEVELS_PER_FEATURE * size) for size in self.sizes)

    @property
    def n_cells(self) -> int:
        if self.axes:
            return sum(tree.n_cells for tree in self.members)
        return sum(1 << depth for depth in self.depths)  # known before any tree is grown

    @property
    def cells_per_row(self) -> int:
        return self.n_trees

    @property
    def members(self) -> tuple[Member, ...]:
        """The trees themselves, each as a small uneven grid."""
        return _grown(self)

    def cells(self, positions: NDArray[np.uint32]) -> CellIds:
        out = np.empty((len(positions), self.n_trees), np.int64)
        leaf_ids(np.asfortranarray(positions), _arrays(self), *_buffers(), out)
        return ids_below_64_bits(out)

    def tally(self, positions: NDArray[np.uint32], counters: NDArray[np.int64]) -> None:
        tally_leaves(np.asfortranarray(positions), _arrays(self), *_buffers(), counters)

    def add_terms(self, positions: NDArray[np.uint32], terms: NDArray[np.int64], out: NDArray[np.int64]) -> None:
        add_leaf_terms(np.asfortranarray(positions), _arrays(self), terms, *_buffers(), out)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            **(axes_to_json(self.axes) or {"n_features": self.n_features}),
            "n_trees": self.n_trees,
            "depth": self.depth,
            "subspace": list(self.subspace),
            "seed": self.seed,
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Trees:
        axes = axes_from_json(content)
        numbers = (len(axes) if axes else content["n_features"], content["n_trees"], content["depth"])
        return cls(*numbers, tuple(content["subspace"]), content["seed"], axes)


_GROWN: WeakKeyDictionary[Trees, tuple[Member, ...]] = WeakKeyDictionary()
_ARRAYS: WeakKeyDictionary[Trees, LeafArrays] = WeakKeyDictionary()
"""Caches of what follows from a forest's parameters. They are not in the forest, since the content of a model must not show what a
fit used of it."""  # (P5)


def _grown(trees: Trees) -> tuple[Member, ...]:
    found = _GROWN.get(trees)
    if found is None:
        axes = each_axis(trees.axes, trees.n_features)
        found = _GROWN[trees] = grow(axes, trees.sizes, trees.depth, trees.seed, by_level=not trees.axes)
    return found


def _arrays(trees: Trees) -> LeafArrays:
    found = _ARRAYS.get(trees)
    if found is None:
        found = _ARRAYS[trees] = kernel_arrays(trees.members)
    return found


def _buffers() -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    return np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.uint32)


def trees_by_rule(n_rows: float, epsilon_counts: float) -> tuple[int, int]:
    r"""(n_trees, depth) from public numbers alone: more and deeper trees the more rows and epsilon there are.

    With :math:`x = n \epsilon`, at least 4: :math:`T = \sqrt{x} / 2`, in 2..32, and :math:`H = 2 + 0.7 \log_2 x + g`, in 3..14,
    both rounded; g grows from 0 at 256 rows to 0.6 at 2,048. The constants were found on public tables: docs/detectors.md.

    >>> trees_by_rule(n_rows=1000, epsilon_counts=1.0)
    (16, 9)
    """
    x = max(n_rows * min(epsilon_counts, MAX_EPSILON), 4.0)
    more = min(max(0.2 * math.log2(n_rows / 256), 0.0), 0.6)
    n_trees = min(max(round(0.5 * math.sqrt(x)), 2), 32)
    return n_trees, min(max(round(2 + 0.7 * math.log2(x) + more), 3), 14)
