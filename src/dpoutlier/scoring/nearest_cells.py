"""The paper's score on a grid: basic and weighted k-NN over cells (Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import at_least_one, one_of, optional_at_least, true_or_false
from dpoutlier.holders.holder import STREAM, NoisyCounts, kernel_table
from dpoutlier.kernels.stored import LEAVE, MOST_STEPS, StoredCells, decode_cells, new_stored_buffers, walk_stored
from dpoutlier.kernels.stored import MOST_K as MOST_STORED_K
from dpoutlier.kernels.walk import CAPPED, Rule, new_buffers, new_results, walk_points
from dpoutlier.noise.guide import DIGITS
from dpoutlier.partitions.grid import Grid
from dpoutlier.partitions.partition import Partition
from dpoutlier.rows import Positions
from dpoutlier.scoring.threads import MOST_CHUNK, in_chunks
from dpoutlier.scoring.threshold import MOST_LEVELS, geometric_levels

__all__ = ["NearestCells", "Walks"]

NO_LIMIT = 2**40
MOST_POSITIONS = 2**15
LEAST_CROSSOVER = 256
CELLS_PER_VISIT = 100  # a cell visited takes as long as so many entries of stored cells looked at
MOST_TABLES = 2**16  # bins of all features together
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

    @property
    def continuous(self) -> bool:
        return False

    def with_noise(self, rate: Fraction | None) -> NearestCells:  # noqa: ARG002 - gathers whatever the noise
        return self

    def rule(self) -> Rule:
        return Rule(
            k=self.k,
            weighted=self.weighted,
            from_point=self.distance == "point",
            max_depth=NO_LIMIT if self.max_depth is None else min(self.max_depth, NO_LIMIT),
            max_cells=self.max_cells,
            outlying=self.exhausted == "outlying",
        )

    def walk(self, positions: Positions, partition: Partition, counts: NoisyCounts, n_jobs: int = 1) -> Walks:
        """Algorithm 1 for each row of ``positions``."""
        n = len(positions)
        walks = Walks(np.empty(n), np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64))

        def start() -> Callable[[slice], None]:
            walker = _Walker(self, partition, counts)

            def work(part: slice) -> None:
                walker(positions[part], walks.scores[part])
                found = walker.results
                walks.gathered[part] = found.gathered[: part.stop - part.start] / walker.table.per_row
                walks.visited[part] = found.visited[: part.stop - part.start]
                walks.status[part] = found.status[: part.stop - part.start]

            return work

        in_chunks(n, n_jobs, start, most=_most_points(partition))
        return walks

    def outlier_scores(
        self, positions: Positions, partition: Partition, counts: NoisyCounts, n_jobs: int = 1
    ) -> NDArray[np.float64]:
        scores = np.empty(len(positions))

        def start() -> Callable[[slice], None]:
            walker = _Walker(self, partition, counts, scores_only=True)
            return lambda part: walker(positions[part], scores[part])

        in_chunks(len(positions), n_jobs, start, most=_most_points(partition))
        return scores

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


def _most_points(partition: Partition) -> int:
    """Points of a chunk: no more positions than a cache holds."""
    return max(MOST_CHUNK, MOST_POSITIONS // partition.n_features)


class _Walker:
    """Walks of one thread, chunk by chunk, in buffers that are made once."""

    def __init__(
        self, scorer: NearestCells, partition: Partition, counts: NoisyCounts, *, scores_only: bool = False
    ) -> None:
        assert isinstance(partition, Grid)
        self.scores_only, self.most = scores_only, _most_points(partition)
        self.grid, self.rule, self.counts, self.digits = partition.arrays(), scorer.rule(), counts, DIGITS
        self.table = kernel_table(counts)
        self.stored = _stored_cells(scorer, partition, counts)
        self.results = new_results(0)

    def __call__(self, positions: NDArray[np.uint32], scores: NDArray[np.float64]) -> None:
        """Scores of a chunk. How the walks went stays in ``results``."""
        n = len(positions)
        if n > len(self.results.score):
            self._make_buffers(max(n, min(4 * n, self.most)))
        positions = np.asfortranarray(positions)
        if self.stored is None:
            self._walk(positions, self.rule)
        else:
            self._walk_or_look(positions, *self.stored)
        scores[:] = self.results.score[:n]

    def _walk(self, positions: NDArray[np.uint32], rule: Rule) -> None:
        while not walk_points(positions, self.grid, self.table, rule, self.buffers, self.results):
            self.digits *= 2
            self.table = self.counts.table(self.digits)
            self._make_buffers(len(positions))

    def _walk_or_look(self, positions: NDArray[np.uint32], cells: StoredCells, crossover: int) -> None:
        """Walk up to the crossover. Where that was not enough look at the stored cells, and walk on only if these cannot tell."""
        self._walk(positions, self.rule._replace(max_cells=crossover))
        far = np.flatnonzero(self.results.status[: len(positions)] == CAPPED)
        if not len(far):
            return
        looking = new_stored_buffers(cells, self.rule.k)
        walk_stored(
            positions, far, self.grid, self.rule, cells, not self.scores_only, looking, self.buffers, self.results
        )
        far = far[self.results.status[far] == LEAVE]
        if len(far):
            kept = self.results
            self._make_buffers(len(far))
            self._walk(np.asfortranarray(positions[far]), self.rule)
            for all_points, left in zip(kept, self.results, strict=True):
                all_points[far] = left[: len(far)]
            self._make_buffers(len(kept.score))
            self.results = kept

    def _make_buffers(self, n: int) -> None:
        self.results = new_results(n)
        self.buffers = new_buffers(self.grid, self.rule, n, STREAM * self.digits)


def _stored_cells(scorer: NearestCells, grid: Grid, counts: NoisyCounts) -> tuple[StoredCells, int] | None:
    """The stored cells of a holder, and how many cells to visit before looking at them; None if that never pays.

    It pays only where ``max_cells`` cannot stop a walk: else all cells before the stored ones would have to be counted.
    """
    listed, rule = counts.listed(), scorer.rule()
    if listed is None or rule.k > MOST_STORED_K or sum(grid.sizes) > MOST_TABLES:
        return None
    most = grid.most_within(scorer.max_depth)
    deep = rule.max_depth < sum(grid.bins) and (rule.max_depth + 1) * grid.n_features >= MOST_STEPS
    crossover = max(LEAST_CROSSOVER, len(listed[0]) * grid.n_features // CELLS_PER_VISIT)
    if deep or crossover >= most or most > rule.max_cells:
        return None
    known, cells = _decoded.get(counts, (None, None))
    if cells is None or known != grid:
        bins = np.empty((grid.n_features, len(listed[0])), np.uint16)
        high, low = np.ascontiguousarray(listed[0][:, 0]), np.ascontiguousarray(listed[0][:, 1])
        decode_cells(high, low, grid.arrays().cells, bins)
        first = np.append(0, np.cumsum(grid.sizes)).astype(np.int64)
        cells = StoredCells(np.array(listed[0]), bins, np.array(listed[1]), first)
        _decoded[counts] = (grid, cells)
    return cells, crossover


_decoded: WeakKeyDictionary[Any, tuple[Grid, StoredCells]] = WeakKeyDictionary()
