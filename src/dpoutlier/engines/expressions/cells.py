"""In which cells a row is counted, as expressions of its positions. The same cells as ``Partition.cells``, in any engine."""

from collections.abc import Sequence

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from dpoutlier.engines.expressions.positions import floor, position, total
from dpoutlier.features.axes import MISSING, each_axis
from dpoutlier.features.lattice import first_position
from dpoutlier.partitions.base import CellIds, Partition, ids_below_64_bits
from dpoutlier.partitions.grid import Grid
from dpoutlier.partitions.members import CutAxis, EvenAxis, Member, strides_of

EXACT = 2**53
"""Whole numbers up to this are what they are in float64."""
HALF = 2.0**16
"""Half of the 32 bits of a position."""


def word(i: int) -> str:
    """The column that has a part of a cell's number."""
    return f"w{i}"


def bin_of(p: nw.Expr, bins: int, *, missing: bool = False) -> nw.Expr:
    """``(p * bins) // 2**32``, and ``bins`` for the position of missing values where these have a cell."""
    if bins * 2**32 <= EXACT:
        found = floor(p * (bins / 2**32))
    else:  # in two halves, since the product has too many digits
        high = floor(p / HALF)
        found = floor((high * float(bins) + floor((p - high * HALF) * (bins / HALF))) / HALF)
    return nw.when(p == float(MISSING)).then(nw.lit(float(bins))).otherwise(found) if missing else found


class GridWords:
    """A grid's cells, numbered by words of at most 53 bits: engines have no larger ones that they agree on."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.groups: list[list[int]] = [[]]
        size = 1
        for j, own in enumerate(grid.sizes):
            if size * own > EXACT:
                self.groups.append([])
                size = 1
            self.groups[-1].append(j)
            size *= own

    def expressions(self) -> list[nw.Expr]:
        """A word for each group of features, the first of them most significant."""
        return [self._word(group).cast(nw.Int64).alias(word(i)) for i, group in enumerate(self.groups)]

    def _word(self, group: list[int]) -> nw.Expr:
        axes, terms = each_axis(self.grid.axes, self.grid.n_features), []
        for j, stride in zip(group, self._strides(group), strict=True):
            terms.append(bin_of(nw.col(position(j)), self.grid.bins[j], missing=axes[j].missing) * float(stride))
        return total(terms)

    def _strides(self, group: list[int]) -> list[int]:
        return strides_of([self.grid.sizes[j] for j in group])

    def ids(self, words: Sequence[NDArray[np.int64]]) -> CellIds:
        """Ids of cells from their words."""
        if len(words) == 1:
            return ids_below_64_bits(words[0])
        axes = each_axis(self.grid.axes, self.grid.n_features)
        at = np.empty((len(words[0]), self.grid.n_features), np.uint32)
        for own, group in zip(words, self.groups, strict=True):
            for j, stride in zip(group, self._strides(group), strict=True):
                cell, bins = own // stride % self.grid.sizes[j], self.grid.bins[j]
                at[:, j] = np.where(axes[j].missing & (cell == bins), MISSING, first_position(cell, bins))
        return self.grid.cells(at)[:, 0]


def cells_of(partition: Partition) -> list[nw.Expr]:
    """The id of a row's cell in each member of a partition."""
    return [_cell(member).cast(nw.Int64).alias(word(t)) for t, member in enumerate(partition.members)]


def _cell(member: Member) -> nw.Expr:
    """A number alone would be one row and not a column, hence the zero times a position."""
    return total([nw.col(position(0)) * 0.0 + float(member.first), *map(_added, member.axes)])


def _added(axis: CutAxis | EvenAxis) -> nw.Expr:
    """What a feature adds to the number of a cell."""
    p = nw.col(position(axis.feature))
    if isinstance(axis, EvenAxis):
        return bin_of(p, axis.bins, missing=axis.missing)
    if axis.levels:
        level = bin_of(p, axis.levels)
        levels = [float(i) for i in range(axis.levels)]
        return level.replace_strict(levels, [float(add) for add in axis.add], default=0.0, return_dtype=nw.Float64)
    steps = [b - a for a, b in zip(axis.add[:-1], axis.add[1:], strict=True)]
    passed = [(p >= float(cut)).cast(nw.Float64) * float(step) for cut, step in zip(axis.cuts, steps, strict=True)]
    return total([*passed, p * 0.0 + float(axis.add[0])])
