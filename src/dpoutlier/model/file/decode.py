"""A model from a manifest and arrays, every part of it checked."""

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import at_least_one, exact_number
from dpoutlier.counts.base import MOST_COUNT, NoisyCounts
from dpoutlier.counts.dense import MOST_DENSE_CELLS, DenseCounts
from dpoutlier.counts.exact import ExactCounts
from dpoutlier.counts.keyed import KEY_BYTES, NOISE, SALT_BYTES, KeyedCounts, noise_of
from dpoutlier.counts.sparse import SparseCounts
from dpoutlier.exceptions import ModelFileError
from dpoutlier.features.axes import plain
from dpoutlier.features.domain import Domain
from dpoutlier.model.file.archive import Arrays
from dpoutlier.model.file.encode import arrays_of, content_of
from dpoutlier.model.model import Model
from dpoutlier.model.parts import MOST_PARTS, Merged, Part, People
from dpoutlier.model.plan import QUANTILES, ROW_COUNT_SHARE, bounds_charge, noise_charge
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.noise.mechanism import Cost
from dpoutlier.noise.registry import mechanism_from_json
from dpoutlier.partitions.base import Partition
from dpoutlier.partitions.grid import Grid
from dpoutlier.partitions.marginals import Margins
from dpoutlier.partitions.mixed_trees import MixedTrees
from dpoutlier.partitions.trees import Trees
from dpoutlier.privacy.guarantee import LEAST_EPSILON, MOST_EPSILON, Charge, Guarantee, Neighbours
from dpoutlier.privacy.receipt import Receipt
from dpoutlier.scoring.base import Scorer
from dpoutlier.scoring.log_counts import LogCounts
from dpoutlier.scoring.nearest_cells import NearestCells
from dpoutlier.scoring.threshold import ScoreHistogram

__all__ = ["model_of"]

STATED = (
    *("private", "publishable", "neighbours", "delta"),
    *("epsilon", "epsilon_in_use", "epsilon_add_or_remove_one", "epsilon_replace_one"),
)
PARTITIONS: dict[str, Any] = {"grid": Grid, "trees": Trees, "mixed-trees": MixedTrees, "margins": Margins}
SCORERS: dict[str, Any] = {"nearest-cells": NearestCells, "log-counts": LogCounts}
PARTS = {
    **dict.fromkeys(("GridKNN", "DPGridKNN"), ("grid", "nearest-cells", None)),
    **dict.fromkeys(("Forest", "DPForest"), ("trees", "log-counts", True)),  # mixed or not
    **dict.fromkeys(("Marginals", "DPMarginals"), ("margins", "log-counts", False)),
}


def model_of(manifest: dict[str, Any], arrays: Arrays) -> Model:
    domain = _domain(manifest["domain"])
    partition: Partition = PARTITIONS[manifest["partition"]["name"]].from_json(manifest["partition"])
    scorer: Scorer = SCORERS[manifest["scorer"]["name"]].from_json(manifest["scorer"])
    if partition.n_features != domain.n_features or partition.axes != plain(domain.axes):
        raise ModelFileError("the partition and the features of the model file differ in their number or their kinds.")
    guarantee = _guarantee(manifest["guarantee"])
    threshold = float(_expect(arrays, "threshold", "<f8", (1,))[0]) if "threshold" in arrays else None
    model = Model(
        detector=str(manifest["detector"]),
        domain=domain,
        partition=partition,
        scorer=scorer,
        counts=_counts(manifest["counts"], arrays, partition),
        guarantee=guarantee,
        charges=_charges(manifest["charges"], guarantee),
        n_rows_hint=None if manifest["n_hint"] is None else at_least_one(n_rows_hint=manifest["n_hint"]),
        score_histogram=_score_histogram(manifest["score_histogram"], arrays, continuous=scorer.continuous),
        threshold=threshold,
        merged=_merged(manifest["merged"], guarantee) if "merged" in manifest else None,
        receipt=_receipt(manifest),
    )
    _check_kind(model)
    _check_charges(model)
    _check_canonical(model, manifest, arrays)
    stated, known = manifest["statement"], model.privacy_statement().to_dict()
    if any(stated[key] != known[key] for key in STATED):
        raise ModelFileError("the statement in the model file is not that of its content.")
    if model.publishable is not manifest["publishable"]:
        raise ModelFileError("the model file says that it is publishable, and its content is not.")
    return model


