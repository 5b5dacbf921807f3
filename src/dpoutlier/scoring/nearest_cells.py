"""The paper's score on a grid: basic and weighted k-NN over cells (Algorithm 1)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import at_least_one, one_of, optional_at_least, true_or_false
from dpoutlier.holders.holder import NoisyCounts
from dpoutlier.kernels.ranks import LATTICE
from dpoutlier.kernels.walk import LIMB, Results, Rule, new_buffers, walk_points
from dpoutlier.partitions.grid import Grid
from dpoutlier.partitions.partition import Partition
from dpoutlier.scoring.threads import in_chunks
from dpoutlier.scoring.threshold import MOST_LEVELS, geometric_levels

__all__ = ["NearestCells", "Walks"]

NO_LIMIT = 2**40
MOST_K = 2**28  # with counts of up to 2**38 rows, sums of count times distance fit their two limbs


@dataclass(frozen=True)
class Walks:
    """How each point's walk went."""

    scores: NDArray[np.float64]
    gathered: NDArray[np.float64]
    """Noisy rows gathered."""
    visited: NDArray[np.int64]
    """Cells visited."""
    status: NDArray[np.int64]
    """0: k rows gathered; 1: no cells left within ``max_depth``; 2: stopped by ``max_cells``."""


@dataclass(frozen=True)
class NearestCells:
    """Gather noisy rows from the nearest cells until there are k.

    Parameters
    ----------
    k : int
        Noisy rows to gather.
    weighted : bool
        Sum of count times distance (eq. 2) instead of the last distance (eq. 1).
    distance : {"cell", "point"}
        Score with the distance between the centroids of the cell and of the home cell, as Algorithm 1 prints, or with
        that between the point and the cell's centroid.
    max_depth : int or None
        Largest number of grid steps from home.
    max_cells : int
        Largest number of cells to visit; noise makes long walks possible.
    exhausted : {"outlying", "as-printed"}
        What a walk that did not gather k rows scores: the missing rows at the cube's diameter, or the paper's score of
        the last cell.
    """

    k: int = 10
    weighted: bool = False
    distance: str = "cell"
    max_depth: int | None = 4
    max_cells: int = 100_000
    exhausted: str = "outlying"

    def __post_init__(self) -> None:
        # Plain Python values, whatever number type was given: they go into files and into compiled kernels.
        checked = {
            "k": at_least_one(MOST_K, k=self.k),
            "weighted": true_or_false(weighted=self.weighted),
            "distance": one_of(("cell", "point"), distance=self.distance),
            "max_depth": optional_at_least(0, max_depth=self.max_depth),
            "max_cells": at_least_one(2**31, max_cells=self.max_cells),
            "exhausted": one_of(("outlying", "as-printed"), exhausted=self.exhausted),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def name(self) -> str:
        return "nearest-cells"

    def rule(self) -> Rule:
        return Rule(
            k=self.k,
            weighted=self.weighted,
            from_point=self.distance == "point",
            max_depth=NO_LIMIT if self.max_depth is None else min(self.max_depth, NO_LIMIT),
            max_cells=self.max_cells,
            outlying=self.exhausted == "outlying",
        )

    def walk(self, positions: NDArray[np.uint32], partition: Partition, counts: NoisyCounts, n_jobs: int = 1) -> Walks:
        """Algorithm 1 for each row of ``positions``."""
        assert isinstance(partition, Grid)
        grid, table, rule = partition.arrays(), counts.table(), self.rule()
        positions = np.ascontiguousarray(positions)
        results = Results(*(np.empty(len(positions), np.int64) for _ in Results._fields))

        def work(part: slice) -> None:
            buffers = new_buffers(grid, rule, part.stop - part.start)
            walk_points(positions[part], grid, table, rule, buffers, Results(*(array[part] for array in results)))

        in_chunks(len(positions), n_jobs, work)
        edge = LATTICE if rule.from_point else grid.unit
        scores = _joined(results.high, results.low) / edge
        if self.weighted:
            scores = scores / table.per_row
        return Walks(scores, results.gathered / table.per_row, results.visited, results.status)

    def outlier_scores(
        self, positions: NDArray[np.uint32], partition: Partition, counts: NoisyCounts, n_jobs: int = 1
    ) -> NDArray[np.float64]:
        return self.walk(positions, partition, counts, n_jobs).scores

    def levels(self, partition: Partition) -> NDArray[np.float64]:
        """Public levels: for basic scores of cells the distances that a cell can have, else a ladder of equal ratios."""
        assert isinstance(partition, Grid)
        diameter = float(partition.n_features)
        if self.weighted:  # the last cell counts in full, so there is no largest score
            return np.append(geometric_levels(diameter * self.k * 2.0**16, octaves=26), np.inf)
        if self.distance == "point":
            return geometric_levels(diameter)
        distances = partition.distances(self.max_depth, most=MOST_LEVELS - 1)
        return np.append(distances / partition.unit, diameter)

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, **asdict(self)}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> NearestCells:
        return cls(**{key: value for key, value in content.items() if key != "name"})


def _joined(high: NDArray[np.int64], low: NDArray[np.int64]) -> NDArray[np.float64]:
    """``high * 2**24 + low`` as floats."""
    return np.asarray(high.astype(np.float64) * float(1 << LIMB) + low)
