"""Alarms at a false-discovery rate for points that are scored batch by batch, and as columns of a batch.

Benjamini and Hochberg's procedure needs all points at once. But p-values take as few values as there are bins of scores, so it is
enough to count the points of each bin: a first pass counts, a second one flags.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier.detectors.batches import ScoredBatch
from dpoutlier.scoring.p_values import PValues, benjamini_hochberg
from dpoutlier.scoring.threshold import bin_of

P_VALUE, ALARM = "p_value", "alarm"
"""What a false-discovery rate adds to a table."""
NONE = -1.0
"""A cutoff that no p-value reaches."""


class Tally:
    """How many points lie in each bin of scores. A score of NaN is none, and is not counted.

    Parameters
    ----------
    table : PValues
        The p-value of each bin.
    """

    def __init__(self, table: PValues) -> None:
        self.table, self.counts = table, np.zeros(len(table.values), np.int64)

    def add(self, scores: NDArray[np.float64]) -> None:
        bins = bin_of(scores[~np.isnan(scores)], self.table.levels)
        self.counts += np.bincount(bins, minlength=len(self.counts))

    @property
    def n(self) -> int:
        """The number of points."""
        return int(self.counts.sum())

    def cutoff(self, fdr: float) -> float:
        """The largest p-value of the flagged points, as in ``benjamini_hochberg``; ``NONE`` where no point is flagged."""
        values, places = np.unique(self.table.values, return_inverse=True)
        up_to = np.bincount(places, self.counts).cumsum()
        enough = np.flatnonzero(values <= fdr * up_to / max(self.n, 1))
        return float(values[enough[-1]]) if len(enough) else NONE

    def flagged(self, cutoff: float) -> int:
        return int(self.counts[self.table.values <= cutoff].sum())


@dataclass(frozen=True)
class Alarms:
    """The columns that a false-discovery rate adds, once it is known which p-values are small enough."""

    table: PValues
    cutoff: float

    def columns(self, scores: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """P-values and alarms. What stands where there is no score means nothing."""
        p_values = self.table.of(scores)
        return {P_VALUE: p_values, ALARM: p_values <= self.cutoff}


def with_alarms(scored: ScoredBatch, score: str, table: PValues, fdr: float) -> ScoredBatch:
    """The batch with p-values and alarms, where all points are in this batch."""
    scores, known = scored.columns[score], scored.known
    p_values, alarms = table.of(scores), np.zeros(len(scores), np.bool_)
    chosen = slice(None) if known is None else known
    alarms[chosen] = benjamini_hochberg(p_values[chosen], fdr)
    return ScoredBatch({**scored.columns, P_VALUE: p_values, ALARM: alarms}, known)
