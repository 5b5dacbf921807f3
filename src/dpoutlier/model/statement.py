"""The privacy statement: what a fit promises, as data and as a page that a data-protection officer can sign."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from importlib import metadata
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from dpoutlier.counts.sparse import SparseCounts, expected_empty
from dpoutlier.features.domain import Domain
from dpoutlier.model.held import Held, held_parts
from dpoutlier.model.merged import Merged, People
from dpoutlier.model.statement_page import page_of
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.privacy.guarantee import LEAKED, Charge, Guarantee, Neighbours, Purpose

if TYPE_CHECKING:
    from dpoutlier.model.model import Model


PAST_THE_CAP = "People with more rows in the reference data than rows_per_person says."
NOT_PROTECTED = (
    "Facts about the population that would be learned just as well without any one person's data.",
    "The public inputs: bounds, bins, trees, k, n_rows_hint and every other argument, as they stand in the model.",
    PAST_THE_CAP,
    "Several fits on the same people: their epsilons add up, also those of cross-validation and of searches for parameters.",
    "Side channels of the machine on which the fit runs, such as time and memory.",
)
COMPUTATIONAL = (
    "The noise is computed from a secret key by SipHash-2-4, so the guarantee is computational: it holds against anyone who "
    "cannot tell that function from a random one. The model file holds exact counts and the key; only answers may leave."
)
TIMED = (
    "Delta is 0 for the answers themselves. For clients that time the answers of a server it is N 2^-60, where N is the number of "
    "cells whose noise is computed for all answers together. docs/privacy.md says what else time can tell."
)
INFORMATION = "The noise was drawn from the operating system's generator, and the exact counts were dropped."
SPARSE = (
    "The model lists only the cells whose noisy count is {tau} or more, with these counts. Every other cell counts as zero and is "
    "not named. The result has the same distribution as noise on all cells followed by the threshold, which is public. Even if all "
    "cells were empty, {expected} of them would be expected to reach the threshold, so a listed cell does not mean that anyone is "
    "in it."
)
PLACES = 9
CAPPED = (
    "At most {m} of each person {were} counted, chosen by a public rule from that person's rows alone; the column "
    "'{person}' identifies people, and rows without a value in it were not counted."
)
DECLARED_CAP = "The custodian declares that nobody has more than {m} rows. The fit did not check this."
DISJOINT = (
    "Merged from {n} releases of people who are declared disjoint: nobody has rows in more than one of them. The custodian who "
    "merged them declares this, and dpoutlier cannot check it. Because of it, epsilon is the largest epsilon of the releases and "
    "not their sum. If somebody has rows in several releases after all, the epsilons of those releases add up for them."
)
MOVED = (
    "The figure for replace-one also protects which release contains somebody's rows: moving a person from one release to another "
    "changes both."
)
OVERLAPPING = "Merged from {n} releases of people who may overlap, so their epsilons add up."
LOOSE = (
    "By the released counts, the range of {features} is far wider than where the rows lie. To see this has cost nothing. It is "
    "public, so that a narrower range may be declared from it; but another fit costs epsilon again."
)
SHOWN = 10
SUMMED_NOISE = (
    "The merged counts contain the noise of every part. Together this noise is as wide as a single noise of scale "
    "{scale} rows."
)


@dataclass(frozen=True)
class PrivacyStatement:
    """What a fit guarantees, for whom and under which conditions.

    The method ``privacy_statement`` of a fitted detector returns it. ``print`` shows it as a page; ``to_dict()`` gives data.
    Amounts of epsilon are decimal texts, rounded up; 'none' means no guarantee.

    Attributes
    ----------
    private : bool
        Whether anything is guaranteed.
    publishable : bool
        Whether the model may be published.
    detector : str
        Class of the detector.
    unit : str
        Who is protected: one row, or one person.
    neighbours : str
        Which two data sets are hard to distinguish; see :class:`Neighbours`.
    epsilon : str
        Total privacy loss of the fit.
    epsilon_in_use : str
        Privacy loss of the noise that was drawn: at most ``epsilon``, because rates are rounded down.
    epsilon_add_or_remove_one : str
        Privacy loss under 'add-or-remove-one'.
    epsilon_replace_one : str
        Privacy loss under 'replace-one'.
    delta : str
        Total delta. '0' means pure differential privacy.
    mechanism : str
        The noise.
    counts : str
        How the counts are held: 'dense', 'keyed', 'sparse' or 'exact'.
    charges : tuple of dict
        Each part of the fit that read reference rows: its purpose, its epsilon, its sensitivity and the scale of its noise in rows.
    bounds : tuple of dict
        Public bounds or levels of each feature.
    bounds_source : str
        Where the bounds come from.
    n_rows_hint : str
        The number of rows that the fit used, and where it comes from.
    partition : str
        The public cells that were counted.
    remarks : tuple of str
        Conditions of the guarantee.
    not_protected : tuple of str
        What the guarantee does not cover.
    versions : dict
        Versions of the software.
    merged : dict or None
        People, parts and noise of a merge. None, and left out of ``to_dict()``, for a single release.
    ledger : dict or None
        Where in a ledger the fit was charged. None, and left out of ``to_dict()``, without a ledger.
    false_alarms : dict or None
        What the threshold does: ``expected``, ``lower``, ``upper``, ``level`` and whether it can be ``trusted``; see
        :class:`FalseAlarms`. And what was asked for: ``target_fpr`` and ``outlier_share``. None, and left out of
        ``to_dict()``, without a threshold that was estimated.

    See Also
    --------
    Guarantee : The guarantee as numbers.

    References
    ----------
    .. [1] C. Dwork, F. McSherry, K. Nissim and A. Smith, "Calibrating noise to sensitivity in private data analysis", TCC 2006.
    .. [2] J. Rauch, I. E. Olatunji and M. Khosla, "Achieving differential privacy for k-nearest neighbors based outlier detection
       by data partitioning", arXiv:2104.07938, Theorem 1 (composition and post-processing) and Theorem 2.

    Examples
    --------
    >>> import numpy as np
    >>> from dpoutlier import DPMarginals
    >>> statement = DPMarginals(epsilon=0.5, features=(0, 1)).fit(np.full((500, 2), 0.3)).privacy_statement()
    >>> statement
    <privacy statement of a publishable DPMarginals model, epsilon 0.5: print it to read it>
    >>> statement.private, statement.epsilon_replace_one
    (True, '1')
    """

    private: bool
    publishable: bool
    detector: str
    unit: str
    neighbours: str
    epsilon: str
    epsilon_in_use: str
    epsilon_add_or_remove_one: str
    epsilon_replace_one: str
    delta: str
    mechanism: str
    counts: str
    charges: tuple[dict[str, Any], ...]
    bounds: tuple[dict[str, Any], ...]
    bounds_source: str
    n_rows_hint: str
    partition: str
    remarks: tuple[str, ...]
    not_protected: tuple[str, ...]
    versions: dict[str, str]
    merged: dict[str, Any] | None = None
    ledger: dict[str, Any] | None = None
    false_alarms: dict[str, Any] | None = None

    def __repr__(self) -> str:
        kind = "publishable" if self.publishable else "secret"
        return f"<privacy statement of a {kind} {self.detector} model, epsilon {self.epsilon}: print it to read it>"

    def to_dict(self) -> dict[str, Any]:
        """Give the statement as data.

        Returns
        -------
        dict
            The attributes by name, in types that JSON has.
        """
        optional = ("merged", "ledger", "false_alarms")
        return {name: value for name, value in asdict(self).items() if name not in optional or value is not None}

    def __str__(self) -> str:
        return "\n".join(page_of(self))


def _number(value: Fraction | None) -> str:
    """An epsilon in decimals: exact if that takes at most nine of them, else rounded *up*."""
    if value is None:
        return "none"
    return f"{Decimal(_units(value)).scaleb(-PLACES).normalize():f}"


def _units(value: Fraction) -> int:
    """The value in units of the last decimal place, rounded up."""
    units: int = -(-value.numerator * 10**PLACES // value.denominator)
    return units


def promise_of(model: Model) -> dict[str, Any]:
    """The entries of a statement that promise something. A file is refused if they do not follow from its content."""
    guarantee, private = model.guarantee, model.guarantee.private
    return {
        "private": private,
        "publishable": model.publishable,
        "neighbours": guarantee.neighbours.value,
        "epsilon": _number(guarantee.epsilon if private else None),
        "epsilon_in_use": _number(model.epsilon_in_use if private else None),
        "epsilon_add_or_remove_one": _number(guarantee.epsilon_for(Neighbours.ADD_OR_REMOVE_ONE) if private else None),
        "epsilon_replace_one": _number(guarantee.epsilon_for(Neighbours.REPLACE_ONE) if private else None),
        "delta": str(guarantee.delta) if private else "none",
    }


def privacy_statement(model: Model) -> PrivacyStatement:
    """Say in one place what the parts of a model promise together."""
    domain, partition, counts, n_rows_hint = model.domain, model.partition, model.counts, model.n_rows_hint
    guarantee, charges, merged = model.guarantee, model.charges, model.merged
    m, private = guarantee.rows_per_person, guarantee.private
    remarks = [*guarantee.voided_by]
    if private:
        remarks += [COMPUTATIONAL, TIMED] if counts.kind == "keyed" else [INFORMATION]
        if isinstance(counts, SparseCounts):
            remarks.append(_sparse(partition.n_cells, counts.tau, charges))
        if guarantee.person is not None:
            rows, were = ("1 row", "was") if m == 1 else (f"{m} rows", "were")
            remarks.append(CAPPED.format(m=rows, were=were, person=guarantee.person))
        elif m > 1:
            remarks.append(DECLARED_CAP.format(m=m))
    if merged is not None:
        remarks += _merged_remarks(merged)
    held = held_parts(model) if private else {}
    if held:
        remarks.append(LOOSE.format(features=_listed([domain.labels[j] for j in held])))
    return PrivacyStatement(
        **promise_of(model),
        detector=model.detector,
        unit=_unit(guarantee, merged),
        mechanism=_mechanism(charges) if private else "none",
        counts=counts.kind,
        charges=_all_charges(charges, merged) if private else (),
        bounds=tuple(_feature(domain, j, held.get(j), private=private) for j in range(domain.n_features)),
        bounds_source=_bounds_source(domain, charges, guarantee, merged=merged is not None),
        n_rows_hint=_n_rows_hint(n_rows_hint, charges, merged)
        if private or n_rows_hint is None
        else f"{n_rows_hint} (nothing here is private)",
        partition=f"{partition.kind} of {_cells(partition.n_cells)} cells"
        + (f": {partition.detail}" if partition.detail else ""),
        remarks=tuple(remarks),
        not_protected=tuple(text for text in NOT_PROTECTED if guarantee.person is None or text is not PAST_THE_CAP),
        versions={"dpoutlier": _version("dpoutlier"), "python": platform.python_version(), "numpy": _version("numpy")},
        merged=None if merged is None else _merged(merged),
        ledger=None if model.receipt is None else model.receipt.to_json(),
        false_alarms=_false_alarms(model),
    )


def _false_alarms(model: Model) -> dict[str, Any] | None:
    found, histogram = model.false_alarms(), model.score_histogram
    if found is None or histogram is None:
        return None
    return {**found.to_dict(), "target_fpr": histogram.target_fpr, "outlier_share": histogram.outlier_share}


def _unit(guarantee: Guarantee, merged: Merged | None) -> str:
    m = guarantee.rows_per_person
    rows = "1 row" if m == 1 else f"{m} rows"
    if merged is not None and merged.people is People.OVERLAPPING:
        return f"one person, with at most {rows} in each of the {len(merged.parts)} parts"
    if m == 1 and guarantee.person is None:
        return "one row"
    return f"one person, with at most {rows}" + (", all of them in one part" if merged is not None else "")


def _mechanism(charges: tuple[Charge, ...]) -> str:
    counts = next(charge.noise.words for charge in charges if charge.purpose == Purpose.COUNTS)
    return (
        f"{counts}; bounds by permute-and-flip on a public lattice, exact too"
        if any(charge.purpose.is_choice for charge in charges)
        else counts
    )


def _bounds_source(domain: Domain, charges: tuple[Charge, ...], guarantee: Guarantee, *, merged: bool) -> str:
    n, d = len(domain.estimated), domain.n_features
    purposes = {charge.purpose for charge in charges}
    if LEAKED in guarantee.voided_by:
        return "taken from the reference rows, without noise"
    price = "with epsilon, see charges" if guarantee.private else "nothing here is private"
    if merged and purposes & {Purpose.BOUNDS, Purpose.RANGES}:
        return f"declared by the custodians, and estimated or narrowed by some of the parts ({price})"
    narrowed, looked = sum(map(bool, domain.declared or ())), Purpose.RANGES in purposes
    of = "all features" if n == d else f"{n} of {d} features, the others declared by the custodian"
    said = [f"estimated for {of}"] if n else ["declared by the custodian"]
    said += [f"{narrowed} of {d} narrowed to where the rows lie"] if narrowed else []
    said += ["a look at where the rows lie has left all as declared"] if looked and not narrowed else []
    return f"{'; '.join(said)} ({price})" if n or narrowed or looked else "declared by the custodian, free of charge"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _feature(domain: Domain, j: int, held: Held | None, *, private: bool) -> dict[str, Any]:
    """What is public of a feature. Keys that say nothing are left out."""
    category, outer = domain.category(j), domain.outer_range(j)
    found: dict[str, Any] = {"feature": domain.labels[j]}
    if category is None:
        found |= {"lower": domain.lower[j], "upper": domain.upper[j]}
    else:
        found |= {"levels": list(category.names), "ordered": category.ordered}
    if outer is not None:
        found |= {"estimated": "see charges" if private else "exact", "outer": list(outer)}
    declared = domain.declared_range(j)
    if declared is not None:
        found["declared"] = list(declared)
    if held is not None:
        part, least = (f"{math.floor(100 * share)} %" for share in (held.share, held.least))
        found["rows"] = f"about {part} of the rows, at least {least}, lie between {held.lower:.4g} and {held.upper:.4g}"
    if domain.has_missing_cell(j):
        found["missing"] = "a cell of its own"
    return found


def _merged_remarks(merged: Merged) -> list[str]:
    noise = SUMMED_NOISE.format(scale=f"{float(1 / merged.rate):.6g}")
    if merged.people is People.DISJOINT:
        return [DISJOINT.format(n=len(merged.parts)), MOVED, noise]
    return [OVERLAPPING.format(n=len(merged.parts)), noise]


def _merged(merged: Merged) -> dict[str, Any]:
    return {
        "people": "declared disjoint" if merged.people is People.DISJOINT else "overlapping",
        "noise_scale_rows": f"{float(1 / merged.rate):.6g}",
        "parts": tuple(
            {
                "release": part.release,
                "epsilon": _number(part.epsilon),
                "epsilon_in_use": _number(part.epsilon_in_use),
                "noise_scale_rows": f"{float(1 / part.rate):.6g}",
                **({} if part.receipt is None else {"ledger": part.receipt.to_json()}),
            }
            for part in merged.parts
        ),
    }


def _all_charges(charges: tuple[Charge, ...], merged: Merged | None) -> tuple[dict[str, Any], ...]:
    if merged is None:
        return tuple(_charges(charges))
    return tuple(
        one for number, part in enumerate(merged.parts, 1) for one in _charges(part.charges, f", part {number}")
    )


def _charges(charges: tuple[Charge, ...], of_part: str = "") -> Iterator[dict[str, Any]]:
    """The charges of one fit. What is shown adds up to the total that is shown: each is the rise of the sum, rounded up."""
    sums = [Fraction(0), *accumulate(charge.epsilon for charge in charges)]
    for charge, (before, after) in zip(charges, pairwise(sums), strict=True):
        yield {
            "purpose": charge.purpose + of_part,
            "epsilon": _number(Fraction(_units(after) - _units(before), 10**PLACES)),
            "epsilon_in_use": str(charge.epsilon_in_use),
            "sensitivity": charge.sensitivity.l1,
            "noise_scale_rows": None
            if charge.purpose.is_choice
            else f"{charge.noise.scale:.6g}",  # a choice gets no noise
        }


def _sparse(n_cells: int, tau: int, charges: tuple[Charge, ...]) -> str:
    """What sparse counts release; for a merge, what its parts released."""
    laws = [
        charge.mechanism
        for charge in charges
        if isinstance(charge.mechanism, DiscreteLaplace) and charge.purpose == Purpose.COUNTS
    ]
    expected = float(sum(expected_empty(n_cells, law, tau) for law in laws))
    shown = f"{expected:,.0f}" if expected >= 100 else f"{expected:.2g}"
    return SPARSE.format(tau=f"{tau:,}", expected=shown)


def _n_rows_hint(n_rows_hint: int | None, charges: tuple[Charge, ...], merged: Merged | None) -> str:
    if merged is not None:
        return "not used by the merge; each part had its own"
    if n_rows_hint is None:
        return "not used"
    estimated = any(charge.purpose == Purpose.ROW_COUNT for charge in charges)
    return f"{n_rows_hint} ({'estimated with epsilon, see charges' if estimated else 'a public number declared by the custodian'})"


def _cells(n: int) -> str:
    return f"{n:,}" if n < 10**9 else f"{float(n):.3g}"


@cache
def _version(package: str) -> str:
    """Version of an installed package. It is looked up once, since that takes as long as all the rest of a statement."""
    return metadata.version(package)
