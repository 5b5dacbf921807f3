"""The members of a partition as sums: a row's cell is the member's first cell plus one whole number for each of its features."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.axes import MISSING, level_position
from dpoutlier.features.domain import Domain
from dpoutlier.partitions.base import Partition
from dpoutlier.partitions.leaf_axes import LeafAxis
from dpoutlier.partitions.marginals import Margins
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
            return [_of_tree(partition, domain, t) for t in range(partition.n_trees)]
        case Margins():
            return [_of_margin(partition, domain, j) for j in range(partition.n_features)]
    raise InvalidParameterError(
        f"a {partition.name} has no score table. The order of the walk depends on where the point lies inside its cell, so the "
        "cell alone does not determine the score. Fit a DPForest or DPMarginals to score in SQL."
    )


def _of_tree(trees: Trees, domain: Domain, t: int) -> Member:
    axes, first = trees.leaf_axes[t], int(trees.first[t])
    size = 1 + sum(max(axis.add) for axis in axes)
    return Member(first, size, tuple(_part(axis, domain) for axis in axes))


def _part(axis: LeafAxis, domain: Domain) -> Cuts | Levels:
    if domain.category(axis.feature) is None:
        return Cuts(axis.feature, axis.cuts, axis.add)
    if axis.levels:
        return Levels(axis.feature, axis.add)
    return Levels(
        axis.feature, tuple(axis.add[bisect_right(axis.cuts, at)] for at in _level_positions(domain, axis.feature))
    )


def _level_positions(domain: Domain, feature: int) -> list[int]:
    """Positions of ordered levels that have a cell for missing values after them."""
    levels = domain.axes[feature].levels
    return [*(level_position(level, levels) for level in range(levels)), MISSING]


def _of_margin(margins: Margins, domain: Domain, j: int) -> Member:
    first, size = int(margins.first[j]), margins.sizes[j]
    if domain.category(j) is None:
        return Member(first, size, (Bins(j, margins.bins[j], domain.has_missing_cell(j)),))
    return Member(first, size, (Levels(j, tuple(range(size))),))