def _expect(arrays: Arrays, name: str, dtype: Any, shape: tuple[int | None, ...]) -> NDArray[Any]:
    array = arrays[name]
    fits = len(shape) == array.ndim and all(want in {None, got} for want, got in zip(shape, array.shape, strict=True))
    if array.dtype != np.dtype(dtype) or not fits:
        raise ModelFileError(f"array {name} of the model file has type {array.dtype} and shape {array.shape}.")
    return array


def _too_large(counts: NDArray[np.int64], most: int) -> bool:
    return bool(((counts >= most) | (counts <= -most)).any())  # the absolute value of the least integer is negative


def _domain(content: dict[str, Any]) -> Domain:
    domain = Domain.from_json(content)
    if list(domain.scales) != content["scales"]:
        raise ModelFileError("the bounds of the model file do not give its scales.")
    return domain


def _rational(text: str) -> Fraction:
    number = exact_number(text, digits=200)
    if number is None:
        raise ModelFileError(f"the model file has {text[:80]!r} where a number should be.")
    return number


def _guarantee(content: dict[str, Any]) -> Guarantee:
    return Guarantee(
        epsilon=None if content["epsilon"] is None else _rational(content["epsilon"]),
        neighbours=Neighbours(content["neighbours"]),
        rows_per_person=content["rows_per_person"],
        voided_by=tuple(str(reason) for reason in content["voided_by"]),
        person=_text_or_nothing(content.get("person")),
    )


