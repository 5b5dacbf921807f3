"""What all detectors share: scikit-learn's methods, over an ``outlier_scores`` of their own."""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dpoutlier import tables
from dpoutlier._validate import bad
from dpoutlier.domain import Bounds, Domain
from dpoutlier.exceptions import InvalidParameterError, ThresholdNotSetError
from dpoutlier.rows import MissingValueError, Positions

__all__ = ["Detector"]

R = TypeVar("R")


class Detector(OutlierMixin, BaseEstimator, ABC):  # type: ignore[misc] # scikit-learn is not typed
    """Base of the detectors. ``score_samples`` is the negative of ``outlier_scores``, and here alone the sign turns."""

    bounds: Any

    @property
    def fit_predict(self) -> NoReturn:
        """Absent on purpose: it would label the reference rows themselves."""
        raise AttributeError(
            f"{type(self).__name__} has no fit_predict: it would publish labels of the reference rows, which the guarantee "
            "does not cover. Fit on reference rows, then predict on other points."
        )

    def _table(self, X: Any) -> Any:
        """An empty list has no columns; the bounds may tell how many it would have."""
        n_features = Bounds.of(self.bounds).n_features
        empty = isinstance(X, list | tuple) and not X and n_features is not None
        return np.empty((0, n_features or 0)) if empty else X

    def _declared_domain(self, X: Any) -> Domain:
        """The domain of ``X`` from the declared bounds and the schema, which is public."""
        return Bounds.of(self.bounds).domain(tables.number_of_columns(X), tables.column_names(X))

    def _keep_schema(self, domain: Domain) -> None:
        """What scikit-learn keeps of the schema; set when a fit has succeeded, and not before."""
        self.n_features_in_ = domain.n_features
        if domain.names is not None:
            self.feature_names_in_ = np.array(domain.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    @abstractmethod
    def _fitted_domain(self) -> Domain:
        """The domain of the fit; called only on a fitted detector."""

    @abstractmethod
    def _outlier_scores(self, positions: Positions) -> NDArray[np.float64]: ...

    @abstractmethod
    def _threshold(self) -> float | None: ...

    @abstractmethod
    def _set_threshold(self, *, target_fpr: float | None, score: float | None) -> None: ...

    def _domain(self) -> Domain:
        check_is_fitted(self)
        return self._fitted_domain()

    def _check_points(self, X: Any) -> Domain:
        domain = self._domain()
        tables.number_of_columns(X)
        if tables.is_frame(X) or not hasattr(self, "feature_names_in_"):
            validate_data(self, X, skip_check_array=True, reset=False)
        return domain

    def points(self, X: Any) -> NDArray[np.float64]:
        """Points as an array of shape (n, n_features), checked against the fit."""
        return tables.points_array(X, self._check_points(X))

    def outlier_scores(self, X: Any) -> NDArray[np.float64]:
        """The paper's s_y for each point: larger means more outlying. Free of privacy cost, as often as wanted."""
        return self._of_points(X, self._outlier_scores)

    def _of_points(self, X: Any, function: Callable[[Positions], R]) -> R:
        """A function of the points' positions; where a value is missing, an error that says which."""
        domain = self._check_points(X)
        try:
            return function(tables.points_rows(X, domain))
        except MissingValueError:
            pass
        raise tables.missing_value(X, domain)

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """The negative of ``outlier_scores``: larger means more normal."""
        return -self.outlier_scores(X)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """``score_samples`` minus ``offset_``: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """+1 for inliers and -1 for outliers, by the threshold that was bought or set. A tie is an inlier."""
        return self.labels(self.outlier_scores(X))

    def labels(self, outlier_scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """What ``predict`` says of points with these scores."""
        return np.where(-outlier_scores - self.offset_ >= 0, 1, -1)

    def outside_bounds(self, X: Any) -> NDArray[np.bool_]:
        """Which points have a value outside the declared bounds; they were scored as if it lay on the bound."""
        return np.asarray(self._domain().outside(self.points(X)).any(axis=1))

    @property
    def offset_(self) -> float:
        """Minus the outlier score past which a point is predicted to be an outlier."""
        check_is_fitted(self)
        threshold = self._threshold()
        if threshold is None:
            raise ThresholdNotSetError(
                "no threshold is set, so there is nothing to predict with; scores need none. Fit with target_fpr=0.05 to "
                "buy one, or call set_threshold(score=...)."
            )
        return 0.0 - threshold

    def set_threshold(self, *, target_fpr: float | None = None, score: float | None = None) -> Detector:
        """Move the threshold: to an expected false-positive rate, or to an outlier score. Free of privacy cost."""
        check_is_fitted(self)
        if (target_fpr is None) == (score is None):
            raise InvalidParameterError("set_threshold takes either target_fpr or score, and exactly one of them.")
        if score is not None and (isinstance(score, bool) or not isinstance(score, numbers.Real) or math.isnan(score)):
            raise bad("score", "a number", score)
        self._set_threshold(target_fpr=target_fpr, score=score)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # in reference rows, where a refusal would tell something
        return tags
