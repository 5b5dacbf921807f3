"""Scoring against everything else that could be used, and against earlier and plainer versions of itself."""

import numpy as np
from sklearn.datasets import load_breast_cancer

import naive
from data import queries, reference
from dpoutlier import DPGridKNN
from dpoutlier.counts.base import noisy_counts
from dpoutlier.counts.keyed import KeyedCounts
from dpoutlier.partitions.base import cell_ids
from dpoutlier.partitions.grid import Grid
from dpoutlier.scoring.nearest_cells import NearestCells
from dpoutlier.tables.rows import Rows
from heap.walk import walk_by_heap
from measure import interleaved, per_point, seconds
from plain_python import score as plain_score
from plots import plot_points_per_second
from rivals import RIVALS

PYOD_TARGETS = {2: 150, 8: 250, 30: 900}
BEST_TARGETS = {2: 14, 8: 9, 30: 3}


def ours(rows, **arguments):
    settings = {"epsilon": 1, "features": (0, 1), "n_rows_hint": len(rows), "max_cells": 10_000, **arguments}
    return DPGridKNN(**settings).fit(rows)


def against_rivals(report):
    """Five searches without privacy, and ours with it."""
    sizes = (10**3, 10**4) if report.quick else (10**4, 10**5, 10**6)
    rows, rates = [], {}
    for d in (2, 8, 30):
        for n in sizes:
            table, points = reference(n, d), queries(500_000, d)
            detector = ours(table)
            scorers = {"dpoutlier": detector.outlier_scores, **{name: make(table) for name, make in RIVALS.items()}}
            times = per_point(scorers, points)
            for name, found in times.items():
                rates.setdefault((d, name), []).append((n, 1 / found))
            best = min(found for name, found in times.items() if name not in {"dpoutlier", "PyOD KNN"})
            mine = times["dpoutlier"]
            bins = detector.model_.partition.bins[0]
            rows.append([d, f"{n:,}", bins, *(f"{found * 1e6:.3g}" for found in times.values()), f"{best / mine:.3g}"])
            if n == 10**6:
                report.target(f"PyOD KNN, n=1e6, d={d}", times["PyOD KNN"] / mine, PYOD_TARGETS[d])
            if n == 10**4:
                report.target(f"best of scikit-learn, SciPy, faiss, n=1e4, d={d}", best / mine, BEST_TARGETS[d])
    report.section(
        "Scoring: microseconds per point",
        "Eight Gaussian clusters, one query in a hundred uniform. Ours: epsilon 1, k = 10, bins by the rule, at most 10,000 "
        "cells. The others: exact k-NN, k = 10, no privacy, each with its own defaults. The last column is the best of "
        "scikit-learn, SciPy and faiss over ours.",
        ["d", "n", "bins", *times, "best / ours"],
        rows,
    )
    if not report.quick:
        plot_points_per_second(rates, report.folder / "points_per_second.png")


def wdbc():
    """Benign rows and a few points, with powers of ten as bounds, as one would declare."""
    X, y = load_breast_cancer(return_X_y=True)
    benign, malignant = X[y == 1], X[y == 0]
    bounds = (np.zeros(30), 10.0 ** np.ceil(np.log10(X.max(axis=0))))
    return benign[:285], np.concatenate([benign[285:], malignant[:10]]), bounds


