"""Scoring with something fitted, in scikit-learn's words. Free of scikit-learn itself, whose import takes a second."""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import bad
from dpoutlier.exceptions import InvalidParameterError, PointsError, ThresholdNotSetError
from dpoutlier.features.domain import Domain
from dpoutlier.tables import convert as tables
from dpoutlier.tables.rows import MissingValueError, Positions

__all__ = ["ScoresPoints"]

R = TypeVar("R")


class ScoresPoints(ABC):
    """What can be done with a fit. ``score_samples`` is the negative of ``outlier_scores``, and here alone the sign turns."""

    n_features_in_: int

    @abstractmethod
    def _fitted_domain(self) -> Domain:
        """The domain of the fit; called only on what is fitted."""

    @abstractmethod
    def _outlier_scores(self, positions: Positions) -> NDArray[np.float64]: ...

    @abstractmethod
    def _threshold(self) -> float | None: ...

    @abstractmethod
    def _set_threshold(self, *, target_fpr: float | None, score: float | None) -> None: ...

    def fitted_domain(self) -> Domain:
        """The public features of the fit, with their bounds and levels."""
        self._check_fitted()
        return self._fitted_domain()

    def scores_of(self, positions: Positions) -> NDArray[np.float64]:
        """``outlier_scores`` of points that are on the lattice already."""
        return self._outlier_scores(positions)

    def has_threshold(self) -> bool:
        """Whether ``predict`` has a threshold to go by."""
        self._check_fitted()
        return self._threshold() is not None

    def only_scoring(self) -> ScoresPoints:
        """What scores as this does, as it is now, and holds nothing that scoring does not need."""
        self._check_fitted()
        return self

    def _check_fitted(self) -> None:  # noqa: B027 - what is made by a fit has nothing to check
        """Raise if nothing is fitted yet."""

    def _keep_schema(self, domain: Domain) -> None:
        """What scikit-learn keeps of the schema; set when a fit has succeeded, and not before."""
        self.n_features_in_ = domain.n_features
        if domain.names is not None:
            self.feature_names_in_ = np.array(domain.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _features_of(self, X: Any) -> Any:
        """The columns of points that are features."""
        return X

    def _check_points(self, X: Any) -> Domain:
        """The domain, after a check that the columns are those of the fit."""
        self._check_fitted()
        domain = self._fitted_domain()
        n_columns, names = tables.number_of_columns(X), tables.column_names(X)
        nameless = tables.is_frame(X) and names is None and domain.names is not None
        if nameless or (names is not None and names != list(domain.names or ())):
            from sklearn.utils.validation import validate_data  # noqa: PLC0415 - slow to import, and has the right words

            validate_data(self._estimator_like(), X, skip_check_array=True, reset=False)
        if n_columns != domain.n_features:
            raise PointsError(
                f"X has {n_columns} features, but {self._name()} is expecting {domain.n_features} features as input."
            )
        return domain

    def _estimator_like(self) -> Any:
        """What scikit-learn's own checks may look at."""
        return self

    def _name(self) -> str:
        return type(self).__name__

    def points(self, X: Any) -> NDArray[np.float64]:
        """Points as an array of shape (n, n_features), checked against the fit; level i of a category is ``i + 1/2``."""
        X = self._features_of(X)
        return tables.points_array(X, self._check_points(X))

    def outlier_scores(self, X: Any) -> NDArray[np.float64]:
        """The paper's s_y for each point: larger means more outlying. Free of privacy cost, as often as wanted."""
        return self._of_points(X, self._outlier_scores)

    def score_frame(
        self,
        X: Any,
        *,
        column: str = "outlier_score",
        outside: str | None = "outside_bounds",
        prediction: str | None = "prediction",
        missing: str = "error",
    ) -> Any:
        """The frame with scores as a column more, made where the rows are, and equal to ``outlier_scores`` to the bit.

        All columns stay, and in their order. Features are found by name, so that a frame may have other columns; a model that knows
        no names takes all columns, in their order. The schema is checked at once; an engine reads rows when it is asked for them.

        Parameters
        ----------
        X : frame
            Of pandas, Polars or Arrow: in memory, as is what comes back. A Polars LazyFrame gives a LazyFrame that can be streamed.
            A DuckDB relation gives a relation, by a function that is registered with its connection and lives as long. A Dask frame
            gives a Dask frame, partition by partition. A Spark frame gives a Spark frame; the model goes to the executors, where
            dpoutlier must be installed. An Arrow dataset gives a record batch reader.
        column, outside, prediction : str
            Names of the columns to add, as ``dpoutlier score`` adds them: the outlier score; whether some value lay outside the
            bounds; and, if there is a threshold, +1 for inliers and -1 for outliers. None leaves one of the last two out.
        missing : {"error", "null"}
            What becomes of a point that misses a value where the model has no cell for it: an error, which an engine raises as one
            of its own with our text in it, or no score.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from dpoutlier import GridKNN
        >>> twin = GridKNN({"age": (0, 100)}, k=1, bins=10).fit(pa.table({"age": [33, 35]}))
        >>> twin.score_frame(pa.table({"id": ["a", "b"], "age": [51, 37]}), outside=None).to_pylist()
        [{'id': 'a', 'age': 51, 'outlier_score': 0.2}, {'id': 'b', 'age': 37, 'outlier_score': 0.0}]
        """
        from dpoutlier.detectors.frames import batch_scorer, score_frame  # noqa: PLC0415 - it knows this module

        return score_frame(
            X, batch_scorer(self, column=column, outside=outside, prediction=prediction, missing=missing)
        )

    def _of_points(self, X: Any, function: Callable[[Positions], R]) -> R:
        """A function of the points' positions; where a value is missing, an error that says which."""
        X = self._features_of(X)
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
        """Which points have a value outside the bounds; they were scored as if it lay on the bound."""
        X = self._features_of(X)
        return self._check_points(X).outside(self.points(X).T)

    def score_one(self, point: Mapping[Any, Any]) -> float:
        """``outlier_scores`` of one point, given by the names of its features; for streams.

        >>> import pyarrow as pa
        >>> from dpoutlier import GridKNN
        >>> twin = GridKNN({"age": (0, 100)}, k=1, bins=10).fit(pa.table({"age": [33, 35]}))
        >>> twin.score_one({"age": 51})
        0.2
        """
        self._check_fitted()
        domain = self._fitted_domain()
        if not isinstance(point, Mapping):
            raise bad("point", "a dict from feature to value", type(point).__name__)
        names: tuple[Any, ...] = domain.names or tuple(range(domain.n_features))
        known = set(names)
        absent, unknown = [n for n in names if n not in point], [n for n in point if n not in known]
        if absent or unknown:
            what = f"lacks {absent}" if absent else f"has {unknown}, which the fit does not know"
            raise PointsError(f"the point {what}; its features must be {list(names)}.")
        row = np.empty((1, len(names)), object)
        row[0] = [point[name] for name in names]
        return float(self._of_values(row)[0])

    def _of_values(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Scores of rows whose values are in the order of the fit."""
        domain = self._fitted_domain()
        try:
            return self._outlier_scores(tables.points_rows(values, domain))
        except MissingValueError:
            pass
        raise tables.missing_value(values, domain)

    @property
    def offset_(self) -> float:
        """Minus the outlier score past which a point is predicted to be an outlier."""
        self._check_fitted()
        threshold = self._threshold()
        if threshold is None:
            raise ThresholdNotSetError(
                "no threshold is set, so there is nothing to predict with; scores need none.",
                remedy="Fit with target_fpr=0.05 to buy one, or call set_threshold(score=...).",
                code="no-threshold",
            )
        return 0.0 - threshold

    def set_threshold(self, *, target_fpr: float | None = None, score: float | None = None) -> Self:
        """Move the threshold: to an expected false-positive rate, or to an outlier score. Free of privacy cost."""
        self._check_fitted()
        if (target_fpr is None) == (score is None):
            raise InvalidParameterError("set_threshold takes either target_fpr or score, and exactly one of them.")
        if score is not None and (isinstance(score, bool) or not isinstance(score, numbers.Real) or math.isnan(score)):
            raise bad("score", "a number", score)
        self._set_threshold(target_fpr=target_fpr, score=score)
        return self
