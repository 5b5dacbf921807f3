"""The results seen from one side, so that a claim can be judged from several."""

from collections.abc import Callable
from dataclasses import dataclass

from experiments.measure.variants import BASE
from experiments.report.summary import Entry, Summary

TOLERANCE = 0.05
"""Two results are comparable if their metric differs by at most this."""


@dataclass(frozen=True)
class View:
    """A variant; all splits or one; k, b and tolerance as chosen, or as another choice would have them."""

    summary: Summary
    variant: str = BASE
    split: int | None = None
    k: dict[str, int] | None = None
    b: Callable[[str, str, float | None], int] | None = None
    """b by data set, algorithm and epsilon, if not as chosen for the variant."""
    swept_at: float | None = None
    """The epsilon at which private grids are compared over all b, if not the study's."""
    tolerance: float = TOLERANCE

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
        if bins is None and self.b is not None:
            bins = self.b(dataset, algorithm, epsilon)
        k = None if self.k is None else self.k[dataset]
        key = self.summary.key(dataset, self.variant, algorithm, epsilon=epsilon, bins=bins, k=k, control=control)
        return self._mean(self.summary.entry(key, metric))

    def _mean(self, entry: Entry) -> float:
        return entry.mean if self.split is None else entry.by_split[self.split]
