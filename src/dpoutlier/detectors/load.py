"""A fit from a model file."""

from pathlib import Path

from dpoutlier.detectors.fitted import FittedDetector
from dpoutlier.detectors.read import read_model
from dpoutlier.detectors.registry import CLASS_HOMES
from dpoutlier.exceptions import ModelFileError
from dpoutlier.scoring.threads import thread_count

__all__ = ["detector_of", "load"]


def load(path: str | Path, *, secret: bool = False, n_jobs: int | None = None) -> FittedDetector:
    """Load a detector that was saved, ready to score.

    Parameters
    ----------
    path : str or Path
    secret : bool
        Say that you know that the file is secret (``*.secret.dpo``). Without it only publishable models are opened.
    n_jobs : int, optional
        Threads for scoring; -1 for all cores.
    """
    thread_count(n_jobs)  # refused here if it means nothing
    model = read_model(path, secret=secret)
    return FittedDetector(model, detector_of(model.detector, path), n_jobs)


def detector_of(name: str, path: str | Path = "the model") -> str:
    """Where the detector of that name is."""
    if name not in CLASS_HOMES:
        raise ModelFileError(f"{path} holds a {name!r}, a detector that this dpoutlier does not know: upgrade it.")
    return f"{CLASS_HOMES[name]}.{name}"
