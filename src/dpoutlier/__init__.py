"""Outlier detection on data that must stay private.

Reference data becomes a histogram once, with noise; everything after that only reads the histogram.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpoutlier._startup import without_collection

if TYPE_CHECKING:
    from dpoutlier.client.client import Client
    from dpoutlier.counts.keyed import secrets_may_travel
    from dpoutlier.detectors.as_in_paper import as_in_paper
    from dpoutlier.detectors.fitted import FittedDetector
    from dpoutlier.detectors.forest import DPForest, Forest
    from dpoutlier.detectors.grid import DPGridKNN, GridKNN
    from dpoutlier.detectors.knn import KNN
    from dpoutlier.detectors.load import load
    from dpoutlier.detectors.marginals import DPMarginals, Marginals
    from dpoutlier.detectors.merge import merge
    from dpoutlier.detectors.pyod import PyODAdapter
    from dpoutlier.detectors.registry import detector
    from dpoutlier.explain.explanation import Counterfactual, Explanation
    from dpoutlier.explain.plots import explanation_figure
    from dpoutlier.features.bounds import Bounds
    from dpoutlier.features.category import Category
    from dpoutlier.features.private_bounds import PrivateBounds
    from dpoutlier.ledger.ledger import Ledger
    from dpoutlier.model.statement import PrivacyStatement
    from dpoutlier.privacy.guarantee import Guarantee, Neighbours
    from dpoutlier.scoring.intervals import CountIntervals

__all__ = [
    "KNN",
    "Bounds",
    "Category",
    "Client",
    "CountIntervals",
    "Counterfactual",
    "DPForest",
    "DPGridKNN",
    "DPMarginals",
    "Explanation",
    "FittedDetector",
    "Forest",
    "GridKNN",
    "Guarantee",
    "Ledger",
    "Marginals",
    "Neighbours",
    "PrivacyStatement",
    "PrivateBounds",
    "PyODAdapter",
    "as_in_paper",
    "detector",
    "explanation_figure",
    "load",
    "merge",
    "secrets_may_travel",
]

_HOME = {
    "KNN": "detectors.knn",
    "Bounds": "features.bounds",
    "Category": "features.category",
    "Client": "client.client",
    "CountIntervals": "scoring.intervals",
    "DPForest": "detectors.forest",
    "DPGridKNN": "detectors.grid",
    "DPMarginals": "detectors.marginals",
    "Counterfactual": "explain.explanation",
    "Explanation": "explain.explanation",
    "FittedDetector": "detectors.fitted",
    "Forest": "detectors.forest",
    "GridKNN": "detectors.grid",
    "Guarantee": "privacy.guarantee",
    "Ledger": "ledger.ledger",
    "Marginals": "detectors.marginals",
    "Neighbours": "privacy.guarantee",
    "PrivacyStatement": "model.statement",
    "PrivateBounds": "features.private_bounds",
    "PyODAdapter": "detectors.pyod",
    "as_in_paper": "detectors.as_in_paper",
    "detector": "detectors.registry",
    "explanation_figure": "explain.plots",
    "load": "detectors.load",
    "merge": "detectors.merge",
    "secrets_may_travel": "counts.keyed",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: ``import dpoutlier`` and ``--help`` stay fast."""
    if name not in _HOME:
        raise AttributeError(f"module 'dpoutlier' has no attribute {name!r}")
    with without_collection():
        value = getattr(import_module(f"dpoutlier.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
