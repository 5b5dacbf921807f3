"""Runs of the six algorithms: a task in, rows of the result table out."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier import Bounds, as_in_paper
from experiments.measure.datasets import LabelledRows
from experiments.measure.protocol import Split, bins_of, bounds_widened, nothing_private, seed_of, split_rows
from experiments.measure.quality import quality
from experiments.measure.rows import Row
from experiments.measure.study import Task
from experiments.measure.variants import Variant, scores_if, variant_named, variants_from


def bounds_of(variant: Variant, data: LabelledRows, split: Split) -> Bounds:
    """Those of the paper, which its detector takes from the reference rows; or declared ones."""
    if not variant.leaked_bounds:
        return bounds_widened(data.rows)
    with nothing_private():
        fitted = as_in_paper(split.reference, epsilon=1, k=1, bins=1, preprocessing=variant.bounds)
    bounds: Bounds = fitted.features
    return bounds


class _Runs:
    """What the runs of a task share."""

    def __init__(self, task: Task, data: LabelledRows) -> None:
        self.task, self.variant = task, variant_named(task.variant)
        self.split = split_rows(data, task.split)
        self.bounds = bounds_of(self.variant, data, self.split)
        self.diameter = data.rows.shape[1]

    def worlds(self) -> Iterator[tuple[bool, bool, NDArray[np.float64]]]:
        """Basic and weighted, each on the reference rows and on none: the data-free control."""
        for weighted in (False, True):
            yield weighted, False, self.split.reference
            yield weighted, True, self.split.reference[:0]

    def row(self, algorithm: str, scores: NDArray[np.float64], **what: Any) -> Row:
        """``what`` holds k and control, and where they apply variant, bins, epsilon, seed and ran_out."""
        return Row(
            dataset=self.task.dataset,
            variant=what.get("variant", self.variant.name),
            algorithm=algorithm,
            control=what["control"],
            k=what["k"],
            bins=what.get("bins"),
            epsilon=what.get("epsilon"),
            split=self.task.split,
            seed=what.get("seed"),
            ran_out=float(np.mean(what.get("ran_out", 0.0))),
            **quality(self.split.outlying, scores)._asdict(),
        )


def run_plain(task: Task, data: LabelledRows) -> list[Row]:
    """k-NN and weighted k-NN for each k."""
    runs, rows = _Runs(task, data), []
    for k in task.ks:
        for weighted, control, reference in runs.worlds():
            detector = runs.variant.plain(runs.bounds, k, weighted=weighted).fit(reference)
            scores = detector.outlier_scores(runs.split.points)
            rows.append(runs.row("wkNN" if weighted else "kNN", scores, k=k, control=control))
    return rows


def run_exact(task: Task, data: LabelledRows) -> list[Row]:
    """The grid with exact counts for each k."""
    runs, rows = _Runs(task, data), []
    bins = task.bins
    assert bins is not None
    for weighted, control, reference in runs.worlds():
        for k in task.ks:
            walks = runs.variant.exact(runs.bounds, k, bins, weighted=weighted).fit(reference).walk(runs.split.points)
            what = {"k": k, "bins": bins, "control": control, "ran_out": walks.status > 0}
            rows.append(runs.row("Grid-w" if weighted else "Grid", walks.scores, **what))
    return rows


def run_private(task: Task, data: LabelledRows) -> list[Row]:
    """The private grid for each epsilon and seed. The control meets the same noise."""
    runs = _Runs(task, data)
    rows: list[Row] = []
    for epsilon in task.epsilons:
        for seed in range(task.seeds):
            rows += _private_rows(runs, epsilon, seed)
    return rows


def _private_rows(runs: _Runs, epsilon: float, seed: int) -> Iterator[Row]:
    task = runs.task
    (k,) = task.ks
    noise = seed_of(task.dataset, task.split, task.bins, epsilon, seed)
    reference = runs.split.reference[:0] if task.control else runs.split.reference
    for weighted in (False, True):
        detector = runs.variant.private(
            epsilon, runs.bounds, k, task.bins, weighted=weighted, n=len(runs.split.reference), seed=noise
        )
        with nothing_private():
            detector.fit(reference)
        walks = detector.walk(runs.split.points)
        what: dict[str, Any] = {"k": k, "bins": bins_of(detector)[0], "epsilon": float(epsilon), "seed": seed}
        what |= {"control": task.control, "ran_out": walks.status > 0}
        name = "DP Grid-w" if weighted else "DP Grid"
        yield runs.row(name, walks.scores, **what)
        for other in variants_from(runs.variant.name):
            scores = scores_if(other.exhausted, walks, k, runs.diameter, weighted=weighted)
            yield runs.row(name, scores, variant=other.name, **what)
