"""Whether a model that was read may be what it says, whatever the version of its file."""

from typing import Any

import numpy as np

from dpoutlier.counts.base import MAX_COUNT
from dpoutlier.counts.exact import ExactCounts
from dpoutlier.counts.file_arrays import too_large
from dpoutlier.exceptions import ModelFileError
from dpoutlier.features.axes import plain
from dpoutlier.features.domain import Domain
from dpoutlier.model.file.charges import check_charges, check_epsilon
from dpoutlier.model.model import Model
from dpoutlier.model.statement import promise_of
from dpoutlier.partitions.base import Partition

MANY_CELLS = 2**18
"""Of more cells the levels are not laid again: a file must load at once."""


def check_features(partition: Partition, domain: Domain) -> None:
    """Before counts are read, whose size follows from the partition."""
    if partition.n_features != domain.n_features or partition.axes != plain(domain.axes):
        raise ModelFileError("the partition and the features of the model file differ in their number or their kinds.")


def check_model(model: Model) -> None:
    """No part of a model may claim more privacy than another part has."""
    _check_kind(model)
    check_charges(model)
    _check_levels(model)


def check_stated(model: Model, statement: dict[str, Any], publishable: object) -> None:
    """What the file says of its privacy must be what follows from its content."""
    promise = promise_of(model)
    if {key: statement[key] for key in promise} != promise:
        raise ModelFileError("the statement in the model file does not match its content.")
    if model.publishable is not publishable:
        raise ModelFileError("the model file says that it is publishable, but its content is not.")


def _check_kind(model: Model) -> None:
    if not model.scorer.suits(model.partition):
        raise ModelFileError("the partition and scoring rule of the model file do not belong together.")
    exact = isinstance(model.counts, ExactCounts)
    if exact is not (model.guarantee.epsilon is None):
        raise ModelFileError("the counts of the model file do not match its guarantee.")
    if model.guarantee.epsilon is not None and not model.detector.startswith("DP"):
        raise ModelFileError("the model file promises privacy for a detector that has none.")
    if model.guarantee.delta and (model.counts.kind != "dense" or model.merged is not None):
        raise ModelFileError("the model file has a delta, which only dense counts of one fit can have.")
    if model.receipt is not None and (model.merged is not None or not model.guarantee.private):
        raise ModelFileError("the model file has a receipt of a ledger, but no ledger gives one for such a model.")
    if model.threshold is not None and np.isnan(model.threshold):
        raise ModelFileError("the threshold of the model file is not a number.")
    if not model.detector.isidentifier() or not all(
        text.isprintable() for text in (*model.guarantee.voided_by, model.guarantee.person or "")
    ):
        raise ModelFileError("the model file has text that cannot be printed.")
    epsilon, histogram = model.guarantee.epsilon, model.score_histogram
    if epsilon is not None:
        check_epsilon(epsilon)
    if histogram is not None and (model.threshold is None or too_large(histogram.counts, MAX_COUNT)):
        raise ModelFileError("the histogram of scores in the model file is not one that a fit makes.")


def _check_levels(model: Model) -> None:
    """Where the levels of a threshold lie follows from what was released. Numbers of rows without noise are not negative."""
    histogram = model.score_histogram
    if histogram is not None and histogram.noise is None and (histogram.counts < 0).any():
        raise ModelFileError("the histogram of scores in the model file is not one that a fit makes.")
    if histogram is None or not histogram.left_out or model.partition.n_cells > MANY_CELLS:
        return
    levels = model.levels(histogram.noise)
    if len(levels) != len(histogram.levels) or not np.allclose(levels, histogram.levels, rtol=1e-9, atol=1e-9):
        raise ModelFileError("the score levels of the model file do not follow from its counts and its scorer.")
