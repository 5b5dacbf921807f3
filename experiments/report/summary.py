"""Means and standard deviations of all runs, and where to find those that belong to a curve."""

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.measure.quality import METRICS
from experiments.measure.rows import Row
from experiments.measure.runner import Results
from experiments.measure.variants import variant_named


class Key(NamedTuple):
    """What was run, over all splits and seeds."""

    dataset: str
    variant: str
    algorithm: str
    control: bool
    k: int
    bins: int | None
    epsilon: float | None


@dataclass(frozen=True)
class Entry:
    """One metric of one key."""

    mean: float
    sd_noise: float
    """Standard deviation over seeds: the paper's error bars. Root of the mean variance over splits; 0 without noise."""
    sd_splits: float
    """Standard deviation of the means of splits."""
    by_split: tuple[float, ...]


@dataclass(frozen=True)
class Line:
    """All metrics of one key."""

    key: Key
    runs: int
    ran_out: float
    metrics: dict[str, Entry]


class Summary:
    """Lines by key, and the k and b that were chosen."""

    def __init__(self, results: Results) -> None:
        self.study, self.choice, self.fingerprint = results.study, results.choice, results.fingerprint
        groups: dict[Key, list[Row]] = defaultdict(list)
        for row in results.rows:
            groups[Key(row.dataset, row.variant, row.algorithm, row.control, row.k, row.bins, row.epsilon)].append(row)
        self.lines = {key: _line(key, rows) for key, rows in groups.items()}
        self.bins_by_rule: dict[tuple[str, float | None], int | None] = {
            (key.dataset, key.epsilon): key.bins
            for key in self.lines
            if key.variant == "public" and key.epsilon is not None
        }

    def key(
        self,
        dataset: str,
        variant: str,
        algorithm: str,
        *,
        epsilon: float | None = None,
        bins: int | None = None,
        k: int | None = None,
        control: bool = False,
    ) -> Key:
        """The key of a point on a curve: k and b as chosen for the variant, unless they are given.

        For algorithms without noise ``epsilon`` only says which b is meant, where the rule takes another b for each.
        """
        if bins is None:
            bins = self.bins_of(dataset, variant, epsilon)
        own = variant_named(variant)
        k = k or own.k or self.choice.k[dataset]
        if algorithm in {"kNN", "wkNN"}:
            return Key(dataset, own.shared.plain or variant, algorithm, control, k, None, None)
        if algorithm in {"Grid", "Grid-w"}:
            return Key(dataset, own.shared.exact or variant, algorithm, control, k, bins, None)
        shared = own.shared.private if own.exhausted == "as-printed" else ""
        return Key(dataset, shared or variant, algorithm, control, k, bins, epsilon)

    def bins_of(self, dataset: str, variant: str, epsilon: float | None) -> int | None:
        if variant == "public":
            return self.bins_by_rule.get((dataset, epsilon))
        return self.choice.bins[dataset, variant_named(variant).shared.bins or variant]

    def entry(self, key: Key, metric: str = "auroc") -> Entry:
        return self.lines[key].metrics[metric]


class Noting(Summary):
    """A summary that remembers what was read from it: what a figure shows, its table shows too."""

    def __init__(self, summary: Summary) -> None:
        vars(self).update(vars(summary))
        self.read: dict[Key, None] = {}

    def entry(self, key: Key, metric: str = "auroc") -> Entry:
        self.read[key] = None
        return super().entry(key, metric)


def _line(key: Key, rows: list[Row]) -> Line:
    splits: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        splits[row.split].append(row)
    metrics = {
        metric: _entry([np.array([getattr(row, metric) for row in splits[split]]) for split in sorted(splits)])
        for metric in METRICS
    }
    return Line(key, len(rows), float(np.mean([row.ran_out for row in rows])), metrics)


def _entry(splits: list[NDArray[np.float64]]) -> Entry:
    means = [float(np.mean(runs)) for runs in splits]
    noise = [float(np.var(runs, ddof=1)) if len(runs) > 1 else 0.0 for runs in splits]
    spread = float(np.std(means, ddof=1)) if len(means) > 1 else 0.0
    return Entry(float(np.mean(means)), float(np.sqrt(np.mean(noise))), spread, tuple(means))
