"""A model: what was released, and how to score with it. Frozen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpoutlier.counts.base import NoisyCounts
from dpoutlier.exceptions import ThresholdNotSetError
from dpoutlier.features.domain import Domain
from dpoutlier.model.merged import Merged
from dpoutlier.model.statement import PrivacyStatement, privacy_statement
from dpoutlier.noise.mechanism import Noise
from dpoutlier.partitions.base import Partition
from dpoutlier.privacy.guarantee import Charge, Guarantee, Purpose
from dpoutlier.privacy.receipt import Receipt
from dpoutlier.scoring.base import Scorer
from dpoutlier.scoring.threshold import ScoreHistogram
from dpoutlier.tables.rows import Positions


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """Everything that scoring needs. If ``publishable``, everything in it may be published."""

    detector: str
    domain: Domain
    partition: Partition
    scorer: Scorer
    counts: NoisyCounts
    guarantee: Guarantee
    charges: tuple[Charge, ...]
    n_rows_hint: int | None = None
    """The number of rows that the rules for looks and partition used: public, or estimated (then a charge says so)."""
    score_histogram: ScoreHistogram | None = None
    threshold: float | None = None
    merged: Merged | None = None
    """The releases that were added up, if this is a merge; ``charges`` are then those of all of them."""
    receipt: Receipt | None = None
    """Where in a ledger the fit was charged, if there is one."""

    def __repr__(self) -> str:
        kind = "publishable" if self.publishable else "secret"
        return f"<{kind} {self.detector} model, {self.domain.n_features} features, {self.counts.kind} counts>"

    @property
    def publishable(self) -> bool:
        return self.guarantee.private and self.counts.publishable

    @property
    def epsilon_in_use(self) -> Fraction:
        """Actual epsilon of the noise: at most ``guarantee.epsilon``, since rates are rounded down."""
        if self.merged is not None:
            return self.merged.epsilon_in_use
        return sum((charge.epsilon_in_use for charge in self.charges), Fraction(0))

    @property
    def noise_laws(self) -> tuple[Noise, ...]:
        """Laws of the independent draws on the count of each cell: one, one for each part of a merge, or none."""
        return tuple(charge.noise for charge in self.charges if charge.purpose == Purpose.COUNTS)

    def outlier_scores(self, positions: Positions, n_jobs: int = 1) -> NDArray[np.float64]:
        return self.scorer.outlier_scores(positions, self.partition, self.counts, n_jobs)

    def with_threshold(self, score: float) -> Model:
        return replace(self, threshold=float(score))

    def with_target_fpr(self, target_fpr: float) -> Model:
        if self.merged is not None or self.score_histogram is None:
            raise ThresholdNotSetError.no_histogram(merged=self.merged is not None)
        return self.with_threshold(self.score_histogram.threshold(target_fpr))

    def privacy_statement(self) -> PrivacyStatement:
        return privacy_statement(self)
