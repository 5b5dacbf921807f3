"""Format version 1: a model from its content and arrays, and back."""

from dataclasses import asdict
from typing import Any, cast

import numpy as np

from dpoutlier._validate import positive_int
from dpoutlier.counts.file_arrays import Arrays, expect, rational
from dpoutlier.counts.registry import counts_of
from dpoutlier.exceptions import ModelFileError
from dpoutlier.features.domain import Domain
from dpoutlier.model.file.checks import check_features
from dpoutlier.model.merged import MAX_PARTS, Merged, Part, People
from dpoutlier.model.model import Model
from dpoutlier.noise.mechanism import Noise
from dpoutlier.noise.registry import mechanism_from_json
from dpoutlier.partitions.registry import partition_from_json
from dpoutlier.privacy.guarantee import Charge, Guarantee, Neighbours
from dpoutlier.privacy.receipt import Receipt
from dpoutlier.scoring.registry import scorer_from_json
from dpoutlier.scoring.threshold import ScoreHistogram


def model_of(content: dict[str, Any], arrays: Arrays) -> Model:
    domain = _domain(content["domain"])
    partition, scorer = partition_from_json(content["partition"]), scorer_from_json(content["scorer"])
    check_features(partition, domain)
    threshold = float(expect(arrays, "threshold", "<f8", (1,))[0]) if "threshold" in arrays else None
    guarantee = _guarantee(content["guarantee"])
    return Model(
        detector=str(content["detector"]),
        domain=domain,
        partition=partition,
        scorer=scorer,
        counts=counts_of(content["counts"], arrays, partition),
        guarantee=guarantee,
        charges=_charges(content["charges"], guarantee),
        n_rows_hint=None if content["n_hint"] is None else positive_int(n_rows_hint=content["n_hint"]),
        score_histogram=_score_histogram(content["score_histogram"], arrays, continuous=scorer.continuous(partition)),
        threshold=threshold,
        merged=_merged(content["merged"], guarantee) if "merged" in content else None,
        receipt=_receipt(content),
    )


def _domain(content: dict[str, Any]) -> Domain:
    domain = Domain.from_json(content)
    if list(domain.scales) != content["scales"]:
        raise ModelFileError("the bounds of the model file do not give its scales.")
    return domain


def _guarantee(content: dict[str, Any]) -> Guarantee:
    return Guarantee(
        epsilon=None if content["epsilon"] is None else rational(content["epsilon"]),
        neighbours=Neighbours(content["neighbours"]),
        rows_per_person=content["rows_per_person"],
        delta=rational(str(content["delta"])),
        voided_by=tuple(str(reason) for reason in content["voided_by"]),
        person=_text_or_nothing(content.get("person")),
    )


def _text_or_nothing(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ModelFileError("the model file has a value that should be text and is not.")
    return value


def _charges(content: list[dict[str, Any]], guarantee: Guarantee) -> tuple[Charge, ...]:
    return tuple(Charge.from_json(entry, guarantee.rows_per_person) for entry in content)


def _merged(content: dict[str, Any], guarantee: Guarantee) -> Merged:
    if len(content["parts"]) > MAX_PARTS:
        raise ModelFileError("the model file was merged from more parts than this format knows.")
    parts = tuple(
        Part(
            entry["release"],
            rational(entry["epsilon"]),
            _charges(entry["charges"], guarantee),
            _receipt(entry),
        )
        for entry in content["parts"]
    )
    return Merged(People(content["people"]), parts)


def _receipt(content: dict[str, Any]) -> Receipt | None:
    """The receipt of a model, or of a part of a merge, if it has one."""
    return Receipt.from_json(content["receipt"]) if "receipt" in content else None


def _score_histogram(content: dict[str, Any] | None, arrays: Arrays, *, continuous: bool) -> ScoreHistogram | None:
    if content is None:
        return None
    levels = expect(arrays, "score_levels", "<f8", (None,))
    counts = expect(arrays, "score_counts", "<i8", (len(levels),))
    if not len(levels) or np.isnan(levels).any() or not np.isfinite(levels[:-1]).all() or (np.diff(levels) <= 0).any():
        raise ModelFileError("the score levels of the model file are not in order.")
    noise = None if content.get("rate", 0) is None else cast(Noise, mechanism_from_json(content, "threshold"))
    left_out = content.get("own_row") == "left out"
    more = {"continuous": continuous, "left_out": left_out, "outlier_share": content.get("outlier_share", 0.0)}
    return ScoreHistogram(levels, counts, noise, content["target_fpr"], **more)


def content_of(model: Model) -> dict[str, Any]:
    """All of the manifest but the privacy statement, checksums and format."""
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
        "charges": _charges_content(model.charges),
        "n_hint": model.n_rows_hint,
        "score_histogram": None if model.score_histogram is None else model.score_histogram.to_json(),
        **({} if model.merged is None else {"merged": _merged_content(model.merged)}),
        **_receipt_content(model),
    }


def arrays_of(model: Model) -> Arrays:
    arrays = dict(model.counts.arrays())
    if model.score_histogram is not None:
        arrays |= model.score_histogram.arrays()
    if model.threshold is not None:
        arrays["threshold"] = np.array([model.threshold])  # an array has a fixed width, a number in JSON has not
    return {name: np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")) for name, array in arrays.items()}


def _receipt_content(charged: Model | Part) -> dict[str, Any]:
    """Empty without a ledger: the manifest then has no such key."""
    return {} if charged.receipt is None else {"receipt": charged.receipt.to_json()}


def _charges_content(charges: tuple[Charge, ...]) -> list[dict[str, Any]]:
    return [charge.to_json() for charge in charges]


def _merged_content(merged: Merged) -> dict[str, Any]:
    parts = [
        {
            "release": part.release,
            "epsilon": str(part.epsilon),
            "charges": _charges_content(part.charges),
            **_receipt_content(part),
        }
        for part in merged.parts
    ]
    return {"people": merged.people.value, "parts": parts}
