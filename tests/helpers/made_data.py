"""Small data sets that bear the names of the five, so that every part of a study can be run in seconds without them."""

from dataclasses import replace
from functools import cache

import numpy as np

from experiments.measure.datasets import LabelledRows, dataset_named
from experiments.measure.public_tables import load_table
from experiments.measure.study import Study

TINY = Study(
    "tiny",
    splits=2,
    seeds=2,
    reading_seeds=2,
    control_seeds=2,
    ks=(3, 5),
    bins=(2, 3, 10),
    epsilons=(5, 1.25, 0.3, 0.15, 0.015),
    answers=60,
    tables=("wine-0",),
    range_splits=1,
    range_seeds=1,
)
"""All sets, phases, variants and claims; little of each."""


@cache
def made(name):
    """Two features; inliers in a cluster, outliers around it, some values tied."""
    described = load_table(name).dataset if name in TINY.tables else dataset_named(name)
    dataset = replace(described, n_outliers=5)
    random = np.random.default_rng([7, *name.encode()])
    rows = np.concatenate([random.normal(0, 1, (40, 2)), random.uniform(-4, 4, (8, 2))]).round(1)
    outlying = np.arange(48) >= 40
    order = random.permutation(48)
    return LabelledRows(dataset, rows[order], outlying[order])


def made_sets(study=TINY):
    return {name: made(name) for name in (*study.sets, *study.tables)}
