r"""Do points still come from where the reference rows came from? A comparison with released counts, at no price.

Each of K comparisons is of one share: of points, and of reference rows, that lie below some place of a feature, or at a level.
A check may raise a false alarm with a probability of :math:`\alpha`: one percent, over the checks of a month. Of it, four equal
parts, over all K and both sides: the noise on the rows there, the noise on all rows, and the chance in which rows were there
leave their intervals; and, if the shares are the same, more or fewer points lie there than the ends of these intervals permit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import positive_int
from dpoutlier.counts.base import all_counts
from dpoutlier.counts.dense import MAX_DENSE_CELLS
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.model.by_feature import Sums, edges_of, members_of
from dpoutlier.noise.summed import SummedNoise
from dpoutlier.privacy.guarantee import Purpose
from dpoutlier.scoring.threshold import bin_of

if TYPE_CHECKING:
    from dpoutlier.model.model import Model
    from dpoutlier.noise.mechanism import Noise

A_MONTH = 0.01
"""Chance of a false alarm in a month, of all checks together."""
MAX_CHECKS = 100_000
SCORE = "score"
MOST_PLACES = 8
"""Comparisons of one feature."""
PARTS = 4
"""Parts of the chance of a false alarm."""


class Shift(NamedTuple):
    """A share of points that does not fit the released counts."""

    what: str
    """The feature, or 'score'."""
    where: str
    points: float
    """Share of the points there."""
    lower: float
    """What the share of reference rows there is at least."""
    upper: float
    """What the share of reference rows there is at most."""


@dataclass(frozen=True)
class Drift:
    """Whether points have drifted away from the reference rows, by the released counts.

    The method ``drift`` of a fitted detector returns it. It reads released counts and the points, and has no privacy cost.

    Attributes
    ----------
    drifted : bool
        Whether any share of points does not fit. On points that are drawn as the reference rows were, all checks of a month
        together say so with a probability of at most 1 %.
    shifts : tuple
        For scores and for each feature, if it does not fit: ``what``, ``where``, the share of ``points`` there, and between which
        ends, ``lower`` and ``upper``, that of the reference rows lies.
    n_points : int
        Number of points.
    n_compared : int
        Number of shares that were compared.
    checks_per_month : int
        Number of such checks in a month, over which the 1 % is divided.
    within : float
        The shares of reference rows are known to within this: half the width of the interval, the median over all comparisons. Much
        smaller drifts cannot be seen, however many points there are.

    See Also
    --------
    DPForest.drift : Compute it.

    Examples
    --------
    >>> import numpy as np
    >>> from dpoutlier import DPForest
    >>> rng = np.random.default_rng(0)
    >>> detector = DPForest(1, features=(-6, 6), n_rows_hint=20_000).fit(rng.normal(size=(20_000, 3)))
    >>> detector.drift(rng.normal(size=(2_000, 3))).drifted
    False
    >>> [shift.what for shift in detector.drift(rng.normal([0, 1, 0], size=(2_000, 3))).shifts]
    ['feature 1']
    """

    drifted: bool
    shifts: tuple[Shift, ...]
    n_points: int
    n_compared: int
    checks_per_month: int
    within: float

    def to_dict(self) -> dict[str, Any]:
        """Give the comparison as data.

        Returns
        -------
        dict
            The attributes by name, in types that JSON has.
        """
        return {**vars(self), "shifts": [one._asdict() for one in self.shifts]}

    def __str__(self) -> str:
        head = f"{self.n_points:,} points, {self.n_compared} shares compared, known to within {100 * self.within:.2g} %"
        if not self.drifted:
            return f"no drift seen: {head}"
        lines = [
            f"  {one.what}: {100 * one.points:.3g} % of the points {one.where}, and {100 * one.lower:.3g} to "
            f"{100 * one.upper:.3g} % of the reference rows"
            for one in self.shifts
        ]
        return "\n".join([f"DRIFT: {head}", *lines])


class Seen:
    """Points, counted in cells as reference rows are: all that a comparison needs of them."""

    def __init__(self, model: Model) -> None:
        self.model, self.n = model, 0
        if model.counts.kind not in {"dense", "exact"} or model.partition.n_cells > MAX_DENSE_CELLS:
            raise InvalidParameterError(
                "the model has nothing to compare points with: its counts are not those of all cells.",
                remedy="Use DPForest or DPMarginals, or a grid of few enough cells for counts='dense'.",
            )
        self.cells = np.zeros(model.partition.n_cells, np.int64)
        histogram, few_ties = model.score_histogram, model.scorer.few_ties(model.partition)
        usable = histogram is not None and histogram.left_out and model.merged is None and few_ties
        self.histogram = histogram if usable else None
        self.bins = np.zeros(0 if self.histogram is None else len(self.histogram.levels), np.int64)

    def add(self, positions: NDArray[np.uint32], scores: NDArray[np.float64]) -> None:
        """Count some more points."""
        self.n += len(positions)
        self.model.partition.tally(positions, self.cells)
        if self.histogram is not None:
            self.bins += np.bincount(bin_of(scores, self.histogram.levels), minlength=len(self.bins))

    def compared(self, checks_per_month: Any = 30) -> Drift:
        """Compare them with what was released."""
        checks = positive_int(MAX_CHECKS, checks_per_month=checks_per_month)
        shares = [*_of_scores(self), *_of_features(self)]
        part = A_MONTH / checks / PARTS / (2 * max(len(shares), 1))
        if not shares or not self.n:
            what = "points" if shares else "features with more than one cell"
            raise InvalidParameterError(f"there are no {what}, so nothing can be compared.")
        found: dict[str, tuple[float, Shift]] = {}
        compared = [_compared(share, self.n, part) for share in shares]
        for odd, shift in compared:
            if odd < min(part, found.get(shift.what, (math.inf,))[0]):
                found[shift.what] = odd, shift
        shifts = tuple(shift for _, shift in found.values())
        widths = [(shift.upper - shift.lower) / 2 for _, shift in compared if shift.what != SCORE]
        within = float(np.median(widths))
        return Drift(bool(shifts), shifts, self.n, len(shares), checks, within)


class _Count(NamedTuple):
    """A noisy number of rows: a sum over some members of the partition, and over how many."""

    total: int
    laws: tuple[Noise, ...]
    draws: int
    """Of each law, in the sum."""
    members: int = 1

    def ends(self, level: Fraction) -> tuple[float, float]:
        """The number of rows lies between these."""
        around = SummedNoise(self.laws, self.draws).half_width(level)
        return max(self.total - around, 0) / self.members, max(self.total + around, 0) / self.members

    @property
    def variance(self) -> float:
        return sum(law.variance for law in self.laws) * self.draws / self.members**2


class _Share(NamedTuple):
    """One share to be compared: the mean over some members of whether a row, or a point, lies somewhere."""

    what: str
    where: str
    points: float
    rows: _Count
    all_rows: _Count
    weight: float = 1.0
    """What part of the rows is counted on."""


def _compared(share: _Share, n: int, part: float) -> tuple[float, Shift]:
    """How odd the points are, if their share is between the ends of that of the rows; and both.

    A mean over members is not yes or no, but between 0 and 1. By Bentkus' inequality its tails are at most e times binomial ones.
    """
    from scipy.stats import beta, binom  # noqa: PLC0415 - slow to import, and only needed here

    level, more = 1 - Fraction(part), 1.0 if share.rows.members == 1 else math.e
    ends = (share.rows.ends(level), share.all_rows.ends(level))
    (low, high), (fewest, most) = ((share.weight * one, share.weight * other) for one, other in ends)
    low, high, fewest, most = math.floor(low), math.ceil(high), math.floor(fewest), math.ceil(most)
    lower = float(beta.ppf(part / more, low, most - low + 1)) if 0 < low <= most else float(low > most)
    upper = float(beta.ppf(1 - part / more, high + 1, fewest - high)) if high < fewest else 1.0
    lower = min(lower, upper)
    above, below = binom.sf(math.floor(share.points) - 1, n, upper), binom.cdf(math.ceil(share.points), n, lower)
    return more * min(float(above), float(below)), Shift(share.what, share.where, share.points / n, lower, upper)


def _of_scores(seen: Seen) -> list[_Share]:
    """Only where few rows share a score. Half of the rows are counted on, since their law is not quite binomial."""
    histogram = seen.histogram
    if histogram is None:
        return []
    laws, n_bins = () if histogram.noise is None else (histogram.noise,), len(histogram.counts)
    above, points = (total - own.cumsum() for total, own in ((histogram.rows, histogram.counts), (seen.n, seen.bins)))
    all_rows = _Count(histogram.rows, laws, n_bins)
    return [
        _Share(
            SCORE,
            f"score above {histogram.levels[at]:.4g}",
            int(points[at]),
            _Count(int(above[at]), laws, n_bins - 1 - at),
            all_rows,
            weight=0.5,
        )
        for at in sorted({int(at) for at in np.linspace(0, n_bins - 2, min(n_bins - 1, 2 * MOST_PLACES))})
    ]


def _of_features(seen: Seen) -> list[_Share]:
    """For each feature and some of its places: over all members that have it, each with the cells that fit the place best."""
    model, own = seen.model, seen.cells
    noisy, laws = all_counts(model.counts, model.partition.n_cells), model.noise_laws
    members = members_of(model)
    all_rows = _best_total(model, _Count(int(noisy.sum()), laws, len(noisy), len(members)))
    sums: dict[int, list[tuple[Any, Sums, Sums]]] = {}
    for member in members:
        for axis in member.axes:
            rows, points = (Sums.of(member, axis, counts[member.cells]) for counts in (noisy, own))
            sums.setdefault(axis.feature, []).append((axis, rows, points))
    found = []
    for j, of_members in sorted(sums.items()):
        for place in _places(model, j, of_members):
            chosen = [(rows, points, _cells_of(axis, place)) for axis, rows, points in of_members]
            n_rows = sum(int(rows.rows[cells].sum()) for rows, _, cells in chosen)
            draws = sum(int(rows.cells[cells].sum()) for rows, _, cells in chosen)
            n_points = sum(int(points.rows[cells].sum()) for _, points, cells in chosen)
            n = len(chosen)
            count = _Count(n_rows, laws, draws, n)
            found.append(_Share(model.domain.labels[j], _words(model, j, place), n_points / n, count, all_rows))
    return found


class _Place(NamedTuple):
    """Below a part of the range, at one of so many levels, or missing."""

    below: float | None = None
    level: int | None = None
    n_levels: int = 0


def _places(model: Model, j: int, of_members: list[tuple[Any, Sums, Sums]]) -> list[_Place]:
    most, category = max(len(rows.rows) for _, rows, _ in of_members), model.domain.category(j)
    if most < 2:
        return []
    missing = [_Place()] if model.domain.has_missing_cell(j) else []
    if category is not None:
        n = len(category.names)
        some = sorted({int(at) for at in np.linspace(0, n - 1, min(n, MOST_PLACES))})
        return [*(_Place(level=i, n_levels=n) for i in some), *missing]
    ends = edges_of(of_members[0][0])[1:-1]
    if len(of_members) > 1 or len(ends) > MOST_PLACES:
        ends = [i / (MOST_PLACES + 1) for i in range(1, MOST_PLACES + 1)]
    return [*(_Place(below=cut) for cut in ends), *missing]


def _cells_of(axis: Any, place: _Place) -> slice:
    """The cells of one axis that fit a place best: those below the nearest cut, that of a level, or that of missing values."""
    if place.below is not None:
        cuts = np.array(edges_of(axis)[1:-1])
        return slice(0, int(np.argmin(np.abs(cuts - place.below))) + 1 if len(cuts) else 1)
    levels = getattr(axis, "cells", b"")
    if place.level is None:
        cell = levels[-1] if levels else axis.size - 1
    else:
        cell = levels[place.level] if levels else place.level * axis.bins // place.n_levels
    return slice(cell, cell + 1)


def _best_total(model: Model, by_counts: _Count) -> _Count:
    """The number of all rows with the least noise of those that were released."""
    known = [by_counts]
    if model.merged is None:
        histogram = model.score_histogram
        if histogram is not None and histogram.noise is not None:
            known.append(_Count(histogram.rows, (histogram.noise,), len(histogram.counts)))
        paid = [charge.noise for charge in model.charges if charge.purpose == Purpose.ROW_COUNT]
        if len(paid) == 1 and model.n_rows_hint is not None and model.n_rows_hint > 1:
            known.append(_Count(model.n_rows_hint, (paid[0],), 1))
    return min(known, key=lambda one: one.variance)


def _words(model: Model, j: int, place: _Place) -> str:
    """What points do that lie there."""
    domain, category = model.domain, model.domain.category(j)
    if place.below is not None:
        return f"are below about {domain.lower[j] + (domain.upper[j] - domain.lower[j]) * place.below:.4g}"
    if place.level is None or category is None:
        return "are missing"
    return f"are {category.names[place.level]!r}, or a level that shares its cell"
