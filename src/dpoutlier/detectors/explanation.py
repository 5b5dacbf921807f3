"""What ``explain`` returns: contributions with the names of the features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Explanation"]


@dataclass(frozen=True)
class Explanation:
    """Why each point scores as it does. Free of privacy cost: it reads what was released.

    Attributes
    ----------
    features : tuple of str
    contributions : array of shape (n_points, n_features)
        How much each feature adds to the point's outlier score, beyond what it adds to that of a typical row. A row of it adds
        up to ``scores - typical_score``.
    empty : array of shape (n_points, n_features)
        Share of the cells around the point that look at the feature and are empty; NaN where none looks at it.
    scores : array of shape (n_points,)
    typical_score : float
    """

    features: tuple[str, ...]
    contributions: NDArray[np.float64]
    empty: NDArray[np.float64]
    scores: NDArray[np.float64]
    typical_score: float

    def __len__(self) -> int:
        return len(self.scores)

    def ranking(self, point: int = 0) -> list[tuple[str, float, float]]:
        """(feature, contribution, share of empty cells) of one point, the largest contribution first."""
        order = np.argsort(-self.contributions[point], kind="stable")
        return [
            (self.features[j], float(self.contributions[point, j]), float(self.empty[point, j])) for j in order.tolist()
        ]
