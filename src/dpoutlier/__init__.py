"""Outlier detection on data that must stay private.

Reference data becomes a histogram once, with noise; everything after that only reads the histogram.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpoutlier._startup import without_collection

if TYPE_CHECKING:
    from dpoutlier.bounds import Bounds
    from dpoutlier.category import Category
    from dpoutlier.client.client import Client
    from dpoutlier.detectors.as_in_paper import as_in_paper
    from dpoutlier.detectors.choosing import detector
    from dpoutlier.detectors.explanation import Counterfactual, Explanation
    from dpoutlier.detectors.fitted import FittedDetector
    from dpoutlier.detectors.forest import DPForest, Forest
    from dpoutlier.detectors.grid import DPGridKNN, GridKNN
    from dpoutlier.detectors.knn import KNN
    from dpoutlier.detectors.loading import load
    from dpoutlier.detectors.marginals import DPMarginals, Marginals
    from dpoutlier.detectors.merging import merge
    from dpoutlier.detectors.pyod_adapter import PyODAdapter
    from dpoutlier.guarantee import Guarantee, Neighbours
    from dpoutlier.holders.keyed import secrets_may_travel
    from dpoutlier.ledger.ledger import Ledger
    from dpoutlier.plots import explanation_figure
    from dpoutlier.private_bounds import PrivateBounds
    from dpoutlier.scoring.count_intervals import CountIntervals
    from dpoutlier.statement import PrivacyStatement

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
    "Bounds": "bounds",
    "Category": "category",
    "Client": "client.client",
    "CountIntervals": "scoring.count_intervals",
    "DPForest": "detectors.forest",
    "DPGridKNN": "detectors.grid",
    "DPMarginals": "detectors.marginals",
    "Counterfactual": "detectors.explanation",
    "Explanation": "detectors.explanation",
    "FittedDetector": "detectors.fitted",
    "Forest": "detectors.forest",
    "GridKNN": "detectors.grid",
    "Guarantee": "guarantee",
    "Ledger": "ledger.ledger",
    "Marginals": "detectors.marginals",
    "Neighbours": "guarantee",
    "PrivacyStatement": "statement",
    "PrivateBounds": "private_bounds",
    "PyODAdapter": "detectors.pyod_adapter",
    "as_in_paper": "detectors.as_in_paper",
    "detector": "detectors.choosing",
    "explanation_figure": "plots",
    "load": "detectors.loading",
    "merge": "detectors.merging",
    "secrets_may_travel": "holders.keyed",
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
