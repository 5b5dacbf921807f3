"""Releases on the same partition, added up. Reads what was released and nothing else, so it is free of privacy cost."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpoutlier._validate import parameter_error
from dpoutlier.counts.add import ADDED_BY_KIND, added
from dpoutlier.detectors.fitted import FittedDetector, HoldsModel
from dpoutlier.detectors.load import read_model
from dpoutlier.detectors.registry import check_known
from dpoutlier.exceptions import InvalidParameterError, SecretError
from dpoutlier.model.merged import Merged, Part, People, charged_to_same_dataset
from dpoutlier.model.model import Model
from dpoutlier.model.release_id import release_id
from dpoutlier.privacy.guarantee import MAX_EPSILON

WHO = (
    "'disjoint' declares that nobody has rows in more than one of these releases: then epsilon is the largest of their epsilons. "
    "'overlapping' says that somebody may: then their epsilons add up. If you do not know, it is 'overlapping'."
)
SHOWN = 12
MAX_DIGITS = 200


def merge(models: Iterable[str | Path | HoldsModel], *, people: str) -> FittedDetector:
    """Add up releases that were made on the same partition, without any of the rows behind them.

    Counts add up cell by cell, and so does their noise. The thresholds of the parts are dropped, because they were made for the
    scores of single parts; set a new one with ``set_threshold(score=...)``. The order of the models does not matter, and merged
    models can be merged again. A merge reads released models only and has no privacy cost.

    Parameters
    ----------
    models : sequence of str, Path, FittedDetector or fitted detectors
        At least two publishable models that agree in detector, features, bins or trees, scoring rule, relation and
        rows_per_person. None of them may occur twice, not even within another merge.
    people : {'disjoint', 'overlapping'}
        'disjoint' declares that nobody has rows in more than one of the releases: epsilon is then the largest of theirs.
        'overlapping' says that somebody may: epsilons add up. Use 'overlapping' if in doubt.

    Returns
    -------
    FittedDetector
        The merged model, ready to score.

    Raises
    ------
    InvalidParameterError
        If the models do not fit together, or if they are declared 'disjoint' and two of them were charged to the same data set
        of the same ledger.
    SecretError
        If one of the models is secret.
    ModelFileError
        If a file does not exist, is damaged, or was written by a newer version.

    See Also
    --------
    load : Load one model.

    References
    ----------
    .. [1] F. McSherry, "Privacy integrated queries", SIGMOD 2009: sequential and parallel composition.
    .. [2] J. Rauch, I. E. Olatunji and M. Khosla, "Achieving differential privacy for k-nearest neighbors based outlier detection
       by data partitioning", arXiv:2104.07938, Theorem 1 (composition).

    Examples
    --------
    >>> import numpy as np
    >>> from dpoutlier import DPMarginals, merge
    >>> one, other = (DPMarginals(1, features=(0, 1), bins=3).fit(np.zeros((n, 2))) for n in (500, 300))
    >>> merge([one, other], people="disjoint").privacy_statement().epsilon
    '1'
    >>> merge([one, other], people="overlapping").privacy_statement().epsilon
    '2'
    """
    if people not in list(People):
        raise parameter_error("people", "'disjoint' or 'overlapping'", people, WHO)
    if isinstance(models, str | Path | HoldsModel):
        raise parameter_error("models", "a list of at least two models or paths", models)
    named = [_named(given, number) for number, given in enumerate(models, 1)]
    if len(named) < 2:
        raise parameter_error("models", "at least two", len(named), "A single release does not need a merge.")
    for name, model in named:
        _check_alone(name, model)
    for name, model in named[1:]:
        _check_alike(named[0], (name, model))
    parts = _parts(named, People(people))
    first = named[0][1]
    merged = Merged(People(people), tuple(sorted(parts, key=lambda part: part.release)))
    _check_epsilon(merged)
    model = Model(
        detector=first.detector,
        # Which bounds were chosen, and what that cost, stands in the parts.
        domain=replace(first.domain, outer=None, declared=None),
        partition=first.partition,
        scorer=first.scorer.with_noise(merged.rate),
        counts=added([model.counts for _, model in named]),
        guarantee=replace(first.guarantee, epsilon=merged.epsilon),
        charges=merged.charges,
        merged=merged,
    )
    check_known(model.detector)
    return FittedDetector(model)


def _named(given: Any, number: int) -> tuple[str, Model]:
    """A model, with what to call it in messages."""
    if isinstance(given, str | Path):
        return str(given), read_model(given, secret=True)  # a secret one is refused below, in words that fit
    if not isinstance(given, HoldsModel):
        raise parameter_error(f"model {number}", "the path of a model file, or a fitted detector with a model", given)
    return f"model {number}", given._fitted_model()


def _check_alone(name: str, model: Model) -> None:
    if not model.publishable:
        raise SecretError(
            f"{name} is secret (see its privacy statement), and only publishable releases are merged: not keyed or seeded ones, "
            "not those of infinite epsilon or without privacy. Fit with counts='dense' and a finite epsilon."
        )
    if model.guarantee.delta:
        raise InvalidParameterError(
            f"{name} has delta = {model.guarantee.delta}, and only pure releases (delta = 0) can be merged so far."
        )
    if model.counts.kind not in ADDED_BY_KIND:
        raise InvalidParameterError(f"{name} has {model.counts.kind} counts, which cannot be added up.")


def _check_alike(first: tuple[str, Model], other: tuple[str, Model]) -> None:
    """Refuse to add what does not count the same things in the same unit."""
    wanted = _alike(other[1])
    for what, one in _alike(first[1]).items():
        if one == wanted[what]:
            continue
        hint = ""
        domains = first[1].domain, other[1].domain
        if any(domain.estimated for domain in domains):
            hint = " Private bounds hardly ever agree: estimate them once, and let the others declare them."
        if any(domain.declared for domain in domains):
            hint = (
                " A fit has narrowed its ranges to where its own rows lie. Let one custodian fit first, tight_ranges=False and "
                "bins, or n_trees and depth, in numbers; and the others with the same numbers, features=first.bounds_ and "
                "tight_ranges=True."
            )
        raise InvalidParameterError(
            f"{first[0]} and {other[0]} differ in {what}: {_short(one)} and {_short(wanted[what])}. Releases add up only if they "
            f"agree in it; custodians must choose it together before they fit.{hint}"
        )


def _alike(model: Model) -> dict[str, Any]:
    """What the parts of a merge must have in common, by its name in messages."""
    return {
        "their detector": model.detector,
        "their features": model.domain.names,
        "their lower bounds": model.domain.lower,
        "their upper bounds": model.domain.upper,
        "their levels": model.domain.categories,
        "their cells for missing values": model.domain.missing,
        "their bins or trees": model.partition.to_json(),
        "their scoring rule": model.scorer.with_noise(None).to_json(),
        "their neighbouring relation": model.guarantee.neighbours.value,
        "their unit (rows_per_person)": model.guarantee.rows_per_person,
        "how people are identified": model.guarantee.person,
        "their counts": model.counts.to_json(),
    }


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _parts(named: list[tuple[str, Model]], people: People) -> list[Part]:
    """The parts of all models, those of merged models one by one. The same release twice would count its rows twice."""
    found: dict[str, tuple[str, Part]] = {}
    for name, model in named:
        if model.merged is not None and model.merged.people != people:
            raise InvalidParameterError(
                f"{name} is already a merge of {model.merged.people.value} people, but this merge is of {people.value} people. "
                "dpoutlier cannot compute the epsilon of such a mixture. Merge the single releases instead; use 'overlapping' if "
                "in doubt."
            )
        for part in _parts_of(model):
            if part.release in found:
                raise InvalidParameterError(
                    f"{found[part.release][0]} and {name} hold the same release ({part.release[:SHOWN]}): its rows would count "
                    "twice. Leave one of them out."
                )
            found[part.release] = (name, part)
    alike = charged_to_same_dataset(part for _, part in found.values()) if people is People.DISJOINT else None
    if alike is not None:
        one, other = (found[part.release][0] for part in alike)
        assert alike[0].receipt is not None
        raise InvalidParameterError(
            f"{one} and {other} were charged to the same data set, {alike[0].receipt.dataset!r}, of the same ledger, so they are "
            "releases of the same people, and people cannot be 'disjoint'. Use people='overlapping' (--people overlapping): their "
            "epsilons add up. If nobody has rows in both, give each its own budget before the fit: ledger create --part-of."
        )
    return [part for _, part in found.values()]


def _parts_of(model: Model) -> tuple[Part, ...]:
    if model.merged is not None:
        return model.merged.parts
    assert model.guarantee.epsilon is not None
    return (Part(release_id(model), model.guarantee.epsilon, model.charges, model.receipt),)


def _check_epsilon(merged: Merged) -> None:
    if merged.epsilon > MAX_EPSILON:
        raise InvalidParameterError("the epsilons of these releases add up to more than 1e9, which is not supported.")
    if len(str(merged.epsilon.denominator)) > MAX_DIGITS or len(str(merged.epsilon.numerator)) > MAX_DIGITS:
        raise InvalidParameterError(
            f"the epsilons of these releases add up to a fraction of more than {MAX_DIGITS} digits, which a model file cannot "
            "hold. Fit with simpler epsilons, such as 0.5."
        )
