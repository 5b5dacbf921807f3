"""Which detector to fit, from public numbers alone: the number of features, the guess of rows, and epsilon."""

from __future__ import annotations

from typing import Any, Literal

from dpoutlier._validate import at_least_one, bad, is_whole, one_of
from dpoutlier.detectors.forest import DPForest
from dpoutlier.detectors.grid import DPGridKNN
from dpoutlier.detectors.marginals import DPMarginals
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.bounds import Bounds
from dpoutlier.privacy.guarantee import as_epsilon

__all__ = ["DETECTOR_NAMES", "choose", "detector", "detector_class"]

Name = Literal["forest", "marginals", "grid"]
_CLASSES: dict[str, Any] = {"forest": DPForest, "marginals": DPMarginals, "grid": DPGridKNN}
DETECTOR_NAMES = ("auto", *_CLASSES)


def choose(n_features: int, n_hint: int | None, epsilon: float) -> Name:  # noqa: ARG001 - they are all that may be asked
    """The detector for these public numbers: always the forest, since none were found that tell where another is better.

    On simulated mixtures of 1 to 3 features, 500 to 500,000 rows and epsilon .1 and 1 the paper's grid never reached it; over 28
    public tables of 3 to 61 features it has the best mean at every epsilon from .075 to 5. ``docs/detectors.md`` has the table.

    >>> choose(n_features=20, n_hint=5000, epsilon=0.5)
    'forest'
    """
    return "forest"


def detector_class(name: str) -> Any:
    """The class behind one of the names but "auto"."""
    return _CLASSES[name]


def detector(name: str = "auto", *, epsilon: Any, features: Any, n_hint: Any = "buy", **arguments: Any) -> Any:
    """A private detector, ready to fit, chosen without a look at the data.

    Parameters
    ----------
    name : {"auto", "forest", "marginals", "grid"}
        "auto" chooses by the number of features, ``n_hint`` and epsilon alone.
    epsilon : number, Fraction or str
        The total privacy loss of the fit.
    features : Bounds, dict, pair of sequences, or path of a features file
        The public range of each feature. With one range for all features, ``(0, 1)``, or none yet, give their number instead,
        and ``bounds=`` besides.
    n_hint : int or "buy"
        A *public* guess of the number of rows, never ``len(X)``; or buy one for 5 % of epsilon where a rule needs it.
    **arguments
        Whatever else the detector takes, such as ``target_fpr=0.05``.

    Examples
    --------
    >>> ranges = {"age": (0, 120), "bmi": (10, 80), "pulse": (20, 250), "dose": (0, 9)}
    >>> type(detector(epsilon=0.5, n_hint=5000, features=ranges)).__name__
    'DPForest'
    """
    one_of(DETECTOR_NAMES, name=name)
    n_features, bounds = _features(features, arguments.pop("bounds", None))
    exact = as_epsilon(epsilon)
    if name == "auto":
        name = choose(n_features, n_hint if is_whole(n_hint) else None, float("inf") if exact is None else float(exact))
    return _CLASSES[name](epsilon, bounds=bounds, n_hint=n_hint, **arguments)


def _features(features: Any, bounds: Any) -> tuple[int, Any]:
    """Number of features, and the bounds to fit with."""
    if is_whole(features):
        n_features = at_least_one(features=features)
        if bounds is None:
            raise InvalidParameterError(
                f"features={features} is a number only; give bounds= as well, or the range of each feature as features=."
            )
        ranges = Bounds.of(bounds).n_features
        if ranges is not None and ranges != n_features:
            raise InvalidParameterError(f"features={features}, but bounds= has ranges for {ranges} features.")
        return n_features, bounds
    if bounds is not None:
        raise InvalidParameterError(
            "give the ranges once: either as features=, or as bounds= with a number of features."
        )
    declared = Bounds.of(features)
    if declared.n_features is None:
        raise bad(
            "features",
            "the range of each feature",
            features,
            "With one range for all of them, or one PrivateBounds, pass features=<their number> and bounds=<it>.",
        )
    return declared.n_features, declared
