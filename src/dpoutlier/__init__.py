"""Outlier detection on data that must stay private.

Reference data becomes a histogram once, with noise; everything after that only reads the histogram.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpoutlier.detectors.registry import CLASS_HOMES

if TYPE_CHECKING:
    from dpoutlier.client.client import Client as Client
    from dpoutlier.counts.keyed import secrets_may_travel as secrets_may_travel
    from dpoutlier.detectors.as_in_paper import as_in_paper as as_in_paper
    from dpoutlier.detectors.fitted import FittedDetector as FittedDetector
    from dpoutlier.detectors.forest import DPForest as DPForest
    from dpoutlier.detectors.forest import Forest as Forest
    from dpoutlier.detectors.grid import DPGridKNN as DPGridKNN
    from dpoutlier.detectors.grid import GridKNN as GridKNN
    from dpoutlier.detectors.knn import KNN as KNN
    from dpoutlier.detectors.load import load as load
    from dpoutlier.detectors.marginals import DPMarginals as DPMarginals
    from dpoutlier.detectors.marginals import Marginals as Marginals
    from dpoutlier.detectors.merge import merge as merge
    from dpoutlier.detectors.pyod import PyODAdapter as PyODAdapter
    from dpoutlier.detectors.registry import detector as detector
    from dpoutlier.explain.explanation import Counterfactual as Counterfactual
    from dpoutlier.explain.explanation import Explanation as Explanation
    from dpoutlier.explain.plots import explanation_figure as explanation_figure
    from dpoutlier.features.bounds import Bounds as Bounds
    from dpoutlier.features.category import Category as Category
    from dpoutlier.features.private_bounds import PrivateBounds as PrivateBounds
    from dpoutlier.ledger.ledger import Ledger as Ledger
    from dpoutlier.model.drift import Drift as Drift
    from dpoutlier.model.statement import PrivacyStatement as PrivacyStatement
    from dpoutlier.privacy.guarantee import Guarantee as Guarantee
    from dpoutlier.privacy.guarantee import Neighbours as Neighbours
    from dpoutlier.scoring.false_alarms import FalseAlarms as FalseAlarms
    from dpoutlier.scoring.intervals import CountIntervals as CountIntervals

_HOMES = {
    **CLASS_HOMES,
    "KNN": "dpoutlier.detectors.knn",
    "Bounds": "dpoutlier.features.bounds",
    "Category": "dpoutlier.features.category",
    "Client": "dpoutlier.client.client",
    "CountIntervals": "dpoutlier.scoring.intervals",
    "Counterfactual": "dpoutlier.explain.explanation",
    "Drift": "dpoutlier.model.drift",
    "Explanation": "dpoutlier.explain.explanation",
    "FalseAlarms": "dpoutlier.scoring.false_alarms",
    "FittedDetector": "dpoutlier.detectors.fitted",
    "Guarantee": "dpoutlier.privacy.guarantee",
    "Ledger": "dpoutlier.ledger.ledger",
    "Neighbours": "dpoutlier.privacy.guarantee",
    "PrivacyStatement": "dpoutlier.model.statement",
    "PrivateBounds": "dpoutlier.features.private_bounds",
    "PyODAdapter": "dpoutlier.detectors.pyod",
    "as_in_paper": "dpoutlier.detectors.as_in_paper",
    "detector": "dpoutlier.detectors.registry",
    "explanation_figure": "dpoutlier.explain.plots",
    "load": "dpoutlier.detectors.load",
    "merge": "dpoutlier.detectors.merge",
    "secrets_may_travel": "dpoutlier.counts.keyed",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - names from the registry are among them


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: ``import dpoutlier`` and ``--help`` stay fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dpoutlier' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
