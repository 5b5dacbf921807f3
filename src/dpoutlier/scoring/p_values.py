r"""Conformal p-values from a noisy histogram of scores, and alarms at a false-discovery rate. Post-processing, free of charge.

For a point in bin j, with :math:`\tilde T_j` noisy rows in its bin and above it, :math:`\tilde N` noisy rows in all, and K bins:

.. math:: p = \beta + F \frac{1 + \max(\tilde T_j, -1) + d}{\tilde N - c + 1}, \quad d = \tfrac{1}{2} \sqrt{K \mathrm{Var} Z}.

d is at least the mean of the negative part of any sum of up to K draws of the noise Z. The noise on the number of all rows passes
c with a probability of at most :math:`\beta`. F is exp of the epsilon that axes were chosen with. docs/p-values.md proves that a
point that is exchangeable with the rows has :math:`P(p \le a) \le a`.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import checked_share
from dpoutlier.noise.summed import MAX_LEVEL, SummedNoise
from dpoutlier.scoring.threshold import ScoreHistogram, bin_of

BETA = float(1 - MAX_LEVEL)


@dataclass(frozen=True, eq=False)
class PValues:
    """The p-value of each bin of scores."""

    levels: NDArray[np.float64]
    values: NDArray[np.float64]

    def of(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.values[bin_of(scores, self.levels)]


def p_values_of(histogram: ScoreHistogram, factor: float = 1.0) -> PValues:
    """The table of p-values; ``factor`` is F."""
    n_bins, noise = len(histogram.counts), histogram.noise
    correction = 0.0 if noise is None else math.sqrt(n_bins * noise.variance) / 2
    least_rows = histogram.rows - (0 if noise is None else SummedNoise((noise,), n_bins).half_width(MAX_LEVEL))
    if least_rows < 0:
        return PValues(histogram.levels, np.ones(n_bins))
    here_and_above = histogram.counts[::-1].cumsum()[::-1]
    found = factor * (1 + np.maximum(here_and_above, -1) + correction) / (least_rows + 1)
    found += 0.0 if noise is None else BETA
    # A larger score never has a larger p-value. That only raises some.
    return PValues(histogram.levels, np.minimum(np.maximum.accumulate(found[::-1])[::-1], 1.0))


def benjamini_hochberg(p_values: NDArray[np.float64], fdr: Any) -> NDArray[np.bool_]:
    """Which of a batch of points to flag so that about this share of the flags at most is false.

    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03, 0.9]), 0.06).tolist()
    [True, True, True, False]
    """
    wanted = checked_share(fdr=fdr)
    n = len(p_values)
    if not n:
        return np.zeros(0, np.bool_)
    smallest_first = np.sort(p_values)
    enough = np.flatnonzero(smallest_first <= wanted * np.arange(1, n + 1) / n)
    return p_values <= (smallest_first[enough[-1]] if len(enough) else -1.0)
