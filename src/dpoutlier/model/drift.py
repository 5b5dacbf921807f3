r"""Do points still come from where the reference rows came from? A comparison with released counts, at no price.

Each of K comparisons is of one share: of points, and of reference rows, that lie below some place of a feature or score above a
level. A check may raise a false alarm with a probability of :math:`\alpha`: one percent, over the checks of a month. Of it, four
equal parts, over all K and both sides: the noise on the rows there, the noise on all rows, and the chance in which rows were there
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
    from dpoutlier.tables.rows import Positions

A_MONTH = 0.01
"""Chance of a false alarm in a month, of all checks together."""
MAX_CHECKS = 100_000
SCORE = "score"
MOST_PLACES, MOST_LEVELS = 8, 16
"""Comparisons of one feature, and of scores."""
PARTS = 4
"""Parts of the chance of a false alarm."""


class Shift(NamedTuple):
    """A share of points that does not fit the released counts."""

    what: str
    """A feature, or 'score'."""
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

    def to_dict(self) -> dict[str, Any]:
        """Give the comparison as data.

        Returns
        -------
        dict
            The attributes by name, in types that JSON has.
        """
        return {**vars(self), "shifts": [one._asdict() for one in self.shifts]}

    def __str__(self) -> str:
        head = f"{self.n_points:,} points, {self.n_compared} shares compared"
        if not self.drifted:
            return f"no drift seen: {head}"
        lines = [
            f"  {one.what}: {100 * one.points:.3g} % of the points {one.where}, and {100 * one.lower:.3g} to "
            f"{100 * one.upper:.3g} % of the reference rows"
            for one in self.shifts
        ]
        return "\n".join([f"DRIFT: {head}", *lines])


class Seen:
    """Points that were scored, as numbers in cells and in bins of scores: all that a comparison needs of them."""

    def __init__(self, model: Model, *, scores_only: bool = False) -> None:
        self.model, self.n = model, 0
        histogram = model.score_histogram
        usable = histogram is not None and histogram.left_out and model.merged is None
        self.histogram = histogram if usable else None
        self.bins = np.zeros(len(self.histogram.levels) if self.histogram is not None else 0, np.int64)
        countable = model.partition.n_cells <= MAX_DENSE_CELLS and model.counts.kind in {"dense", "exact"}
        self.cells = np.zeros(model.partition.n_cells if countable and not scores_only else 0, np.int64)
        if not len(self.bins) and not len(self.cells):
            raise InvalidParameterError(
                "the model has nothing to compare points with: its counts are secret or of single cells only, and it has no "
                "histogram of scores.",
                remedy="Fit with target_fpr, or use DPForest or DPMarginals.",
            )

    def add(self, scores: NDArray[np.float64], positions: Positions | None = None) -> None:
        """Count some more points. A point without a score (NaN) is left out."""
        known = ~np.isnan(scores)
        self.n += int(known.sum())
        if self.histogram is not None:
            found = bin_of(scores[known], self.histogram.levels)
            self.bins += np.bincount(found, minlength=len(self.bins))
        if len(self.cells) and positions is not None:
            self.model.partition.tally(positions[:][known], self.cells)

    def compared(self, checks_per_month: Any = 30) -> Drift:
        """Compare them with what was released."""
        checks = positive_int(MAX_CHECKS, checks_per_month=checks_per_month)
        shares = [*_of_scores(self), *_of_features(self)]
        part = A_MONTH / checks / PARTS / (2 * len(shares))
        found: dict[str, tuple[float, Shift]] = {}
        for share in shares if self.n else ():
            odd, shift = _compared(share, self.n, part)
            if odd < min(part, found.get(share.what, (math.inf,))[0]):
                found[share.what] = odd, shift
        shifts = tuple(shift for _, shift in found.values())
        return Drift(bool(shifts), shifts, self.n, len(shares), checks)


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


def _compared(share: _Share, n: int, part: float) -> tuple[float, Shift]:
    """How odd the points are, if their share is between the ends of that of the rows; and both.

    A mean over members is not yes or no, but between 0 and 1. By Bentkus' inequality its tails are at most e times binomial ones.
    """
    from scipy.stats import beta, binom  # noqa: PLC0415 - slow to import, and only needed here

    level, more = 1 - Fraction(part), 1.0 if share.rows.members == 1 else math.e
    (low, high), (fewest, most) = share.rows.ends(level), share.all_rows.ends(level)
    low, high, fewest, most = math.floor(low), math.ceil(high), math.floor(fewest), math.ceil(most)
    lower = float(beta.ppf(part / more, low, most - low + 1)) if 0 < low <= most else float(low > most)
    upper = float(beta.ppf(1 - part / more, high + 1, fewest - high)) if high < fewest else 1.0
    lower = min(lower, upper)
    above, below = binom.sf(math.floor(share.points) - 1, n, upper), binom.cdf(math.ceil(share.points), n, lower)
    return more * min(float(above), float(below)), Shift(share.what, share.where, share.points / n, lower, upper)


def _of_scores(seen: Seen) -> list[_Share]:
    histogram = seen.histogram
    if histogram is None:
        return []
    laws, n_bins = () if histogram.noise is None else (histogram.noise,), len(histogram.counts)
    above, points = (total - own.cumsum() for total, own in ((histogram.rows, histogram.counts), (seen.n, seen.bins)))
    return [
        _Share(
            SCORE,
            f"score above {histogram.levels[at]:.4g}",
            int(points[at]),
            _Count(int(above[at]), laws, n_bins - 1 - at),
            _Count(histogram.rows, laws, n_bins),
        )
        for at in _spread(n_bins - 1, MOST_LEVELS)
    ]


def _of_features(seen: Seen) -> list[_Share]:
    """For each feature and some of its places: over all members that have it, each with the cut that is nearest to the place."""
    if not len(seen.cells):
        return []
    model, own = seen.model, seen.cells
    noisy, laws = all_counts(model.counts, model.partition.n_cells), model.noise_laws
    members = members_of(model)
    all_rows = _best_total(model, _Count(int(noisy.sum()), laws, len(noisy), len(members)))
    below: dict[int, list[tuple[Any, list[tuple[int, int, int]]]]] = {}
    for member in members:
        for axis in member.axes:
            rows, points = (Sums.of(member, axis, counts[member.cells]) for counts in (noisy, own))
            sums = zip(rows.rows.cumsum(), points.rows.cumsum(), rows.cells.cumsum(), strict=True)
            below.setdefault(axis.feature, []).append((axis, [(int(r), int(p), int(c)) for r, p, c in sums]))
    found = []
    for j, of_members in sorted(below.items()):
        for place in _places(model, j, of_members):
            chosen = [own[_cell_at(axis, len(own), place)] for axis, own in of_members]
            rows, points, draws = (sum(parts) for parts in zip(*chosen, strict=True))
            n = len(of_members)
            label, where = _words(model, j, place)
            found.append(_Share(label, where, points / n, _Count(rows, laws, draws, n), all_rows))
    return found


def _places(model: Model, j: int, of_members: list[tuple[Any, list[tuple[int, int, int]]]]) -> list[float]:
    """Parts of the range, or of the levels, between which shares are compared."""
    most = max(len(own) for _, own in of_members) - 1
    if most < 1:
        return []
    if len(of_members) > 1 or most > MOST_PLACES or model.domain.category(j) is not None:
        return [i / (MOST_PLACES + 1) for i in range(1, MOST_PLACES + 1)]
    ends = edges_of(of_members[0][0])
    return ends[1:-1] + ([1.0] if len(ends) <= most + 1 else [])


def _cell_at(axis: Any, n_cells: int, place: float) -> int:
    """The last cell below the cut that is the nearest to a place. At least one cell lies above."""
    ends = edges_of(axis)
    cuts = ends[1:-1] if len(ends) > 2 else []
    if len(ends) - 1 < n_cells and (place >= 1 or not cuts):  # levels, or a cell for missing values after the line
        return min(round(place * (n_cells - 1)), n_cells - 2) if not cuts else n_cells - 2
    return int(np.argmin(np.abs(np.array(cuts) - place)))


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


def _words(model: Model, j: int, place: float) -> tuple[str, str]:
    """The name of a feature, and words for what lies below a place."""
    domain = model.domain
    label = domain.names[j] if domain.names is not None else f"feature {j}"
    if domain.category(j) is not None:
        return label, "have one of some levels"
    if place >= 1:
        return label, "have a value"
    return label, f"are below about {domain.lower[j] + (domain.upper[j] - domain.lower[j]) * place:.4g}"


def _spread(n: int, most: int) -> list[int]:
    """At most so many of 0 .. n - 1, evenly."""
    return sorted({int(at) for at in np.linspace(0, n - 1, min(n, most))}) if n > 0 else []
