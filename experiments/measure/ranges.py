"""Ranges that are declared too wide: private detectors that look for where the rows lie, and the same with ranges as declared."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpoutlier import KNN, Bounds
from experiments.measure.comparison import DETECTORS, Case, K, Maker, private_rows, synthetic_rows
from experiments.measure.datasets import LabelledRows
from experiments.measure.protocol import WIDENED_BY, bounds_widened, nothing_private
from experiments.measure.rows import Ranged

TIGHT = 1 + 2 * WIDENED_BY
WIDEST = 1000
"""Largest factor where each feature has its own."""
BELOW = {"low": 0.0, "middle": 0.5, "high": 1.0}
"""By where the data lies: how much of what is added to a range is added below the data."""
LOOKING = tuple(name for name in DETECTORS if name != "default")
AS_DECLARED, FREE = "{}, ranges as declared", "DPForest, ranges for free"


class Declared(NamedTuple):
    """How ranges are declared: factor and data of ``Ranged``."""

    factor: float | None
    data: str


CASES = (
    Declared(TIGHT, "middle"),
    *(Declared(factor, data) for factor in (10.0, 100.0) for data in BELOW),
    Declared(None, "low"),
    Declared(None, "anywhere"),
)
"""Last, each feature has a factor of its own; and then also a place of its own."""


def declared_bounds(dataset: str, rows: NDArray[np.float64], case: Declared) -> Bounds:
    """The usual bounds, widened up to the factor. A factor of its own is log-uniform from 1 on, and no range is less than usual."""
    usual = bounds_widened(rows)
    lower, upper = np.array(usual.lower), np.array(usual.upper)
    rng = np.random.default_rng(list(dataset.encode()))
    own = np.exp(rng.uniform(0, np.log(WIDEST), len(lower)))
    anywhere = rng.uniform(0, 1, len(lower))
    factor = own if case.factor is None else case.factor
    more = np.maximum(factor / TIGHT - 1, 0) * (upper - lower)
    below = anywhere if case.data == "anywhere" else BELOW[case.data]
    return Bounds(lower - below * more, upper + (1 - below) * more)


def free_bounds(reference: NDArray[np.float64], declared: Bounds) -> Bounds:
    """Tukey's outer fences of the rows themselves, within the declared range; that range itself where both quartiles are equal.

    Nothing is paid for them: **not private**, but what a private way to find ranges is measured by.
    """
    first, third = np.quantile(reference, [0.25, 0.75], axis=0)
    more = 3 * (third - first)
    lower, upper = np.maximum(first - more, declared.lower), np.minimum(third + more, declared.upper)
    return Bounds(np.where(more > 0, lower, declared.lower), np.where(more > 0, upper, declared.upper))


def _as_declared(name: str) -> Maker:
    return lambda *what: DETECTORS[name](*what).set_params(tight_ranges=True)


METHODS: dict[str, Maker] = {
    **{name: DETECTORS[name] for name in LOOKING},
    **{AS_DECLARED.format(name): _as_declared(name) for name in LOOKING},
}


def run_ranges(dataset: str, split: int, epsilons: tuple[float, ...], seeds: int, data: LabelledRows) -> list[Ranged]:
    """All methods on one split, for each way to declare ranges, with the controls; and k-NN without privacy once."""
    rows = []
    with nothing_private():
        for declared in CASES:
            case = Case(dataset, split, data, declared_bounds(dataset, data.rows, declared))
            free = Case(dataset, split, data, free_bounds(case.split.reference, case.bounds))
            found = [
                *private_rows(case, epsilons, seeds, METHODS),
                *private_rows(free, epsilons, seeds, {FREE: _as_declared("DPForest")}),
                *synthetic_rows(case, epsilons, seeds),
            ]
            if declared == CASES[0]:
                scores = KNN(case.bounds, k=K).fit(case.split.reference).outlier_scores(case.split.points)
                found.append(case.row("KNN", scores))
            rows += [Ranged(**declared._asdict(), **one._asdict()) for one in found]
    return rows
