"""A model: what was released, and how to score with it. Frozen."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier.counts.base import NoisyCounts
from dpoutlier.exceptions import InvalidParameterError, ThresholdNotSetError
from dpoutlier.features.domain import Domain
from dpoutlier.model.merged import Merged
from dpoutlier.model.statement import PrivacyStatement, privacy_statement
from dpoutlier.noise.mechanism import Noise
from dpoutlier.partitions.base import Partition
from dpoutlier.privacy.guarantee import LEAKED, Charge, Guarantee, Purpose
from dpoutlier.privacy.receipt import Receipt
from dpoutlier.scoring.base import Scorer
from dpoutlier.scoring.false_alarms import FalseAlarms, false_alarms
from dpoutlier.scoring.p_values import PValues, p_values_of
from dpoutlier.scoring.threshold import ScoreHistogram, n_levels, rarest
from dpoutlier.tables.rows import Positions

USUAL_ROWS = 5000
"""Levels of thresholds are laid for so many rows where no public number is given."""


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

    def own_scores(self, positions: Positions, n_jobs: int = 1) -> NDArray[np.float64]:
        """Scores of reference rows, each as if it were not among them."""
        return self.scorer.own_scores(positions, self.partition, self.counts, n_jobs)

    def with_threshold(self, score: float) -> Model:
        return replace(self, threshold=float(score))

    def with_target_fpr(self, target_fpr: float) -> Model:
        return self.with_threshold(self._histogram.threshold(target_fpr))

    @property
    def _histogram(self) -> ScoreHistogram:
        if self.merged is not None or self.score_histogram is None:
            raise ThresholdNotSetError.no_histogram(merged=self.merged is not None)
        return self.score_histogram

    def levels(self, noise: Noise | None) -> NDArray[np.float64]:
        """Where scores are expected, for a histogram with this noise: from what is released and public, and from no row."""
        n_rows = USUAL_ROWS if self.n_rows_hint is None else self.n_rows_hint
        x = math.inf if noise is None else float(n_rows * noise.rate)
        return self.scorer.levels(self.partition, self.counts, n_levels(x), rarest(x))

    def false_alarms(self, level: Any = 0.9) -> FalseAlarms | None:
        """What the threshold does. None without one, or without a histogram in which each row was left out of its own score."""
        histogram = self.score_histogram
        if self.threshold is None or self.merged is not None or histogram is None or not histogram.left_out:
            return None
        return false_alarms(histogram, self.threshold, level, self.scorer.spread)

    def p_values(self) -> PValues:
        """The p-value of each bin of scores, or an error that says why there are none."""
        if self.merged is not None or self.score_histogram is None:
            raise ThresholdNotSetError.no_p_values(merged=self.merged is not None)
        histogram, problem, remedy = self.score_histogram, "", "Fit again, with target_fpr."
        if not histogram.left_out:
            problem = "its histogram of scores was made by an older dpoutlier, which scored each row as one of the reference rows"
        elif not self.scorer.falls:
            problem = "scores of this kind can rise when a row is added, and p-values are proved for others only"
            remedy = "Use DPForest, DPMarginals, or DPGridKNN without weighted=True and distance='point'."
        elif LEAKED in self.guarantee.voided_by or (self.guarantee.epsilon is None and self._found_by_rows):
            problem = "its ranges were taken from the reference rows without noise"
            remedy = "Declare ranges, and give tight_ranges=True."
        if problem:
            raise InvalidParameterError(f"the model gives no p-values: {problem}.", remedy=remedy)
        chosen = sum((charge.epsilon for charge in self.charges if charge.purpose.is_choice), Fraction(0))
        return p_values_of(histogram, math.exp(chosen))

    @property
    def _found_by_rows(self) -> bool:
        """Whether ranges follow the rows."""
        return self.domain.declared is not None or bool(self.domain.estimated)

    def privacy_statement(self) -> PrivacyStatement:
        return privacy_statement(self)
