"""The averaging attack: what one repeated query tells if every answer has noise of its own."""

import math

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from experiments.measure.datasets import LabelledRows
from experiments.measure.protocol import nothing_private, seed_of, split_rows
from experiments.measure.runs import bounds_of
from experiments.measure.study import Task
from experiments.measure.variants import variant_named

QUERIES = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000)
TRIALS = 2_000
Worlds = dict[bool, NDArray[np.float64]]
"""Answers, or means of answers: with the row in the reference data (True), and without."""


def run_attack(task: Task, data: LabelledRows) -> pa.Table:
    """How often an attacker tells whether one row is in the reference data, by the number of times that he asks.

    He knows all other rows and asks for the score of the row in question, again and again. With fresh noise, as in the
    authors' code, the mean of the answers settles on one of two values. He worked these out beforehand, from half of the
    answers; he is tried on the other half. With noise that is drawn once all answers are equal: he has one, however often
    he asks.
    """
    (epsilon,) = task.epsilons
    answers = _answers(task, data)
    expected = {present: float(np.mean(values[::2])) for present, values in answers.items()}
    tried = {present: values[1::2] for present, values in answers.items()}
    kept = _success(tried, expected)
    records = []
    for queries in QUERIES:
        means = _means(queries, tried)
        records.append(
            {
                "epsilon": float(epsilon),
                "queries": queries,
                "mean_present": float(np.mean(means[True])),
                "sd_present": float(np.std(means[True])),
                "mean_absent": float(np.mean(means[False])),
                "sd_absent": float(np.std(means[False])),
                "success_fresh": _success(means, expected),
                "success_kept": kept,
                "promised_most": math.exp(epsilon) / (1 + math.exp(epsilon)),
            }
        )
    return pa.Table.from_pylist(records)


def _answers(task: Task, data: LabelledRows) -> Worlds:
    """The same query to as many fits: noise that is fresh for every query is nothing else."""
    variant, split = variant_named(task.variant), split_rows(data, task.split)
    bounds, (k,), (epsilon,) = bounds_of(variant, data, split), task.ks, task.epsilons
    assert task.bins is not None
    grid = variant.exact(bounds, 1, task.bins, weighted=False).fit(split.reference)
    # One row more or less shows most where a cell holds about k.
    target = int(np.argmin(np.abs(grid.walk(split.reference).gathered - k)))
    query = split.reference[target : target + 1]
    worlds = {True: split.reference, False: np.delete(split.reference, target, axis=0)}
    found = {present: np.empty(task.answers) for present in worlds}
    with nothing_private():
        for present, rows in worlds.items():
            for i in range(task.answers):
                seed = seed_of("attack", present, i)
                detector = variant.private(epsilon, bounds, k, task.bins, weighted=False, n=len(rows), seed=seed)
                found[present][i] = detector.fit(rows).outlier_scores(query)[0]
    return found


def _means(queries: int, answers: Worlds) -> Worlds:
    """Means of so many answers, drawn with replacement, in each of many trials."""
    means = {}
    for present, values in answers.items():
        levels, counts = np.unique(values, return_counts=True)
        random = np.random.default_rng(seed_of("trials", present, queries))
        means[present] = random.multinomial(queries, counts / counts.sum(), size=TRIALS) @ levels / queries
    return means


def _success(means: Worlds, expected: dict[bool, float]) -> float:
    """Share of right guesses if both worlds are as likely: the nearer expected value is guessed, a tie is half right."""
    right = []
    for present, values in means.items():
        nearer = np.abs(values - expected[not present]) - np.abs(values - expected[present])
        right.append(np.mean((nearer > 0) + 0.5 * (nearer == 0)))
    return float(np.mean(right))
