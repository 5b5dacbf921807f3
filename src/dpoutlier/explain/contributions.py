r"""Which features make a point outlying: post-processing of released counts, free of charge.

Going down a tree, the noisy count of the node around the point falls from all rows to those of its leaf. What a level takes
away, :math:`g(q^*(\text{parent})) - g(q^*(\text{child}))` with g the scoring rule's logarithm, is put down to the level's feature.
Summed over levels and averaged over trees, the parts of all features add up to the score, up to a constant; likewise for a tree
without one of its features, where the score has that too. A typical row, one drawn from the released counts themselves, has
such parts too; what a point has beyond that is its contribution.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpoutlier.counts.base import NoisyCounts, all_counts
from dpoutlier.partitions.base import Partition
from dpoutlier.partitions.members import Member
from dpoutlier.scoring.log_counts import BEND, UNIT, LogCounts
from dpoutlier.tables.rows import Positions


@dataclass(frozen=True)
class Contributions:
    """Per point and feature."""

    parts: NDArray[np.float64]
    """They add up to the point's score less the typical one."""
    empty: NDArray[np.float64]
    """Share of the feature's cells around the point that are empty, that is, whose noisy count does not pass the floor; NaN for
    a feature that no cell looks at."""
    typical: float
    """The score of a typical row: the mean over the released counts."""


@dataclass(frozen=True)
class _Levels:
    """One member of a partition, level by level, as it is or without one of its features."""

    weight: float
    """Weight of the member's logarithm in the score."""
    features: NDArray[np.int64]
    """The feature of each level."""
    logs: list[NDArray[np.float64]]
    """For the root and each level: the scoring rule's logarithm of each node's noisy count."""
    nodes: list[NDArray[np.int64]]
    """For the root and each level: the node that each point lies in."""
    shares: NDArray[np.float64]
    """Share of the released rows in each node of the last level."""

    def falls(self, level: int) -> NDArray[np.float64]:
        """What a level takes away, for each point."""
        return self.logs[level][self.nodes[level]] - self.logs[level + 1][self.nodes[level + 1]]

    def mean_fall(self, level: int) -> float:
        """The same on average over the released rows."""
        above, here = (np.repeat(self.logs[at], len(self.shares) // len(self.logs[at])) for at in (level, level + 1))
        return float(self.shares @ (above - here))


def contributions(positions: Positions, partition: Partition, counts: NoisyCounts, scorer: LogCounts) -> Contributions:
    """Contributions of each feature to the score of each point."""
    rows, floor = all_counts(counts, partition.n_cells).astype(np.float64), scorer.floor / UNIT
    cells = partition.cells(positions[:])[:, :, 1].astype(np.int64)
    parts = np.zeros((len(positions), partition.n_features))
    empty, used = np.zeros_like(parts), np.zeros(partition.n_features)
    typical = 0.0
    for t, member in enumerate(partition.members):
        for levels in _in_levels(member, rows, cells[:, t], scorer):
            for level, j in enumerate(levels.features):
                parts[:, j] += levels.weight * (levels.falls(level) - levels.mean_fall(level))
            typical -= levels.weight * float(levels.shares @ levels.logs[-1])
        own = member.features
        used[own] += 1
        empty[:, own] += (rows[cells[:, t]] <= floor)[:, None]
    with np.errstate(invalid="ignore"):
        shares = empty / used
    n = partition.cells_per_row
    return Contributions(parts / n, shares, typical / n)


def _in_levels(
    member: Member, rows: NDArray[np.float64], cells: NDArray[np.int64], scorer: LogCounts
) -> Iterator[_Levels]:
    own, shape = member.features, member.shape
    features = np.array([digit.feature for digit in member.digits], np.int64)
    cube = rows[member.cells].reshape(shape)
    places = np.unravel_index(cells - member.first, shape) if shape else ()
    for left_out in (None, *(own if scorer.soft and len(own) > 1 else ())):
        kept = np.flatnonzero(features != left_out) if left_out is not None else np.arange(len(features))
        merged = cube if left_out is None else cube.sum(axis=member.digits_of(left_out))
        nodes = [cells * 0]
        for level in kept.tolist():
            nodes.append(shape[level] * nodes[-1] + places[level])
        weight = 1.0 if left_out is None else 1 / (2 * len(own))
        yield _levels(merged, features[kept], nodes, weight, cube.size // merged.size, scorer)


def _levels(
    counts: NDArray[np.float64],
    features: NDArray[np.int64],
    nodes: list[NDArray[np.int64]],
    weight: float,
    merged: int,
    scorer: LogCounts,
) -> _Levels:
    last = counts.reshape(-1)
    sizes = [1, *np.cumprod(counts.shape, dtype=np.int64).tolist()]
    positive = np.maximum(last, 0)
    even = np.full(len(last), 1 / len(last))
    floor = scorer.floor_of(merged) / UNIT
    return _Levels(
        weight=weight,
        features=features,
        logs=[_logarithm(last.reshape(size, -1).sum(axis=1), floor, soft=scorer.soft) for size in sizes],
        nodes=nodes,
        shares=positive / positive.sum() if positive.any() else even,
    )


def _logarithm(rows: NDArray[np.float64], floor: float, *, soft: bool) -> NDArray[np.float64]:
    """As ``log_terms`` has it, in floats."""
    floored = np.maximum(rows, floor)
    return np.asarray(np.log(floored) - (np.log(floored + BEND * floor) if soft else 0.0))
