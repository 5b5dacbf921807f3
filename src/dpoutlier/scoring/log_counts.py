"""The mean logarithm of the noisy counts around a point: the score of forests and marginals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import at_least_one, true_or_false
from dpoutlier.holders.holder import NoisyCounts, all_counts
from dpoutlier.kernels.logs import log_terms
from dpoutlier.partitions.partition import Partition
from dpoutlier.rows import Positions
from dpoutlier.scoring.threads import in_chunks
from dpoutlier.scoring.threshold import geometric_levels

__all__ = ["TERM_UNIT", "LogCounts"]

UNIT = 2**16
"""Floors are whole numbers of 1 / UNIT rows."""
TERM_UNIT = 2**32
"""Logarithms are whole numbers of 1 / TERM_UNIT, so that sums of them are the same in any order and on every machine."""
N_LEVELS = 32
"""Of thresholds: few, since each costs noise."""


@dataclass(frozen=True)
class LogCounts:
    r"""Score with the mean logarithm of the noisy counts of the T cells that a point y lies in.

    Plain, :math:`s_y = -\frac{1}{T} \sum_t \log \max(q^*_t(y), f)` with the floor f half the scale of the noise, at least 1/2.
    Below that a count is noise, and says no more than "empty".

    Soft, :math:`s_y = \frac{1}{T} \sum_t \log(1 + \frac{32 f}{\max(q^*_t(y), f)})` with f a quarter of the scale of the noise, at
    least 1/4. It levels off where counts are far above the noise: how much denser one dense region is than another says nothing
    about outliers. It lies between 0 and log 33.

    Parameters
    ----------
    soft : bool
    floor : int
        f, in units of 1 / UNIT rows.
    """

    soft: bool = False
    floor: int = UNIT // 2

    def __post_init__(self) -> None:
        true_or_false(soft=self.soft)
        at_least_one(2**52, floor=self.floor)

    @property
    def name(self) -> str:
        return "log-counts"

    @property
    def continuous(self) -> bool:
        return True

    @property
    def bend(self) -> int:
        """What is added to a count where the soft score levels off, in units of 1 / UNIT rows; 0 for the plain score."""
        return 32 * self.floor if self.soft else 0

    def with_noise(self, rate: Fraction | None) -> LogCounts:
        """The rule for noise of this rate, that is, of scale 1 / rate."""
        part = 4 if self.soft else 2
        scale = 0 if rate is None else int(UNIT / (part * rate))
        return LogCounts(self.soft, max(scale, UNIT // part))

    def terms(self, partition: Partition, counts: NoisyCounts) -> NDArray[np.int64]:
        """The logarithm of each cell's count, in units of 1 / TERM_UNIT; made once for a holder, and kept beside it."""
        known = _terms.get(counts)
        if known is None or known[0] != self or known[1] != partition:
            noisy, per_row = all_counts(counts, partition.n_cells)
            terms = np.empty(len(noisy), np.int64)
            log_terms(noisy, per_row, UNIT, self.floor, self.bend, terms)
            known = _terms[counts] = (self, partition, terms)
        return known[2]

    def outlier_scores(
        self, positions: Positions, partition: Partition, counts: NoisyCounts, n_jobs: int = 1
    ) -> NDArray[np.float64]:
        totals = np.zeros(len(positions), np.int64)
        terms = self.terms(partition, counts)

        def start() -> Callable[[slice], None]:
            return lambda part: partition.add_terms(positions[part], terms, totals[part])

        in_chunks(len(positions), n_jobs, start)
        return 0.0 - totals / (partition.cells_per_row * TERM_UNIT)

    def levels(self, partition: Partition) -> NDArray[np.float64]:  # noqa: ARG002 - the same for every partition
        """Down from the score of a point in empty cells only, the largest; close together where outliers score."""
        empty = np.empty(1, np.int64)
        log_terms(np.zeros(1, np.int64), 1, UNIT, self.floor, self.bend, empty)
        highest = 0.0 - empty[0] / TERM_UNIT
        if self.soft:
            return geometric_levels(highest, octaves=12, n=N_LEVELS)
        return np.asarray(highest - np.append(np.geomspace(16.0, 0.1, N_LEVELS - 1), 0.0))

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "soft": self.soft, "floor": self.floor}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> LogCounts:
        return cls(content["soft"], content["floor"])


_terms: WeakKeyDictionary[Any, tuple[LogCounts, Partition, NDArray[np.int64]]] = WeakKeyDictionary()
