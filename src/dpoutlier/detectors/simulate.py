"""What a fit can be expected to find, before any data is touched: a simulation on made-up rows of the same shape."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import positive_int
from dpoutlier._warn import nothing_to_protect
from dpoutlier.counts.base import noisy_counts
from dpoutlier.counts.exact import ExactCounts
from dpoutlier.detectors.knn import KNN
from dpoutlier.detectors.registry import DEFAULT, DETECTOR_NAMES, detector_class
from dpoutlier.exceptions import InvalidParameterError, TooManyCellsError
from dpoutlier.features.bounds import Bounds
from dpoutlier.features.domain import Domain
from dpoutlier.model.model import Model
from dpoutlier.privacy.guarantee import Purpose
from dpoutlier.scoring.false_alarms import FalseAlarms
from dpoutlier.tables import convert
from dpoutlier.tables.rows import Rows
from dpoutlier.trusted.counts import count_rows

CLUSTERS, SPREAD, MAX_SIMULATED, POINTS, FITS = 3, 0.06, 20_000, 500, 3
MAX_CELLS, MAX_VALUES, MAX_EPSILON = 2000, 4_000_000, 1e6
MIN_COUNT = 3.0
MIN_PLAIN = 0.55
RANGE = (0.0, 1.0)
USEFUL = 0.9
"""Share of the way from chance to plain k-NN. From there on a detector is called useful."""
NOISE_ONLY = 0.2
"""Below this part of the way a detector is called all noise."""
TOO_WIDE = (10, 100)
"""How much too wide declared ranges are made, to show what that costs."""
STEPS = range(-8, 9)
"""Epsilons looked at are 2**step times the one that was asked for."""


@dataclass(frozen=True)
class Outlook:
    """What one detector is expected to do at one epsilon."""

    detector: str
    partition: str
    cells: int
    publishable: bool
    noise: float
    """Scale of the noise on a count, in rows."""
    expected: float
    """Rows in a cell around a normal row: the mean over the simulation."""
    judged: bool
    """Whether enough rows were simulated to tell: fewer rows at a larger epsilon fill a fine grid less."""
    auroc: float
    control: float
    """AUROC of the same detector fitted on no rows."""


@dataclass(frozen=True)
class Advice:
    """What will be fitted, what it is expected to do, and what else could be."""

    chosen: str
    n_rows: int
    n_features: int
    epsilon: float
    outlooks: dict[str, Outlook | None]
    """By name: forest, marginals, grid. None for a grid of more cells than can be numbered."""
    plain: float
    """AUROC of non-private k-NN."""
    useful_epsilon: float | None
    """The least epsilon, of those looked at, at which the chosen detector becomes useful; None if it never does."""
    too_wide: dict[int, tuple[float, float]]
    """AUROC of the chosen detector where ranges are so many times too wide: as it is fitted, and with the ranges as declared."""
    n_simulated: int
    """How many rows were made up. The noise weighs as much as on ``n_rows``; the chance in which rows are there weighs more."""
    false_alarms: FalseAlarms | None = None
    """What the threshold of the chosen detector does: medians over the fits. None without ``target_fpr``."""

    def part_of_the_way(self, outlook: Outlook) -> float:
        """0 for chance, 1 for plain k-NN."""
        return (outlook.auroc - 0.5) / max(self.plain - 0.5, 1e-9)


@dataclass(frozen=True)
class _Made:
    """Made-up rows, in the unit cube or as the features are declared."""

    reference: Any
    points: Any
    outlying: NDArray[np.bool_]
    plain: tuple[NDArray[np.float64], NDArray[np.float64]]
    """Reference rows and points in the unit cube."""


def _made_up(n_rows: int, n_features: int, seed: int, domain: Domain | None, width: int = 1) -> _Made:
    """Normal rows in three clusters; outliers are normal rows in which a quarter of the features, at least one, is anywhere.

    The declared ranges are ``width`` times as wide as where all this lies.
    """
    rng = np.random.default_rng(seed)
    centres = rng.uniform(0.25, 0.75, (CLUSTERS, n_features))
    n = n_rows + 2 * POINTS
    rows = centres[rng.integers(CLUSTERS, size=n)] + rng.normal(0, SPREAD, (n, n_features))
    outliers = rows[-POINTS:]
    changed = rng.random((POINTS, n_features)).argsort(axis=1) < max(1, n_features // 4)
    outliers[changed] = rng.uniform(0, 1, int(changed.sum()))
    plain = rows[:n_rows], rows[n_rows:]
    reference, points = (part / width if domain is None else _declared(part, domain, width) for part in plain)
    return _Made(reference, points, np.repeat([False, True], POINTS), plain)


def _declared(rows: NDArray[np.float64], domain: Domain, width: int) -> Any:
    """The same rows in the units and levels of the features; a tenth of the outer range for private bounds."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import, and not everybody plans

    columns = []
    for j, own in enumerate(rows.T):
        category = domain.category(j)
        if category is not None:
            codes = (own * len(category.levels)).astype(np.int32).clip(0, len(category.levels) - 1)
            columns.append(pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(category.levels)))
            continue
        part = 0.45 + 0.1 * own if j in domain.estimated else own / width
        columns.append(pa.array(domain.lower[j] + part * (domain.upper[j] - domain.lower[j])))
    return pa.table(columns, list(domain.labels))


