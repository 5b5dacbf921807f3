"""A model as a manifest and arrays."""

from typing import Any

import numpy as np

from dpoutlier.counts.file_arrays import Arrays
from dpoutlier.model.file.archive import sealed
from dpoutlier.model.file.versions import VERSIONS, WRITTEN
from dpoutlier.model.model import Model

__all__ = ["arrays_of", "manifest_of"]


def arrays_of(model: Model) -> Arrays:
    arrays = dict(model.counts.arrays())
    if model.score_histogram is not None:
        arrays |= model.score_histogram.arrays()
    if model.threshold is not None:
        arrays["threshold"] = np.array([model.threshold])  # an array has a fixed width, a number in JSON has not
    return {name: np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")) for name, array in arrays.items()}


def manifest_of(model: Model, arrays: Arrays) -> dict[str, Any]:
    """The manifest of a new file that holds these arrays."""
    content = VERSIONS[WRITTEN].content_of(model) | {"statement": model.privacy_statement().to_dict()}
    return sealed(content, arrays, WRITTEN)
