"""A detector with PyOD's polarity. PyOD itself is not needed."""

from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from dpoutlier._validate import parameter_error
from dpoutlier.detectors.base import Detector
from dpoutlier.detectors.scores import ScoresPoints


class PyODAdapter(BaseEstimator):  # type: ignore[misc] # scikit-learn is not typed
    """Give a detector the interface of PyOD: higher scores are more outlying, and labels are 0 and 1.

    Its scores and labels go where those of PyOD's detectors go, for example into combinations. PyOD itself is not needed. What PyOD
    keeps about its training rows is not available: ``decision_scores_``, ``labels_``, ``fit_predict`` and ``predict_proba`` would
    publish scores of the reference rows.

    Parameters
    ----------
    detector : detector of dpoutlier
        ``fit`` fits a clone of it. A detector that is already fitted, or was loaded, scores at once.

    Attributes
    ----------
    detector_ : detector of dpoutlier
        The fitted clone. Present after ``fit``.
    threshold_ : float
        The outlier score above which a point is an outlier.
    n_features_in_ : int
        Number of features of the fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Present only if the features have names.

    See Also
    --------
    DPForest : The default detector.

    References
    ----------
    .. [1] Y. Zhao, Z. Nasrullah and Z. Li, "PyOD: A Python toolbox for scalable outlier detection", JMLR 2019.

    Examples
    --------
    >>> from dpoutlier import Forest, PyODAdapter
    >>> adapter = PyODAdapter(Forest(features=(0, 1), target_fpr=0.1)).fit([[0.1, 0.2], [0.2, 0.1], [0.2, 0.2]] * 20)
    >>> adapter.predict([[0.2, 0.2], [0.9, 0.8]]).tolist()
    [0, 1]
    """

    def __init__(self, detector: Any) -> None:
        self.detector = detector

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 - scikit-learn's and PyOD's signature
        """Fit a clone of the detector on reference rows, which spends its epsilon.

        Parameters
        ----------
        X : array, frame, path or list of paths
            Reference rows, as for the detector.
        y : None, default=None
            Ignored. It is here because PyOD passes it.

        Returns
        -------
        self
            The adapter with its fitted ``detector_``.

        Raises
        ------
        InvalidParameterError
            If the detector cannot be fitted, because it was loaded or is not one of dpoutlier. All other errors and warnings are
            those of the detector's ``fit``.
        """
        if not isinstance(self.detector, Detector):
            raise parameter_error(
                "detector",
                "one that can be fitted",
                self.detector,
                "What was loaded scores without a fit; load(...).estimator() can be fitted again.",
            )
        self.detector_ = clone(self.detector).fit(X)
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score each point: larger means more outlying.

        Parameters
        ----------
        X : array or data frame of shape (n_points, n_features)
            Points to score.

        Returns
        -------
        ndarray of shape (n_points,)
            ``outlier_scores`` of the detector.

        Raises
        ------
        PointsError
            If the points do not fit the model.
        InvalidParameterError
            If the detector is not one of dpoutlier.

        See Also
        --------
        predict : Label points by the threshold.
        """
        return self._fitted().outlier_scores(X)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Label each point by the threshold: 0 for inliers, 1 for outliers.

        Parameters
        ----------
        X : array or data frame of shape (n_points, n_features)
            Points to label.

        Returns
        -------
        ndarray of shape (n_points,)
            0 or 1. A point whose score equals the threshold is an inlier.

        Raises
        ------
        ThresholdNotSetError
            If the detector has no threshold: fit with ``target_fpr`` or call its ``set_threshold``.
        PointsError
            If the points do not fit the model.
        InvalidParameterError
            If the detector is not one of dpoutlier.

        See Also
        --------
        decision_function : The scores.
        """
        return np.where(self._fitted().predict(X) == 1, 0, 1)

    @property
    def threshold_(self) -> float:
        """The outlier score above which a point is an outlier."""
        return 0.0 - self._fitted().offset_

    @property
    def n_features_in_(self) -> int:
        """Number of features of the fit."""
        return int(self._of_fit().n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features, if they have names."""
        names: NDArray[Any] = self._of_fit().feature_names_in_
        return names

    @property
    def decision_scores_(self) -> NoReturn:
        """Not available: scores of the reference rows are not private. Accessing it raises ``AttributeError``."""
        raise _absent("decision_scores_", "scores")

    @property
    def labels_(self) -> NoReturn:
        """Not available: labels of the reference rows are not private. Accessing it raises ``AttributeError``."""
        raise _absent("labels_", "labels")

    @property
    def fit_predict(self) -> NoReturn:
        """Not available: labels of the reference rows are not private. Accessing it raises ``AttributeError``."""
        raise _absent("fit_predict", "labels")

    @property
    def predict_proba(self) -> NoReturn:
        """Not available: PyOD scales by the least and the largest score of the rows of the fit."""
        raise _absent("predict_proba", "the least and the largest score")

    def __sklearn_is_fitted__(self) -> bool:
        return self._known() is not None

    def _known(self) -> ScoresPoints | None:
        """What is fitted, if anything is."""
        found = getattr(self, "detector_", self.detector)
        return found if isinstance(found, ScoresPoints) and hasattr(found, "n_features_in_") else None

    def _fitted(self) -> ScoresPoints:
        if not isinstance(self.detector, ScoresPoints):
            raise parameter_error("detector", "a detector of dpoutlier", self.detector)
        check_is_fitted(self)
        known = self._known()
        assert known is not None
        return known

    def _of_fit(self) -> Any:
        known = self._known()
        if known is None:  # also an AttributeError, as hasattr wants it
            raise NotFittedError("this PyODAdapter is not fitted yet: call fit, or pass a fitted detector.")
        return known


def _absent(name: str, what: str) -> AttributeError:
    return AttributeError(
        f"PyODAdapter has no {name}: it would publish {what} of the reference rows, which the guarantee does not cover. Fit on "
        "reference rows, then score or predict other points."
    )
