"""Features of all kinds: what levels, missing cells, people, private bounds and a sparse release add to a fit."""

import numpy as np
import pyarrow as pa

from data import queries, reference
from dpoutlier import Category, DPForest, DPGridKNN, DPMarginals, PrivateBounds
from measure import interleaved

FEATURES = 8
LEVELS = [f"level {i}" for i in range(12)]


def kinds_of_features(report):
    """The same rows as plain numbers, with missing cells, with half of the features as text, and with private bounds."""
    n = 10**5 if report.quick else 10**6
    numbers = reference(n, FEATURES)
    names = [f"f{j}" for j in range(FEATURES)]
    plain = pa.table([np.ascontiguousarray(numbers[:, j]) for j in range(FEATURES)], names)
    text = np.array(LEVELS)[(numbers * len(LEVELS)).astype(int).clip(0, len(LEVELS) - 1)]
    mixed = pa.table([pa.array(text[:, j]) if j % 2 else plain.column(j) for j in range(FEATURES)], names)
    people = plain.append_column("person", pa.array(np.arange(n) // 3))
    declared = dict.fromkeys(names, (0, 1))
    levels = {name: Category(LEVELS) if j % 2 else (0, 1) for j, name in enumerate(names)}
    fits = {
        "numbers": (DPForest(1, features=declared, n_rows_hint=n), plain),
        "numbers, a cell for missing values each": (
            DPForest(1, features=declared, missing="cell", n_rows_hint=n),
            plain,
        ),
        "half of them text of 12 levels": (DPForest(1, features=levels, n_rows_hint=n), mixed),
        "at most 2 rows of each person": (
            DPForest(1, features=declared, person="person", rows_per_person=2, n_rows_hint=n),
            people,
        ),
        "private bounds within -1e6 to 1e6": (
            DPForest(1, features=PrivateBounds(outer=(-1e6, 1e6)), n_rows_hint=n),
            plain,
        ),
        "marginals, half of them text": (DPMarginals(1, features=levels), mixed),
    }
    times = interleaved({name: lambda f=f, t=t: f.fit(t) for name, (f, t) in fits.items()}, rounds=3)
    scoring = interleaved({name: lambda f=f, t=t: f.score_samples(t) for name, (f, t) in fits.items()}, rounds=3)
    report.section(
        "Features of all kinds",
        f"{n:,} rows of {FEATURES} features in an Arrow table: fit and score, with reading. Text is looked up once for each value.",
        ["", "fit, s", "rows per second", "score, s", "points per second"],
        [
            [name, f"{times[name]:.2f}", f"{n / times[name]:,.0f}", f"{scoring[name]:.2f}", f"{n / scoring[name]:,.0f}"]
            for name in fits
        ],
    )


def sparse_release(report):
    """A grid of 10**30 cells, published."""
    rows, train, points = [], reference(10**5, 30), queries(200, 30)
    for size in (10**4, 10**5) if report.quick else (10**4, 10**5, 10**6):
        fitted = DPGridKNN(1, features=(0, 1), bins=10, counts="sparse", sparse_size=size)
        times = interleaved({"fit": lambda f=fitted: f.fit(train)}, rounds=3)
        held = fitted.model_.counts
        scored = interleaved({"score": lambda f=fitted: f.score_samples(points)}, rounds=1)
        rows.append([
            f"{size:,}", held.tau, f"{len(held.noisy):,}", f"{times['fit']:.2f}",
            f"{sum(array.nbytes for array in held.arrays().values()) / 1e6:.2f}", f"{scored['score'] / len(points) * 1e3:.2f}",
        ])  # fmt: skip
    report.section(
        "Sparse release of 10^30 cells",
        "100,000 rows of 30 features with 10 bins each, epsilon 1, the whole fit.",
        ["sparse_size", "threshold", "cells listed", "fit, s", "megabytes", "ms per point"],
        rows,
    )
