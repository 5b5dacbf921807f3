"""A plan: every public choice of a fit, made before any row is read."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dpoutlier._validate import parameter_error
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.domain import Domain
from dpoutlier.model.looks import Kind, Look, first_look, second_look
from dpoutlier.noise.mechanism import Cost, Sensitivity
from dpoutlier.noise.permute_and_flip import PermuteAndFlip
from dpoutlier.noise.registry import noise_costing
from dpoutlier.partitions.base import Partition
from dpoutlier.privacy.guarantee import Charge, Guarantee, Purpose
from dpoutlier.privacy.receipt import Receipt
from dpoutlier.scoring.base import Scorer

ROW_COUNT_SHARE = Fraction(1, 20)
USUAL_SHARE, LEAST_SHARE, MOST_SHARE = Fraction(1, 5), Fraction(1, 20), Fraction(1, 4)
"""Of epsilon, for a threshold: where no number of rows is public; where rows abound; where they are just enough."""
QUANTILES = 2
"""Chosen for each feature with private bounds."""


def cost_of_part(guarantee: Guarantee, epsilon: Fraction) -> Cost:
    """What a part of a fit with this epsilon may cost. It gets the same share of delta."""
    return Cost(epsilon, guarantee.delta * epsilon / guarantee.epsilon if guarantee.epsilon else Fraction(0))


def charge_for(purpose: Purpose, cost: Cost, sensitivity: Sensitivity) -> Charge:
    """The charge for noise of this cost, or for a choice, which gets no noise."""
    make = PermuteAndFlip.costing if purpose.is_choice else noise_costing
    return Charge(purpose, cost.epsilon, sensitivity, make(cost, sensitivity))


def share_for_threshold(n_rows: int | None, epsilon_per_row: float, target_fpr: float) -> Fraction:
    """Share of epsilon for a threshold, from public numbers alone.

    With x = rows times epsilon times the target over 5 %: a quarter from 400 to 10,000, and less where x is so small that no share
    would do, or so large that less is enough. docs/alerts.md has the measurements.

    >>> [float(share_for_threshold(n, 1.0, 0.05)) for n in (100, 1000, 10_000, 1_000_000)]
    [0.062, 0.25, 0.25, 0.05]
    """
    if n_rows is None:
        return USUAL_SHARE
    x = max(n_rows * epsilon_per_row * target_fpr / 0.05, 1e-9)
    share = min(x / 1600, float(MOST_SHARE)) * min(1.0, math.sqrt(10_000 / x))
    return max(Fraction(round(1000 * share), 1000), LEAST_SHARE)


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
    tight_ranges: bool = True
    """Whether declared ranges are taken as they are; else a fit looks for where the rows lie within them."""
    counts: str = "auto"
    sparse_size: int = 10_000
    """Sparse counts: largest expected number of empty cells that pass."""
    n_rows_hint: int | Literal["estimate"] | None = None
    target_fpr: float | None = None
    outlier_share: float = 0.0
    """Declared share of outliers among the reference rows."""
    threshold_share: Fraction = Fraction(1, 20)
    unsafe_seed: int | None = None
    n_jobs: int = 1
    reserve: Callable[[Guarantee, str], Receipt] | None = None
    """Charges a fit with this guarantee, of this detector, to a ledger; None: there is no ledger."""

    def __post_init__(self) -> None:
        if self.left <= 0 and self.guarantee.epsilon is not None:
            if not self.bounds_share:
                raise parameter_error(
                    "threshold_share", "small enough to leave some of epsilon for the counts", self.threshold_share
                )
            shares = f"threshold_share={float(self.threshold_share)} and the share of PrivateBounds={float(self.bounds_share)}"
            raise InvalidParameterError(f"{shares} leave nothing of epsilon for the counts: use smaller ones.")
        if self.guarantee.epsilon is not None:  # shares that are too small are refused here, before any row is read
            if self.n_rows_hint == "estimate":
                self.charge_for_row_count()
            if self.target_fpr is not None:
                self.charge_for_threshold()
            self.charge_for_bounds()

    def reserved(self) -> Receipt | None:
        """Charge the fit, if there is a ledger."""
        return None if self.reserve is None else self.reserve(self.guarantee, self.detector)

    def part(self, share: Fraction) -> Cost:
        """What a share of the guarantee may cost."""
        assert self.guarantee.epsilon is not None
        return cost_of_part(self.guarantee, self.guarantee.epsilon * share)

    def charge_for_one_bin(self, purpose: Purpose, share: Fraction) -> Charge | None:
        """For a short vector in which a row counts once. None if there is nothing to charge."""
        if self.guarantee.epsilon is None:
            return None
        return charge_for(purpose, self.part(share), self.guarantee.sensitivity())

    def charge_for_threshold(self) -> Charge | None:
        return self.charge_for_one_bin(Purpose.THRESHOLD, self.threshold_share)

    def charge_for_row_count(self) -> Charge | None:
        return self.charge_for_one_bin(Purpose.ROW_COUNT, ROW_COUNT_SHARE)

    def charge_for_bounds(self) -> Charge | None:
        """A row counts in two quantiles of each feature with private bounds. None if there is nothing to charge."""
        if not self.domain.estimated or self.guarantee.epsilon is None:
            return None
        sensitivity = self.guarantee.sensitivity(QUANTILES * len(self.domain.estimated))
        return charge_for(Purpose.BOUNDS, self.part(self.bounds_share), sensitivity)

    @property
    def left(self) -> Fraction:
        """The share of epsilon for the counts, and for looks at where the rows lie."""
        spent = ROW_COUNT_SHARE if self.n_rows_hint == "estimate" else Fraction(0)
        spent += self.threshold_share if self.target_fpr is not None else Fraction(0)
        spent += self.bounds_share if self.domain.estimated else Fraction(0)
        return 1 - spent

    def cost_of_counts(self, looks: Fraction = Fraction(0)) -> Cost | None:
        """What is left for the counts after ``looks``, a share of ``left``; None for infinity."""
        return None if self.guarantee.epsilon is None else self.part(self.left * (1 - looks))

    def charge_for_look(self, look: Look) -> Charge:
        """A row counts in one window of each feature, whether one is chosen for each or one for all of them together."""
        sensitivity = self.guarantee.sensitivity(len(self.domain.loose))
        return charge_for(Purpose.RANGES, self.part(self.left * look.share), sensitivity)

    @property
    def epsilon_per_row(self) -> float:
        """What the rules for partitions call epsilon: that of counts and looks together, for one row more or less.

        So the partition is the same whatever the looks find.
        """
        return math.inf if self.guarantee.epsilon is None else float(self._per_row)

    @property
    def _per_row(self) -> Fraction:
        cost = self.cost_of_counts()
        assert cost is not None
        return cost.epsilon / self.guarantee.sensitivity().l1

    def first_look(self, n_rows: int | None) -> Look | None:
        """The first look at where rows lie. Without noise it costs nothing, and each feature is looked at."""
        if self.tight_ranges or n_rows is None or not self.domain.loose:
            return None
        if self.guarantee.epsilon is None:
            return Look(Kind.EACH, Fraction(0), float(n_rows))
        return self._if_possible(first_look(n_rows * self._per_row, len(self.domain.loose)))

    def second_look(self, n_rows: int) -> Look | None:
        """The second look, where the first has found all ranges together too wide."""
        return self._if_possible(second_look(n_rows * self._per_row, len(self.domain.loose)))

    def _if_possible(self, look: Look | None) -> Look | None:
        """No look where its share is too small for any mechanism."""
        try:
            if look is not None:
                self.charge_for_look(look)
        except InvalidParameterError:
            return None
        return look
