"""A plan: every public choice of a fit, made before any row is read."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dpoutlier._validate import parameter_error
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.domain import Domain
from dpoutlier.noise.mechanism import Cost, Sensitivity
from dpoutlier.noise.permute_and_flip import PermuteAndFlip
from dpoutlier.noise.registry import noise_costing
from dpoutlier.partitions.base import Partition
from dpoutlier.privacy.guarantee import Charge, Guarantee, Purpose
from dpoutlier.privacy.receipt import Receipt
from dpoutlier.scoring.base import Scorer

ROW_COUNT_SHARE = Fraction(1, 20)
QUANTILES = 2
"""Chosen for each feature with private bounds."""


def cost_of_part(guarantee: Guarantee, epsilon: Fraction) -> Cost:
    """What a part of a fit with this epsilon may cost. It gets the same share of delta."""
    return Cost(epsilon, guarantee.delta * epsilon / guarantee.epsilon if guarantee.epsilon else Fraction(0))


def charge_for(purpose: Purpose, cost: Cost, sensitivity: Sensitivity) -> Charge:
    """The charge for noise of this cost, or for bounds, which are chosen without noise."""
    make = PermuteAndFlip.costing if purpose == Purpose.BOUNDS else noise_costing
    return Charge(purpose, cost.epsilon, sensitivity, make(cost, sensitivity))


@dataclass(frozen=True)
class Plan:
    """Public inputs of a fit."""

    detector: str
    domain: Domain
    make_partition: Callable[[int | None, float], Partition]
    """From a public number of rows, or None, and the epsilon of the counts for one row."""
    scorer: Scorer
    guarantee: Guarantee
    bounds_share: Fraction = Fraction(0)
    """Share of epsilon for private bounds."""
    counts: str = "auto"
    sparse_size: int = 10_000
    """Sparse counts: largest expected number of empty cells that pass."""
    n_rows_hint: int | Literal["estimate"] | None = None
    target_fpr: float | None = None
    threshold_share: Fraction = Fraction(1, 20)
    unsafe_seed: int | None = None
    n_jobs: int = 1
    reserve: Callable[[Guarantee, str], Receipt] | None = None
    """Charges a fit with this guarantee, of this detector, to a ledger; None: there is no ledger."""

    def __post_init__(self) -> None:
        if self.cost_of_counts is not None and self.cost_of_counts.epsilon <= 0:
            if not self.bounds_share:
                raise parameter_error(
                    "threshold_share", "small enough to leave some of epsilon for the counts", self.threshold_share
                )
            shares = f"threshold_share={float(self.threshold_share)} and the share of PrivateBounds={float(self.bounds_share)}"
            raise InvalidParameterError(f"{shares} leave nothing of epsilon for the counts: use smaller ones.")
        if self.guarantee.epsilon is not None:  # shares that are too small are refused here, before any row is read
            sensitivity = self.guarantee.sensitivity()
            if self.n_rows_hint == "estimate":
                charge_for(Purpose.ROW_COUNT, self.part(ROW_COUNT_SHARE), sensitivity)
            if self.target_fpr is not None:
                charge_for(Purpose.THRESHOLD, self.part(self.threshold_share), sensitivity)
            self.charge_for_bounds()

    def reserved(self) -> Receipt | None:
        """Charge the fit, if there is a ledger."""
        return None if self.reserve is None else self.reserve(self.guarantee, self.detector)

    def part(self, share: Fraction) -> Cost:
        """What a share of the guarantee may cost."""
        assert self.guarantee.epsilon is not None
        return cost_of_part(self.guarantee, self.guarantee.epsilon * share)

    def charge_for_bounds(self) -> Charge | None:
        """A row counts in two quantiles of each feature with private bounds. None if there is nothing to charge."""
        if not self.domain.estimated or self.guarantee.epsilon is None:
            return None
        sensitivity = self.guarantee.sensitivity(QUANTILES * len(self.domain.estimated))
        return charge_for(Purpose.BOUNDS, self.part(self.bounds_share), sensitivity)

    @property
    def cost_of_counts(self) -> Cost | None:
        """What is left for the counts; None for infinity."""
        if self.guarantee.epsilon is None:
            return None
        spent = ROW_COUNT_SHARE if self.n_rows_hint == "estimate" else Fraction(0)
        spent += self.threshold_share if self.target_fpr is not None else Fraction(0)
        spent += self.bounds_share if self.domain.estimated else Fraction(0)
        return self.part(1 - spent)

    @property
    def epsilon_per_row(self) -> float:
        """What the rules for partitions call epsilon: that of the counts, for one row more or less."""
        cost = self.cost_of_counts
        return math.inf if cost is None else float(cost.epsilon / self.guarantee.sensitivity().l1)
