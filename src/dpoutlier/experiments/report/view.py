"""The results seen from one side, so that a claim can be judged from several."""

from __future__ import annotations

from dataclasses import dataclass

from dpoutlier.experiments.report.summary import Entry, Summary

__all__ = ["View"]


@dataclass(frozen=True)
class View:
    """A variant; all splits or one; b as chosen, or as it would have been chosen at the epsilon ``swept_at``."""

    summary: Summary
    variant: str = "paper"
    split: int | None = None
    chosen: dict[str, int] | None = None
    swept_at: float | None = None

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
        """Mean of a metric at the chosen b, unless a b is given."""
        if bins is None and self.chosen is not None:
            bins = self.chosen[dataset]
        key = self.summary.key(dataset, self.variant, algorithm, epsilon=epsilon, bins=bins, control=control)
        return self._mean(self.summary.entry(key, metric))

    def _mean(self, entry: Entry) -> float:
        return entry.mean if self.split is None else entry.by_split[self.split]
