"""Print the tables of docs/alerts.md: false alarms, their intervals, p-values and alarms, on simulated and on public tables.

PYTHONPATH=. DPOUTLIER_DATA=<folder of the experiments' tables> python docs/make_alerts.py [--only rates] [--keep runs.jsonl]

Every fit is seeded, so the figures repeat. With --keep, measurements are added to a file as they are made; a second run goes on
from there. --quick makes few fits, to see that it runs.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta
from sklearn.metrics import roc_auc_score

from dpoutlier import DPForest, DPGridKNN, DPMarginals
from dpoutlier.exceptions import ThresholdWarning
from experiments.measure.comparison import guessed_rows
from experiments.measure.datasets import DATASETS
from experiments.measure.protocol import bounds_widened, nothing_private, seed_of, split_rows
from experiments.measure.public_tables import load_table, tables_at_hand
from experiments.measure.sources import data_folder, load_dataset

Floats = NDArray[np.float64]
DETECTORS: dict[str, Callable[..., Any]] = {
    "forest": DPForest,
    "marginals": DPMarginals,
    "grid": lambda *what, **more: DPGridKNN(*what, max_cells=2000, **more),
}
PROVED = ("forest", "marginals")
"""Those that give p-values: a row more can raise a score of a grid."""
TARGETS = (0.05, 0.01, 0.1)
AT = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
RATES = ((400, 1.0), (1000, 1.0), (3000, 1.0), (10_000, 1.0), (10_000, 0.1), (100_000, 0.1), (100_000, 1.0))
GRID = tuple(product((100, 400, 1000, 10_000, 100_000), (0.1, 1.0, 5.0)))
CHUNK, LEAST_FRESH, MOST_FRESH, FOR_P = 50_000, 200_000, 2_000_000, 100_000
"""Fresh points for a fit: a hundred for each row, within limits; and for its p-values."""
CLUSTERS, SPREAD = 3, 0.06
LOOSE = 10
ONE_POINT_ABOVE = 1e-12


# ---------------------------------------------------------------- made-up rows


class Made:
    """A made-up population: normal rows and outliers, in ranges from 0 to 1."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.n_features = {"clusters": 8, "skewed": 8, "three": 3, "twenty": 20}[name]
        rng = np.random.default_rng(seed_of("population", name, seed))
        self.centres = rng.uniform(0.25, 0.75, (CLUSTERS, self.n_features))
        self.loadings = rng.normal(0, 1, (2, self.n_features)) / np.sqrt(2)

    def normal(self, n: int, rng: np.random.Generator) -> Floats:
        """Three clusters, as `dpoutlier plan` makes them; "skewed": log-normal, correlated, with heavy tails."""
        if self.name != "skewed":
            noise = rng.normal(0, SPREAD, (n, self.n_features))
            return self.centres[rng.integers(CLUSTERS, size=n)] + noise
        common = rng.standard_t(5, (n, 2)) @ self.loadings
        return np.asarray(np.exp(0.6 * (common + 0.6 * rng.standard_t(5, (n, self.n_features)))) / 12)

    def outliers(self, n: int, rng: np.random.Generator) -> Floats:
        """Normal rows in which a quarter of the features, at least one, is anywhere."""
        rows = self.normal(n, rng)
        changed = rng.random(rows.shape).argsort(axis=1) < max(1, self.n_features // 4)
        rows[changed] = rng.uniform(0, 1, int(changed.sum()))
        return rows


@lru_cache(4)
def fresh(made: str, seed: int, n: int) -> Floats:
    """Normal points of a population; the fits on it share them, and no two of those that are averaged do."""
    population, rng = Made(made, seed), np.random.default_rng(seed_of("fresh", made, seed))
    return np.concatenate([population.normal(CHUNK, rng) for _ in range(n // CHUNK)])


# ---------------------------------------------------------------- measurements, one fit each


def fitted(detector: str, n_rows: int, epsilon: float, reference: Floats, **more: Any) -> Any:
    arguments = {"features": (0, 1), "n_rows_hint": n_rows, "target_fpr": 0.05, "tight_ranges": True, **more}
    return DETECTORS[detector](epsilon, **arguments).fit(reference)


def one_fit(
    *, detector: str, made: str, n: int, epsilon: float, seed: int, target: float = 0.05, loose: bool = False
) -> dict[str, Any]:
    """Realised rates and stated intervals at three targets, and how often a p-value is at most each number."""
    population = Made(made, seed)
    seed_now = seed_of("fit", made, n, epsilon, seed)
    rng = np.random.default_rng(seed_now)
    more = {"features": (0, LOOSE), "tight_ranges": False} if loose else {}
    fit = fitted(
        detector, n, epsilon, population.normal(n, rng), target_fpr=target, unsafe_seed=seed_now % 2**31, **more
    )
    stated = {}
    for wanted in TARGETS:
        found = fit.set_threshold(target_fpr=wanted).false_alarms()
        stated[wanted] = found
    points = fresh(made, seed, min(max(100 * n, LEAST_FRESH), MOST_FRESH))
    hits, small = np.zeros(len(TARGETS), int), np.zeros(len(AT), int)
    for first in range(0, len(points), CHUNK):
        part = points[first : first + CHUNK]
        scores = fit.outlier_scores(part)
        hits += [int((scores > stated[wanted].threshold).sum()) for wanted in TARGETS]
        if first < FOR_P and detector in PROVED:
            p = fit.p_values(part)
            small += [int((p <= a).sum()) for a in AT]
    return {
        "rates": {
            str(wanted): {
                "realised": int(hit) / len(points),
                "expected": float(stated[wanted].expected),
                "lower": float(stated[wanted].lower),
                "upper": float(stated[wanted].upper),
                "trusted": bool(stated[wanted].trusted),
            }
            for wanted, hit in zip(TARGETS, hits, strict=True)
        },
        "p": [int(k) / FOR_P for k in small],
    }


# ---------------------------------------------------------------- alarms of batches


def best_power(scores: Floats, outlying: NDArray[np.bool_], fdr: float) -> float:
    """The power of the best threshold for someone who knows the labels: at most this share of its flags is false."""
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.diff(scores[order]) != 0, [True])  # points with one score are flagged together
    true = outlying[order].cumsum()
    false = (~outlying[order]).cumsum()
    usable = last & (false <= fdr * (true + false))
    return float(true[usable].max() / outlying.sum()) if usable.any() else 0.0


def flagged(fit: Any, points: Floats, outlying: NDArray[np.bool_]) -> list[float]:
    """False-discovery proportion, power, that of the best threshold, share of flagged points, AUROC."""
    flags, scores = fit.alarms(points, fdr=0.1), fit.outlier_scores(points)
    return [
        float((flags & ~outlying).sum() / max(flags.sum(), 1)),
        float(flags[outlying].mean()),
        best_power(scores, outlying, 0.1),
        float(flags.mean()),
        float(roc_auc_score(outlying, scores)),
    ]


BATCHES = 5


def made_batches(
    *, detector: str, made: str, n: int, epsilon: float, size: int, share: float, seed: int
) -> list[float]:
    """Means over batches of made-up points."""
    population, seed_now = Made(made, seed), seed_of("batches", made, n, epsilon, size, share, seed)
    rng = np.random.default_rng(seed_now)
    fit = fitted(detector, n, epsilon, population.normal(n, rng), unsafe_seed=seed_now % 2**31)
    n_outliers = round(share * size)
    outlying = np.arange(size) >= size - n_outliers
    found = [
        flagged(
            fit,
            np.concatenate([population.normal(size - n_outliers, rng), population.outliers(n_outliers, rng)]),
            outlying,
        )
        for _ in range(BATCHES)
    ]
    return [float(x) for x in np.mean(found, axis=0)]


@cache
def table(name: str) -> Any:
    """One of the comparison's tables."""
    known = {one.name: one for one in DATASETS}
    return load_dataset(known[name], data_folder(None)) if name in known else load_table(name)


def table_names() -> tuple[str, ...]:
    return (*tables_at_hand(), *(one.name for one in DATASETS))


@cache
def split(name: str, number: int) -> Any:
    """Reference rows of a table, and points with their labels."""
    return split_rows(table(name), number)


def on_table(detector: str, name: str, number: int, epsilon: float, seed: int, reference: Floats, **more: Any) -> Any:
    """A fit as the study makes it: declared ranges a little wider than the file's, and a guess of the rows by one digit."""
    noise = seed_of("alerts", name, number, epsilon, seed) % 2**31
    arguments = {"tight_ranges": "auto", "unsafe_seed": noise, **more}
    if detector == "forest":
        arguments["tree_seed"] = noise
    bounds = bounds_widened(table(name).rows)
    arguments = {"features": bounds, "n_rows_hint": guessed_rows(len(reference)), **arguments}
    return fitted(detector, 0, epsilon, reference, **arguments)


def table_batches(*, detector: str, name: str, epsilon: float, number: int) -> list[float]:
    """One batch of held-out inliers and outliers of a table; a tenth are outliers, if there are so many."""
    parts = split(name, number)
    rng = np.random.default_rng(seed_of("table batch", name, number))
    inliers, outliers = (rng.permutation(parts.points[one]) for one in (~parts.outlying, parts.outlying))
    inliers = inliers[:900]
    outliers = outliers[: max(len(inliers) // 9, 1)]
    points = np.concatenate([inliers, outliers])
    fit = on_table(detector, name, number, epsilon, 0, parts.reference)
    return [*flagged(fit, points, np.arange(len(points)) >= len(inliers)), len(points), len(outliers)]


# ---------------------------------------------------------------- outliers among the reference rows

SHARES = (0.0, 0.01, 0.05, 0.1)


def _judged(fits: list[Any], normal: Floats, outliers: Floats) -> dict[str, Any]:
    """By a fit that was told of no outliers, and one that was told: AUROC, realised rate; share of small p-values."""
    without = fits[0]
    scores = [one.outlier_scores(normal) for one in fits]
    labels = np.repeat([0, 1], [len(normal), len(outliers)])
    own = np.concatenate([scores[0], without.outlier_scores(outliers)])
    stated = [one.false_alarms() for one in fits]
    return {
        "auroc": float(roc_auc_score(labels, own)),
        "rates": [float((score > found.threshold).mean()) for score, found in zip(scores, stated, strict=True)],
        "found": [
            float((one.outlier_scores(outliers) > found.threshold).mean())
            for one, found in zip(fits, stated, strict=True)
        ],
        "within": [
            bool(found.lower <= (score > found.threshold).mean() <= found.upper)
            for score, found in zip(scores, stated, strict=True)
        ],
        "p": float((without.p_values(normal) <= 0.05).mean()) if isinstance(without, DPForest | DPMarginals) else None,
    }


def made_dirty(*, detector: str, made: str, n: int, epsilon: float, share: float, seed: int) -> dict[str, Any]:
    population, seed_now = Made(made, seed), seed_of("dirty", made, n, epsilon, seed)
    rng = np.random.default_rng(seed_now)
    normal, outliers = population.normal(n, rng), population.outliers(n, rng)
    k = round(share * n)
    reference = np.concatenate([normal[k:], outliers[:k]])
    fits = [
        fitted(detector, n, epsilon, reference, outlier_share=said, unsafe_seed=seed_now % 2**31)
        for said in (0.0, share)
    ]
    return _judged(fits, population.normal(CHUNK, rng), population.outliers(CHUNK // 10, rng))


def table_dirty(*, detector: str, name: str, epsilon: float, share: float, number: int) -> dict[str, Any]:
    """Outliers of the file take the places of reference rows; the others are scored."""
    parts = split(name, number)
    rng = np.random.default_rng(seed_of("table dirty", name, number))
    outliers = rng.permutation(parts.points[parts.outlying])
    k = round(share * len(parts.reference))
    reference = np.concatenate([rng.permutation(parts.reference)[k:], outliers[:k]])
    most = round(max(SHARES) * len(parts.reference))
    fits = [on_table(detector, name, number, epsilon, 0, reference, outlier_share=said) for said in (0.0, share)]
    return _judged(fits, parts.points[~parts.outlying], outliers[most:])


# ---------------------------------------------------------------- the comparison's tables

OLD_SHARE = 0.05


def table_rate(*, detector: str, name: str, epsilon: float, number: int, seed: int) -> dict[str, Any]:
    """False alarms among held-out inliers, beside the interval."""
    parts = split(name, number)
    fit = on_table(detector, name, number, epsilon, seed, parts.reference)
    held_out, found = parts.points[~parts.outlying], fit.false_alarms()
    return {
        "rows": len(parts.reference),
        "of": len(held_out),
        "flagged": int((fit.outlier_scores(held_out) > found.threshold).sum()),
        "expected": float(found.expected),
        "lower": float(found.lower),
        "upper": float(found.upper),
        "trusted": bool(found.trusted),
    }


def table_auroc(*, name: str, epsilon: float, number: int, seed: int) -> list[float]:
    """AUROC of the forest without a threshold, at the default share for one, at a share of 5 %, and fitted on no rows."""
    parts = split(name, number)
    fits = [
        on_table("forest", name, number, epsilon, seed, parts.reference, target_fpr=None),
        on_table("forest", name, number, epsilon, seed, parts.reference),
        on_table("forest", name, number, epsilon, seed, parts.reference, threshold_share=OLD_SHARE),
        on_table(
            "forest", name, number, epsilon, seed, parts.reference[:0], n_rows_hint=guessed_rows(len(parts.reference))
        ),
    ]
    return [float(roc_auc_score(parts.outlying, one.outlier_scores(parts.points))) for one in fits]


# ---------------------------------------------------------------- running and keeping


SHIFTS, OF_A_DAY, DAYS = (0.2, 0.5, 1.0, 2.0), (300, 3000), 30


def one_drift(*, detector: str, n: int, epsilon: float, seed: int) -> dict[str, Any]:
    """False alarms in a month of 1,000 points a day, and whether shifts of one of 8 normal features are seen."""
    rng = np.random.default_rng(seed)

    def points(size: int, shift: float = 0.0) -> Floats:
        return rng.normal([shift] + [0.0] * 7, 1, (size, 8))

    fit = fitted(detector, n, epsilon, points(n), features=(-6, 6))
    days = [fit.drift(points(1000)) for _ in range(DAYS)]
    return {
        "false": sum(day.drifted for day in days),
        "within": float(np.median([day.within for day in days])),
        "seen": [[fit.drift(points(size, shift)).drifted for size in OF_A_DAY] for shift in SHIFTS],
    }


class Runs:
    """Measurements, each made once: kept in a file, if one is given."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.known, self.last = path, {}, 0.0
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                key, value = json.loads(line)
                self.known[key] = value

    def of(self, measure: Callable[..., Any], cases: Iterable[dict[str, Any]]) -> list[tuple[dict[str, Any], Any]]:
        todo = list(cases)
        started, done = time.time(), []
        for i, case in enumerate(todo):
            key = json.dumps([measure.__name__, case], sort_keys=True)
            if key not in self.known:
                with nothing_private():
                    self.known[key] = measure(**case)
                if self.path is not None:
                    with self.path.open("a") as file:
                        file.write(json.dumps([key, self.known[key]]) + "\n")
            done.append((case, self.known[key]))
            if time.time() - self.last > 5:
                self.last = time.time()
                print(
                    f"{measure.__name__}: {i + 1} of {len(todo)}, {self.last - started:.0f} s, {case}",
                    file=sys.stderr,
                    flush=True,
                )
        return done


# ---------------------------------------------------------------- tables


class Amount(NamedTuple):
    """How much is measured."""

    seeds: int
    """Fits on each made-up population, for each number of rows and epsilon."""
    other_targets: int
    loose: int
    batches: int
    splits: int
    noises: int


FULL = Amount(seeds=50, other_targets=5, loose=5, batches=10, splits=10, noises=1)
QUICK = Amount(seeds=1, other_targets=1, loose=1, batches=1, splits=1, noises=1)
MADE = ("clusters", "skewed", "three", "twenty")
SAID = {
    "clusters": "3 clusters, 8 features",
    "skewed": "skewed, heavy tails, 8 features",
    "three": "3 clusters, 3 features",
    "twenty": "3 clusters, 20 features",
}
OTHER_ROWS = (400, 1000, 10_000)
"""What is also fitted with other targets."""
CONFIGS = tuple(sorted({*GRID, *RATES}))
ENOUGH = 1000
"""Rows times epsilon of the reference rows of a table, from where on its rates are judged."""
Kept = list[tuple[dict[str, Any], Any]]


def line(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def head(title: str, *cells: str) -> None:
    print(f"\n### {title}\n", flush=True)
    line(*cells)
    line(*("---" for _ in cells))


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def fits(runs: Runs, amount: Amount, detectors: Iterable[str] = DETECTORS) -> Kept:
    """All fits on made-up rows at the usual target; those of one population after another, since they share fresh points."""
    return runs.of(
        one_fit,
        (
            {"detector": detector, "made": made, "n": n, "epsilon": epsilon, "seed": seed}
            for seed, made, detector, (n, epsilon) in product(range(amount.seeds), MADE, detectors, CONFIGS)
        ),
    )


def chosen(kept: Kept, **wanted: Any) -> list[Any]:
    return [found for case, found in kept if all(case[name] == value for name, value in wanted.items())]


def rates(runs: Runs, amount: Amount) -> None:
    """A."""
    kept = fits(runs, amount)
    columns = ("rows", "epsilon", "median", "5 to 95 %", "1 to 10 %", "2.5 to 8 %", "4.5 to 5.5 %")
    head("Realised rate of false alarms at a target of 5 %, forest", "data", *columns)
    for made, (n, epsilon) in product(MADE, RATES):
        line(SAID[made], *_rate_cells(chosen(kept, detector="forest", made=made, n=n, epsilon=epsilon), n, epsilon))
    head("The same, all four kinds of rows together", "detector", *columns)
    for detector, (n, epsilon) in product(DETECTORS, RATES):
        line(detector, *_rate_cells(chosen(kept, detector=detector, n=n, epsilon=epsilon), n, epsilon))


def _rate_cells(found: list[Any], n: int, epsilon: float) -> list[str]:
    realised = np.array([one["rates"]["0.05"]["realised"] for one in found])
    low, high = np.quantile(realised, [0.05, 0.95])
    boxes = [
        percent(float(((realised >= a) & (realised <= b)).mean()), 0)
        for a, b in ((0.01, 0.1), (0.025, 0.08), (0.045, 0.055))
    ]
    return [
        f"{n:,}",
        f"{epsilon:g}",
        percent(float(np.median(realised))),
        f"{100 * low:.1f} to {percent(float(high))}",
        *boxes,
    ]


def _contains(one: dict[str, Any], target: float) -> bool:
    rate = one["rates"][str(target)]
    return bool(rate["lower"] - ONE_POINT_ABOVE <= rate["realised"] <= rate["upper"] + ONE_POINT_ABOVE)


def intervals(runs: Runs, amount: Amount) -> None:
    """B."""
    _interval_table(
        "Intervals that contain the realised rate; targets of 1, 5 and 10 %, fitted with 5 %", fits(runs, amount)
    )
    kept = {}
    for fitted_with in (0.01, 0.1):
        kept[fitted_with] = runs.of(
            one_fit,
            (
                {"detector": detector, "made": made, "n": n, "epsilon": epsilon, "seed": seed, "target": fitted_with}
                for seed, made, detector, (n, epsilon) in product(range(amount.other_targets), MADE, DETECTORS, GRID)
                if n in OTHER_ROWS
            ),
        )
    _spread_table(fits(runs, amount))
    for fitted_with, found in kept.items():
        _interval_table(f"The same, fitted with a target of {100 * fitted_with:g} %", found)


def _spread_table(kept: Kept) -> None:
    """How far realised rates scatter around what is expected: in units of a binomial law, and of what the interval states."""
    head(
        "Standard deviation of realised minus expected rate, target 5 %, in units of a binomial one and of the stated one",
        *("detector", "rows", "epsilon", "by the binomial one", "by the stated one"),
    )
    for detector, (n, epsilon) in product(DETECTORS, ((10_000, 1.0), (10_000, 5.0), (100_000, 1.0), (100_000, 5.0))):
        own = [one["rates"]["0.05"] for one in chosen(kept, detector=detector, n=n, epsilon=epsilon)]
        known = np.array(
            [(one["realised"], one["expected"], one["upper"] - one["lower"]) for one in own if one["lower"] > 0]
        )
        realised, expected, width = known.T
        binomial = np.sqrt(expected * (1 - expected) / n)
        ratios = [np.sqrt(np.mean(((realised - expected) / unit) ** 2)) for unit in (binomial, width / (2 * 1.645))]
        line(detector, f"{n:,}", f"{epsilon:g}", *(f"{ratio:.2f}" for ratio in ratios))


def _interval_table(title: str, kept: Kept) -> None:
    head(
        title,
        "detector",
        "rows",
        *(f"epsilon {epsilon:g}" for epsilon in (0.1, 1.0, 5.0)),
        "trusted at the target of 5 %, by epsilon",
    )
    worst = []
    for detector, n in product(DETECTORS, sorted({case["n"] for case, _ in kept if (case["n"], 5.0) in GRID})):
        cells, trusted = [], []
        for epsilon in (0.1, 1.0, 5.0):
            found = chosen(kept, detector=detector, n=n, epsilon=epsilon)
            shares = {target: float(np.mean([_contains(one, target) for one in found])) for target in (0.01, 0.05, 0.1)}
            worst += [(share, detector, n, epsilon, target) for target, share in shares.items()]
            cells.append(" / ".join(f"{100 * share:.1f}" for share in shares.values()))
            trusted.append(percent(float(np.mean([one["rates"]["0.05"]["trusted"] for one in found])), 0))
        line(detector, f"{n:,}", *cells, " / ".join(trusted))
    fits_of_cell = len(found)
    below = [one for one in worst if one[0] < 0.88]
    print(
        f"\n{fits_of_cell} fits for each cell; standard error {percent(float(np.sqrt(0.09 / fits_of_cell)))} where 90 % are right."
    )
    print(
        f"Mean of all {len(worst)} cells {percent(float(np.mean([one[0] for one in worst])))}; {len(below)} below 88 %."
    )
    for share, *what in sorted(below)[:12]:
        print("- {}: {}, {:,} rows, epsilon {:g}, target {:g}".format(percent(share), *what))


def p_values(runs: Runs, amount: Amount) -> None:
    """C."""
    _p_table("P(p <= a) / a of fresh normal points, and its standard error over fits", fits(runs, amount))
    cases = (
        {"detector": detector, "made": made, "n": n, "epsilon": epsilon, "seed": seed, "loose": True}
        for seed, made, detector, (n, epsilon) in product(range(amount.loose), MADE, PROVED, RATES)
    )
    _p_table(f"The same with ranges {LOOSE} times too wide, which the fit looks through", runs.of(one_fit, cases))


def _p_table(title: str, kept: Kept) -> None:
    head(title, "detector", "rows", "epsilon", *(f"a = {a:g}" for a in AT))
    above, cells = [], 0
    for detector, (n, epsilon) in product(PROVED, RATES):
        of_all = np.array([one["p"] for one in chosen(kept, detector=detector, n=n, epsilon=epsilon)])
        line(
            detector,
            f"{n:,}",
            f"{epsilon:g}",
            *(f"{x:.2f} ± {e:.2f}" for x, e in zip(*_mean_and_error(of_all / AT), strict=True)),
        )
    for detector, made, (n, epsilon) in product(
        PROVED, MADE, sorted({(case["n"], case["epsilon"]) for case, _ in kept})
    ):
        found = np.array([one["p"] for one in chosen(kept, detector=detector, made=made, n=n, epsilon=epsilon)])
        mean, error = _mean_and_error(found)
        for a, x, e in zip(AT, mean, error, strict=True):
            points = len(found) * FOR_P
            hits = round(x * points)
            at_least = float(beta.ppf(0.01, hits, points - hits + 1)) if hits else 0.0  # Clopper and Pearson
            cells += 1
            if x > a:
                above.append((x - a) / max(e, 1e-12))
                print(
                    f"above: {detector}, {made}, {n:,} rows, epsilon {epsilon:g}, a {a:g}: {x:.5f} ± {e:.5f}, exact {at_least:.5f}",
                    file=sys.stderr,
                )
    print(
        f"\nOf {cells} cells (detector, kind of rows, rows, epsilon, a), {len(above)} have a mean above a; by at most ",
        end="",
    )
    print(f"{max(above, default=0.0):.1f} standard errors over fits.")


def _mean_and_error(values: Floats) -> tuple[Floats, Floats]:
    return values.mean(axis=0), values.std(axis=0, ddof=min(1, len(values) - 1)) / np.sqrt(len(values))


def batches(runs: Runs, amount: Amount) -> None:
    """D."""
    columns = ("rows", "epsilon", "false among flagged", "power", "best possible", "at random", "AUROC")
    cases = [
        {"detector": detector, "made": made, "n": n, "epsilon": epsilon, "size": size, "share": share, "seed": seed}
        for detector, made, n, epsilon, (size, share), seed in product(
            PROVED,
            ("clusters", "skewed"),
            (1000, 3000, 10_000, 100_000),
            (1.0, 5.0),
            BATCH_KINDS,
            range(amount.batches),
        )
    ]
    kept = runs.of(made_batches, cases)
    head("Alarms at a false-discovery rate of 10 %: made-up batches", "detector", "data", *columns)
    for detector, made, n, epsilon in product(
        PROVED, ("clusters", "skewed"), (1000, 3000, 10_000, 100_000), (1.0, 5.0)
    ):
        line(
            detector,
            SAID[made],
            f"{n:,}",
            f"{epsilon:g}",
            *_alarm_cells(chosen(kept, detector=detector, made=made, n=n, epsilon=epsilon)),
        )
    head(
        "The same by size of the batch and its share of outliers, forest, 3 clusters, epsilon 1",
        "batch",
        "rows",
        *columns[2:],
    )
    for (size, share), n in product(BATCH_KINDS, (3000, 10_000, 100_000)):
        own = chosen(kept, detector="forest", made="clusters", n=n, epsilon=1.0, size=size, share=share)
        line(f"{size}, {percent(share, 0)} outliers", f"{n:,}", *_alarm_cells(own))
    names = [name for name in table_names() if len(split(name, 0).reference) >= ENOUGH]
    kept = runs.of(
        table_batches,
        (
            {"detector": detector, "name": name, "epsilon": epsilon, "number": number}
            for name, detector, epsilon, number in product(names, PROVED, (1.0, 5.0), range(amount.splits))
        ),
    )
    head("Held-out batches of tables", "table", "detector", "epsilon", "points, outliers", *columns[2:])
    for name, detector, epsilon in product(names, PROVED, (1.0, 5.0)):
        own = chosen(kept, name=name, detector=detector, epsilon=epsilon)
        line(
            f"{name} ({len(split(name, 0).reference):,})",
            detector,
            f"{epsilon:g}",
            f"{own[0][5]}, {own[0][6]}",
            *_alarm_cells(own),
        )


BATCH_KINDS = ((200, 0.05), (200, 0.1), (1000, 0.05), (1000, 0.1))


def _alarm_cells(found: list[list[float]]) -> list[str]:
    values = np.array([one[:5] for one in found])
    mean, error = _mean_and_error(values)
    return [f"{mean[0]:.3f} ± {error[0]:.3f}", *(f"{x:.2f}" for x in mean[1:3]), f"{mean[3]:.3f}", f"{mean[4]:.3f}"]


DIRTY_TABLES = ("satellite", "page-blocks0", "segment0", "kc1", "yeast3")
"""Those of at least a thousand reference rows with enough outliers."""


def dirty(runs: Runs, amount: Amount) -> None:
    """E."""
    columns = (
        "epsilon",
        "outliers",
        "AUROC",
        "false alarms",
        "with outlier_share",
        "flagged outliers",
        "with it",
        "P(p <= .05)",
    )
    kinds = [(detector, made, n) for detector, made, n in product(DETECTORS, ("clusters", "skewed"), (1000, 10_000))]
    kept = runs.of(
        made_dirty,
        (
            {"detector": detector, "made": made, "n": n, "epsilon": 1.0, "share": share, "seed": seed}
            for (detector, made, n), share, seed in product(kinds, SHARES, range(amount.batches))
        ),
    )
    head("Outliers among made-up reference rows, target 5 %", "detector", "data", "rows", *columns)
    for (detector, made, n), share in product(kinds, SHARES):
        line(
            detector,
            SAID[made],
            f"{n:,}",
            "1",
            *_dirty_cells(share, chosen(kept, detector=detector, made=made, n=n, share=share)),
        )
    names = [name for name in DIRTY_TABLES if name in table_names()]
    kept = runs.of(
        table_dirty,
        (
            {"detector": "forest", "name": name, "epsilon": epsilon, "share": share, "number": number}
            for name, epsilon, share, number in product(names, (1.0, 5.0), SHARES, range(amount.splits))
        ),
    )
    head("Outliers among the reference rows of tables, forest, target 5 %", "table", *columns)
    for name, epsilon, share in product(names, (1.0, 5.0), SHARES):
        line(name, f"{epsilon:g}", *_dirty_cells(share, chosen(kept, name=name, epsilon=epsilon, share=share)))


def _dirty_cells(share: float, found: list[dict[str, Any]]) -> list[str]:
    def mean(what: str, i: int) -> str:
        return percent(float(np.mean([one[what][i] for one in found])))

    pairs = [mean(what, i) for what in ("rates", "found") for i in (0, 1)]
    known = [one["p"] for one in found if one["p"] is not None]
    p = percent(float(np.mean(known))) if known else "none"
    return [percent(share, 0), f"{np.mean([one['auroc'] for one in found]):.3f}", *pairs, p]


def real(runs: Runs, amount: Amount) -> None:
    """F."""
    cases = [
        {"detector": detector, "name": name, "epsilon": epsilon, "number": number, "seed": seed}
        for name, detector, epsilon in product(table_names(), DETECTORS, (1.0, 5.0))
        if len(split(name, 0).reference) * epsilon >= ENOUGH
        for number, seed in product(range(amount.splits), range(amount.noises))
    ]
    kept = runs.of(table_rate, cases)
    head(
        "Held-out inliers of tables beside the interval, target 5 %",
        *(
            "detector",
            "epsilon",
            "tables",
            "median",
            "1 to 10 %",
            "2.5 to 8 %",
            "in the interval, with the chance of held-out inliers",
            "lowest table",
        ),
    )
    for detector, epsilon in product(DETECTORS, (1.0, 5.0)):
        own = [(case["name"], one) for case, one in kept if (case["detector"], case["epsilon"]) == (detector, epsilon)]
        names = sorted({name for name, _ in own})
        realised = np.array([one["flagged"] / one["of"] for _, one in own])
        inside = {name: np.mean([_plausible(one) for other, one in own if other == name]) for name in names}
        boxes = [percent(float(((realised >= a) & (realised <= b)).mean()), 0) for a, b in ((0.01, 0.1), (0.025, 0.08))]
        least = min(inside, key=inside.__getitem__)
        line(
            *(detector, f"{epsilon:g}", len(names), percent(float(np.median(realised))), *boxes),
            percent(float(np.mean([*inside.values()]))),
            f"{least}, {percent(float(inside[least]), 0)}",
        )
    head(
        "By table, forest",
        "table",
        "rows",
        "epsilon",
        "realised, mean",
        "expected, mean",
        "interval, mean",
        "in it",
        "trusted",
    )
    for name, epsilon in product(table_names(), (1.0, 5.0)):
        own = chosen(kept, name=name, epsilon=epsilon, detector="forest")
        if own:
            flagged_share = sum(one["flagged"] for one in own) / sum(one["of"] for one in own)
            means = [float(np.mean([one[key] for one in own])) for key in ("expected", "lower", "upper", "trusted")]
            inside_share = float(np.mean([_plausible(one) for one in own]))
            line(
                *(name, f"{own[0]['rows']:,}", f"{epsilon:g}", percent(flagged_share), percent(means[0])),
                *(f"{100 * means[1]:.1f} to {percent(means[2])}", percent(inside_share, 0), percent(means[3], 0)),
            )
    _auroc(runs, amount)


def _auroc(runs: Runs, amount: Amount) -> None:
    cases = [
        {"name": name, "epsilon": epsilon, "number": number, "seed": seed}
        for name, epsilon, number, seed in product(
            table_names(), (5.0, 1.0, 0.3), range(amount.splits), range(amount.noises)
        )
    ]
    kept = runs.of(table_auroc, cases)
    head(
        "AUROC of the forest on the tables, by what a threshold takes of epsilon",
        "epsilon",
        "no threshold",
        "default share",
        "lost",
        "5 % share",
        "lost",
        "most lost at the default share",
        "fitted on no rows",
    )
    for epsilon in (5.0, 1.0, 0.3):
        by_table = {name: np.mean(chosen(kept, name=name, epsilon=epsilon), axis=0) for name in table_names()}
        values = np.array([*by_table.values()])
        none, new, old, control = values.mean(axis=0)
        lost, lost_before = (_mean_and_error(values[:, 0] - values[:, i]) for i in (1, 2))
        most = max(by_table, key=lambda name: by_table[name][0] - by_table[name][1])
        line(
            *(f"{epsilon:g}", f"{none:.4f}", f"{new:.4f}", f"{lost[0]:.4f} ± {lost[1]:.4f}"),
            *(f"{old:.4f}", f"{lost_before[0]:.4f} ± {lost_before[1]:.4f}"),
            *(f"{most}, {by_table[most][0] - by_table[most][1]:.3f}", f"{control:.3f}"),
        )
    _lost_by_size(kept)


def _lost_by_size(kept: Kept) -> None:
    """By guessed rows times epsilon, which the default share follows."""
    by_case: dict[tuple[str, float], list[list[float]]] = {}
    for case, found in kept:
        by_case.setdefault((case["name"], case["epsilon"]), []).append(found)
    head("AUROC lost, by rows times epsilon", "rows times epsilon", "tables", "lost at the default share", "at 5 %")
    sizes = {key: guessed_rows(len(split(key[0], 0).reference)) * key[1] for key in by_case}
    for above, most in pairwise((0, 100, 400, 1000, 3000, 10_000, 10**9)):
        values = np.array([np.mean(found, axis=0) for key, found in by_case.items() if above < sizes[key] <= most])
        if len(values):
            new, old = (_mean_and_error(values[:, 0] - values[:, i]) for i in (1, 2))
            said = f"up to {most:,}" if most < 10**9 else f"above {above:,}"
            line(said, len(values), *(f"{mean:.4f} ± {error:.4f}" for mean, error in (new, old)))


def drifts(runs: Runs, amount: Amount) -> None:
    """G."""
    seen = [f"{size:,} points, shift {shift:g}" for shift in SHIFTS for size in OF_A_DAY]
    head("Drift", "detector", "rows", "months with a false alarm", "known to within", *seen)
    for detector, n in product(PROVED, (1000, 10_000, 100_000)):
        cases = [{"detector": detector, "n": n, "epsilon": 1.0, "seed": seed} for seed in range(amount.seeds // 2 or 1)]
        found = [one for _, one in runs.of(one_drift, cases)]
        power = np.mean([one["seen"] for one in found], axis=0).ravel()
        false = f"{sum(one['false'] > 0 for one in found)} of {len(found)}"
        line(
            *(detector, f"{n:,}", false, percent(float(np.median([one["within"] for one in found])))),
            *(f"{share:.2f}" for share in power),
        )


def _plausible(one: dict[str, Any]) -> bool:
    """Whether the flagged share of held-out inliers fits the interval, given that they are a sample too."""
    share, of, hits = one["flagged"] / one["of"], one["of"], one["flagged"]
    if share >= one["expected"]:
        low = float(beta.ppf(0.05, hits, of - hits + 1)) if hits else 0.0
        return bool(share - one["expected"] <= np.hypot(one["upper"] - one["expected"], share - low) + ONE_POINT_ABOVE)
    high = float(beta.ppf(0.95, hits + 1, of - hits)) if hits < of else 1.0
    return bool(one["expected"] - share <= np.hypot(one["expected"] - one["lower"], high - share) + ONE_POINT_ABOVE)


SECTIONS: dict[str, Callable[[Runs, Amount], None]] = {
    "rates": rates, "intervals": intervals, "p": p_values, "batches": batches, "dirty": dirty, "real": real,
    "drift": drifts,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", default=",".join(SECTIONS), help="sections, separated by commas: " + ", ".join(SECTIONS)
    )
    parser.add_argument("--keep", type=Path, help="file that keeps measurements")
    parser.add_argument("--quick", action="store_true", help="few fits")
    given = parser.parse_args()
    warnings.simplefilter("ignore", ThresholdWarning)
    runs = Runs(given.keep)
    for name in given.only.split(","):
        SECTIONS[name](runs, QUICK if given.quick else FULL)


if __name__ == "__main__":
    main()
