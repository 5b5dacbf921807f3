"""Plain k-NN over the reference rows themselves (eq. 1 and 2): the paper's baseline, not private, secret."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier.features.axes import MISSING, Axis
from dpoutlier.features.domain import Domain
from dpoutlier.features.lattice import POSITIONS
from dpoutlier.scoring.threshold import ScoreHistogram
from dpoutlier.tables.rows import Positions
from dpoutlier.trusted.reference import read_reference

ROUNDED = 1e-6
"""More than rounding makes of a distance: that of equal rows may come out as 4e-8."""


def embedded(positions: NDArray[np.uint32], axes: Sequence[Axis]) -> NDArray[np.float64]:
    """Rows as points of a space whose Euclidean distance is the one that is meant.

    Numbers and ordered levels are coordinates in [0, 1). Unordered levels are corners 1 apart. A missing value that has a cell lies
    across the middle of its line, 1 away from both of its ends.
    """
    parts = []
    for j, axis in enumerate(axes):
        own = positions[:, j].astype(np.float64) / POSITIONS
        if axis.unordered:
            level = (own * axis.levels).astype(np.int64)
            parts.append((level[:, np.newaxis] == np.arange(axis.levels)) / np.sqrt(2))
        elif axis.missing:
            absent = positions[:, j] == MISSING
            parts.append(np.column_stack([np.where(absent, 0.5, own), np.sqrt(0.75) * absent]))
        else:
            parts.append(own[:, np.newaxis])
    return np.concatenate(parts, axis=1)


class ReferenceNeighbours:
    """Euclidean distances to the nearest reference rows, in the unit cube."""

    def __init__(self, reference: Any, domain: Domain, k: int, *, weighted: bool) -> None:
        from sklearn.neighbors import NearestNeighbors  # noqa: PLC0415 - slow to import, and only needed here

        self.domain, self.k, self.weighted = domain, k, weighted
        blocks = [embedded(rows[:], domain.axes) for rows in read_reference(reference, domain)]
        rows = np.concatenate([embedded(np.empty((0, domain.n_features), np.uint32), domain.axes), *blocks])
        self._n_rows = len(rows)
        self._search = NearestNeighbors().fit(rows) if self._n_rows else None

    def outlier_scores(self, positions: Positions) -> NDArray[np.float64]:
        """Distance to the k-th nearest row, or the sum over the k nearest. Rows that do not exist lie at the diameter."""
        return self._scores(embedded(positions[:], self.domain.axes), len(positions), self._n_rows)

    def score_histogram(self, target_fpr: float, outlier_share: float) -> ScoreHistogram:
        """Scores of the rows themselves, each without itself as a neighbour: exact, since nothing here is private."""
        scores = self._scores(None, self._n_rows, self._n_rows - 1)
        slack = ROUNDED * (self.k if self.weighted else 1)
        levels, counts = np.unique(scores + slack if len(scores) else [0.0], return_counts=True)
        return ScoreHistogram(
            levels, counts.astype(np.int64), None, target_fpr, left_out=True, outlier_share=outlier_share
        )

    def _scores(self, points: NDArray[np.float64] | None, n_points: int, n_others: int) -> NDArray[np.float64]:
        """Scores of ``points``, or of the rows themselves (None). Each has ``n_others`` possible neighbours."""
        distances = np.full((n_points, self.k), np.sqrt(self.domain.n_features))
        found = min(self.k, n_others)
        if self._search is not None and n_points and found > 0:
            distances[:, :found], _ = self._search.kneighbors(points, n_neighbors=found)
        return np.asarray(distances.sum(axis=1) if self.weighted else distances[:, -1])
