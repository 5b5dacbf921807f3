"""Forests: fitting against a plain sum for each tree, scoring, and the published file."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from data import queries, reference
from dpoutlier import DPForest, DPMarginals, load
from measure import interleaved

FEATURES = 30
ELSEWHERE = """
import sys
import numpy as np
from dpoutlier import load
model, points, scores = sys.argv[1:]
np.save(scores, load(model).score_samples(np.load(points)))
"""


def forest_fit(report):
    """Per tree: a fit goes down all trees, so its time is divided by their number."""
    rows = []
    n = 10**6 if report.quick else 10**7
    for order in "CF":
        table = np.asarray(reference(n, FEATURES), order=order)
        fits = {jobs: DPForest(1, features=(0, 1), n_rows_hint=n, n_jobs=jobs) for jobs in (1, 2)}
        times = interleaved(
            {
                "sum": table.sum,
                "fit": lambda f=fits, t=table: f[1].fit(t),
                "two": lambda f=fits, t=table: f[2].fit(t),
            },
            rounds=3,
        )
        trees = fits[1].model_.partition.n_trees
        share = 100 * times["sum"] * trees / times["fit"]
        rows.append([
            order, trees, fits[1].model_.partition.depth, f"{times['sum'] * 1e3:.0f}", f"{times['fit']:.2f}", f"{times['two']:.2f}",
            f"{times['fit'] / trees * 1e3:.0f}", f"{share:.0f} %",
        ])  # fmt: skip
        layout = "rows contiguous (C)" if order == "C" else "columns contiguous (Fortran)"
        report.target(f"forest: fit for each tree, share of a plain sum, {layout}", share, 20, unit="%")
        del table
    report.section(
        "Forest: fit in memory",
        f"{n:,} rows of {FEATURES} features, float64, epsilon 1, trees by the rule; the whole fit against `array.sum()`.",
        ["order", "trees", "depth", "sum, ms", "fit, s", "two threads, s", "fit per tree, ms", "share of the sum"],
        rows,
    )


def forest_scoring(report):
    n = 10**5 if report.quick else 10**6
    points = queries(n, FEATURES)
    train = reference(10**5, FEATURES)
    fitted = {
        "DPForest": DPForest(1, features=(0, 1), n_rows_hint=10**5).fit(train),
        "DPMarginals": DPMarginals(1, features=(0, 1)).fit(train),
    }
    times = interleaved({name: lambda f=found: f.score_samples(points) for name, found in fitted.items()})
    report.target(f"forest: points per second, {n:,} x {FEATURES}, one thread", n / times["DPForest"], 1e6, unit="/s")
    report.section(
        "Forest and marginals: scoring",
        f"{n:,} points of {FEATURES} features in rows; models of 100,000 rows at epsilon 1, by the rule.",
        ["", "cells", "points per second"],
        [[name, f"{f.model_.partition.n_cells:,}", f"{n / times[name]:,.0f}"] for name, f in fitted.items()],
    )


def forest_file(report):
    """What is published for 100,000 rows of 100 features, and whether a process that knows nothing else scores alike."""
    train, points = reference(10**5, 100), queries(1000, 100)
    fitted = DPForest(1, features=(0, 1), n_rows_hint=10**5, target_fpr=0.05).fit(train)
    with tempfile.TemporaryDirectory() as folder:
        path = fitted.save(Path(folder) / "forest")
        megabytes = path.stat().st_size / 1e6
        times = interleaved({"load": lambda: load(path)}, rounds=21)
        there = [Path(folder) / name for name in ("points.npy", "scores.npy")]
        np.save(there[0], points)
        command = [sys.executable, "-c", ELSEWHERE, str(path), *map(str, there)]
        subprocess.run(command, check=True, env={"PATH": os.environ["PATH"], "HOME": folder}, cwd=folder)
        assert (np.load(there[1]) == fitted.score_samples(points)).all()
    report.target(
        "forest: published file with a threshold, n=1e5, d=100, epsilon 1", megabytes, 5, at_most=True, unit="MB"
    )
    report.target("forest: load that file", times["load"] * 1e3, 50, at_most=True, unit="ms")
