"""How the cost of a query grows, and how many cells a walk visits."""

import numpy as np

from data import queries, reference
from measure import interleaved
from scoring import ours

BASE = {"n": 20_000, "d": 8, "b": 4, "k": 10, "epsilon": 1.0}
SERIES = {
    "n": [200, 2_000, 20_000, 200_000],
    "d": [2, 4, 8, 16, 30],
    "b": [2, 3, 4, 6, 10],
    "k": [1, 3, 10, 30, 100],
    "epsilon": [5, 1, 0.3, 0.1, 0.03],
}


def fitted(n, d, b, k, epsilon):
    return ours(reference(n, d), epsilon=epsilon, bins=b, k=k)


def growth(report):
    rows = []
    size = 500 if report.quick else 5_000
    for name, values in SERIES.items():
        for value in values:
            settings = {**BASE, name: value}
            detector, points = fitted(**settings), queries(size, settings["d"])
            time = interleaved({"ours": lambda d=detector, p=points: d.outlier_scores(p)}, rounds=3)["ours"] / size
            rows.append([f"{name} = {value:,}", f"{time * 1e6:.3g}", *visited(detector, points)])
    base = ", ".join(f"{name} = {value:,}" for name, value in BASE.items())
    report.section(
        "Growth of the cost of a query",
        f"One setting changed at a time, from {base}; at most 10,000 cells, at most four steps.",
        ["", "microseconds per point", "cells: mean", "median", "p99", "max", "counts"],
        rows,
    )
    points = queries(20_000, 8)
    small, large = (fitted(**{**BASE, "n": n}) for n in ((10**4, 10**5) if report.quick else (10**4, 10**6)))
    times = interleaved({"small": lambda: small.outlier_scores(points), "large": lambda: large.outlier_scores(points)})
    report.target("cost of a query at n=1e6 against n=1e4, d=8, b=4", times["large"] / times["small"], 1, at_most=True)


def visited(detector, points):
    cells = detector.walk(points).visited
    return [f"{cells.mean():.1f}", *(int(np.percentile(cells, q)) for q in (50, 99, 100)), detector.model_.counts.kind]


def walks_of(report):
    """Nanoseconds per cell of long walks, points per second of walks that end at home."""
    rows = []
    for name, n, d, b, epsilon, counts in (
        ("ends at home, dense", 10**6, 2, 20, 1, "dense"),
        ("ends at home, keyed", 10**6, 2, 20, 1, "keyed"),
        ("long walks, keyed", 300, 30, 3, 1, "keyed"),
        ("long walks, keyed, 128 bits", 300, 30, 10, 0.3, "keyed"),
        ("long walks, dense", 300, 8, 6, 0.1, "dense"),
    ):
        points = queries(2_000 if report.quick or n == 300 else 200_000, d)
        detector = ours(reference(n, d), bins=b, epsilon=epsilon, counts=counts)
        time = interleaved({"ours": lambda s=detector, p=points: s.outlier_scores(p)}, rounds=3)["ours"]
        cells = detector.walk(points).visited.sum()
        rows.append([name, f"{cells / len(points):.1f}", f"{len(points) / time:,.0f}", f"{time / cells * 1e9:.1f}"])
    report.section(
        "Points per second, nanoseconds per cell",
        "At most 10,000 cells.",
        ["", "cells per point", "points per second", "ns per visited cell"],
        rows,
    )
