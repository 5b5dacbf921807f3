"""``dpoutlier.Client``: the methods of a fitted detector, answered by a server."""

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import checked_share, parameter_error
from dpoutlier.client.connection import Connection
from dpoutlier.client.description import Description
from dpoutlier.client.explanation import ServedExplanation
from dpoutlier.client.served import WAITS, ReplacedError, ServedModel
from dpoutlier.detectors.scores import ScoresPoints
from dpoutlier.engines.registry import engine_of
from dpoutlier.exceptions import InvalidParameterError, ServerError, ThresholdNotSetError
from dpoutlier.features.domain import Domain
from dpoutlier.model.name import MODEL_NAME
from dpoutlier.model.statement import PrivacyStatement
from dpoutlier.scoring.false_alarms import FalseAlarms
from dpoutlier.scoring.p_values import PValues
from dpoutlier.tables.rows import Positions

T = TypeVar("T")


LACKING = frozenset(
    {"count_intervals", "estimator", "export_scores", "false_alarms", "guarantee_", "model_", "save", "walk"}
)
"""What a fitted detector has and a client lacks, since it needs the model itself."""


class Client(ScoresPoints):
    """A model on a server, with the methods of a fitted detector.

    Scores equal those of the model file to the bit, and have no privacy cost. Errors about points are the same too: columns and
    values are checked here, and nothing is sent if they do not fit. Points travel as Arrow, in as many requests as the server's
    limits require. If the server replaces the model during a call, the call starts again, once, so no answer mixes two releases.
    Every method that asks the server raises ``ServerError`` if the server refuses the request or cannot be reached. A client is a
    context manager, which closes its connections.

    Parameters
    ----------
    url : str
        Address of the server, such as ``"https://host:8765"``.
    model : str, default=None
        Id of the model. Not needed if the server has exactly one model that the key may use.
    key : str, default=None
        Key as ``dpoutlier keys create`` printed it. None: the environment variable ``DPOUTLIER_KEY``. It is never shown.
    ca : str or Path, default=None
        File of the authority that signed the server's certificate. None: the authorities of the system.
    timeout : float, default=60
        Time limit of one request with all its attempts, in seconds.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Present only if the features have names.

    Raises
    ------
    InvalidParameterError
        If an argument has no meaning, or if ``model`` is None and the server has not exactly one model that the key may use.
    ServerError
        If the server refuses the request or cannot be reached.

    Warns
    -----
    UnsafeWarning
        If the connection is not encrypted and the server is not on this machine.

    See Also
    --------
    load : Load a model file and score without a server.
    FittedDetector : All methods of a loaded model.

    Examples
    --------
    >>> from dpoutlier import Client
    >>> with Client("https://scores.example.org:8765", model="patients") as client:  # doctest: +SKIP
    ...     scores = client.outlier_scores(points)
    """

    def __init__(
        self,
        url: str,
        model: str | None = None,
        *,
        key: str | None = None,
        ca: str | Path | None = None,
        timeout: float = 60,
    ) -> None:
        if model is not None and (not isinstance(model, str) or not MODEL_NAME.fullmatch(model)):
            raise parameter_error(
                "model", "the id of a model: up to 64 letters, digits, dots, dashes and underscores", model
            )
        self._connection = Connection(url, key=key, ca=ca, timeout=timeout)
        self._lock = threading.RLock()
        self._model = self._only_model() if model is None else model
        self._move: Callable[[ServedModel], ServedModel] = lambda served: served
        description = self._described()
        self._become(ServedModel(self._connection, description, description.threshold))

    def __repr__(self) -> str:
        model = self._served.description
        return f"<client of {self._connection.url}: {model.detector} {model.name!r}, release {model.release[:12]}>"

    def __reduce__(self) -> NoReturn:
        """Refused: a pickle would carry the key with it."""
        raise TypeError("a client cannot be pickled, because it holds a key. Make one where it is needed.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        """What a client lacks; or the error of a property that could not be computed, once more."""
        if name in LACKING:
            raise AttributeError(
                f"{name} needs the model itself, which a client lacks. Load the model file: dpoutlier.load(path).{name}"
            )
        return object.__getattribute__(self, name)

    def __dir__(self) -> list[str]:
        return self._usable_names()

    def close(self) -> None:
        """Close the connections. The next call opens new ones."""
        self._connection.close()

    def models(self) -> list[dict[str, Any]]:
        """List the models that the key may use.

        Returns
        -------
        list of dict
            A summary of each model.

        Raises
        ------
        ServerError
            If the server refuses the request or cannot be reached.
        """
        return _models(self._connection)

    @property
    def release(self) -> str:
        """The release of the model that answers: 64 hexadecimal digits."""
        return self._served.description.release

    @property
    def publishable(self) -> bool:
        """Whether the model may be published. If False, it is secret and stays with the server."""
        return self._served.description.publishable

    def privacy_statement(self) -> PrivacyStatement:
        """State what the fit guarantees, as data and as a page to print.

        Returns
        -------
        PrivacyStatement
            ``print`` shows it as a page; ``to_dict()`` gives data.

        See Also
        --------
        dpoutlier.PrivacyStatement : All that a statement says.
        """
        return self._served.description.statement

    def outlier_scores(self, X: Any) -> NDArray[np.float64]:
        """Score each point: a larger score means more outlying.

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
        ServerError
            If the server refuses the request or cannot be reached.
        """
        return self._retry_on_replaced_model(lambda served: served.outlier_scores(X))

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
            If there is no threshold: call ``set_threshold``.
        PointsError
            If the points do not fit the model: see ``outlier_scores``.
        ServerError
            If the server refuses the request or cannot be reached.

        See Also
        --------
        predict : Labels instead of distances from the threshold.
        set_threshold : Set the threshold.
        """
        return self._retry_on_replaced_model(lambda served: served.decision_function(X))

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
            If there is no threshold: call ``set_threshold``.
        PointsError
            If the points do not fit the model: see ``outlier_scores``.
        ServerError
            If the server refuses the request or cannot be reached.

        See Also
        --------
        decision_function : How far each point is from the threshold.
        set_threshold : Set the threshold.
        """
        return self._retry_on_replaced_model(lambda served: served.predict(X))

    def p_values(self, X: Any) -> NDArray[np.float64]:
        """For each point, how rarely a normal point scores as high: a conformal p-value.

        Parameters
        ----------
        X : array or data frame of shape (n_points, n_features)
            Points, as for ``outlier_scores``.

        Returns
        -------
        ndarray of shape (n_points,)
            The p-values, above 0 and at most 1, as those of a loaded model.

        Raises
        ------
        ThresholdNotSetError
            If the server has no p-values for this model.
        PointsError
            If the points do not fit the model: see ``outlier_scores``.
        ServerError
            If the server refuses the request or cannot be reached.

        See Also
        --------
        DPForest.p_values : What they mean.
        """
        return self._retry_on_replaced_model(lambda served: served.p_values(X))

    def alarms(self, X: Any, *, fdr: float = 0.1) -> NDArray[np.bool_]:
        """Flag points of a batch so that about the share ``fdr`` of the flags at most is false.

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
            If the server has no p-values for this model.
        InvalidParameterError
            If ``fdr`` is not between 0 and 1.
        PointsError
            If the points do not fit the model: see ``outlier_scores``.
        ServerError
            If the server refuses the request or cannot be reached.

        See Also
        --------
        DPForest.alarms : The procedure, and its limits.
        """
        return self._retry_on_replaced_model(lambda served: served.alarms(X, fdr=fdr))

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
        return self._served.outside_bounds(X)

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
        ServerError
            If the server refuses the request or cannot be reached.
        """
        return self._retry_on_replaced_model(lambda served: served.score_one(point))

    def score_frame(self, X: Any, **names: Any) -> Any:
        """Add scores to a frame in memory as new columns.

        Collect a lazy frame first, or load the model file: its engine would send requests, with the key, from wherever its rows
        are.

        Parameters
        ----------
        X : frame
            A frame of pandas, Polars or Arrow.
        **names : dict
            ``column``, ``outside``, ``prediction`` and ``missing``, as for ``FittedDetector.score_frame``.

        Returns
        -------
        frame
            The same kind of frame as ``X``, with the new columns last.

        Raises
        ------
        PointsError
            If a feature is absent, if a new column has the name of an existing one, or if a value is missing and ``missing`` is
            'error'.
        InvalidParameterError
            If a name is not text, if two new columns have the same name, or if ``missing`` is something else.
        TypeError
            If ``X`` is a lazy frame.
        ServerError
            If the server refuses the request or cannot be reached.

        See Also
        --------
        outlier_scores : Scores of an array or a data frame, as an array.
        """
        engine = engine_of(X)
        if engine is not None:
            raise TypeError(
                f"a client scores frames in memory, of pandas, Polars or Arrow, got one of {type(X).__module__.split('.')[0]}. "
                "Collect it, or load the model file and score where the rows are."
            )
        return self._retry_on_replaced_model(lambda served: served.score_frame(X, **names))

    def explain(self, X: Any) -> ServedExplanation:
        """Explain which features make each point outlying, and what would make it usual.

        Parameters
        ----------
        X : array or data frame of shape (n_points, n_features)
            Points to explain, as for ``outlier_scores``.

        Returns
        -------
        Explanation
            ``contributions`` has a row for each point. ``counterfactual()`` returns a sentence.

        Raises
        ------
        PointsError
            If the points do not fit the model: see ``outlier_scores``.
        ServerError
            If the server refuses the request or cannot be reached.

        See Also
        --------
        dpoutlier.explanation_figure : Draw the explanation of one point; for grids it needs the model file.
        """
        return self._retry_on_replaced_model(lambda served: served.explain(X))

    def _only_scoring(self) -> ServedModel:
        """The current release, with the current threshold. It raises ``ReplacedError`` once the server has another release."""
        return self._served

    def _retry_on_replaced_model(self, call: Callable[[ServedModel], T]) -> T:
        """Call a function of the release; once again if the server meanwhile replaced the release or changed its limits."""
        served = self._served
        try:
            return call(served)
        except ReplacedError as error:
            renewed = self._renewed(served, error.release)
        except ServerError as error:
            if error.status != 413:
                raise
            renewed = self._renewed(served, served.description.release)
            if renewed.description.limits == served.description.limits:
                raise
        return call(renewed)

    # ----------------------------------------------------------------------------------------------------------------------

    def _only_model(self) -> str:
        found = [one.get("id") for one in self.models()]
        if not all(isinstance(name, str) and MODEL_NAME.fullmatch(name) for name in found):
            raise ServerError("the server's answer cannot be used: it contains an invalid model id.")
        if len(found) != 1:
            names = ", ".join(map(str, found[:20])) or "none"
            raise InvalidParameterError(
                name="model",
                must="given, unless the server has exactly one that the key may use",
                remedy=f"It has: {names}.",
            )
        return str(found[0])

    def _described(self) -> Description:
        description = Description.from_json(self._connection.get(f"/v1/models/{self._model}").json())
        if description.name != self._model:
            raise ServerError(
                f"the client asked for model {self._model!r}, but the server described {description.name[:64]!r}."
            )
        return description

    def _renewed(self, before: ServedModel, release: str) -> ServedModel:
        """The release that the server has now. Threads that find out together ask once."""
        with self._lock:
            if self._served is before or self._served.description.release == before.description.release:
                for wait in (*WAITS, 0):
                    description = self._described()
                    if description.release == release:
                        break
                    time.sleep(wait)  # a worker answered that still has the old release
                served = ServedModel(self._connection, description, description.threshold, patient=True)
                self._become(self._move(served))
            return self._served

    def _become(self, served: ServedModel) -> None:
        self._served = served
        self._keep_schema(served.description.domain)

    def _set_threshold(self, *, target_fpr: float | None, score: float | None) -> None:
        def move(served: ServedModel) -> ServedModel:
            return served.with_threshold(_threshold_for(served, target_fpr) if score is None else float(score))

        with self._lock:
            self._become(self._retry_on_replaced_model(move))
            self._move = move  # also for releases to come

    def _fitted_domain(self) -> Domain:
        return self._served.description.domain

    def _outlier_scores(self, positions: Positions) -> NDArray[np.float64]:
        return self._served._outlier_scores(positions)

    def _threshold(self) -> float | None:
        return self._served._threshold()

    def _false_alarms(self) -> FalseAlarms | None:
        return self._served._false_alarms()

    def _p_table(self) -> PValues:
        return self._served._p_table()


def _models(connection: Connection) -> list[dict[str, Any]]:
    found = connection.get("/v1/models").json().get("models")
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ServerError("the server returned no list of models.", remedy="Is it a dpoutlier server?")
    return found


def _threshold_for(served: ServedModel, target_fpr: Any) -> float | None:
    """The server's threshold; the errors are those of a loaded model."""
    if served.description.target_fpr is None:
        raise ThresholdNotSetError.no_histogram(merged=served.description.statement.merged is not None)
    return served.threshold_for(checked_share(target_fpr=target_fpr))