def advise(
    n_rows: int,
    n_features: int,
    epsilon: float,
    *,
    name: str = "auto",
    bounds: Bounds | None = None,
    target_fpr: float | None = None,
    **arguments: Any,
) -> Advice:
    """Simulate fits on ``n_rows`` rows; with ``bounds``, on features as they are declared. ``arguments`` go to the detectors.

    ``target_fpr`` goes to the chosen detector at this epsilon only: all other fits need no threshold, which takes time.
    What matters is rows times epsilon: more rows than can be simulated quickly become fewer rows at a larger epsilon.
    """
    simulated = min(positive_int(n_rows=n_rows), MAX_SIMULATED, max(MAX_VALUES // n_features, 100))
    factor = n_rows / simulated
    domain = None if bounds is None else bounds.domain(n_features, bounds.names)
    made = [_made_up(simulated, n_features, seed, domain) for seed in range(FITS)]
    plain = float(np.mean([_plain_auroc(one) for one in made]))
    chosen = DEFAULT if name == "auto" else name
    ranges = RANGE if bounds is None else bounds
    maker = _Maker(made, factor, ranges, arguments)
    false_alarms, outlooks = list[FalseAlarms](), dict[str, Outlook | None]()
    for which in DETECTOR_NAMES:
        own = {"target_fpr": target_fpr} if which == chosen and target_fpr is not None else {}
        outlooks[which], found_alarms = _Maker(made, factor, ranges, {**arguments, **own}).outlook(which, epsilon)
        false_alarms += found_alarms
    useful = None
    found = outlooks[chosen]
    if found is not None and found.judged and plain > MIN_PLAIN:
        wanted = 0.5 + USEFUL * (plain - 0.5)
        others = (epsilon * 2.0**step for step in STEPS)
        useful = next((other for other in others if maker.mean_auroc(chosen, other) >= wanted), None)
    too_wide = {}
    for width in TOO_WIDE:
        wide = [_made_up(simulated, n_features, seed, domain, width) for seed in range(FITS)]
        both = ({**arguments, **tight} for tight in ({}, {"tight_ranges": True}))
        as_fitted, declared = (_Maker(wide, factor, ranges, own).mean_auroc(chosen, epsilon) for own in both)
        too_wide[width] = as_fitted, declared
    alarms = _median(false_alarms) if false_alarms else None
    return Advice(chosen, n_rows, n_features, epsilon, outlooks, plain, useful, too_wide, simulated, alarms)


def _median(found: list[FalseAlarms]) -> FalseAlarms:
    return FalseAlarms(*(float(np.median([getattr(one, part.name) for one in found])) for part in fields(FalseAlarms)))


@dataclass(frozen=True)
class _Maker:
    """Fits on made-up rows."""

    made: list[_Made]
    factor: float
    """Rows that are meant for each that is simulated."""
    bounds: Any
    arguments: dict[str, Any]

    def fits(self, which: str, epsilon: float, *, control: bool = False) -> list[Any]:
        """A fit on each set of made-up rows, or on none of its rows."""
        made = detector_class(which)
        more = {"max_cells": MAX_CELLS} if "max_cells" in made(1).get_params() else {}
        with nothing_to_protect():
            return [
                made(
                    min(epsilon * self.factor, MAX_EPSILON),
                    features=self.bounds,
                    n_rows_hint=len(one.reference),
                    unsafe_seed=seed,
                    **more,
                    **self.arguments,
                ).fit(one.reference[:0] if control else one.reference)
                for seed, one in enumerate(self.made)
            ]

    def aurocs(self, fits: list[Any]) -> list[float]:
        return [_auroc(fitted, one) for fitted, one in zip(fits, self.made, strict=True)]

    def mean_auroc(self, which: str, epsilon: float) -> float:
        try:
            return float(np.mean(self.aurocs(self.fits(which, epsilon))))
        except InvalidParameterError:  # too small for any noise
            return 0.5

    def outlook(self, which: str, epsilon: float) -> tuple[Outlook | None, list[FalseAlarms]]:
        """What to expect, None for a grid of more cells than can be numbered; and what thresholds do, where fits have them."""
        try:
            fits = self.fits(which, epsilon)
        except TooManyCellsError:
            return None, []
        models = [fitted.model_ for fitted in fits]
        count = float(np.mean([_count_around(model, one) for model, one in zip(models, self.made, strict=True)]))
        paid = next(charge for charge in models[0].charges if charge.purpose == Purpose.COUNTS)
        share = float(paid.epsilon / (models[0].guarantee.epsilon or 1))
        outlook = Outlook(
            detector=models[0].detector,
            partition=models[0].partition.brief,
            cells=models[0].partition.n_cells,
            publishable=models[0].counts.publishable,
            noise=paid.sensitivity.l1 / (epsilon * share),
            expected=count * self.factor,
            judged=self.factor == 1 or count >= MIN_COUNT,
            auroc=float(np.mean(self.aurocs(fits))),
            control=float(np.mean(self.aurocs(self.fits(which, epsilon, control=True)))),
        )
        return outlook, [found for found in (model.false_alarms() for model in models) if found is not None]


def _auroc(fitted: Any, made: _Made) -> float:
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415 - slow to import

    return float(roc_auc_score(made.outlying, fitted.outlier_scores(made.points)))


def _plain_auroc(made: _Made) -> float:
    """AUROC of plain k-NN, without noise and before any number became a level."""
    cube = replace(made, points=made.plain[1])
    return _auroc(KNN(RANGE, k=10).fit(made.plain[0]), cube)


def _count_around(model: Model, made: _Made) -> float:
    """Exact rows in the cells that a normal row lies in: the mean."""
    partition = model.partition
    reference, points = (
        Rows(convert.values(part, model.domain), model.domain) for part in (made.reference, made.points)
    )
    counted = count_rows([reference], partition)
    normal = points[:][~made.outlying]
    ids = partition.cells(normal).reshape(-1, 2)
    return float(np.mean(noisy_counts(ExactCounts(counted.ids, counted.counts), ids)))
