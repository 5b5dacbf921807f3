"""Whether the charges of a model follow from its guarantee, whatever the version of its file."""

from dataclasses import replace
from fractions import Fraction

from dpoutlier.counts.keyed import KeyedCounts
from dpoutlier.exceptions import ModelFileError
from dpoutlier.features.domain import Domain
from dpoutlier.model.looks import MAX_LOOKS
from dpoutlier.model.merged import Merged
from dpoutlier.model.model import Model
from dpoutlier.model.plan import QUANTILES, ROW_COUNT_SHARE, charge_for, cost_of_part
from dpoutlier.partitions.base import Partition
from dpoutlier.privacy.guarantee import MAX_EPSILON, MIN_EPSILON, Charge, Guarantee, Purpose

CHOICES = {Purpose.BOUNDS: QUANTILES, Purpose.RANGES: 1}
"""Choices for each feature, of what is chosen."""


def check_charges(model: Model) -> None:
    """Check that the charges are what the guarantee promises, to the last digit."""
    histogram = model.score_histogram
    paid = {charge.purpose: charge.mechanism for charge in model.charges}
    if model.merged is None:
        domain = model.domain
        n_chosen = {Purpose.BOUNDS: len(domain.estimated), Purpose.RANGES: len(domain.loose)}
        _check_fit(model.charges, model.guarantee, model.partition, threshold=histogram is not None, n_chosen=n_chosen)
        if domain.declared is not None and model.guarantee.epsilon is not None and Purpose.RANGES not in paid:
            raise ModelFileError("the model file has ranges that were narrowed, and no charge for that.")
        if Purpose.ROW_COUNT in paid and model.n_rows_hint is None:
            raise ModelFileError("the number of rows in the model file was not estimated as this format does.")
        rate = paid[Purpose.COUNTS].rate if Purpose.COUNTS in paid else None
    else:
        _check_merged(model, model.merged)
        rate = model.merged.rate
    if histogram is not None and histogram.noise != paid.get(Purpose.THRESHOLD):
        raise ModelFileError("the threshold of the model file was not estimated at the rate that it states.")
    if model.scorer != model.scorer.with_noise(rate):
        raise ModelFileError("the scoring rule of the model file does not match its noise.")
    if isinstance(model.counts, KeyedCounts) and model.counts.noise != paid.get(Purpose.COUNTS):
        raise ModelFileError("the noise of the model file is not the noise that was charged.")


def _check_merged(model: Model, merged: Merged) -> None:
    """Check each part as if it stood alone, then what the parts promise together."""
    for part in merged.parts:
        check_epsilon(part.epsilon)
        own = replace(model.guarantee, epsilon=part.epsilon)
        estimated = {charge.purpose for charge in part.charges}
        n_chosen = _n_chosen(part.charges, own, model.domain)
        _check_fit(part.charges, own, model.partition, threshold=Purpose.THRESHOLD in estimated, n_chosen=n_chosen)
    if model.charges != merged.charges:
        raise ModelFileError("the charges of the model file do not match its parts.")
    if model.guarantee.epsilon != merged.epsilon:
        raise ModelFileError("the epsilon of the model file does not match its parts together.")
    if (
        model.domain.estimated
        or model.domain.declared is not None
        or not model.publishable
        or model.n_rows_hint is not None
        or model.score_histogram is not None
    ):
        raise ModelFileError("the model file claims to be merged, but it is not what a merge makes.")


def _n_chosen(charges: tuple[Charge, ...], guarantee: Guarantee, domain: Domain) -> dict[Purpose, int]:
    """Number of features of each choice of a part of a merge.

    That with private bounds is what their charge says, but no more than there are. All others without levels have a declared range.
    """
    numbers = sum(domain.category(j) is None for j in range(domain.n_features))
    paid = {charge.purpose: charge.sensitivity.l1 for charge in charges}
    estimated = min(paid.get(Purpose.BOUNDS, 0) // guarantee.sensitivity(CHOICES[Purpose.BOUNDS]).l1, numbers)
    return {Purpose.BOUNDS: estimated, Purpose.RANGES: numbers - estimated}


def _check_fit(
    charges: tuple[Charge, ...],
    guarantee: Guarantee,
    partition: Partition,
    *,
    threshold: bool,
    n_chosen: dict[Purpose, int],
) -> None:
    """The charges of one fit must follow from its guarantee."""
    estimated = [charge.epsilon for charge in charges if charge.purpose == Purpose.ROW_COUNT]
    expected = [] if guarantee.epsilon is None else [Purpose.COUNTS]
    if guarantee.epsilon is not None:
        looks = sum(charge.purpose == Purpose.RANGES for charge in charges) if n_chosen[Purpose.RANGES] else 0
        first = [Purpose.ROW_COUNT] * bool(estimated) + [Purpose.BOUNDS] * bool(n_chosen[Purpose.BOUNDS])
        expected = [*first, *[Purpose.RANGES] * min(looks, MAX_LOOKS), *expected, *[Purpose.THRESHOLD] * threshold]
    if [charge.purpose for charge in charges] != expected:
        raise ModelFileError("the charges of the model file do not match its parts.")
    if estimated and estimated != [(guarantee.epsilon or 0) * ROW_COUNT_SHARE]:
        raise ModelFileError("the number of rows in the model file was not estimated as this format does.")
    if sum((charge.epsilon for charge in charges), Fraction(0)) != (guarantee.epsilon or 0):
        raise ModelFileError("the charges of the model file do not add up to its epsilon.")
    own = {Purpose.COUNTS: partition.cells_per_row}
    own |= {purpose: choices * n_chosen[purpose] for purpose, choices in CHOICES.items()}
    for charge in charges:
        sensitivity, cost = guarantee.sensitivity(own.get(charge.purpose, 1)), cost_of_part(guarantee, charge.epsilon)
        if charge != charge_for(charge.purpose, cost, sensitivity):
            raise ModelFileError(
                f"the charge for {charge.purpose} in the model file does not follow from its guarantee."
            )


def check_epsilon(epsilon: Fraction) -> None:
    if not MIN_EPSILON <= epsilon <= MAX_EPSILON:
        raise ModelFileError("the epsilon of the model file is outside 1e-12 to 1e9.")
