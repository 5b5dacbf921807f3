"""Where most rows lie in the range of each feature, by the released counts alone: post-processing, at no price."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpoutlier.counts.base import all_counts
from dpoutlier.model.by_feature import Sums, edges_of, members_of
from dpoutlier.privacy.guarantee import Purpose

if TYPE_CHECKING:
    from dpoutlier.model.model import Model

NARROW = 0.25
"""Only parts of at most this share of the range are reported: of wider ones nothing needs to be done."""
MOST_ROWS = 0.7
"""At least this share of the rows must lie there, also if the noise was unlucky."""
ERRORS = 2
"""Standard errors that are allowed for."""
MOST_GROUPS = 32
BY_CHANCE = 0.05
"""Expected number of empty cells that count as occupied."""


class Held(NamedTuple):
    """A part of a feature's range, in the feature's unit, and the share of the rows that it holds."""

    lower: float
    upper: float
    share: float
    least: float
    """What the share is at least, unless the noise was very unlucky. Rows in cells that noise hides are not in it."""


def held_parts(model: "Model") -> dict[int, Held]:
    """For features whose declared range is far wider than where their rows lie: the narrowest part that has most of them."""
    if model.counts.kind != "dense" or (
        model.merged is not None and any(one.purpose.is_choice for one in model.charges)
    ):
        return {}
    counts, members = all_counts(model.counts, model.partition.n_cells), members_of(model)
    noise = sum(law.variance for law in model.noise_laws)
    # Noise has the tail of a Laplace law: only cells that hardly any noise explains are counted, so that most of it is left out.
    sure = np.where(counts >= math.sqrt(noise / 2) * math.log(len(counts) / BY_CHANCE), counts, 0)
    total = _total(model, _Total(float(counts.sum()) / len(members), noise * len(counts) / len(members) ** 2))
    if total.rows <= 0:
        return {}
    # A range that was chosen has whatever lies outside of it in its last cells, so they say nothing of where that lies.
    declared = {j for j in model.domain.loose if model.domain.declared_range(j) is None}
    found: dict[int, tuple[float, Held]] = {}
    for member in members:
        own = sure[member.cells]
        for axis in member.axes:
            if axis.feature not in declared:
                continue
            best = _best(edges_of(axis), Sums.of(member, axis, own, own > 0), total, noise)
            if best is not None and best[0] < found.get(axis.feature, (math.inf,))[0]:
                width, first, last, share, least = best
                low, high = model.domain.lower[axis.feature], model.domain.upper[axis.feature]
                ends = low + (high - low) * first, low + (high - low) * last
                found[axis.feature] = width, Held(*ends, share, least)
    return {j: one for j, (_, one) in sorted(found.items())}


class _Total(NamedTuple):
    """An estimate of the number of rows."""

    rows: float
    variance: float


def _total(model: "Model", by_counts: _Total) -> _Total:
    """What was paid for, if it is better than what all members together tell."""
    paid = [charge.noise.variance for charge in model.charges if charge.purpose == Purpose.ROW_COUNT]
    known = model.n_rows_hint is not None and len(paid) == 1 and paid[0] < by_counts.variance
    return _Total(float(model.n_rows_hint or 0), paid[0]) if known else by_counts


def _best(
    ends: list[float], sums: Sums, total: _Total, noise: float
) -> tuple[float, float, float, float, float] | None:
    """The narrowest part with most of the rows: its width, ends, share and least share. None if no part is narrow enough."""
    # Bins beyond so many are looked at in groups.
    n = len(ends) - 1
    groups = np.unique(np.linspace(0, n, min(n, MOST_GROUPS) + 1).astype(np.int64))
    edges = np.array(ends)[groups]
    rows, cells = (np.concatenate([[0], np.cumsum(own[:n])])[groups] for own in (sums.rows, sums.cells))
    first, last = np.triu_indices(len(edges), 1)
    width, share = edges[last] - edges[first], (rows[last] - rows[first]) / total.rows
    least = share - ERRORS * np.sqrt((cells[last] - cells[first]) * noise + share**2 * total.variance) / total.rows
    usable = np.flatnonzero((width <= NARROW) & (least >= MOST_ROWS))
    if not len(usable):
        return None
    at = usable[np.argmin(width[usable])]
    return (
        float(width[at]),
        float(edges[first[at]]),
        float(edges[last[at]]),
        min(float(share[at]), 1.0),
        float(least[at]),
    )
