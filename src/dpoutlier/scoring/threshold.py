"""Thresholds from a released histogram of scores: any quantile, at any time, free of charge."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import checked_share, share_below_half
from dpoutlier.noise.mechanism import Noise
from dpoutlier.noise.registry import mechanism_to_json

MIN_LEVELS, MAX_LEVELS = 8, 128
STEEPEST = 0.1
"""From one level to the next, the share of rows above is taken to fall to no less than this part of it."""
DENSER = 1.5
"""A ladder is denser at its lower end, where rows crowd: the power of its steps."""
TOO_MANY = 2
"""Where a threshold must lie on a level: no level that more than so many times the wanted share of rows lies above."""


def n_levels(x: float) -> int:
    """How many levels are worth their noise, for ``x`` rows times epsilon of the threshold.

    >>> n_levels(250), n_levels(2500)
    (14, 34)
    """
    return max(round(min(10 * math.pow(x / 100, 0.38), MAX_LEVELS)), MIN_LEVELS)


def rarest(x: float) -> float:
    """The smallest share of rows that levels are laid for."""
    return min(0.05, 15 / x)


def ladder(lower: float, upper: float, n: int) -> NDArray[np.float64]:
    """``n`` levels between two scores; a little above ``lower`` where there is no room between."""
    room = max(upper - lower, 2.0**-20 * max(1.0, abs(lower)))
    return np.asarray(lower + room * np.linspace(0.0, 1.0, n) ** DENSER)


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
    left_out: bool = field(default=False, kw_only=True)
    """Whether each row was scored as if it were not among the reference rows, as points are. Not so in files before 0.2."""
    outlier_share: float = field(default=0.0, kw_only=True)
    """Declared share of outliers among the reference rows."""

    def __post_init__(self) -> None:
        checked_share(target_fpr=self.target_fpr)
        share_below_half(outlier_share=self.outlier_share)
        self.levels.setflags(write=False)
        self.counts.setflags(write=False)

    @property
    def rows(self) -> int:
        """The noisy number of all rows."""
        return int(self.counts.sum())

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise on the number of all rows."""
        return 0.0 if self.noise is None else math.sqrt(len(self.counts) * self.noise.variance)

    @property
    def swamped(self) -> bool:
        """Whether the noise hides even the number of all rows, so that there is nothing to read."""
        return self.rows < 2 * self.deviation or self.rows <= 0

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of the rows above each level: noisy sums, made monotone by least squares."""
        from scipy.optimize import isotonic_regression  # noqa: PLC0415 - slow to import, and only needed here

        above = (self.rows - self.counts.cumsum()).astype(np.float64)
        return np.asarray(np.clip(isotonic_regression(above, increasing=False).x / self.rows, 0.0, 1.0))

    def threshold(self, target_fpr: float) -> float:
        """The score that this share of the normal rows lies above; ties count as inliers.

        Outliers among the rows, as far as declared, count as lying above it. Continuous scores: a place between two levels, as if
        logarithms of shares fell in straight lines. Others: the level whose share is the nearest as a ratio, but never more than
        ``TOO_MANY`` times what is wanted. Where the noise swamps even the number of all rows, no score is outlying.
        """
        checked_share(target_fpr=target_fpr)
        if self.swamped:
            return float(self.levels[-1])
        wanted = self.outlier_share + (1 - self.outlier_share) * float(target_fpr)
        shares = self.shares
        at = int(np.argmax(shares <= wanted))  # true at the last level: nothing lies above it
        if not self.continuous:
            below = int(np.argmax(shares <= TOO_MANY * wanted))
            ratios = np.abs(np.log(np.maximum(shares[below : at + 1], 1e-12) / wanted))
            return float(self.levels[below + int(np.argmin(ratios))])
        if at == 0:
            return float(self.levels[at])
        before, after = shares[at - 1], max(shares[at], STEEPEST * shares[at - 1])
        part = min(math.log(before / wanted) / math.log(before / after), 1.0)
        return float(self.levels[at - 1] + part * (self.levels[at] - self.levels[at - 1]))

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"score_levels": self.levels, "score_counts": self.counts}

    def to_json(self) -> dict[str, Any]:
        noise = {"rate": None} if self.noise is None else mechanism_to_json(self.noise, "threshold")
        new = {"own_row": "left out"} if self.left_out else {}
        declared = {"outlier_share": self.outlier_share} if self.outlier_share else {}
        return {**noise, "target_fpr": self.target_fpr, **new, **declared}
