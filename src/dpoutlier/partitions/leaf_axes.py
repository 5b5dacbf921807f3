"""A tree as a small uneven grid: what each feature adds to the number of a row's leaf. Kernels, SQL and explanations read this."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpoutlier.kernels.leaves import LeafArrays
from dpoutlier.partitions.base import Box

__all__ = ["Digit", "LeafAxis", "Tree", "kernel_arrays"]


class LeafAxis(NamedTuple):
    """One feature of a tree: its cells, and what each of them adds to the number of a leaf."""

    feature: int
    cuts: tuple[int, ...]
    """Cuts of a line, ascending. There is one cell more than cuts."""
    cells: bytes
    """Where the feature has levels: the cell of each level, a byte each, since a file may name millions of them."""
    adds: tuple[int, ...]
    """What each cell adds."""

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.adds)

    @property
    def levels(self) -> int:
        """Number of levels; 0 for a line."""
        return len(self.cells)

    @property
    def add(self) -> tuple[int, ...]:
        """What each cell of a line, or each level, adds."""
        return tuple(self.adds[cell] for cell in self.cells) if self.cells else self.adds


class Digit(NamedTuple):
    """One digit of a leaf's number: the feature that sets it, and how many values it has."""

    feature: int
    size: int


class Tree(NamedTuple):
    """The features of a tree that have more than one cell, and the digits of its leaves' numbers, most significant first."""

    axes: tuple[LeafAxis, ...]
    digits: tuple[Digit, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Counts of the leaves in this shape have one axis for each digit."""
        return tuple(digit.size for digit in self.digits)

    @property
    def n_leaves(self) -> int:
        return math.prod(digit.size for digit in self.digits)

    def digits_of(self, feature: int) -> tuple[int, ...]:
        """Which digits a feature sets."""
        return tuple(at for at, digit in enumerate(self.digits) if digit.feature == feature)

    def box(self, first: int) -> Box:
        """Its leaves, numbered from ``first``."""
        axes = tuple(self.digits_of(axis.feature) for axis in self.axes)
        return Box(slice(first, first + self.n_leaves), self.shape, axes if len(axes) > 1 else ())


def kernel_arrays(trees: Sequence[Tree]) -> LeafArrays:
    """What kernels read."""
    axes = [axis for tree in trees for axis in tree.axes]
    adds = [axis.add for axis in axes]
    return LeafArrays(
        first=_starts([tree.n_leaves for tree in trees])[:-1],
        axes=_starts([len(tree.axes) for tree in trees]),
        feature=np.array([axis.feature for axis in axes], np.int64),
        levels=np.array([axis.levels for axis in axes], np.int64),
        cuts=_starts([len(axis.cuts) for axis in axes]),
        adds=_starts([len(add) for add in adds])[:-1],
        cut=np.array([cut for axis in axes for cut in axis.cuts], np.uint32),
        add=np.array([one for add in adds for one in add], np.uint32),
    )


def _starts(sizes: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Where each of several parts starts, and where the last one ends."""
    return np.append(0, np.cumsum(sizes)).astype(np.int64)
