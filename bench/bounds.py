"""How good private bounds are: AUROC and rank errors as rows and epsilon grow. Tables of docs/private-bounds.md.

DPOUTLIER_DATA=folder python bench/bounds.py
"""

import sys
import warnings
from fractions import Fraction

import numpy as np
from scipy import stats

from dpoutlier import Bounds, DPForest
from dpoutlier.exceptions import UnsafeWarning
from dpoutlier.noise.permute_and_flip import permute_and_flip
from dpoutlier.noise.sources import UnsafeSeededBytes
from dpoutlier.trusted.quantiles import HIGH, LOW, EdgeCounts, candidates, choose_quantiles, spread, utilities, widened
from experiments.measure.comparison import guessed_rows
from experiments.measure.datasets import DATASETS
from experiments.measure.protocol import bounds_widened, seed_of, split_rows
from experiments.measure.public_tables import load_table, tables_at_hand
from experiments.measure.quality import quality
from experiments.measure.sources import data_folder, load_dataset

OUTER = (-1e6, 1e6)
PAIRS = {Fraction(1, 20): 0.5, Fraction(1, 10): 1, Fraction(1, 5): 2, Fraction(1, 4): 3, Fraction(1, 3): 4}
ROWS_TIMES_RATE = (5, 10, 20, 40, 80, 160, 320, None)
SEEDS = 2
UNIT = 2**40


def auroc(split, bounds, n_rows_hint, seed):
    forest = DPForest(
        1, features=bounds, n_rows_hint=n_rows_hint, tree_seed=seed, unsafe_seed=seed, tight_ranges=True
    ).fit(split.reference)
    return quality(split.outlying, forest.outlier_scores(split.points)).auroc


def detection():
    """Mean AUROC by (quantile, n times rate), at epsilon 1 for the counts."""
    found = {}
    tables = {name: load_table(name) for name in tables_at_hand()}
    tables |= {one.name: load_dataset(one, data_folder(None)) for one in DATASETS}
    for name, data in tables.items():
        split, seed = split_rows(data, 0), seed_of(name, 0)
        n, d = split.reference.shape
        counts = EdgeCounts([OUTER] * d)
        counts.add(list(split.reference.T))
        for noise in range(seed, seed + SEEDS):
            declared = auroc(split, bounds_widened(data.rows), guessed_rows(n), noise)
            found.setdefault(("declared", None), []).append(declared)
            for low, by in PAIRS.items():
                for x in ROWS_TIMES_RATE:
                    rate = None if x is None else Fraction(x * UNIT // n, UNIT)
                    private = choose_quantiles(counts, rate, UnsafeSeededBytes(noise), low, 1 - low)
                    bounds = Bounds(*zip(*(widened(*pair, OUTER, by) for pair in private), strict=True))
                    found.setdefault((str(low), x), []).append(auroc(split, bounds, guessed_rows(n), noise))
    return {key: float(np.mean(values)) for key, values in found.items()}


def rank_errors(n, rate, repeats=100):
    """Median and 95 % point of the error of a quartile, as a share of n normal rows."""
    edges, rng, source = candidates(OUTER), np.random.default_rng(0), UnsafeSeededBytes(0)
    law, errors = np.diff(stats.norm(100, 15).cdf(edges)), []
    for _ in range(repeats):
        below = np.concatenate([[0], np.cumsum(rng.multinomial(n, law / law.sum()))])
        for quantile in (LOW, HIGH):
            chosen = permute_and_flip(utilities(below, n - below, quantile), rate / spread(quantile), source)
            errors.append(max(0.0, below[chosen] / n - float(quantile), float(quantile) - below[chosen + 1] / n))
    return np.quantile(errors, [0.5, 0.95]).round(3).tolist()


def main():
    for n in (100, 1000, 10**4, 10**5, 10**7):
        print(f"{n:>10,} rows, d = 1, 5, 20:", *(rank_errors(n, Fraction(1, 20 * d)) for d in (1, 5, 20)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsafeWarning)
        for (quantile, x), mean in detection().items():
            print(f"{quantile:>9}  n rate = {x or 'no noise'!s:<9} {mean:.3f}")


if __name__ == "__main__":
    sys.exit(main())
