"""The results seen from one side, so that a claim can be judged from several."""

from __future__ import annotations

from dataclasses import dataclass

from dpoutlier.experiments.measure.variants import BASE
from dpoutlier.experiments.report.summary import Entry, Summary

__all__ = ["View"]


@dataclass(frozen=True)
class View:
    """A variant; all splits or one; k and b as chosen, or as another choice would have them."""

    summary: Summary
    variant: str = BASE
    split: int | None = None
    k: dict[str, int] | None = None
    chosen: dict[str, int] | None = None
    """b by data set, if not as chosen for the variant."""
    chosen_anew: dict[float, dict[str, int]] | None = None
    """b by epsilon and data set."""
    swept_at: float | None = None
    """The epsilon at which private grids are compared over all b, if not the study's."""

    @property
    def sweep_epsilon(self) -> float:
        """At which private grids are compared over all b."""
        return self.summary.study.sweep_epsilon if self.swept_at is None else self.swept_at

    def value(
        self,
        dataset: str,
        algorithm: str,
        metric: str = "auroc",
        *,
        epsilon: float | None = None,
        bins: int | None = None,
        control: bool = False,
    ) -> float:
        """Mean of a metric at the chosen b, unless a b is given. Without noise ``epsilon`` only says which b is meant."""
        if bins is None:
            bins = self._bins(dataset, epsilon)
        k = None if self.k is None else self.k[dataset]
        key = self.summary.key(dataset, self.variant, algorithm, epsilon=epsilon, bins=bins, k=k, control=control)
        return self._mean(self.summary.entry(key, metric))

    def _bins(self, dataset: str, epsilon: float | None) -> int | None:
        if self.chosen_anew is not None and epsilon is not None:
            return self.chosen_anew[epsilon][dataset]
        return None if self.chosen is None else self.chosen[dataset]

    def _mean(self, entry: Entry) -> float:
        return entry.mean if self.split is None else entry.by_split[self.split]
