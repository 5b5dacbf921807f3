"""What a model needs to know of a scoring rule, and all it may know."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpoutlier.counts.base import NoisyCounts
from dpoutlier.partitions.base import Partition
from dpoutlier.tables.rows import Positions


class Scorer(Protocol):
    """A rule that turns positions and released counts into outlier scores."""

    @property
    def name(self) -> str:
        """The word for it in files."""

    def continuous(self, partition: Partition) -> bool:
        """Whether scores lie anywhere between the levels of thresholds, so that a threshold may too."""

    def few_ties(self, partition: Partition) -> bool:
        """Whether so few rows share a score that the number of rows above a level is as good as binomial."""

    def falls(self, partition: Partition) -> bool:
        """Whether no score ever rises when a row is added, wherever it is. Then p-values have a proof."""

    def spread(self, partition: Partition) -> float:
        """How much wider than a binomial one the law of the number of rows above a level is; infinity if nobody knows."""

    def suits(self, partition: Partition) -> bool:
        """Whether it can score by the counts of such a partition."""

    def with_noise(self, rate: Fraction | None) -> Scorer:
        """The rule for counts whose noise has this rate; None: without noise."""

    def outlier_scores(
        self, positions: Positions, partition: Partition, counts: NoisyCounts, n_jobs: int = 1
    ) -> NDArray[np.float64]:
        """Larger means more outlying."""

    def own_scores(
        self, positions: Positions, partition: Partition, counts: NoisyCounts, n_jobs: int = 1
    ) -> NDArray[np.float64]:
        """Scores of reference rows, each as if it were not among them: as a point that the counts do not know."""

    def levels(self, partition: Partition, counts: NoisyCounts, n: int, rarest: float) -> NDArray[np.float64]:
        """About ``n`` ascending scores at which a threshold may lie, where scores are expected by the released counts.

        ``rarest`` is the smallest share of rows that they are laid for.
        """

    def to_json(self) -> dict[str, Any]: ...
