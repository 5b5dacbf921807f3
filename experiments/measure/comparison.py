"""All detectors side by side: declared bounds, nothing tuned, and what a user would do instead."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier import KNN, Bounds, DPForest, DPGridKNN, DPMarginals, Forest, GridKNN, Marginals, detector
from experiments.measure.datasets import LabelledRows
from experiments.measure.protocol import Split, bins_of, bounds_widened, nothing_private, seed_of, split_rows
from experiments.measure.quality import quality
from experiments.measure.rows import Compared
from experiments.measure.synthetic import Binned, sample_by_marginals, sample_by_tree

K = 10
MAX_CELLS = 1000
"""Most cells of a walk: at 36 features and small epsilons it would hardly end. A hundred times as many change AUROC by .001."""


def guessed_rows(n: int) -> int:
    """What someone who knows the data roughly would guess: one digit.

    >>> guessed_rows(19_776), guessed_rows(113)
    (20000, 100)
    """
    unit: int = 10 ** (len(str(n)) - 1)
    return max(round(n / unit), 1) * unit


Maker = Callable[[float, Bounds, int, int], Any]
"""From epsilon, bounds, guess of rows and seed."""


def _default(epsilon: float, bounds: Bounds, n: int, seed: int) -> Any:
    chosen = detector("auto", epsilon=epsilon, features=bounds, n_rows_hint=n, unsafe_seed=seed)
    return chosen.set_params(**{"tree_seed": seed} if "tree_seed" in chosen.get_params() else {"max_cells": MAX_CELLS})


DETECTORS: dict[str, Maker] = {
    "default": _default,
    "DPForest": lambda epsilon, bounds, n, seed: DPForest(
        epsilon, features=bounds, n_rows_hint=n, tree_seed=seed, unsafe_seed=seed
    ),
    "DPMarginals": lambda epsilon, bounds, n, seed: DPMarginals(
        epsilon, features=bounds, n_rows_hint=n, unsafe_seed=seed
    ),
    "DPGridKNN": lambda epsilon, bounds, n, seed: DPGridKNN(
        epsilon, features=bounds, n_rows_hint=n, k=K, max_cells=MAX_CELLS, unsafe_seed=seed
    ),
}
SYNTHETIC = {"synthetic, marginals": sample_by_marginals, "synthetic, tree": sample_by_tree}
EXACT: dict[str, Callable[[Bounds], Any]] = {
    "KNN": lambda bounds: KNN(bounds, k=K),
    "Forest": Forest,
    "Marginals": Marginals,
}
GRID_TWIN = "GridKNN"
"""The exact twin of the private grid has that one's bins, and so depends on epsilon."""


class Case:
    """A split of a set, and what all runs on it share."""

    def __init__(self, dataset: str, number: int, data: LabelledRows, bounds: Bounds | None = None) -> None:
        self.dataset, self.number = dataset, number
        self.split: Split = split_rows(data, number)
        self.bounds = bounds_widened(data.rows) if bounds is None else bounds
        self.n_rows_hint = guessed_rows(len(self.split.reference))

    def row(self, method: str, scores: NDArray[np.float64], **what: Any) -> Compared:
        return Compared(
            dataset=self.dataset,
            method=method,
            control=what.get("control", False),
            epsilon=what.get("epsilon"),
            split=self.number,
            seed=what.get("seed"),
            **quality(self.split.outlying, scores)._asdict(),
        )


def run_comparison(
    dataset: str, split: int, epsilons: tuple[float, ...], seeds: int, data: LabelledRows
) -> list[Compared]:
    """All methods on one split: without noise once, with noise for each epsilon and seed, and the controls on the same noise."""
    case = Case(dataset, split, data)
    with nothing_private():
        return [
            *_exact(case),
            *(_grid_twin(case, epsilon) for epsilon in epsilons),
            *private_rows(case, epsilons, seeds, DETECTORS),
            *synthetic_rows(case, epsilons, seeds),
        ]


def _exact(case: Case) -> Iterator[Compared]:
    for name, make in EXACT.items():
        yield case.row(name, make(case.bounds).fit(case.split.reference).outlier_scores(case.split.points))


def private_rows(
    case: Case, epsilons: tuple[float, ...], seeds: int, detectors: dict[str, Maker]
) -> Iterator[Compared]:
    """Each detector with its control, on the same noise."""
    reference = case.split.reference
    for epsilon in epsilons:
        for seed in range(seeds):
            noise = seed_of("comparison", case.dataset, case.number, epsilon, seed)
            for name, make in detectors.items():
                unfitted = make(epsilon, case.bounds, case.n_rows_hint, noise)
                for control in (False, True):
                    scores = unfitted.fit(reference[:0] if control else reference).outlier_scores(case.split.points)
                    yield case.row(name, scores, control=control, epsilon=float(epsilon), seed=seed)


def _grid_twin(case: Case, epsilon: float) -> Compared:
    """With the bins that the rule gives the private grid, which depend on no row."""
    reference = case.split.reference
    private = DETECTORS["DPGridKNN"](epsilon, case.bounds, case.n_rows_hint, 0).fit(reference[:0])
    twin = GridKNN(case.bounds, bins=bins_of(private), k=K, max_depth=None).fit(reference)
    return case.row(GRID_TWIN, twin.outlier_scores(case.split.points), epsilon=float(epsilon))


def synthetic_rows(case: Case, epsilons: tuple[float, ...], seeds: int) -> Iterator[Compared]:
    """k-NN on synthetic rows in the declared ranges."""
    domain = case.bounds.domain(case.split.reference.shape[1])
    low, high = np.array(domain.lower), np.array(domain.upper)
    binned = Binned.of((case.split.reference - low) / (high - low))
    points = (case.split.points - low) / (high - low)
    for epsilon in epsilons:
        for seed in range(seeds):
            for name, sample in SYNTHETIC.items():
                rng = np.random.default_rng(seed_of(name, case.dataset, case.number, epsilon, seed))
                rows = sample(binned, epsilon, case.n_rows_hint, rng)
                scores = KNN((0.0, 1.0), k=K).fit(rows).outlier_scores(points)
                yield case.row(name, scores, epsilon=float(epsilon), seed=seed)
