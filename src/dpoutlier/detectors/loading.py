"""A fitted detector from a model file."""

from pathlib import Path

from dpoutlier.detectors.grid import DPGridKNN, GridKNN
from dpoutlier.detectors.partitioned import PartitionedDetector
from dpoutlier.exceptions import ModelFileError
from dpoutlier.modelfile import load_model

__all__ = ["load"]

DETECTORS: dict[str, type[PartitionedDetector]] = {"GridKNN": GridKNN, "DPGridKNN": DPGridKNN}


def load(path: str | Path, *, secret: bool = False) -> PartitionedDetector:
    """Load a detector that was saved, ready to score.

    Parameters
    ----------
    path : str or Path
    secret : bool
        Say that you know that the file is secret (``*.secret.dpo``). Without it only publishable models are opened.
    """
    model = load_model(path, secret=secret)
    if model.detector not in DETECTORS:
        raise ModelFileError(
            f"{path} holds a {model.detector!r}, a detector that this dpoutlier does not know: upgrade it."
        )
    return DETECTORS[model.detector]._of_model(model)  # noqa: SLF001 - its sister module
