"""The paper's score on a grid: basic and weighted k-NN over cells (Algorithm 1)."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import one_of, optional_at_least, parameter_error, positive_int, true_or_false
from dpoutlier.counts.base import STREAM, NoisyCounts, kernel_table, noisy_counts
from dpoutlier.counts.sparse import SparseCounts
from dpoutlier.kernels.last_cell import find_last_cell, new_cost_table
from dpoutlier.kernels.ranks import new_ranks
from dpoutlier.kernels.walk import CAPPED, GATHERED, Rule, new_buffers, new_results, walk_points
from dpoutlier.kernels.walk_stored import StoredBuffers, StoredCells, decode_cells, new_stored_buffers, walk_stored
from dpoutlier.noise.laplace_table import DIGITS
from dpoutlier.partitions.base import CellIds, Partition
from dpoutlier.partitions.grid import Grid
from dpoutlier.scoring.threads import MAX_CHUNK, in_chunks
from dpoutlier.scoring.threshold import ladder
from dpoutlier.tables.rows import Positions

NO_LIMIT = 2**40
MAX_POSITIONS = 2**15
MIN_CROSSOVER = 256
CELLS_PER_VISIT = 100  # to visit a cell takes as long as to look at this number of entries of stored cells
MAX_WORK = 2**28  # entries compared to find the last cell of a walk: a tenth of a second for each point
SPREAD, USUAL_K = 1.6, 30
MAX_K = 2**28  # with counts of up to 2**38 rows, sums of count times distance fit their two limbs


@dataclass(frozen=True)
class Walks:
    """How each point's walk went. The method ``walk`` of a fitted detector returns it.

    Attributes
    ----------
    scores : ndarray of shape (n_points,)
        The outlier scores.
    gathered : ndarray of shape (n_points,)
        Noisy rows gathered. They may be negative.
    visited : ndarray of int of shape (n_points,)
        Cells visited. Empty cells without noise, as with exact and sparse counts, are not visited and not counted.
    status : ndarray of int of shape (n_points,)
        0: k rows were gathered. 1: no cells were left within ``max_depth``. 2: ``max_cells`` ended the walk; never with exact and
        sparse counts.
    """

    scores: NDArray[np.float64]
    gathered: NDArray[np.float64]
    visited: NDArray[np.int64]
    status: NDArray[np.int64]


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
        Largest number of cells to visit where empty cells have noise, which makes long walks possible. Walks over exact or
        sparse counts look at the occupied cells only, and have no such limit.
    exhausted : {"outlying", "as-printed"}
        What a walk that did not gather k rows scores: the missing rows at the cube's diameter, or the paper's score of
        the last cell.
    """

    name: ClassVar[str] = "nearest-cells"

    k: int = 10
    weighted: bool = False
    distance: str = "cell"
    max_depth: int | None = 4
    max_cells: int = 100_000
    exhausted: str = "outlying"

    def __post_init__(self) -> None:
        # Plain Python values, whatever number type was given: they go into files and into compiled kernels.
        checked = {
            "k": positive_int(MAX_K, k=self.k),
            "weighted": true_or_false(weighted=self.weighted),
            "distance": one_of(("cell", "point"), distance=self.distance),
            "max_depth": optional_at_least(0, max_depth=self.max_depth),
            "max_cells": positive_int(2**31, max_cells=self.max_cells),
            "exhausted": one_of(("outlying", "as-printed"), exhausted=self.exhausted),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def continuous(self, partition: Partition) -> bool:  # noqa: ARG002 - it is the same for all grids
        """From cell to cell there are few distances."""
        return self.distance == "point" and not self.weighted

    def spread(self, partition: Partition) -> float:  # noqa: ARG002 - it is the same for all grids
        """Rows of one cell pass a level together, about k of them. For usual k it was measured: docs/alerts.md."""
        return SPREAD if self.k <= USUAL_K else math.inf

    def few_ties(self, partition: Partition) -> bool:  # noqa: ARG002 - it is the same for all grids
        return False

    def falls(self, partition: Partition) -> bool:
        """Along one line a walk goes farther and farther from home. With more features it does not.

        Cells are visited in the order of their distances from the point, and score with that from home. So a walk that ends sooner,
        since a row was added, may end at a cell that scores higher.
        """
        one_line = partition.n_features == 1 and not partition.axes
        return one_line and not self.weighted and self.distance == "cell" and self.k < MAX_K

    def suits(self, partition: Partition) -> bool:
        return isinstance(partition, Grid)

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
                walks.gathered[part] = found.gathered[: part.stop - part.start]
                walks.visited[part] = found.visited[: part.stop - part.start]
                walks.status[part] = found.status[: part.stop - part.start]

            return work

        in_chunks(n, n_jobs, start, most=_most_points(partition))
        return walks

    def gathers_at_home(self, positions: Positions, partition: Partition, counts: NoisyCounts) -> NDArray[np.bool_]:
        """Whether the home cell of each row of ``positions`` has k noisy rows of its own: a walk that may not leave it tells."""
        walks = replace(self, max_depth=0).walk(positions, partition, counts)
        return np.asarray(walks.status == GATHERED)

    def outlier_scores(
        self, positions: Positions, partition: Partition, counts: NoisyCounts, n_jobs: int = 1
    ) -> NDArray[np.float64]:
        scores = np.empty(len(positions))

        def start() -> Callable[[slice], None]:
            walker = _Walker(self, partition, counts, scores_only=True)
            return lambda part: walker(positions[part], scores[part])

        in_chunks(len(positions), n_jobs, start, most=_most_points(partition))
        return scores

    def own_scores(
        self, positions: Positions, partition: Partition, counts: NoisyCounts, n_jobs: int = 1
    ) -> NDArray[np.float64]:
        """A walk begins at home. Without the row itself home gives one row less, so the walk needs one more."""
        if not isinstance(counts, SparseCounts):
            return replace(self, k=min(self.k + 1, MAX_K)).outlier_scores(positions, partition, counts, n_jobs)
        scores = np.empty(len(positions))
        for first in range(0, len(scores), MAX_POSITIONS):
            block = positions[first : first + MAX_POSITIONS]
            home = noisy_counts(counts, partition.cells(block)[:, 0])
            lost = np.where(home > counts.tau, 1, home)  # at the threshold, the cell is not listed without the row
            for n in np.unique(lost).tolist():
                own, same = replace(self, k=min(self.k + n, MAX_K)), np.flatnonzero(lost == n)
                scores[first + same] = own.outlier_scores(block[same], partition, counts, n_jobs)
        return scores

    def levels(self, partition: Partition, counts: NoisyCounts, n: int, rarest: float) -> NDArray[np.float64]:  # noqa: ARG002 - not every grid's counts are released
        """Basic scores of cells: the distances that a cell can have. Else a ladder up to the scores of the farthest cells."""
        assert isinstance(partition, Grid)
        diameter = float(partition.n_features)
        distances = partition.distances(self.max_depth, most=n - 1) / partition.unit
        if self.distance == "cell" and not self.weighted:
            return distances if distances[-1] == diameter else np.append(distances, diameter)
        farthest = min(float(distances[-1]) + diameter / (2 * min(partition.bins)), diameter)
        found = ladder(0.0, farthest * (self.k if self.weighted else 1), n - 2)
        if not self.weighted:
            return found if farthest == diameter else np.append(found, diameter)
        # The last cell counts in full, so there is no largest score.
        return np.append(found, [diameter * self.k, np.inf] if farthest < diameter else [np.inf])

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, **asdict(self)}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> NearestCells:
        return cls(**{key: value for key, value in content.items() if key != "name"})