def against_plain_python(report):
    """Algorithm 1 over a sorted list of all cells within four steps: same noise, same scores."""
    reference_rows, points, bounds = wdbc()
    bins, depth = 3, 2 if report.quick else 4
    detector = DPGridKNN(
        5, features=bounds, bins=bins, max_depth=depth, max_cells=10**7, exhausted="as-printed", counts="keyed"
    ).fit(reference_rows)
    model = detector.model_
    positions = Rows(points, model.domain)[:]
    grid = model.partition

    def noisy_count(cell):
        return int(noisy_counts(model.counts, cell_ids([naive.number_of(cell, grid.bins)]))[0])

    known = {}

    def drawn(cell):  # the price of our own look-up is not charged to the plain version
        if cell not in known:
            known[cell] = noisy_count(cell)
        return known[cell]

    some = range(0, len(points), len(points) // 3)
    walk = detector.walk(points)
    for i in some:
        plain, visited = plain_score(positions[i].tolist(), grid.bins, drawn, detector.k, depth)
        assert (round(plain, 9), visited) == (round(walk.scores[i], 9), walk.visited[i]), "the plain version disagrees"
    plain = np.mean(
        [seconds(lambda i=i: plain_score(positions[i].tolist(), grid.bins, known.get, detector.k, depth)) for i in some]
    )
    many = np.tile(points[list(some)], (200, 1))
    mine = interleaved({"ours": lambda: detector.outlier_scores(many)})["ours"] / len(many)
    report.target("plain Python Algorithm 1, WDBC, b=3, within four steps", plain / mine, 10_000)
    report.section(
        "The paper's algorithm in plain Python",
        "Our own version, written from the paper (`plain_python.py`), not the authors' code: all cells within four steps in a "
        "list, sorted, noise kept in a dictionary (and drawn before the clock starts). WDBC, 30 features of 3 bins, epsilon 5. "
        "The scores agree.",
        ["seconds per query, plain", "microseconds per query, ours", "cells visited by the points measured"],
        [[f"{plain:.3g}", f"{mine * 1e6:.3g}", ", ".join(str(walk.visited[i]) for i in some)]],
    )


def against_heap(report):
    """The first kernel: a heap, and noise cell by cell. Only walks of more than 100 cells."""
    rows = [heap_row(report, *case) for case in (("b=3 (64 bits)", 3, 1), ("b=10 (128 bits)", 10, "0.3"))]
    report.section(
        "The first kernel: nanoseconds per visited cell",
        "300 rows of 30 features; walks of more than 100 cells. The first kernel draws version 1 of the noise, the new one version "
        "2; in the middle the new kernel on the old noise, where both give the same scores.",
        ["", "epsilon", "heap, noise 1", "ours, noise 1", "ours, noise 2", "ratio"],
        rows,
    )


def heap_row(report, name, bins, epsilon):
    model = DPGridKNN(epsilon, features=(0, 1), bins=bins, counts="keyed").fit(reference(300, 30)).model_
    held, grid, scorer = model.counts, model.partition, model.scorer
    first = KeyedCounts(held.ids, held.exact, held.key, held.salt, held.noise, sampler_version=1)
    positions = Rows(queries(200, 30), model.domain)[:]
    walks = [scorer.walk(positions, grid, counts).visited for counts in (first, held)]
    long = [positions[visited > 100] for visited in walks]
    times = interleaved(
        {
            "heap": lambda: walk_by_heap(scorer, long[0], grid, first),
            "ours, noise 1": lambda: scorer.walk(long[0], grid, first),
            "ours": lambda: scorer.walk(long[1], grid, held),
        },
        rounds=3,
    )
    cells = [visited[visited > 100].sum() for visited in walks]
    heap, same_noise, mine = times["heap"] / cells[0], times["ours, noise 1"] / cells[0], times["ours"] / cells[1]
    report.target(f"heap version, walks of more than 100 cells, {name}", heap / mine, 5)
    return [name, epsilon, *(f"{found * 1e9:.0f}" for found in (heap, same_noise, mine)), f"{heap / mine:.1f}"]


def against_definition(report):
    """The oracle of the tests: all cells, sorted."""
    grid = Grid((5, 5, 5, 5))
    rng = np.random.default_rng(0)
    detector = ours(rng.random((600, 4)), bins=5)
    counts = detector.model_.counts.counts
    positions = rng.integers(0, 2**32, (2000, 4), dtype=np.uint32)
    rule = {
        "k": 10,
        "weighted": False,
        "distance": "cell",
        "max_depth": 4,
        "max_cells": 10_000,
        "exhausted": "outlying",
    }
    oracle = (
        seconds(lambda: [naive.score(p.tolist(), grid.bins, lambda i: int(counts[i]), **rule) for p in positions[:10]])
        / 10
    )
    scorer = NearestCells(**rule)
    mine = interleaved({"ours": lambda: scorer.outlier_scores(positions, grid, detector.model_.counts)})["ours"] / len(
        positions
    )
    report.section(
        "The oracle",
        "`tests/helpers/naive.py`, which sorts all 625 cells of a small grid in exact fractions.",
        ["microseconds per point, oracle", "ours", "ratio"],
        [[f"{oracle * 1e6:.0f}", f"{mine * 1e6:.3g}", f"{oracle / mine:.3g}"]],
    )


def threads(report):
    """Two threads on a batch that takes one of them more than a second."""
    table = reference(1000, 30)
    points = queries(4_000 if report.quick else 40_000, 30)
    detector = ours(table, bins=3)
    two = ours(table, bins=3, n_jobs=2)
    two.model_ = detector.model_
    times = interleaved(
        {"one": lambda: detector.outlier_scores(points), "two": lambda: two.outlier_scores(points)}, rounds=3
    )
    report.target(f"two threads against one, a batch of {times['one']:.1f} s", times["one"] / times["two"], 1.8)
