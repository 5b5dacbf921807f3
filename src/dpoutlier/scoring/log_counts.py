"""The mean logarithm of the noisy counts around a point: the score of forests and marginals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import positive_int, true_or_false
from dpoutlier.counts.base import NoisyCounts, all_counts
from dpoutlier.features.axes import each_axis
from dpoutlier.kernels.logarithms import log_terms
from dpoutlier.partitions.base import Partition
from dpoutlier.partitions.members import MAX_MEMBER_CELLS
from dpoutlier.scoring.threads import in_chunks
from dpoutlier.scoring.threshold import ladder
from dpoutlier.tables.rows import Positions

UNIT = 2**16
"""Floors are whole numbers of 1 / UNIT rows."""
TERM_UNIT = 2**32
"""Logarithms are whole numbers of 1 / TERM_UNIT, so that sums of them are the same in any order and on every machine."""
BEND = 8
"""A soft logarithm is log(1 + BEND f / max(q, f)) with f the floor: it levels off at BEND floors, twice the scale of the noise."""
COMMON = 0.9
"""Levels of thresholds begin where the score of about this share of the rows lies above."""
FEW_FEATURES, CUT_IN = 2, 8
ROUNDED = 2.0**-26
"""Rounded logarithms can make a score rise by less than this when a row is added."""


@dataclass(frozen=True)
class LogCounts:
    r"""Score with the mean logarithm of the noisy counts of the T cells that a point y lies in.

    Plain, :math:`s_y = -\frac{1}{T} \sum_t \log \max(q^*_t(y), f)` with the floor f half the scale of the noise, at least 1/2.
    Below that a count is noise, and says no more than "empty".

    Soft, :math:`s_y = \frac{1}{T} \sum_t (g(q^*_t(y), f) + \frac{1}{2 s} \sum_j g(q^*_{t,j}(y), f \sqrt{B_j}))` with
    :math:`g(q, f) = \log(1 + 8 f / \max(q, f))` and f a quarter of the scale of the noise, at least 1/4. g levels off where counts
    are far above the noise: how much denser one dense region is than another says nothing about outliers. :math:`q^*_{t,j}` is
    the noisy count of the cell without its feature j, the sum of the :math:`B_j` cells that differ from it in j only, and s the
    number of the cell's features; the noise of such a sum is wider by :math:`\sqrt{B_j}`. The score lies between 0 and 3/2 log 9.

    Parameters
    ----------
    soft : bool
    floor : int
        f, in units of 1 / UNIT rows.
    """

    name: ClassVar[str] = "log-counts"

    soft: bool = False
    floor: int = UNIT // 2

    def __post_init__(self) -> None:
        true_or_false(soft=self.soft)
        positive_int(2**52, floor=self.floor)

    def continuous(self, partition: Partition) -> bool:
        """Marginals and forests of few features have few cells, and many rows with the same score."""
        return self.soft and partition.n_features > FEW_FEATURES

    def spread(self, partition: Partition) -> float:
        """With few features many rows share a score, and pass a level together. Trees cut a line in eight."""
        if not self.soft:
            return 1.0 if partition.n_features > FEW_FEATURES else math.inf
        return 1.0 if _parts(partition) >= CUT_IN**FEW_FEATURES else math.inf

    def few_ties(self, partition: Partition) -> bool:
        """In a forest, from the parts of four lines on."""
        return self.soft and _parts(partition) >= CUT_IN ** (2 * FEW_FEATURES)

    def falls(self, partition: Partition) -> bool:  # noqa: ARG002 - logarithms of counts and of sums only fall
        return True

    def suits(self, partition: Partition) -> bool:
        return partition.n_cells <= MAX_MEMBER_CELLS and bool(partition.members)

    def with_noise(self, rate: Fraction | None) -> LogCounts:
        """The rule for noise of this rate, that is, of scale 1 / rate."""
        part = 4 if self.soft else 2
        scale = 0 if rate is None else int(UNIT / (part * rate))
        return LogCounts(self.soft, max(scale, UNIT // part))

    def terms(self, partition: Partition, counts: NoisyCounts, less: int = 0) -> NDArray[np.int64]:
        """The logarithm of each cell's count, in units of 1 / TERM_UNIT: computed once for these counts and cached.

        ``less`` rows are taken from the cell, and from every sum that it is in.
        """
        known = _terms.setdefault(counts, {})
        found = known.get((self, partition, less))
        if found is None:
            found = known[self, partition, less] = self._terms_of(
                partition, all_counts(counts, partition.n_cells), less
            )
        return found

    def _terms_of(self, partition: Partition, noisy: NDArray[np.int64], less: int) -> NDArray[np.int64]:
        terms = self.logarithms(noisy - less, 1)
        for cells, shape, sums_over in _sums(partition) if self.soft else ():
            counts, out = noisy[cells].reshape(shape), terms[cells].reshape(shape)
            for axes in sums_over:
                sums = counts.sum(axis=axes, keepdims=True)
                logarithms = self.logarithms(sums.reshape(-1) - less, counts.size // sums.size)
                out += logarithms.reshape(sums.shape) // (2 * len(sums_over))
        return terms

    def logarithms(self, noisy: NDArray[np.int64], merged: int) -> NDArray[np.int64]:
        """Logarithms of sums of ``merged`` cells, in units of 1 / TERM_UNIT. Their noise is wider by the root of that number."""
        out, floor = np.empty(len(noisy), np.int64), self.floor_of(merged)
        log_terms(np.ascontiguousarray(noisy), UNIT, floor, BEND * floor if self.soft else 0, out)
        return out

    def floor_of(self, merged: int) -> int:
        """The floor for a sum of ``merged`` cells."""
        return math.isqrt(self.floor**2 * merged)

    def outlier_scores(
        self, positions: Positions, partition: Partition, counts: NoisyCounts, n_jobs: int = 1
    ) -> NDArray[np.float64]:
        return self._means(positions, partition, self.terms(partition, counts), n_jobs)

    def own_scores(
        self, positions: Positions, partition: Partition, counts: NoisyCounts, n_jobs: int = 1
    ) -> NDArray[np.float64]:
        return self._means(positions, partition, self.terms(partition, counts, less=1), n_jobs) + ROUNDED

    def _means(
        self, positions: Positions, partition: Partition, terms: NDArray[np.int64], n_jobs: int
    ) -> NDArray[np.float64]:
        totals = np.zeros(len(positions), np.int64)

        def start() -> Callable[[slice], None]:
            return lambda part: partition.add_terms(positions[part], terms, totals[part])

        in_chunks(len(positions), n_jobs, start)
        return 0.0 - totals / (partition.cells_per_row * TERM_UNIT)

    def levels(self, partition: Partition, counts: NoisyCounts, n: int, rarest: float) -> NDArray[np.float64]:
        """A ladder over where rows score by the released counts, and the largest possible score.

        Each member alone says which share of the rows lies in cells of which term. How members go together is not released; the
        ladder is laid as if the rows that are rare in one were rare in all, which is wide enough.
        """
        # Rows are scored without themselves. Many may have the score at which the ladder begins: it lies just above it.
        terms, noisy = -self.terms(partition, counts, less=1), all_counts(counts, partition.n_cells)
        rows = np.maximum(noisy, 0)
        lower = upper = highest = 0
        for member in partition.members:
            own, order = terms[member.cells], np.argsort(-terms[member.cells], kind="stable")
            above = rows[member.cells][order].cumsum()
            at = np.searchsorted(above, [COMMON * above[-1], rarest * above[-1]]).clip(max=len(own) - 1)
            lower, upper = lower + int(own[order[at[0]]]), upper + int(own[order[at[1]]])
            highest += int(own.max())
        unit = partition.cells_per_row * TERM_UNIT
        found = ladder(lower / unit, upper / unit, n - 1) + 2 * ROUNDED
        return np.append(found, max(highest / unit + 2 * ROUNDED, math.nextafter(found[-1], math.inf)))

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "soft": self.soft, "floor": self.floor}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> LogCounts:
        return cls(content["soft"], content["floor"])


def _parts(partition: Partition) -> int:
    """In how many parts trees can part all features together."""
    return math.prod(axis.levels or CUT_IN for axis in each_axis(partition.axes, partition.n_features))


def _sums(partition: Partition) -> list[tuple[slice, tuple[int, ...], tuple[tuple[int, ...], ...]]]:
    """For each member: its cells, their shape, and for each feature the axes to sum over."""
    return [(member.cells, member.shape, member.sums) for member in partition.members]


_terms: WeakKeyDictionary[Any, dict[tuple[LogCounts, Partition, int], NDArray[np.int64]]] = WeakKeyDictionary()
