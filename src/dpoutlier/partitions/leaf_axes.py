"""Trees as small uneven grids: what each feature adds to the number of a row's leaf, for kernels, SQL and explanations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpoutlier.kernels.leaves import BLOCK, LeafArrays

__all__ = ["LeafAxis", "leaf_arrays", "leaf_buffers"]


class LeafAxis(NamedTuple):
    """What one feature adds to the leaf of a row."""

    feature: int
    levels: int
    """0 for a line."""
    cuts: tuple[int, ...]
    add: tuple[int, ...]
    """For each cell of a line, or each level."""


def leaf_arrays(first: NDArray[np.int64], trees: Sequence[Sequence[LeafAxis]]) -> LeafArrays:
    """What kernels read of trees, given by the features of each."""
    axes = [axis for tree in trees for axis in tree]
    return LeafArrays(
        first=first,
        axes=np.append(0, np.cumsum([len(tree) for tree in trees])).astype(np.int64),
        feature=np.array([axis.feature for axis in axes], np.int64),
        levels=np.array([axis.levels for axis in axes], np.int64),
        cuts=np.append(0, np.cumsum([len(axis.cuts) for axis in axes])).astype(np.int64),
        adds=np.append(0, np.cumsum([len(axis.add) for axis in axes]))[:-1].astype(np.int64),
        cut=np.array([cut for axis in axes for cut in axis.cuts], np.uint32),
        add=np.array([add for axis in axes for add in axis.add], np.uint32),
    )


def leaf_buffers() -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    return np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.uint32)
