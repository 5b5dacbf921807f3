"""Scoring with something fitted, in scikit-learn's words. Free of scikit-learn itself, whose import takes a second."""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import checked_share, parameter_error
from dpoutlier.exceptions import InvalidParameterError, PointsError, ThresholdNotSetError
from dpoutlier.features.domain import Domain
from dpoutlier.scoring.false_alarms import FalseAlarms
from dpoutlier.scoring.p_values import PValues, benjamini_hochberg
from dpoutlier.tables import convert
from dpoutlier.tables.rows import MissingValueError, Positions

R = TypeVar("R")


class ScoresPoints(ABC):
    """The scoring methods of everything that was fitted, in scikit-learn's words.

    ``score_samples`` is the negative of ``outlier_scores``; the sign changes here and nowhere else.
    """

    n_features_in_: int

    # Our own modules call ``_fitted_domain``, ``_outlier_scores``, ``_threshold``, ``_false_alarms``, ``_p_table``,
    # ``_only_scoring``, and ``_fitted_model`` where there is a model. Users do not see them. pyproject.toml lists them, so that
    # ruff permits these and no others.

    @abstractmethod
    def _fitted_domain(self) -> Domain:
        """The domain of the fit; called only on what is fitted."""

    @abstractmethod
    def _outlier_scores(self, positions: Positions) -> NDArray[np.float64]: ...

    @abstractmethod
    def _threshold(self) -> float | None: ...

    @abstractmethod
    def _set_threshold(self, *, target_fpr: float | None, score: float | None) -> None: ...

    def _false_alarms(self) -> FalseAlarms | None:
        """What is known of the threshold as it is set."""
        return None

    @abstractmethod
    def _p_table(self) -> PValues:
        """The p-value of each bin of scores."""

    def _only_scoring(self) -> ScoresPoints:
        """An object that scores as this one does now, and holds only what scoring needs."""
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
        n_columns, names = convert.number_of_columns(X), convert.column_names(X)
        nameless = convert.is_frame(X) and names is None and domain.names is not None
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

    def outlier_scores(self, X: Any) -> NDArray[np.float64]:
        """Score each point: a larger score means more outlying.

        Scoring reads the released model only. It has no privacy cost, however often it is done.

        Parameters
        ----------
        X : array or data frame of shape (n_points, n_features)
            Points to score. Columns are those of the fit, in the same order. Values outside the bounds count as the nearest bound.

        Returns
        -------
        ndarray of shape (n_points,)
            The outlier scores, the paper's :math:`s_y`.

        Raises
        ------
        PointsError
            If the number of columns does not fit the model, or if a value is missing for a feature without a cell for missing
            values. Text in a column of numbers counts as missing.
        ValueError
            If the names of the columns are not those of the fit, in the same order. It is scikit-learn's own error.

        See Also
        --------
        score_samples : The same with scikit-learn's sign.
        score_frame : Scores as a new column of a frame, also in Polars, DuckDB, Dask and Spark.
        """
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
        """Add scores to a frame as new columns, in the engine that holds the frame.

        The scores equal those of ``outlier_scores`` to the bit. All columns stay, in their order. Features are found by name, so a
        frame may have other columns; a model without feature names takes all columns, in their order. The schema is checked at
        once. A lazy engine reads rows only when it is asked for them.

        Parameters
        ----------
        X : frame
            A frame of pandas, Polars or Arrow; a Polars LazyFrame; a DuckDB relation; a Dask or Spark frame; or an Arrow dataset.
            Spark sends the model to its executors, where dpoutlier must be installed.
        column : str, default='outlier_score'
            Name of the new column of scores.
        outside : str or None, default='outside_bounds'
            Name of the new column that says whether some value lay outside the bounds. None leaves the column out.
        prediction : str or None, default='prediction'
            Name of the new column of predictions: +1 for inliers, -1 for outliers. Without a threshold it is left out. None leaves
            it out always.
        missing : {'error', 'null'}, default='error'
            What to do with a point that lacks a value for a feature without a cell for missing values: raise an error, or leave its
            new columns empty. A lazy engine raises an error of its own type with the same message.

        Returns
        -------
        frame
            The same kind of frame as ``X``, with the new columns last. An Arrow dataset gives a record batch reader.

        Raises
        ------
        PointsError
            If a feature is absent, if a new column has the name of an existing one, or if a value is missing and ``missing`` is
            'error'.
        InvalidParameterError
            If a name is not text, if two new columns have the same name, or if ``missing`` is something else.
        TypeError
            If ``X`` is not a frame; ``outlier_scores`` takes arrays.

        See Also
        --------
        outlier_scores : Scores of an array or a data frame, as an array.
        score_one : The score of one point.

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
        self._check_points(X)
        return self._of_checked(X, function)

    def _of_checked(self, X: Any, function: Callable[[Positions], R]) -> R:
        """The same for points whose columns are known to be those of the fit."""
        domain = self._fitted_domain()
        try:
            return function(convert.points_rows(X, domain))
        except MissingValueError:
            pass
        raise convert.missing_value(X, domain)

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Score each point with scikit-learn's sign: a larger score means more normal.

        Parameters
        ----------
        X : array or data frame of shape (n_points, n_features)
            Points to score, as for ``outlier_scores``.

        Returns
        -------
        ndarray of shape (n_points,)
            The negative of ``outlier_scores(X)``.

        Raises
        ------
        PointsError
            If the points do not fit the model: see ``outlier_scores``.

        See Also
        --------
        outlier_scores : The same with the opposite sign.
        decision_function : The same, compared with the threshold.
        """
        return -self.outlier_scores(X)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Compare the score of each point with the threshold: negative for outliers.

        Parameters
        ----------
        X : array or data frame of shape (n_points, n_features)
            Points to score, as for ``outlier_scores``.

        Returns
        -------
        ndarray of shape (n_points,)
            ``score_samples(X) - offset_``.

        Raises
        ------
        ThresholdNotSetError
            If there is no threshold: fit with ``target_fpr`` or call ``set_threshold``.
        PointsError
            If the points do not fit the model: see ``outlier_scores``.

        See Also
        --------
        predict : Labels instead of distances from the threshold.
        set_threshold : Set the threshold.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Label each point by the threshold: +1 for inliers, -1 for outliers.

        Parameters
        ----------
        X : array or data frame of shape (n_points, n_features)
            Points to label, as for ``outlier_scores``.

        Returns
        -------
        ndarray of shape (n_points,)
            +1 or -1. A point whose score equals the threshold is an inlier.

        Raises
        ------
        ThresholdNotSetError
            If there is no threshold: fit with ``target_fpr`` or call ``set_threshold``.
        PointsError
            If the points do not fit the model: see ``outlier_scores``.

        See Also
        --------
        decision_function : How far each point is from the threshold.
        set_threshold : Set the threshold.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from dpoutlier import Forest
        >>> reference = pa.table({"age": [20, 30, 40, 50] * 25})
        >>> detector = Forest({"age": (0, 120)}, n_trees=4, depth=3, target_fpr=0.05).fit(reference)
        >>> detector.predict(pa.table({"age": [35, 110]})).tolist()
        [1, -1]
        """
        return labels_of(self.outlier_scores(X), self.offset_)

    def p_values(self, X: Any) -> NDArray[np.float64]:
        r"""For each point, how rarely a normal point scores as high: a conformal p-value.

        If a point is drawn as the reference rows were (exchangeable with them), :math:`P(p \le a) \le a` for every a. The noise of
        the release is accounted for, so p-values are never too small, and the smallest possible one is limited by the number of
        rows times epsilon. A point from another time, place or device need not be drawn alike: then a small p-value says that it
        differs, and no more. Free of privacy cost, like scores.

        Parameters
        ----------
        X : array or data frame of shape (n_points, n_features)
            Points, as for ``outlier_scores``.

        Returns
        -------
        ndarray of shape (n_points,)
            The p-values, above 0 and at most 1.

        Raises
        ------
        ThresholdNotSetError
            If the model has no histogram of scores, because it was fitted without ``target_fpr`` or is a merge.
        InvalidParameterError
            If p-values have no proof for the model: grids with ``weighted=True`` or ``distance="point"``, files of older versions,
            and ranges that were taken from the rows without noise.
        PointsError
            If the points do not fit the model: see ``outlier_scores``.

        See Also
        --------
        alarms : Flag points of a batch at a false-discovery rate.

        References
        ----------
        .. [1] V. Vovk, A. Gammerman and G. Shafer, "Algorithmic learning in a random world", Springer, 2005.

        Examples
        --------
        >>> import numpy as np
        >>> from dpoutlier import DPForest
        >>> rows = np.random.default_rng(0).normal(size=(20_000, 3))
        >>> detector = DPForest(1, features=(-6, 6), n_rows_hint=20_000, target_fpr=0.05).fit(rows)
        >>> usual, outlying = detector.p_values([[0, 0, 0], [5, -5, 5]])
        >>> bool(usual > 0.2), bool(outlying < 0.01)
        (True, True)
        """
        self._check_fitted()
        table = self._p_table()
        return table.of(self.outlier_scores(X))

    def alarms(self, X: Any, *, fdr: float = 0.1) -> NDArray[np.bool_]:
        """Flag points of a batch so that about the share ``fdr`` of the flags at most is false.

        Benjamini and Hochberg's procedure on ``p_values``. A point's flag depends on the batch that it is in. If few points are
        outliers, or the reference rows are few, no p-value may be small enough to flag anything.

        Parameters
        ----------
        X : array or data frame of shape (n_points, n_features)
            Points, as for ``outlier_scores``.
        fdr : float, default=0.1
            False-discovery rate, above 0 and below 1: the expected share of normal points among the flagged ones.

        Returns
        -------
        ndarray of bool of shape (n_points,)
            True for points that are flagged.

        Raises
        ------
        ThresholdNotSetError
            If the model has no histogram of scores, because it was fitted without ``target_fpr`` or is a merge.
        InvalidParameterError
            If ``fdr`` is not between 0 and 1, or if p-values have no proof for the model: see ``p_values``.
        PointsError
            If the points do not fit the model: see ``outlier_scores``.

        See Also
        --------
        p_values : The p-values themselves.
        predict : Labels by the threshold, which do not depend on the batch.

        References
        ----------
        .. [1] Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate", JRSS B 57, 1995.
        .. [2] S. Bates, E. Candes, L. Lei, Y. Romano and M. Sesia, "Testing for outliers with conformal p-values", Annals of
           Statistics 51, 2023.

        Examples
        --------
        >>> import numpy as np
        >>> from dpoutlier import DPForest
        >>> rows = np.random.default_rng(0).normal(size=(20_000, 3))
        >>> detector = DPForest(1, features=(-6, 6), n_rows_hint=20_000, target_fpr=0.05).fit(rows)
        >>> detector.alarms([[0, 0, 0], [0, 1, 0], [5, -5, 5]], fdr=0.1).tolist()
        [False, False, True]
        """
        checked_share(fdr=fdr)
        return benjamini_hochberg(self.p_values(X), fdr)

    def outside_bounds(self, X: Any) -> NDArray[np.bool_]:
        """Find points with a value outside the bounds.

        Such a value is scored as if it lay on the nearest bound.

        Parameters
        ----------
        X : array or data frame of shape (n_points, n_features)
            Points, as for ``outlier_scores``.

        Returns
        -------
        ndarray of bool of shape (n_points,)
            True for points with at least one value outside the bounds.

        Raises
        ------
        PointsError
            If the points do not fit the model: see ``outlier_scores``.
        """
        X = self._features_of(X)
        domain = self._check_points(X)
        return domain.outside(convert.points_array(X, domain).T)

    def score_one(self, point: Mapping[Any, Any]) -> float:
        """Score one point, for streams.

        Parameters
        ----------
        point : dict
            Value of each feature, by name; by column number if the model has no feature names.

        Returns
        -------
        float
            The outlier score, equal to that of ``outlier_scores``.

        Raises
        ------
        PointsError
            If a feature is absent or unknown, or if a value is missing for a feature without a cell for missing values.
        InvalidParameterError
            If ``point`` is not a dict.

        See Also
        --------
        outlier_scores : Scores of many points.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from dpoutlier import GridKNN
        >>> twin = GridKNN({"age": (0, 100)}, k=1, bins=10).fit(pa.table({"age": [33, 35]}))
        >>> twin.score_one({"age": 51})
        0.2
        """
        self._check_fitted()
        domain = self._fitted_domain()
        if not isinstance(point, Mapping):
            raise parameter_error("point", "a dict from feature to value", type(point).__name__)
        names: tuple[Any, ...] = domain.names or tuple(range(domain.n_features))
        known = set(names)
        absent, unknown = [n for n in names if n not in point], [n for n in point if n not in known]
        if absent or unknown:
            what = f"lacks {absent}" if absent else f"has {unknown}, which the fit does not know"
            raise PointsError(f"the point {what}; its features must be {list(names)}.")
        row = np.empty((1, len(names)), object)
        row[0] = [point[name] for name in names]
        return float(self._of_checked(row, self._outlier_scores)[0])

    @property
    def offset_(self) -> float:
        """Threshold on ``score_samples``: points below it are outliers. The negative of the threshold on ``outlier_scores``."""
        self._check_fitted()
        threshold = self._threshold()
        if threshold is None:
            raise self._unset()
        return 0.0 - threshold

    def _unset(self) -> ThresholdNotSetError:
        return ThresholdNotSetError(
            "no threshold is set, so points cannot be predicted. Scores do not need a threshold.",
            remedy="Fit with target_fpr=0.05 to estimate one with a part of epsilon, or call set_threshold(score=...).",
            code="no-threshold",
        )

    def _usable_names(self) -> list[str]:
        """For tab completion: there is no ``offset_`` without a threshold."""
        return [name for name in object.__dir__(self) if name != "offset_" or self._threshold() is not None]

    def set_threshold(self, *, target_fpr: float | None = None, score: float | None = None) -> Self:
        """Set the threshold of ``predict``, by a false-positive rate or by a score.

        It has no privacy cost. Pass exactly one of the arguments.

        Parameters
        ----------
        target_fpr : float, default=None
            Expected share of inliers that ``predict`` labels as outliers, above 0 and below 1. Needs a fit with ``target_fpr``.
        score : float, default=None
            The outlier score above which a point is an outlier.

        Returns
        -------
        self
            The same detector, changed.

        Raises
        ------
        ThresholdNotSetError
            If ``target_fpr`` is given and the model has no histogram of scores, because it was fitted without ``target_fpr`` or is
            a merge.
        InvalidParameterError
            If none or both of the arguments are given, if ``target_fpr`` is not between 0 and 1, or if ``score`` is not a number.

        See Also
        --------
        predict : Label points by the threshold.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from dpoutlier import GridKNN
        >>> detector = GridKNN({"age": (0, 100)}, k=1, bins=10).fit(pa.table({"age": [33, 35]}))
        >>> detector.set_threshold(score=0.15).predict(pa.table({"age": [37, 51]})).tolist()
        [1, -1]
        """
        self._check_fitted()
        if (target_fpr is None) == (score is None):
            raise InvalidParameterError("set_threshold takes either target_fpr or score, and exactly one of them.")
        if score is not None and (isinstance(score, bool) or not isinstance(score, numbers.Real) or math.isnan(score)):
            raise parameter_error("score", "a number", score)
        self._set_threshold(target_fpr=target_fpr, score=score)
        return self


def labels_of(outlier_scores: NDArray[np.float64], offset: float) -> NDArray[np.int64]:
    """What ``predict`` says of points with these scores: +1 for inliers, -1 for outliers."""
    return np.where(-outlier_scores - offset >= 0, 1, -1)
