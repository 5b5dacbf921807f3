r"""Which features make a point outlying: post-processing of released counts, free of charge.

Going down a tree, the noisy count of the node around the point falls from all rows to those of its leaf. What a level takes
away, :math:`g(q^*(\text{parent})) - g(q^*(\text{child}))` with g the scoring rule's logarithm, is put down to the level's feature.
Summed over levels and averaged over trees, the parts of all features add up to the score but for a constant. A typical row,
one drawn from the released counts themselves, has such parts too; what a point has beyond that is its contribution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpoutlier.holders.holder import NoisyCounts, all_counts
from dpoutlier.partitions.margins import Margins
from dpoutlier.partitions.partition import Partition
from dpoutlier.partitions.trees import Trees
from dpoutlier.rows import Positions
from dpoutlier.scoring.log_counts import UNIT, LogCounts

__all__ = ["Contributions", "contributions"]


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
    """One member of a partition, level by level: a tree, or a feature's histogram, which has one level."""

    features: NDArray[np.int64]
    """Of each level."""
    logs: list[NDArray[np.float64]]
    """For the root and each level: the scoring rule's logarithm of each node's noisy count."""
    nodes: list[NDArray[np.int64]]
    """For the root and each level: the node that each point lies in."""
    weights: NDArray[np.float64]
    """Of the last level's nodes: the share of the released rows."""
    children: list[int]
    """How many nodes of the last level lie under one of this level."""


def contributions(positions: Positions, partition: Partition, counts: NoisyCounts, scorer: LogCounts) -> Contributions:
    """Contributions of each feature to the score of each point."""
    noisy, per_row = all_counts(counts, partition.n_cells)
    rows, floor = noisy / per_row, scorer.floor / UNIT
    cells = partition.cells(positions[:])[:, :, 1].astype(np.int64)
    parts = np.zeros((len(positions), partition.n_features))
    typical = np.zeros(partition.n_features)
    empty, used = np.zeros_like(parts), np.zeros(partition.n_features)
    total = 0.0
    for t in range(partition.cells_per_row):
        member = _member(partition, t, rows, cells[:, t], scorer)
        for level, j in enumerate(member.features):
            falls = member.logs[level][member.nodes[level]] - member.logs[level + 1][member.nodes[level + 1]]
            parts[:, j] += falls
            typical[j] += _mean_fall(member, level)
        own = np.unique(member.features)
        used[own] += 1
        empty[:, own] += (rows[cells[:, t]] <= floor)[:, None]
        total -= float(member.weights @ member.logs[-1])
    with np.errstate(invalid="ignore"):
        shares = empty / used
    n = partition.cells_per_row
    return Contributions((parts - typical) / n, shares, total / n)


def _logarithm(rows: NDArray[np.float64], scorer: LogCounts) -> NDArray[np.float64]:
    """As ``log_terms`` has it, in floats."""
    floored = np.maximum(rows, scorer.floor / UNIT)
    return np.asarray(np.log(floored) - (np.log(floored + scorer.bend / UNIT) if scorer.soft else 0.0))


def _member(
    partition: Partition, t: int, rows: NDArray[np.float64], cells: NDArray[np.int64], scorer: LogCounts
) -> _Levels:
    if isinstance(partition, Trees):
        arrays = partition.arrays()
        first, depth = int(arrays.first[t]), int(arrays.depth[t])
        features, sizes = arrays.feature[t, :depth], [1 << level for level in range(depth + 1)]
    elif isinstance(partition, Margins):
        first, sizes = int(partition.first[t]), [1, partition.bins[t]]
        features = np.array([t], np.int64)
    else:
        raise TypeError(f"a {partition.name} has no parts to explain a score by.")
    last = rows[first : first + sizes[-1]]
    below = [sizes[-1] // size for size in sizes]
    sums = [last.reshape(size, -1).sum(axis=1) for size in sizes]
    positive = np.maximum(last, 0)
    even = np.full(sizes[-1], 1 / sizes[-1])
    return _Levels(
        features=features,
        logs=[_logarithm(values, scorer) for values in sums],
        nodes=[(cells - first) // under for under in below],
        weights=positive / positive.sum() if positive.any() else even,
        children=below,
    )


def _mean_fall(member: _Levels, level: int) -> float:
    """What the level takes away on average over the released rows."""
    above = np.repeat(member.logs[level], member.children[level])
    here = np.repeat(member.logs[level + 1], member.children[level + 1])
    return float(member.weights @ (above - here))
