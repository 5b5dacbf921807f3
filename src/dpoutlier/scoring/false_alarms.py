r"""How often will a threshold raise a false alarm? An estimate, and an interval from the laws of noise and of sampling.

Above level j lie :math:`T_j` of N rows, and :math:`\tilde T_j` is their noisy number, a sum of as many draws of noise as there are
bins above. A fresh normal point scores above level j with the probability that a row does, if that row is scored as if it were not
among the reference rows. So :math:`\tilde T_j / \tilde N` estimates that probability, and is off for two reasons: the noise, whose
law is known, and that N rows are a sample (Clopper and Pearson's interval). The two are independent, so their widths add up as
squares do.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpoutlier.noise.mechanism import Noise
from dpoutlier.noise.summed import SummedNoise, as_level
from dpoutlier.scoring.threshold import STEEPEST, ScoreHistogram

BENT = 2
"""Between two levels a share may bend away from a straight line by one over this of the room that there is."""
WIDE = 2
"""An interval wider than so many times the expected rate is no basis for trust in a threshold."""


@dataclass(frozen=True)
class FalseAlarms:
    """The share of normal points that a threshold flags: what to expect, and an interval.

    The method ``false_alarms`` of a fitted detector returns it. It reads what was released only and has no privacy cost.

    Attributes
    ----------
    expected : float
        The estimated share of normal points that score above the threshold.
    lower : float
        Lower end of the interval for that share.
    upper : float
        Upper end of the interval for that share.
    level : float
        How often such an interval contains the true share: the noise of the release and the chance in which rows were there are
        accounted for.
    threshold : float
        The outlier score above which a point is flagged.

    See Also
    --------
    DPForest.false_alarms : Compute it.

    References
    ----------
    .. [1] C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial",
       Biometrika 26, 1934.

    Examples
    --------
    >>> import numpy as np
    >>> from dpoutlier import DPForest
    >>> rows = np.random.default_rng(0).normal(size=(20_000, 3))
    >>> found = DPForest(1, features=(-6, 6), n_rows_hint=20_000, target_fpr=0.05).fit(rows).false_alarms()
    >>> found.lower < 0.05 < found.upper, found.trusted
    (True, True)
    """

    expected: float
    lower: float
    upper: float
    level: float
    threshold: float

    @property
    def trusted(self) -> bool:
        """Whether the interval lies above 0 and is at most twice as wide as the expected share. Do not rely on others."""
        return self.lower > 0 and self.upper - self.lower <= WIDE * self.expected

    def to_dict(self) -> dict[str, float | bool]:
        """Give the shares as data.

        Returns
        -------
        dict
            ``expected``, ``lower``, ``upper``, ``level`` and ``trusted``.
        """
        shares = {name: float(getattr(self, name)) for name in ("expected", "lower", "upper", "level")}
        return {**shares, "trusted": self.trusted}

    def __str__(self) -> str:
        part = f"{percent(self.lower)} to {percent(self.upper)} (at {percent(self.level)} confidence)"
        if self.expected == 0 and self.upper == 0:
            return "none: the threshold lies above every score, so no point is ever flagged"
        return f"about {percent(self.expected)} of normal points; {part}"


def percent(share: float) -> str:
    """Two digits: 4.8 %, 12 %, 0.031 %."""
    digits = 0 if share == 0 else max(0, 1 - math.floor(math.log10(100 * share)))
    return f"{100 * share:.{min(digits, 4)}f} %"


def false_alarms(histogram: ScoreHistogram, threshold: float, level: Any = 0.9, spread: float = 1.0) -> FalseAlarms:
    """What a threshold on this histogram's scores does; ``spread`` is that of the scorer."""
    exact_level = as_level(level)
    levels = histogram.levels
    at = int(np.searchsorted(levels, threshold, side="left"))  # the lowest level that is not below the threshold
    if at >= len(levels) - 1 and threshold >= levels[-1]:
        return FalseAlarms(0.0, 0.0, 0.0, float(exact_level), float(threshold))
    widest = (0.0, 1.0)
    if histogram.swamped or math.isinf(spread):
        return FalseAlarms(0.0, *widest, float(exact_level), float(threshold))
    after = _at(histogram, at, exact_level, spread)
    before = (1.0, 1.0, 1.0) if at == 0 else _at(histogram, at - 1, exact_level, spread)
    if threshold == levels[at]:
        before = after
    if before == after or not histogram.continuous or at == 0 or not np.isfinite(levels[at]):
        share, lower, upper = before[0], after[1], before[2]
    else:
        part = float((threshold - levels[at - 1]) / (levels[at] - levels[at - 1]))
        share, lower, upper = (_between(x, y, part) for x, y in zip(before, after, strict=True))
        bent = (before[0] - after[0]) * part * (1 - part) / BENT
        lower = max(share - math.hypot(share - lower, bent), 0.0) if after[1] > 0 else 0.0
        upper = min(share + math.hypot(upper - share, bent), 1.0)
    return FalseAlarms(*_of_normal(share, lower, upper, histogram.outlier_share), float(exact_level), float(threshold))


def _at(histogram: ScoreHistogram, at: int, level: Fraction, spread: float) -> tuple[float, float, float]:
    """The share above one level, and its interval."""
    from scipy.stats import beta  # noqa: PLC0415 - slow to import, and only needed here

    n_bins, laws, share = len(histogram.levels), _laws(histogram.noise), float(histogram.shares[at])
    rows = histogram.rows - SummedNoise(laws, n_bins).half_width(level)
    if rows < 1:
        return share, 0.0, 1.0
    above = n_bins - 1 - at
    noise = (SummedNoise(laws, above).half_width(level) if above else 0) / rows
    beyond, hits = (1 - float(level)) / 2, share * rows
    low = float(beta.ppf(beyond, hits, rows - hits + 1)) if hits > 0 else 0.0
    high = float(beta.ppf(1 - beyond, hits + 1, rows - hits)) if hits < rows else 1.0
    below, more = math.hypot(noise, spread * (share - low)), math.hypot(noise, spread * (high - share))
    return share, max(share - below, 0.0), min(share + more, 1.0)


def _laws(noise: Noise | None) -> tuple[Noise, ...]:
    return () if noise is None else (noise,)


def _between(before: float, after: float, part: float) -> float:
    """Between two levels, logarithms of shares fall in straight lines, as for ``ScoreHistogram.threshold``."""
    if before <= 0:
        return 0.0
    return before * math.pow(max(after, STEEPEST * before) / before, part)


def _of_normal(share: float, lower: float, upper: float, outliers: float) -> tuple[float, float, float]:
    """The same of normal rows alone, where a share of all rows are outliers.

    Expected: all of them lie above the threshold. The interval leaves open how many of them do.
    """
    if not outliers:
        return share, lower, upper
    normal = 1 - outliers
    return max(share - outliers, 0.0) / normal, max(lower - outliers, 0.0) / normal, min(upper / normal, 1.0)