def _text_or_nothing(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ModelFileError("the model file has something else where a text should be.")
    return value


def _charges(content: list[dict[str, Any]], guarantee: Guarantee) -> tuple[Charge, ...]:
    return tuple(Charge.from_json(entry, guarantee.rows_per_person) for entry in content)


def _merged(content: dict[str, Any], guarantee: Guarantee) -> Merged:
    if len(content["parts"]) > MOST_PARTS:
        raise ModelFileError("the model file was merged from more parts than this format knows.")
    parts = tuple(
        Part(
            entry["release"],
            _rational(entry["epsilon"]),
            _charges(entry["charges"], guarantee),
            _receipt(entry),
        )
        for entry in content["parts"]
    )
    return Merged(People(content["people"]), parts)


def _receipt(content: dict[str, Any]) -> Receipt | None:
    """Of a model or of a part of a merge."""
    return Receipt.from_json(content["receipt"]) if "receipt" in content else None


def _check_charges(model: Model) -> None:
    """What was bought must be what is promised, to the last digit."""
    histogram = model.score_histogram
    paid = {charge.purpose: charge.mechanism for charge in model.charges}
    if model.merged is None:
        n_bought = len(model.domain.bought)
        _check_bought(
            model.charges, model.guarantee, model.partition, threshold=histogram is not None, n_bought=n_bought
        )
        if "number of rows" in paid and model.n_rows_hint is None:
            raise ModelFileError("the number of rows in the model file was not bought as this format does.")
        rate = paid["counts"].rate if "counts" in paid else None
    else:
        _check_merged(model, model.merged)
        rate = model.merged.rate
    if histogram is not None and histogram.noise != paid.get("threshold"):
        raise ModelFileError("the threshold of the model file was not bought at the rate that it states.")
    if model.scorer != model.scorer.with_noise(rate):
        raise ModelFileError("the scoring rule of the model file is not that of its noise.")
    if isinstance(model.counts, KeyedCounts) and model.counts.law.rate != rate:
        raise ModelFileError("the noise of the model file has not the rate that was charged.")


def _check_merged(model: Model, merged: Merged) -> None:
    """Each part as if it stood alone; then what they promise together."""
    for part in merged.parts:
        _check_epsilon(part.epsilon)
        own = replace(model.guarantee, epsilon=part.epsilon)
        bought = {charge.purpose for charge in part.charges}
        n_bought = _n_bought(part.charges, own, model.domain)
        _check_bought(part.charges, own, model.partition, threshold="threshold" in bought, n_bought=n_bought)
    if model.charges != merged.charges:
        raise ModelFileError("the charges of the model file are not those of its parts.")
    if model.guarantee.epsilon != merged.epsilon:
        raise ModelFileError("the epsilon of the model file is not that of its parts together.")
    if (
        model.domain.bought
        or not model.publishable
        or model.n_rows_hint is not None
        or model.score_histogram is not None
    ):
        raise ModelFileError("the model file claims to be merged, and is not what a merge makes.")


def _n_bought(charges: tuple[Charge, ...], guarantee: Guarantee, domain: Domain) -> int:
    """For how many features a part of a merge bought bounds: what its charge says, if so many there are."""
    paid = [charge.sensitivity.l1 for charge in charges if charge.purpose == "bounds"]
    numbers = sum(domain.category(j) is None for j in range(domain.n_features))
    return min(paid[0] // guarantee.sensitivity(QUANTILES).l1, numbers) if paid else 0


def _check_bought(
    charges: tuple[Charge, ...],
    guarantee: Guarantee,
    partition: Partition,
    *,
    threshold: bool,
    n_bought: int,
) -> None:
    """The charges of one fit must follow from its guarantee."""
    bought = [charge.epsilon for charge in charges if charge.purpose == "number of rows"]
    expected = [] if guarantee.epsilon is None else ["counts"]
    if guarantee.epsilon is not None:
        first = ["number of rows"] * bool(bought) + ["bounds"] * bool(n_bought)
        expected = [*first, *expected, *["threshold"] * threshold]
    if [charge.purpose for charge in charges] != expected:
        raise ModelFileError("the charges of the model file are not those of its parts.")
    if bought and bought != [(guarantee.epsilon or 0) * ROW_COUNT_SHARE]:
        raise ModelFileError("the number of rows in the model file was not bought as this format does.")
    if sum((charge.epsilon for charge in charges), Fraction(0)) != (guarantee.epsilon or 0):
        raise ModelFileError("the charges of the model file do not add up to its epsilon.")
    own = {"counts": partition.cells_per_row, "bounds": QUANTILES * n_bought}
    for charge in charges:
        sensitivity, cost = guarantee.sensitivity(own.get(charge.purpose, 1)), Cost(charge.epsilon)
        if charge.purpose == "bounds":
            wanted = bounds_charge(cost, sensitivity)
        else:
            wanted, _ = noise_charge(charge.purpose, cost, sensitivity)
        if charge != wanted:
            raise ModelFileError(
                f"the charge for {charge.purpose} in the model file does not follow from its guarantee."
            )


def _check_epsilon(epsilon: Fraction) -> None:
    if not LEAST_EPSILON <= epsilon <= MOST_EPSILON:
        raise ModelFileError("the epsilon of the model file is outside of 1e-12 to 1e9.")


def _check_kind(model: Model) -> None:
    """No part may claim more privacy than another has."""
    parts = (model.partition.name.removeprefix("mixed-"), model.scorer.name, model.scorer.to_json().get("soft"))
    if parts not in PARTS.values() or parts != PARTS.get(model.detector, parts):
        raise ModelFileError("the detector, partition and scoring rule of the model file do not belong together.")
    exact = isinstance(model.counts, ExactCounts)
    if exact is not (model.guarantee.epsilon is None):
        raise ModelFileError("the counts of the model file do not fit its guarantee.")
    if model.guarantee.epsilon is not None and not model.detector.startswith("DP"):
        raise ModelFileError("the model file promises privacy for a detector that has none.")
    if model.receipt is not None and (model.merged is not None or not model.guarantee.private):
        raise ModelFileError("the model file has a receipt of a ledger, and no ledger gives one for such a model.")
    if model.threshold is not None and np.isnan(model.threshold):
        raise ModelFileError("the threshold of the model file is no number.")
    if not model.detector.isidentifier() or not all(
        text.isprintable() for text in (*model.guarantee.voided_by, model.guarantee.person or "")
    ):
        raise ModelFileError("the model file has text that cannot be printed.")
    epsilon, histogram = model.guarantee.epsilon, model.score_histogram
    if epsilon is not None:
        _check_epsilon(epsilon)
    if histogram is not None:
        levels = model.scorer.levels(model.partition)
        if len(levels) != len(histogram.levels) or not np.allclose(levels, histogram.levels, rtol=1e-9, atol=1e-9):
            raise ModelFileError("the score levels of the model file are not those of its scorer.")
        if model.threshold is None or _too_large(histogram.counts, MOST_COUNT):
            raise ModelFileError("the histogram of scores in the model file is not one that a fit makes.")


def _check_canonical(model: Model, manifest: dict[str, Any], arrays: Arrays) -> None:
    """Written again, the model must give this very manifest: no key more or less, no other type, no other array."""
    again, given = content_of(model), dict(manifest)
    for key in ("format", "format_version", "arrays", "checksum", "statement"):  # the statement names versions
        again.pop(key, None)
        given.pop(key, None)
    if json.dumps(again, sort_keys=True) != json.dumps(given, sort_keys=True) or set(arrays_of(model)) != set(arrays):
        raise ModelFileError("the manifest of the model file is not one that this format knows.")


def _counts(content: dict[str, Any], arrays: Arrays, partition: Partition) -> NoisyCounts:
    if content.get("unsafe_float", False) is True:
        raise ModelFileError(
            "the model file has noise in floating point (unsafe_float_laplace), which is not private. dpoutlier no longer reads "
            "such files: fit again."
        )
    match content["kind"]:
        case "dense":
            if partition.n_cells > MOST_DENSE_CELLS:
                raise ModelFileError("the model file has too many cells for dense counts.")
            counts = _expect(arrays, "counts", "<i8", (partition.n_cells,))
            if _too_large(counts, MOST_COUNT):
                raise ModelFileError("the counts of the model file are too large.")
            return DenseCounts(counts)
        case "exact":
            return ExactCounts(*_listed(arrays, partition, "exact"))
        case "sparse":
            tau = at_least_one(MOST_COUNT - 1, threshold=content["threshold"])
            return SparseCounts(*_listed(arrays, partition, "noisy", tau), tau)
        case "keyed":
            named = [version for version, names in NOISE.items() if names == (content["prf"], content["sampler"])]
            if not named:
                raise ModelFileError(
                    f"the model file needs the noise of {content['prf']} with {content['sampler']}, which this dpoutlier does "
                    "not have. Other noise on the same counts would be a second release: upgrade dpoutlier."
                )
            ids, exact = _listed(arrays, partition, "exact")
            key = _expect(arrays, "key", "u1", (KEY_BYTES,)).tobytes()
            salt = _expect(arrays, "salt", "u1", (SALT_BYTES,)).tobytes()
            law = DiscreteLaplace(_rational(content["rate"]))
            if named[0] > noise_of(law):
                raise ModelFileError("the model file has noise too wide for the table that it names.")
            return KeyedCounts(ids, exact, key, salt, law, named[0])
        case kind:
            raise ModelFileError(f"the model file has counts {kind!r} that this dpoutlier does not know.")


def _listed(
    arrays: Arrays, partition: Partition, name: str, least: int = 1
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Cells in ascending order, and their counts, none below ``least``."""
    ids = _expect(arrays, "ids", "<u8", (None, 2))
    counts = _expect(arrays, name, "<i8", (len(ids),))
    high, low = ids[:, 0], ids[:, 1]
    ascending = (high[1:] > high[:-1]) | ((high[1:] == high[:-1]) & (low[1:] > low[:-1]))
    last = divmod(partition.n_cells - 1, 2**64)
    inside = not len(ids) or (int(high[-1]), int(low[-1])) <= last
    if not ascending.all() or not inside or (counts < least).any() or (counts >= MOST_COUNT).any():
        raise ModelFileError("the cells of the model file are not in order.")
    return ids, counts


def _score_histogram(content: dict[str, Any] | None, arrays: Arrays, *, continuous: bool) -> ScoreHistogram | None:
    if content is None:
        return None
    levels = _expect(arrays, "score_levels", "<f8", (None,))
    counts = _expect(arrays, "score_counts", "<i8", (len(levels),))
    if not len(levels) or np.isnan(levels).any() or not np.isfinite(levels[:-1]).all() or (np.diff(levels) <= 0).any():
        raise ModelFileError("the score levels of the model file are not in order.")
    noise = None if content.get("rate", 0) is None else mechanism_from_json(content, "threshold")
    return ScoreHistogram(levels, counts, noise, content["target_fpr"], continuous=continuous)
