"""Thresholds from a released histogram of scores: any quantile, at any time, free of charge."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import checked_share
from dpoutlier.noise.mechanism import Noise
from dpoutlier.noise.registry import mechanism_to_json

MAX_LEVELS = 128


def geometric_levels(top: float, octaves: int = 10, n: int = MAX_LEVELS - 1) -> NDArray[np.float64]:
    """``n`` levels: 0, and a ladder of equal ratios over ``octaves`` octaves up to ``top``."""
    rungs = np.linspace(-octaves, 0.0, n - 1)
    return np.append(0.0, top * np.exp2(rungs))


def bin_of(scores: NDArray[np.float64], levels: NDArray[np.float64]) -> NDArray[np.int64]:
    """Bin i holds the scores above level i - 1 and up to level i; the last bin those above every level too."""
    return np.minimum(np.searchsorted(levels, scores, side="left"), len(levels) - 1)


@dataclass(frozen=True, eq=False)
class ScoreHistogram:
    """Noisy number of reference rows in each bin of scores. ``noise`` is None where there is none."""

    levels: NDArray[np.float64]
    counts: NDArray[np.int64]
    noise: Noise | None
    target_fpr: float
    continuous: bool = False
    """Whether scores lie anywhere between levels, so that a threshold may too."""

    def __post_init__(self) -> None:
        checked_share(target_fpr=self.target_fpr)
        self.levels.setflags(write=False)
        self.counts.setflags(write=False)

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise on the number of all rows."""
        return 0.0 if self.noise is None else math.sqrt(len(self.counts) * self.noise.variance)

    def threshold(self, target_fpr: float) -> float:
        """The lowest level that at most this share of the (noisy) rows lies above; ties count as inliers.

        For continuous scores: the place between that level and the one below, on a straight line, that just this share lies above.

        The numbers of rows above each level are noisy sums, so they are first made monotone by least squares. Where the noise
        swamps even the number of all rows, there is nothing to read: then no score is outlying.
        """
        from scipy.optimize import isotonic_regression  # noqa: PLC0415 - slow to import, and only needed here

        checked_share(target_fpr=target_fpr)
        rows = float(self.counts.sum())
        if rows < 2 * self.deviation:
            return float(self.levels[-1])
        above = self.counts.sum() - self.counts.cumsum()
        falling = isotonic_regression(above.astype(np.float64), increasing=False).x
        low_enough = falling <= float(target_fpr) * rows  # true at the last level: nothing lies above it
        at = int(np.argmax(low_enough))
        if not self.continuous or at == 0:
            return float(self.levels[at])
        part = (falling[at - 1] - target_fpr * rows) / (falling[at - 1] - falling[at])
        return float(self.levels[at - 1] + part * (self.levels[at] - self.levels[at - 1]))

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"score_levels": self.levels, "score_counts": self.counts}

    def to_json(self) -> dict[str, Any]:
        noise = {"rate": None} if self.noise is None else mechanism_to_json(self.noise, "threshold")
        return {**noise, "target_fpr": self.target_fpr}
