"""Plain k-NN over the reference rows themselves (eq. 1 and 2): the paper's baseline, not private, secret."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier.domain import Domain
from dpoutlier.lattice import unit_cube
from dpoutlier.scoring.threshold import ScoreHistogram, bin_of, geometric_levels
from dpoutlier.trusted.reference import read_reference

__all__ = ["ReferenceNeighbours"]


class ReferenceNeighbours:
    """Euclidean distances to the nearest reference rows, in the unit cube."""

    def __init__(self, reference: Any, domain: Domain, k: int) -> None:
        from sklearn.neighbors import NearestNeighbors  # noqa: PLC0415 - slow to import, and only needed here

        self.domain, self.k = domain, k
        self._positions = read_reference(reference, domain)
        self._search = NearestNeighbors(n_neighbors=min(k, len(self._positions)) or 1)
        if len(self._positions):
            self._search.fit(unit_cube(self._positions))

    def outlier_scores(self, positions: NDArray[np.uint32], *, weighted: bool) -> NDArray[np.float64]:
        """Distance to the k-th nearest row, or the sum over the k nearest. Rows that do not exist lie at the diameter."""
        distances = np.full((len(positions), self.k), np.sqrt(self.domain.n_features))
        if len(self._positions) and len(positions):
            near, _ = self._search.kneighbors(unit_cube(positions))
            distances[:, : near.shape[1]] = near
        return np.asarray(distances.sum(axis=1) if weighted else distances[:, -1])

    def score_histogram(self, target_fpr: float, *, weighted: bool) -> ScoreHistogram:
        top = np.sqrt(self.domain.n_features) * (self.k if weighted else 1)
        levels = geometric_levels(float(top))
        scores = self.outlier_scores(self._positions, weighted=weighted)
        counts = np.bincount(bin_of(scores, levels), minlength=len(levels)).astype(np.int64)
        return ScoreHistogram(levels, counts, None, target_fpr)
