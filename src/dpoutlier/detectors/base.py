"""What all detectors share: scikit-learn's base, over scoring of their own."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from dpoutlier import tables
from dpoutlier.bounds import Bounds
from dpoutlier.detectors.scores import ScoresPoints
from dpoutlier.domain import Domain

__all__ = ["Detector"]


class Detector(ScoresPoints, OutlierMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn is not typed
    """Base of the detectors."""

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

    def _check_fitted(self) -> None:
        check_is_fitted(self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # in reference rows, where a refusal would tell something
        return tags
