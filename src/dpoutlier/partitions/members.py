"""A member of a partition: a small uneven grid over a few features, in which each row has one cell.

A forest has a member for each tree, marginals have one for each feature. Scores, explanations, engines and SQL read members, and
never the kind of the partition.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import accumulate
from operator import mul
from typing import NamedTuple

import numpy as np

from dpoutlier.features.lattice import POSITIONS
from dpoutlier.kernels.leaves import LeafArrays

MAX_MEMBER_CELLS = 2**22
"""Largest number of cells of all members together: scores hold a term for each cell."""


class CutAxis(NamedTuple):
    """One feature of a member: its cells, and what each of them adds to the number of a row's cell."""

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

    @property
    def edges(self) -> set[Fraction]:
        """Where cells of a line meet, between 0 and 1."""
        return {Fraction(cut, POSITIONS) for cut in self.cuts}


class EvenAxis(NamedTuple):
    """One feature of a member in bins of equal width: bin i adds i."""

    feature: int
    bins: int
    missing: bool
    """Whether missing values have a cell of their own after the bins."""

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.bins + self.missing

    @property
    def edges(self) -> set[Fraction]:
        """Where bins meet, between 0 and 1."""
        return {Fraction(i, self.bins) for i in range(1, self.bins)}


class Digit(NamedTuple):
    """One digit of a cell's number: the feature that sets it, and how many values it has."""

    feature: int
    size: int


class Member(NamedTuple):
    """The features that have more than one cell, and the digits of the cells' numbers, most significant first."""

    axes: tuple[CutAxis | EvenAxis, ...]
    digits: tuple[Digit, ...]
    first: int = 0
    """Id of its first cell."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Counts of the cells in this shape have one axis for each digit."""
        return tuple(digit.size for digit in self.digits)

    @property
    def n_cells(self) -> int:
        return math.prod(digit.size for digit in self.digits)

    @property
    def cells(self) -> slice:
        """Ids of its cells."""
        return slice(self.first, self.first + self.n_cells)

    @property
    def features(self) -> list[int]:
        """Its features, ascending."""
        return sorted(axis.feature for axis in self.axes)

    def digits_of(self, feature: int) -> tuple[int, ...]:
        """Which digits a feature sets."""
        return tuple(at for at, digit in enumerate(self.digits) if digit.feature == feature)

    @property
    def sums(self) -> tuple[tuple[int, ...], ...]:
        """For each feature, the axes of ``shape`` to sum over. Empty for one feature alone: its sum is the number of rows."""
        return tuple(self.digits_of(axis.feature) for axis in self.axes) if len(self.axes) > 1 else ()


def numbered(members: Iterable[Member]) -> tuple[Member, ...]:
    """Members whose cells follow one another."""
    made = list(members)
    starts = accumulate((member.n_cells for member in made), initial=0)
    return tuple(member._replace(first=first) for first, member in zip(starts, made, strict=False))


def kernel_arrays(members: Sequence[Member]) -> LeafArrays:
    """What kernels read of members whose features are cut."""
    axes = [axis for member in members for axis in member.axes if isinstance(axis, CutAxis)]
    adds = [axis.add for axis in axes]
    return LeafArrays(
        first=np.array([member.first for member in members], np.int64),
        axes=_starts([len(member.axes) for member in members]),
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


def strides_of(sizes: Sequence[int]) -> list[int]:
    """What one step of each digit adds to a number whose first digit is the most significant one.

    >>> strides_of([10, 10, 2])
    [20, 2, 1]
    """
    return list(accumulate(sizes[:0:-1], mul, initial=1))[::-1][: len(sizes)]