def _most_points(partition: Partition) -> int:
    """Points of a chunk: no more positions than a cache holds."""
    return max(MAX_CHUNK, MAX_POSITIONS // partition.n_features)


class _Walker:
    """Walks of one thread, chunk by chunk, in buffers that are made once."""

    def __init__(
        self, scorer: NearestCells, partition: Partition, counts: NoisyCounts, *, scores_only: bool = False
    ) -> None:
        assert isinstance(partition, Grid)
        self.scores_only, self.most, self.partition = scores_only, _most_points(partition), partition
        self.grid, self.rule, self.counts, self.digits = partition.arrays(), scorer.rule(), counts, DIGITS
        self.table, self.listed = kernel_table(counts), counts.listed() is not None
        if self.listed:
            check_last_cell(scorer, partition)
            self.rule = self.rule._replace(max_cells=_crossover(counts, partition) if scores_only else 1)
        self.results = new_results(0)
        self.looking: StoredBuffers | None = None

    def __call__(self, positions: NDArray[np.uint32], scores: NDArray[np.float64]) -> None:
        """Scores of a chunk. How the walks went stays in ``results``."""
        n = len(positions)
        if n > len(self.results.score):
            self._make_buffers(max(n, min(4 * n, self.most)))
        positions = np.asfortranarray(positions)
        self._walk(positions)
        if self.listed:
            self._look_at_stored_cells(positions)
        scores[:] = self.results.score[:n]

    def _walk(self, positions: NDArray[np.uint32]) -> None:
        while not walk_points(positions, self.grid, self.table, self.rule, self.buffers, self.results):
            self.digits *= 2
            self.table = self.counts.table(self.digits)
            self._make_buffers(len(positions))

    def _look_at_stored_cells(self, positions: NDArray[np.uint32]) -> None:
        """Go on where the walk from cell to cell was not enough. If not only scores matter, that is wherever home was not."""
        status = self.results.status[: len(positions)]
        left = np.flatnonzero(status == CAPPED if self.scores_only else status != GATHERED)
        if not len(left):
            return
        cells = stored_cells(self.partition, self.counts)
        assert cells is not None
        if self.looking is None:
            self.looking = new_stored_buffers(cells, self.grid, self.rule)
        walk_stored(positions, left, self.grid, self.rule, cells, self.looking, self.buffers.ranks, self.results)

    def _make_buffers(self, n: int) -> None:
        self.results = new_results(n)
        self.buffers = new_buffers(self.grid, self.rule, n, STREAM * self.digits)


def check_last_cell(scorer: NearestCells, grid: Grid) -> None:
    """Refuse to look for the last cell of walks over stored cells where that takes too long."""
    depth, scored = scorer.max_depth, scorer.exhausted == "as-printed" and not scorer.weighted
    if not scored or depth is None or depth >= sum(grid.sizes):
        return

    def work(limit: int) -> int:
        return limit * sum(min(size, 2 * limit + 1) for size in grid.sizes)

    if work(depth) > MAX_WORK:
        most = bisect_right(range(depth), MAX_WORK, key=work) - 1
        raise parameter_error(
            "max_depth",
            f"None, or at most {most:,} on this grid with exhausted='as-printed'",
            depth,
            "Without a limit, or with exhausted='outlying', any grid is scored at once.",
        )


def _crossover(counts: NoisyCounts, grid: Grid) -> int:
    """How many cells to visit before a look at all stored cells takes less time."""
    listed = counts.listed()
    assert listed is not None
    return max(MIN_CROSSOVER, len(listed[0]) * grid.n_features // CELLS_PER_VISIT)


def stored_cells(grid: Grid, counts: NoisyCounts) -> StoredCells | None:
    """The listed cells, decoded once and cached. None if the counts do not list their cells."""
    listed = counts.listed()
    if listed is None:
        return None
    known, cells = _decoded.get(counts, (None, None))
    if cells is None or known != grid:
        cells = _decode(grid, *listed)
        _decoded[counts] = (grid, cells)
    return cells


def _decode(grid: Grid, ids: CellIds, counts: NDArray[np.int64]) -> StoredCells:
    index = np.empty((grid.n_features, len(ids)), np.uint32)
    decode_cells(np.ascontiguousarray(ids[:, 0]), np.ascontiguousarray(ids[:, 1]), grid.arrays().cells, index)
    bins = []
    for own in index:
        occupied, own[:] = np.unique(own, return_inverse=True)
        bins.append(occupied.astype(np.int64))
    first = np.append(0, np.cumsum([len(occupied) for occupied in bins])).astype(np.int64)
    return StoredCells(index, np.concatenate(bins), first, np.array(counts, np.int64))


_decoded: WeakKeyDictionary[Any, tuple[Grid, StoredCells]] = WeakKeyDictionary()


def last_cell_within(position: NDArray[np.uint32], grid: Grid, max_depth: int) -> list[int]:
    """The last cell of a walk that visits all cells within ``max_depth``, as one number for each feature."""
    arrays, out = grid.arrays(), np.empty(grid.n_features, np.int64)
    find_last_cell(position, arrays, max_depth, new_ranks(arrays, max_depth, 1), new_cost_table(arrays, max_depth), out)
    return [int(cell) for cell in out]
