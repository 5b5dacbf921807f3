"""The cases of the standard audit: every detector, relation and holder, where a row changes as much as it can."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dpoutlier.audit.configuration import Configuration
from dpoutlier.guarantee import Neighbours
from dpoutlier.private_bounds import PrivateBounds

__all__ = ["EPSILONS", "TEETH", "Case", "standard_cases"]

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
TEETH = (0.5, 2.0)
"""From this epsilon to that one, an audit with teeth reaches at least half of what is claimed."""


@dataclass(frozen=True)
class Case:
    """What is audited under one name: with many runs on few cells, and with canaries on many."""

    label: str
    many: Configuration
    one: Configuration
    teeth: bool = True
    """Whether bounds of at least half of epsilon are expected, between the epsilons of ``TEETH``."""

    @property
    def detector(self) -> str:
        return self.many.detector

    @property
    def neighbours(self) -> str:
        return str(self.many.arguments.get("neighbours", Neighbours.ADD_OR_REMOVE_ONE.value))

    @property
    def holder(self) -> str:
        return str(self.many.arguments.get("holder", "dense"))

    @property
    def epsilon(self) -> float:
        return float(self.many.epsilon)


def standard_cases(epsilons: tuple[float, ...] = EPSILONS) -> Iterator[Case]:
    """All of them, at each epsilon."""
    for epsilon in epsilons:
        for neighbours in Neighbours:
            common = {"epsilon": epsilon, "neighbours": neighbours.value, "bounds": (0, 1)}
            yield from _grids(common, epsilon)
            yield from _forests(common)
            yield from _marginals(common)


def _grids(common: dict[str, Any], epsilon: float) -> Iterator[Case]:
    def case(label: str, bins: int = 2, many: int = 2**16, *, teeth: bool = True, **more: Any) -> Case:
        arguments = {**common, "k": 1, **more}
        few, lots = (Configuration("grid", {**arguments, "bins": size}) for size in (bins, many))
        return Case(label, few, lots, teeth)

    yield case("grid", holder="dense")
    yield case("grid", holder="keyed")
    # A crowd lifts the counts over the threshold of a sparse release; without one, the cell is hardly ever listed.
    yield case("grid", bins=64, many=2**14, holder="sparse", sparse_size=4, k=math.ceil(80 / epsilon))
    yield case("grid, alone in its cell", bins=8, many=2**14, holder="sparse", sparse_size=2**14, teeth=False)
    yield case("grid, 3 rows a person", holder="dense", rows_per_person=3)
    # Ids are read, and rows past the cap are left out.
    yield case("grid, people by id", holder="dense", rows_per_person=2, person="id")
    bought = {"n_hint": "buy", "target_fpr": 0.1, "threshold_share": 0.25, "holder": "dense"}
    everything = Configuration("grid", {**common, "k": 1, "bins": "auto", **bought})
    yield Case("grid, number of rows and threshold bought", everything, everything, teeth=False)
    bounds = PrivateBounds(outer=(0, 1), share=0.5)
    bought_bounds = Configuration("grid", {**common, "k": 1, "bins": 2, "holder": "dense", "bounds": bounds})
    yield Case("grid, bounds bought", bought_bounds, bought_bounds, teeth=False)


def _forests(common: dict[str, Any]) -> Iterator[Case]:
    for trees, teeth in ((1, True), (4, True), (32, False)):
        few = Configuration("forest", {**common, "n_trees": trees, "depth": 1, "subspace": 1})
        lots = Configuration("forest", {**common, "n_trees": trees, "depth": 14, "subspace": 6}, n_features=6)
        yield Case(f"forest of {trees}", few, lots, teeth)


def _marginals(common: dict[str, Any]) -> Iterator[Case]:
    for features, teeth in ((1, True), (4, True), (16, False)):
        few, lots = (Configuration("marginals", {**common, "bins": bins}, features) for bins in (2, 2**14))
        yield Case(f"marginals of {features}", few, lots, teeth)
