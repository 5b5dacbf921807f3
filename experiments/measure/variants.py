"""The ways in which the six algorithms are run: readings of the paper, and the steps from there to a complete accounting."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpoutlier import KNN, Bounds, DPGridKNN, GridKNN

MAX_DEPTH = 4
MAX_CELLS = 10**6  # above what a depth of 4 holds in 30 features, so that depth alone ends a walk
MAX_CELLS_ENDLESS = 10**5
BASE = "base"


class Shared(NamedTuple):
    """The variants from which another takes what would be run or chosen alike; "" for its own."""

    plain: str = ""
    """Runs of k-NN."""
    exact: str = ""
    """Runs of the grid without noise."""
    private: str = ""
    """Private walks. Where only the rule for exhausted walks differs, scores still do."""
    bins: str = ""
    """The chosen b."""


OWN = Shared()


@dataclass(frozen=True)
class Variant:
    """One way to run the six algorithms."""

    name: str
    title: str
    bounds: str = "centre-first"
    """Preprocessing of ``as_in_paper``, from the reference rows; or "declared": the file's range, widened."""
    exact_depth: int | None = None
    private_depth: int | None = MAX_DEPTH
    exhausted: str = "as-printed"
    """What a walk scores that has not gathered k rows; also "penalty": the number of features, as in the authors' code."""
    distance: str = "cell"
    neighbours: str = "add-or-remove-one"
    """The noise has scale 1 / epsilon, as in the paper; under "replace-one", the paper's own neighbours, 2 / epsilon."""
    k: int | None = None
    """A public number; None if tuned on the test set."""
    shared: Shared = OWN

    @property
    def leaked_bounds(self) -> bool:
        return self.bounds != "declared"

    def plain(self, bounds: Bounds, k: int, *, weighted: bool) -> KNN:
        return KNN(bounds, k=k, weighted=weighted)

    def exact(self, bounds: Bounds, k: int, bins: int, *, weighted: bool) -> GridKNN:
        return GridKNN(bounds, bins=bins, k=k, weighted=weighted, max_depth=self.exact_depth, **self._walk())

    def private(
        self, epsilon: float, bounds: Bounds, k: int, bins: int | None, *, weighted: bool, n: int, seed: int
    ) -> DPGridKNN:
        """Seeded, so that a run can be repeated: the noise has the law of a private fit, and is no secret. No bins: b by rule."""
        return DPGridKNN(
            epsilon,
            features=bounds,
            bins="auto" if bins is None else bins,
            k=k,
            weighted=weighted,
            neighbours=self.neighbours,
            n_rows_hint=n,  # used by bins="auto" alone; under replace-one the number of rows is public
            tight_ranges=True,
            counts="keyed",
            unsafe_seed=seed,
            max_depth=self.private_depth,
            max_cells=MAX_CELLS_ENDLESS if self.private_depth is None else MAX_CELLS,
            **self._walk(),
        )

    def _walk(self) -> dict[str, Any]:
        return {"distance": self.distance, "exhausted": "outlying" if self.exhausted == "outlying" else "as-printed"}


VARIANTS = (
    Variant(BASE, "the base reading"),
    Variant(
        "limited",
        "non-private walks end after 4 steps",
        exact_depth=MAX_DEPTH,
        shared=Shared(plain=BASE, private=BASE, bins=BASE),
    ),
    Variant(
        "endless",
        "private walks end after 100,000 cells",
        private_depth=None,
        shared=Shared(plain=BASE, exact=BASE),
    ),
    Variant("point", "distances from the point", distance="point", shared=Shared(plain=BASE)),
    Variant(
        "far",
        "missing rows of exhausted walks count at the cube's diameter",
        exhausted="outlying",
        shared=Shared(plain=BASE, exact=BASE, private=BASE),
    ),
    Variant(
        "penalty",
        "exhausted walks score the number of features",
        exhausted="penalty",
        shared=Shared(plain=BASE, exact=BASE, private=BASE),
    ),
    Variant("scaled", "scaled, mapped, then centred", bounds="as-printed"),
    Variant("ranged", "grid over the rows' own range", bounds="range", shared=Shared(plain=BASE)),
    Variant(
        "text",
        "scaled, mapped, then centred, and distances from the point",
        bounds="as-printed",
        distance="point",
        shared=Shared(plain="scaled"),
    ),
    Variant(
        "ranged-penalty",
        "grid over the rows' own range, and exhausted walks score the number of features",
        bounds="range",
        exhausted="penalty",
        shared=Shared(plain=BASE, exact="ranged", private="ranged"),
    ),
    Variant(
        "right-scale",
        "with noise of the right scale",
        exhausted="outlying",
        neighbours="replace-one",
        shared=Shared(plain=BASE, exact=BASE),
    ),
    Variant("declared", "with declared bounds", bounds="declared", exhausted="outlying", neighbours="replace-one"),
    Variant(
        "declared-point",
        "with declared bounds, and distances from the point",
        bounds="declared",
        exhausted="outlying",
        neighbours="replace-one",
        distance="point",
        shared=Shared(plain="declared", bins="declared"),
    ),
    Variant("public", "with public k and b", bounds="declared", exhausted="outlying", neighbours="replace-one", k=10),
)
"""First the readings of the paper, then the steps to a complete accounting."""


def variant_named(name: str) -> Variant:
    return next(variant for variant in VARIANTS if variant.name == name)


def variants_from(name: str) -> list[Variant]:
    """The others whose scores come from the private walks of this variant."""
    return [one for one in VARIANTS if one.shared.private == name and one.exhausted != "as-printed"]


def scores_if(exhausted: str, walks: Any, k: int, diameter: int, *, weighted: bool) -> NDArray[np.float64]:
    """Scores of walks as printed, made into those under another rule for exhausted walks: no second walk is needed."""
    ran_out = walks.status > 0
    if exhausted == "penalty" or not weighted:
        return np.where(ran_out, float(diameter), walks.scores)
    missing = np.where(ran_out, k - walks.gathered, 0.0)
    return np.asarray(walks.scores + missing * diameter)
