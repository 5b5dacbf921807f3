"""All detectors, by name: a new one is its own file in this folder and one line here."""

from importlib import import_module
from typing import Any, NamedTuple

from dpoutlier.exceptions import ModelFileError


class Registered(NamedTuple):
    """A detector: the word for it, its class, its non-private twin's class, and their module; what their models are made of.

    The name of the private class, and no other, begins with DP: model files are checked by that.
    """

    name: str
    private: str
    twin: str
    module: str
    partition: str
    scorer: str
    soft: bool | None = None
    """Whether logarithms of counts are soft; None for other scorers."""


_REGISTERED = (
    Registered("forest", "DPForest", "Forest", "dpoutlier.detectors.forest", "trees", "log-counts", soft=True),
    Registered(
        "marginals", "DPMarginals", "Marginals", "dpoutlier.detectors.marginals", "marginals", "log-counts", soft=False
    ),
    Registered("grid", "DPGridKNN", "GridKNN", "dpoutlier.detectors.grid", "grid", "nearest-cells"),
)

DEFAULT = "forest"
"""The meaning of "auto". We found no public number that tells when another detector is better: see docs/detectors.md."""

_BY_NAME = {one.name: one for one in _REGISTERED}
DETECTOR_NAMES = tuple(_BY_NAME)
CLASS_HOMES = {name: one.module for one in _REGISTERED for name in (one.private, one.twin)}
"""The module of each class, so that nothing is imported before it is used."""
MADE_OF = {name: (one.partition, one.scorer, one.soft) for one in _REGISTERED for name in (one.private, one.twin)}
"""Partition and scoring rule of the models of each class."""


def detector_class(name: str) -> Any:
    """The private detector of one of ``DETECTOR_NAMES``, or of "auto"."""
    one = _BY_NAME[DEFAULT if name == "auto" else name]
    return getattr(import_module(one.module), one.private)


def class_named(name: str) -> Any:
    """The detector or twin whose class has this name, as model files have it."""
    check_known(name)
    return getattr(import_module(CLASS_HOMES[name]), name)


def check_known(name: str, where: object = "the model") -> None:
    """Refuse a model of a class that this version does not have."""
    if name not in CLASS_HOMES:
        raise ModelFileError(f"{where} holds a {name!r}, a detector that this dpoutlier does not know: upgrade it.")


def detector(name: str = "auto", *, epsilon: Any, features: Any = None, **arguments: Any) -> Any:
    """Make a private detector by name, ready to fit.

    Start here if you do not know which detector to choose. No data is read before ``fit``.

    Parameters
    ----------
    name : {'auto', 'forest', 'marginals', 'grid'}, default='auto'
        Which detector: :class:`DPForest`, :class:`DPMarginals` or :class:`DPGridKNN`. 'auto' is the forest.
    epsilon : float, Fraction or str
        Total privacy loss of the fit; smaller is more private. The data custodian chooses it.
    features : dict, Bounds, PrivateBounds, pair or path, default=None
        Public range of each feature, such as ``{"age": (0, 120)}``. Never take the ranges from the reference rows. Required, unless
        ``categories`` names all features.
    **arguments : dict
        Any other parameter of the detector, such as ``target_fpr=0.05``.

    Returns
    -------
    DPForest, DPMarginals or DPGridKNN
        The detector, not fitted yet.

    Raises
    ------
    InvalidParameterError
        If there is no detector of that name.
    TypeError
        If the detector has no such parameter.

    See Also
    --------
    DPForest : The default detector, with all its parameters.
    DPMarginals : One noisy histogram for each feature.
    DPGridKNN : The paper's detector.

    Examples
    --------
    >>> from dpoutlier import detector
    >>> ranges = {"age": (0, 120), "bmi": (10, 80), "pulse": (20, 250), "dose": (0, 9)}
    >>> detector(epsilon=0.5, n_rows_hint=5000, features=ranges)
    DPForest(epsilon=0.5,
             features={'age': (0, 120), 'bmi': (10, 80), 'dose': (0, 9),
                       'pulse': (20, 250)},
             n_rows_hint=5000)
    """
    from dpoutlier._validate import one_of  # noqa: PLC0415 - ``import dpoutlier`` must not wait for numpy

    one_of(("auto", *DETECTOR_NAMES), name=name)
    return detector_class(name)(epsilon, features=features, **arguments)
