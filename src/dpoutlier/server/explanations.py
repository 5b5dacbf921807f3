"""Explanations as they go out."""

import math
from typing import Any

from pydantic_core import to_json

from dpoutlier.detectors.scores import labels_of
from dpoutlier.explain.explanation import Explanation
from dpoutlier.server.models import LoadedModel
from dpoutlier.server.points import Points


def explanations_body(served: LoadedModel, points: Points, values: Any) -> bytes:
    """JSON of why each point scores as it does. ``values`` are the points as ``explain`` takes them."""
    found = served.detector.explain(values)
    outside = served.domain.outside(points.columns)
    detector = served.detector
    labels = None if detector._threshold() is None else labels_of(found.scores, detector.offset_).tolist()
    content = {
        "model": served.name,
        "release": served.release,
        "typical_score": found.typical_score,
        "features": list(found.features),
        "explanations": [
            _one(found, point, points, bool(outside[point]), None if labels is None else labels[point])
            for point in range(len(found))
        ],
    }
    return to_json(content)


def _one(found: Explanation, point: int, points: Points, outside: bool, label: int | None) -> dict[str, Any]:
    counterfactual = found.counterfactual(point)
    return {
        "outlier_score": float(found.scores[point]),
        "outside_bounds": outside,
        "prediction": label,
        "note": found.note(point),
        "region_note": None if found.k is None else found._region_note(point),  # noqa: SLF001 - one text for both sides
        "counterfactual": None if counterfactual is None else str(counterfactual),
        "reached": None if counterfactual is None else counterfactual.reached,
        "contributions": found.contributions[point].tolist(),
        "empty": [_share(share) for share in found.empty[point].tolist()],
        "rows": [_row(found, point, points, *ranked) for ranked in found.ranking(point)],
    }


def _row(found: Explanation, point: int, points: Points, feature: str, adds: float, empty: float) -> dict[str, Any]:
    instead = found.instead(feature, point)
    return {
        "feature": feature,
        "value": found.value(feature, point, points.value(point, found.features.index(feature))),
        "adds": adds,
        "instead": instead[0],
        "then": (instead[1] or None) if len(instead) > 1 else None,
        "empty": _share(empty),
    }


def _share(value: float) -> float | None:
    return None if math.isnan(value) else value
