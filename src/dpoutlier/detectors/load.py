"""A model, or a fitted detector, from a file."""

from pathlib import Path

from dpoutlier.detectors.fitted import FittedDetector
from dpoutlier.detectors.registry import MADE_OF, check_known
from dpoutlier.exceptions import ModelFileError
from dpoutlier.model.file import load_model
from dpoutlier.model.model import Model
from dpoutlier.scoring.threads import thread_count


def load(path: str | Path, *, secret: bool = False, n_jobs: int | None = None) -> FittedDetector:
    """Load a model file, ready to score.

    Parameters
    ----------
    path : str or Path
        A file that ``save`` wrote: ``*.dpo`` or ``*.secret.dpo``.
    secret : bool, default=False
        Confirm that the file may be secret. Otherwise only publishable models are opened.
    n_jobs : int, default=None
        Number of threads for scoring. None means 1, and -1 means all cores.

    Returns
    -------
    FittedDetector
        Scores as the detector that was saved, to the bit. ``estimator()`` makes the detector itself, to fit again.

    Raises
    ------
    ModelFileError
        If the file does not exist, is damaged, or was written by a newer version.
    SecretError
        If the model is secret and ``secret`` is False.
    InvalidParameterError
        If ``n_jobs`` is not a number of threads.

    See Also
    --------
    DPForest.save : Write a model file.
    Client : The same methods, answered by a server.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from dpoutlier import DPMarginals, load
    >>> path = DPMarginals(epsilon=1, features=(0, 1)).fit(np.full((500, 2), 0.3)).save(Path(tempfile.mkdtemp()) / "model.dpo")
    >>> load(path)
    <fitted DPMarginals: <publishable DPMarginals model, 2 features, dense counts>>
    """
    thread_count(n_jobs)  # refused here if it means nothing
    model = read_model(path, secret=secret)
    check_known(model.detector, path)
    return FittedDetector(model, n_jobs)


def read_model(path: str | Path, *, secret: bool = False) -> Model:
    """Read a model file. A detector that this dpoutlier does not know is not refused here: what was released can be shown."""
    model = load_model(path, secret=secret)
    parts = (model.partition.kind, model.scorer.name, model.scorer.to_json().get("soft"))
    if parts not in MADE_OF.values() or parts != MADE_OF.get(model.detector, parts):
        raise ModelFileError(
            f"{path}: the detector, partition and scoring rule of the model file do not belong together."
        )
    return model
