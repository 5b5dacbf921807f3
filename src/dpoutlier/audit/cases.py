"""The cases of the standard audit: every detector, relation and kind of counts, where a row changes as much as it can."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dpoutlier.audit.configuration import Configuration
from dpoutlier.features.private_bounds import PrivateBounds
from dpoutlier.privacy.guarantee import Neighbours

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
SPECIAL = 1.0
EPSILONS_WITH_POWER = (0.5, 2.0)
"""From this epsilon to that one, an audit with power reaches at least half of what is claimed."""


@dataclass(frozen=True)
class Case:
    """What is audited under one name: with many runs on few cells, and with canaries on many."""

    label: str
    many: Configuration
    one: Configuration
    by_score: Configuration | None = None
    """Where canaries are recognised by scores, if not where they are recognised by counts."""
    has_power: bool = True
    """Whether bounds of at least half of epsilon are expected, between the epsilons of ``EPSILONS_WITH_POWER``."""

    @property
    def detector(self) -> str:
        return self.many.detector

    @property
    def neighbours(self) -> str:
        return str(self.many.arguments.get("neighbours", Neighbours.ADD_OR_REMOVE_ONE.value))

    @property
    def counts(self) -> str:
        return self.many.counts

    @property
    def epsilon(self) -> float:
        return float(self.many.epsilon)


def standard_cases(epsilons: tuple[float, ...] = EPSILONS) -> Iterator[Case]:
    """All of them, at each epsilon; what is special about a fit, at epsilon 1 only."""
    for epsilon in epsilons:
        for neighbours in Neighbours:
            common = {"epsilon": epsilon, "neighbours": neighbours.value, "features": (0, 1)}
            yield from _grids(common, epsilon)
            yield from _forests(common)
            yield from _marginals(common)
            if epsilon == SPECIAL:
                yield from _specials(common)


def _grid(label: str, arguments: dict[str, Any], bins: int = 2, many: int = 2**16, *, has_power: bool = True) -> Case:
    few, lots = (Configuration("grid", {"k": 1, **arguments, "bins": size}) for size in (bins, many))
    return Case(label, few, lots, has_power=has_power)


def _grids(common: dict[str, Any], epsilon: float) -> Iterator[Case]:
    yield _grid("grid", {**common, "counts": "dense"})
    yield _grid("grid", {**common, "counts": "keyed"})
    # A crowd lifts the counts over the threshold of a sparse release; without one, the cell is hardly ever listed.
    sparse = {"counts": "sparse", "sparse_size": 4, "k": math.ceil(80 / epsilon)}
    yield _grid("grid", {**common, **sparse}, bins=64, many=2**14)


def _specials(common: dict[str, Any]) -> Iterator[Case]:
    sparse = {"counts": "sparse", "sparse_size": 2**14}
    yield _grid("grid, alone in its cell", {**common, **sparse}, bins=8, many=2**14)
    yield _grid("grid, 3 rows a person", {**common, "rows_per_person": 3})
    # Ids are read, and rows past the cap are left out.
    yield _grid("grid, people by id", {**common, "rows_per_person": 2, "person": "id"})
    estimated = {"n_rows_hint": "estimate", "target_fpr": 0.1, "threshold_share": 0.25}
    # So large a crowd that the number of rows lies well above its noise: the estimate is at least 1.
    everything = Configuration("grid", {**common, "k": 200, "bins": "auto", **estimated})
    yield Case("grid, private rows and threshold", everything, everything, has_power=False)
    bounds = {"features": PrivateBounds(outer=(0, 1), share=0.5)}
    private_bounds = Configuration("grid", {**common, "k": 1, "bins": 2, **bounds})
    yield Case("grid, private bounds", private_bounds, private_bounds, has_power=False)
    # So few rows that a test costs a sixth of epsilon, or a fifth, and a second look more.
    loose = Configuration("grid", {**common, "k": 1, "bins": 2, "tight_ranges": False, "n_rows_hint": 60})
    yield Case("grid, found ranges", loose, loose, has_power=False)


def _forests(common: dict[str, Any]) -> Iterator[Case]:
    for trees, has_power in ((1, True), (4, True), (32, False)):
        own = {**common, "n_trees": trees}
        few = Configuration("forest", {**own, "depth": 1, "subspace": 1})
        lots = Configuration("forest", {**own, "depth": 14, "subspace": 6}, n_features=6)
        by_score = Configuration("forest", {**own, "depth": 3, "subspace": 1}, n_features=trees)
        yield Case(f"forest of {trees}", few, lots, by_score, has_power)


def _marginals(common: dict[str, Any]) -> Iterator[Case]:
    for features, has_power in ((1, True), (4, True), (16, False)):
        few, lots, by_score = (Configuration("marginals", {**common, "bins": b}, features) for b in (2, 2**14, 256))
        yield Case(f"marginals of {features}", few, lots, by_score, has_power)
