"""A model as a manifest and arrays, and back, every part of it checked."""

import json
from typing import Any

from dpoutlier.counts.file_arrays import Arrays
from dpoutlier.exceptions import ModelFileError
from dpoutlier.model.file.archive import SEAL, sealed
from dpoutlier.model.file.checks import check_model, check_stated
from dpoutlier.model.file.versions import VERSIONS, WRITTEN
from dpoutlier.model.model import Model


def arrays_of(model: Model) -> Arrays:
    """The arrays of a new file."""
    return VERSIONS[WRITTEN].arrays_of(model)


def manifest_of(model: Model, arrays: Arrays) -> dict[str, Any]:
    """The manifest of a new file that holds these arrays."""
    content = VERSIONS[WRITTEN].content_of(model) | {"statement": model.privacy_statement().to_dict()}
    return sealed(content, arrays, WRITTEN)


def model_of(manifest: dict[str, Any], arrays: Arrays) -> Model:
    """The model of a file of any version: all go through the same checks."""
    version = VERSIONS[manifest["format_version"]]
    content = {key: value for key, value in manifest.items() if key not in {"statement", *SEAL}}
    model = version.model_of(content, arrays)
    check_model(model)
    # Written again, the model must give this very content: no key or array more or less, no other type.
    same = json.dumps(content, sort_keys=True) == json.dumps(version.content_of(model), sort_keys=True)
    if not same or set(version.arrays_of(model)) != set(arrays):
        raise ModelFileError("the manifest of the model file is not one that this format knows.")
    check_stated(model, manifest["statement"], manifest["publishable"])
    return model
