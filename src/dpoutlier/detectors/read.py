"""A model from a file, if it is one of the detector that it names."""

from pathlib import Path

from dpoutlier.detectors.registry import MADE_OF, TWINS
from dpoutlier.exceptions import ModelFileError
from dpoutlier.model.file import load_model
from dpoutlier.model.model import Model


def read_model(path: str | Path, *, secret: bool = False) -> Model:
    """Read a model file. A detector that this dpoutlier does not know is not refused here: what was released can be shown."""
    model = load_model(path, secret=secret)
    parts = (model.partition.kind, model.scorer.name, model.scorer.to_json().get("soft"))
    if parts not in MADE_OF.values() or parts != MADE_OF.get(model.detector, parts):
        raise ModelFileError(
            f"{path}: the detector, partition and scoring rule of the model file do not belong together."
        )
    if model.guarantee.epsilon is not None and model.detector in TWINS:
        raise ModelFileError(f"{path}: the model file promises privacy for a detector that has none.")
    return model
