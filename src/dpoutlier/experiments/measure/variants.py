"""The ways in which the paper's detector is run, from the paper's own to one that keeps its promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier import KNN, Bounds, DPGridKNN, GridKNN

__all__ = ["VARIANTS", "Variant", "under_our_rule", "variant_named"]

MAX_DEPTH = 4
MOST_CELLS = 10**6  # above what a depth of 4 holds in 30 features, so that depth alone ends a walk, as in the paper


@dataclass(frozen=True)
class Variant:
    """One way to run the six algorithms."""

    name: str
    title: str
    leaked_bounds: bool
    """Bounds by ``bounds_leaked_by``; else the file's range, widened."""
    float_noise: bool
    """Laplace noise of scale 1 / epsilon by floating point; else exact, of scale 2 / epsilon (replace-one)."""
    exhausted: str
    distance: str = "cell"
    k: int | None = None
    """A public number; None if tuned on the test set."""

    def plain(self, bounds: Bounds, k: int, *, weighted: bool) -> KNN:
        return KNN(bounds, k=k, weighted=weighted)

    def exact(self, bounds: Bounds, k: int, bins: int, *, weighted: bool) -> GridKNN:
        return GridKNN(bounds, bins=bins, k=k, weighted=weighted, **self._walk())

    def private(
        self, epsilon: float, bounds: Bounds, k: int, bins: int | None, *, weighted: bool, n: int, seed: int
    ) -> DPGridKNN:
        """Seeded, so that a run can be repeated: the noise has the law of a private fit, and is no secret. No bins: b by rule."""
        return DPGridKNN(
            epsilon,
            bounds=bounds,
            bins="auto" if bins is None else bins,
            k=k,
            weighted=weighted,
            neighbours="add-or-remove-one" if self.float_noise else "replace-one",
            n_hint=n,  # used by bins="auto" alone; under replace-one the number of rows is public
            holder="keyed",
            unsafe_float_laplace=self.float_noise,
            unsafe_seed=seed,
            max_cells=MOST_CELLS,
            **self._walk(),
        )

    def _walk(self) -> dict[str, Any]:
        return {
            "distance": self.distance,
            "max_depth": MAX_DEPTH,
            "exhausted": self.exhausted,
        }


VARIANTS = (
    Variant("paper", "as in the paper", leaked_bounds=True, float_noise=True, exhausted="as-printed"),
    Variant("rule", "with our rule for exhausted walks", leaked_bounds=True, float_noise=True, exhausted="outlying"),
    Variant(
        "point",
        "with distances from the point",
        leaked_bounds=True,
        float_noise=True,
        exhausted="as-printed",
        distance="point",
    ),
    Variant(
        "sound", "with exact noise of the right scale", leaked_bounds=True, float_noise=False, exhausted="outlying"
    ),
    Variant("honest", "with declared bounds", leaked_bounds=False, float_noise=False, exhausted="outlying"),
    Variant(
        "honest-point",
        "with declared bounds, and distances from the point",
        leaked_bounds=False,
        float_noise=False,
        exhausted="outlying",
        distance="point",
    ),
    Variant("public", "with public k and b", leaked_bounds=False, float_noise=False, exhausted="outlying", k=10),
)


def variant_named(name: str) -> Variant:
    return next(variant for variant in VARIANTS if variant.name == name)


def under_our_rule(
    scores: NDArray[np.float64],
    gathered: NDArray[np.float64],
    ran_out: NDArray[np.bool_],
    k: int,
    diameter: int,
    *,
    weighted: bool,
) -> NDArray[np.float64]:
    """Scores of walks as printed, made into those with missing rows at the cube's diameter: no second walk is needed."""
    if not weighted:
        return np.where(ran_out, float(diameter), scores)
    missing = np.where(ran_out, k - gathered, 0.0)
    return np.asarray(scores + missing * diameter)
