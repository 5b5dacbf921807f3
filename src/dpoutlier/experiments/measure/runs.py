"""Runs of the six algorithms: a task in, rows of the result table out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier import Bounds
from dpoutlier._warn import nothing_to_protect
from dpoutlier.experiments.measure.datasets import LabelledRows
from dpoutlier.experiments.measure.protocol import Split, bounds_leaked_by, bounds_widened, seed_of, split_rows
from dpoutlier.experiments.measure.quality import quality
from dpoutlier.experiments.measure.rows import Row
from dpoutlier.experiments.measure.study import Task
from dpoutlier.experiments.measure.variants import Variant, under_our_rule, variant_named

__all__ = ["bounds_of", "run_exact", "run_plain", "run_private"]

NEVER = 2**20
"""A k that no walk gathers."""


def bounds_of(variant: Variant, data: LabelledRows, split: Split) -> Bounds:
    if not variant.leaked_bounds:
        return bounds_widened(data.rows)
    with nothing_to_protect():  # the variant says so, and so does the report
        return bounds_leaked_by(split.reference)


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
    """The grid with exact counts for each k; beside the paper's rule for exhausted walks, ours."""
    runs = _Runs(task, data)
    run = _exact_as_printed if runs.variant.exhausted == "as-printed" else _exact_with_our_rule
    return [row for world in runs.worlds() for row in run(runs, *world)]


def _exact_with_our_rule(runs: _Runs, weighted: bool, control: bool, reference: NDArray[np.float64]) -> Iterator[Row]:
    bins = runs.task.bins
    assert bins is not None
    for k in runs.task.ks:
        walks = runs.variant.exact(runs.bounds, k, bins, weighted=weighted).fit(reference).walk(runs.split.points)
        what = {"k": k, "bins": bins, "control": control, "ran_out": walks.status > 0}
        yield runs.row("Grid-w" if weighted else "Grid", walks.scores, **what)


def _exact_as_printed(runs: _Runs, weighted: bool, control: bool, reference: NDArray[np.float64]) -> Iterator[Row]:
    """A walk that runs out of cells has visited all of them, whatever k is.

    So one walk that never gathers enough tells how every such walk ends, and how many rows there were to gather.
    """
    bins, name = runs.task.bins, "Grid-w" if weighted else "Grid"
    assert bins is not None
    endless = runs.variant.exact(runs.bounds, NEVER, bins, weighted=weighted).fit(reference)
    whole = endless.walk(runs.split.points)
    ours = replace(runs.variant, exhausted="outlying")
    for k in runs.task.ks:
        scores = ours.exact(runs.bounds, k, bins, weighted=weighted).fit(reference).outlier_scores(runs.split.points)
        ran_out = whole.gathered < k
        what = {"k": k, "bins": bins, "control": control, "ran_out": ran_out}
        yield runs.row(name, np.where(ran_out, whole.scores, scores), **what)
        if runs.variant.name == "paper":
            yield runs.row(name, scores, variant="rule", **what)


def run_private(task: Task, data: LabelledRows) -> list[Row]:
    """The private grid for each epsilon and seed, and for b by rule its exact twins. The control meets the same noise."""
    runs = _Runs(task, data)
    rows: list[Row] = []
    for epsilon in task.epsilons:
        for seed in range(task.seeds):
            rows += _private_rows(runs, epsilon, seed)
    if task.bins is None and not task.control:
        for bins in sorted({row.bins for row in rows if row.bins is not None}):
            rows += run_exact(replace(task, bins=bins), data)
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
        with nothing_to_protect():  # seeded, to be repeatable: the report says so
            detector.fit(reference)
        walks = detector.walk(runs.split.points)
        ran_out = walks.status > 0
        what = {"k": k, "bins": detector.model_.partition.to_json()["bins"][0], "epsilon": float(epsilon), "seed": seed}
        what |= {"control": task.control, "ran_out": ran_out}
        name = "DP Grid-w" if weighted else "DP Grid"
        yield runs.row(name, walks.scores, **what)
        if runs.variant.name == "paper":
            ours = under_our_rule(walks.scores, walks.gathered, ran_out, k, runs.diameter, weighted=weighted)
            yield runs.row(name, ours, variant="rule", **what)
