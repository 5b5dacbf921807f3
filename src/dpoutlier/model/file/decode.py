"""A model from the manifest and arrays of a file of any version, every part of it checked."""

import json
from typing import Any

from dpoutlier.counts.file_arrays import Arrays
from dpoutlier.exceptions import ModelFileError
from dpoutlier.model.file.archive import SEAL
from dpoutlier.model.file.checks import check_model, check_stated
from dpoutlier.model.file.encode import arrays_of
from dpoutlier.model.file.versions import VERSIONS
from dpoutlier.model.model import Model

__all__ = ["model_of"]


def model_of(manifest: dict[str, Any], arrays: Arrays) -> Model:
    """The model of a file; every version goes through the same checks."""
    version = VERSIONS[manifest["format_version"]]
    content = {key: value for key, value in manifest.items() if key not in {"statement", *SEAL}}
    model = version.model_of(content, arrays)
    check_model(model)
    _check_canonical(content, version.content_of(model))
    if set(arrays_of(model)) != set(arrays):
        raise _not_canonical()
    check_stated(model, manifest["statement"], manifest["publishable"])
    return model


def _check_canonical(content: dict[str, Any], again: dict[str, Any]) -> None:
    """Written again, the model must give this very content: no key more or less, no other type."""
    if json.dumps(content, sort_keys=True) != json.dumps(again, sort_keys=True):
        raise _not_canonical()


def _not_canonical() -> ModelFileError:
    return ModelFileError("the manifest of the model file is not one that this format knows.")
