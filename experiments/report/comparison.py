"""All detectors side by side: means, ranks, and which differences are more than chance."""

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa

from experiments.measure.comparison import DETECTORS, EXACT, GRID_TWIN, SYNTHETIC
from experiments.measure.quality import METRICS
from experiments.measure.rows import Compared
from experiments.measure.study import Study

PRIVATE = (*(name for name in DETECTORS if name != "default"), *SYNTHETIC)
"""What is ranked: the default is one of these."""
SHOWN = (*DETECTORS, *SYNTHETIC, GRID_TWIN, *EXACT)
LEVEL = 0.05
Key = tuple[str, str, bool, float | None]


@dataclass(frozen=True)
class Comparison:
    """Means over splits and seeds, then over sets."""

    study: Study
    rows: list[Compared]

    @cached_property
    def _means(self) -> dict[Key, dict[str, float]]:
        found: dict[Key, list[Compared]] = defaultdict(list)
        for row in self.rows:
            found[row.dataset, row.method, row.control, row.epsilon].append(row)
        return {
            key: {metric: fmean(getattr(row, metric) for row in rows) for metric in METRICS}
            for key, rows in found.items()
        }

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """The paper's sets, and the other tables, if there are any."""
        groups = {"the paper's sets": self.study.sets, "other tables": self.study.tables}
        return {name: sets for name, sets in groups.items() if sets}

    @property
    def sets(self) -> tuple[str, ...]:
        return (*self.study.sets, *self.study.tables)

    def of_set(
        self, dataset: str, method: str, epsilon: float | None, *, control: bool = False, metric: str = "auroc"
    ) -> float:
        epsilon = None if method in EXACT or epsilon is None else float(epsilon)
        return self._means[dataset, method, control, epsilon][metric]

    def mean(
        self,
        sets: tuple[str, ...],
        method: str,
        epsilon: float | None,
        *,
        control: bool = False,
        metric: str = "auroc",
    ) -> float:
        return fmean(self.of_set(name, method, epsilon, control=control, metric=metric) for name in sets)

    def scores(self, epsilon: float | None) -> np.ndarray[Any, np.dtype[np.float64]]:
        """AUROC by set and ranked method; over all epsilons if none is given."""
        epsilons = self.study.compared_epsilons if epsilon is None else (epsilon,)
        return np.array([[fmean(self.of_set(s, method, e) for e in epsilons) for method in PRIVATE] for s in self.sets])

    def ranks(self, epsilon: float | None) -> dict[str, float]:
        """Mean rank of each method over the sets; 1 is best, and equal methods share a rank."""
        from scipy.stats import rankdata  # noqa: PLC0415 - slow to import

        ranks = rankdata(-self.scores(epsilon).round(12), axis=1).mean(axis=0)
        return dict(zip(PRIVATE, map(float, ranks), strict=True))

    @cached_property
    def critical_difference(self) -> float:
        """Mean ranks that differ by more are significantly different (Nemenyi's test, as in Demšar 2006)."""
        from scipy.stats import studentized_range  # noqa: PLC0415

        k, n = len(PRIVATE), len(self.sets)
        q = float(studentized_range.ppf(1 - LEVEL, k, np.inf)) / math.sqrt(2)
        return q * math.sqrt(k * (k + 1) / (6 * n))

    def friedman(self, epsilon: float | None) -> float:
        """p-value of Friedman's test that all methods are alike; NaN for fewer than three sets."""
        from scipy.stats import friedmanchisquare  # noqa: PLC0415

        scores = self.scores(epsilon)
        return float(friedmanchisquare(*scores.T).pvalue) if len(scores) > 2 else math.nan

    def against(self, method: str, other: str, epsilon: float | None) -> tuple[float, float]:
        """Mean difference of AUROC over the sets, and its p-value by Wilcoxon's signed-rank test."""
        from scipy.stats import wilcoxon  # noqa: PLC0415

        scores = self.scores(epsilon)
        differences = scores[:, PRIVATE.index(method)] - scores[:, PRIVATE.index(other)]
        return float(differences.mean()), float(wilcoxon(differences).pvalue) if differences.any() else 1.0


def compared_table(comparison: Comparison) -> pa.Table:
    """Mean over the sets of each group: a line for each method, metric and epsilon."""
    records = []
    for group, sets in comparison.groups.items():
        for method in SHOWN:
            for epsilon in (None,) if method in EXACT else comparison.study.compared_epsilons:
                for control in (False, True) if method in DETECTORS else (False,):
                    record = {"sets": group, "method": method, "control": control, "epsilon": epsilon}
                    for metric in METRICS:
                        record[metric] = comparison.mean(sets, method, epsilon, control=control, metric=metric)
                    records.append(record)
    return pa.Table.from_pylist(records)


def sets_table(comparison: Comparison) -> pa.Table:
    """AUROC on each set, at each epsilon."""
    records = []
    for name in comparison.sets:
        for epsilon in comparison.study.compared_epsilons:
            record = {"dataset": name, "epsilon": epsilon}
            record |= {m: comparison.of_set(name, m, epsilon) for m in SHOWN}
            record |= {f"{m}, control": comparison.of_set(name, m, epsilon, control=True) for m in DETECTORS}
            records.append(record)
    return pa.Table.from_pylist(records)


def leads_table(comparison: Comparison) -> pa.Table:
    """Each ranked method: its mean rank, and the lead of the best one over it; without an epsilon, over all of them."""
    records = []
    for epsilon in (*comparison.study.compared_epsilons, None):
        ranks = comparison.ranks(epsilon)
        best = min(ranks, key=ranks.__getitem__)
        for method in PRIVATE:
            lead, p = comparison.against(best, method, epsilon)
            records.append(
                {
                    "epsilon": epsilon,
                    "method": method,
                    "mean_rank": ranks[method],
                    "best": best,
                    "lead_of_best": lead,
                    "p_wilcoxon": p,
                }
            )
    return pa.Table.from_pylist(records)
