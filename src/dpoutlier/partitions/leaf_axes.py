"""Trees as small uneven grids: what each feature adds to the number of a row's leaf, for kernels, SQL and explanations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpoutlier.kernels.leaves import BLOCK, LeafArrays, add_leaf_terms, leaf_ids, tally_leaves
from dpoutlier.partitions.base import CellIds, ids_below_64_bits

__all__ = ["HasLeaves", "LeafAxis"]


class LeafAxis(NamedTuple):
    """What one feature adds to the leaf of a row."""

    feature: int
    levels: int
    """0 for a line."""
    cuts: tuple[int, ...]
    add: tuple[int, ...]
    """For each cell of a line, or each level."""


class HasLeaves:
    """What forests share, whatever their trees are: a row lies in one leaf of each."""

    n_trees: int

    @property
    def first(self) -> NDArray[np.int64]:
        """Id of the first leaf of each tree."""
        raise NotImplementedError

    @property
    def leaf_axes(self) -> Sequence[Sequence[LeafAxis]]:
        """Each tree as a small uneven grid: what its features add to the number of a leaf."""
        raise NotImplementedError

    @property
    def cells_per_row(self) -> int:
        return self.n_trees

    def cells(self, positions: NDArray[np.uint32]) -> CellIds:
        out = np.empty((len(positions), self.n_trees), np.int64)
        leaf_ids(np.asfortranarray(positions), _arrays(self), *_buffers(), out)
        return ids_below_64_bits(out)

    def tally(self, positions: NDArray[np.uint32], counters: NDArray[np.int64]) -> None:
        tally_leaves(np.asfortranarray(positions), _arrays(self), *_buffers(), counters)

    def add_terms(self, positions: NDArray[np.uint32], terms: NDArray[np.int64], out: NDArray[np.int64]) -> None:
        add_leaf_terms(np.asfortranarray(positions), _arrays(self), terms, *_buffers(), out)


@lru_cache(maxsize=16)
def _arrays(trees: HasLeaves) -> LeafArrays:
    """What kernels read."""
    axes = [axis for tree in trees.leaf_axes for axis in tree]
    return LeafArrays(
        first=trees.first,
        axes=np.append(0, np.cumsum([len(tree) for tree in trees.leaf_axes])).astype(np.int64),
        feature=np.array([axis.feature for axis in axes], np.int64),
        levels=np.array([axis.levels for axis in axes], np.int64),
        cuts=np.append(0, np.cumsum([len(axis.cuts) for axis in axes])).astype(np.int64),
        adds=np.append(0, np.cumsum([len(axis.add) for axis in axes]))[:-1].astype(np.int64),
        cut=np.array([cut for axis in axes for cut in axis.cuts], np.uint32),
        add=np.array([add for axis in axes for add in axis.add], np.uint32),
    )


def _buffers() -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    return np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.uint32)
