"""A model as a manifest and arrays."""

from dataclasses import asdict
from typing import Any

import numpy as np

from dpoutlier.model.file.archive import Arrays
from dpoutlier.model.model import Model
from dpoutlier.model.parts import Merged, Part
from dpoutlier.privacy.guarantee import Charge

__all__ = ["arrays_of", "content_of"]


def arrays_of(model: Model) -> Arrays:
    arrays = dict(model.counts.arrays())
    if model.score_histogram is not None:
        arrays |= model.score_histogram.arrays()
    if model.threshold is not None:
        arrays["threshold"] = np.array([model.threshold])  # an array has a fixed width, a number in JSON has not
    return {name: np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")) for name, array in arrays.items()}


def content_of(model: Model) -> dict[str, Any]:
    """All of the manifest but checksums and format."""
    guarantee = model.guarantee
    return {
        "publishable": model.publishable,
        "detector": model.detector,
        "domain": model.domain.to_json(),
        "partition": model.partition.to_json(),
        "scorer": model.scorer.to_json(),
        "counts": model.counts.to_json(),
        "guarantee": {
            **{key: value for key, value in asdict(guarantee).items() if (key, value) != ("person", None)},
            "epsilon": None if guarantee.epsilon is None else str(guarantee.epsilon),
            "neighbours": guarantee.neighbours.value,
            "delta": 0 if guarantee.delta == 0 else str(guarantee.delta),
        },
        "charges": _charges(model.charges),
        "n_hint": model.n_rows_hint,
        "score_histogram": None if model.score_histogram is None else model.score_histogram.to_json(),
        "statement": model.privacy_statement().to_dict(),
        **({} if model.merged is None else {"merged": _merged(model.merged)}),
        **_receipt(model),
    }


def _receipt(charged: Model | Part) -> dict[str, Any]:
    """No key where nobody keeps a ledger."""
    return {} if charged.receipt is None else {"receipt": charged.receipt.to_json()}


def _charges(charges: tuple[Charge, ...]) -> list[dict[str, Any]]:
    return [charge.to_json() for charge in charges]


def _merged(merged: Merged) -> dict[str, Any]:
    parts = [
        {"release": part.release, "epsilon": str(part.epsilon), "charges": _charges(part.charges), **_receipt(part)}
        for part in merged.parts
    ]
    return {"people": merged.people.value, "parts": parts}
