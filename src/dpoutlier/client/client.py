"""``dpoutlier.Client``: the methods of a fitted detector, answered by a server."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import bad
from dpoutlier._validate import share as checked_share
from dpoutlier.client.connection import Connection
from dpoutlier.client.description import Description
from dpoutlier.client.explanation import ServedExplanation
from dpoutlier.client.served import WAITS, ReplacedError, ServedModel
from dpoutlier.detectors.scores import ScoresPoints
from dpoutlier.engines.registry import engine_of
from dpoutlier.exceptions import InvalidParameterError, ServerError, ThresholdNotSetError
from dpoutlier.features.domain import Domain
from dpoutlier.model.statement import PrivacyStatement
from dpoutlier.tables.rows import Positions

__all__ = ["Client"]

MODEL_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
T = TypeVar("T")


class NeedsTheModel:
    """An attribute of fitted detectors that a client lacks. Using it raises an ``AttributeError`` that says what to do."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, client: Any, owner: type) -> NoReturn:
        raise AttributeError(
            f"{self.name} needs the model itself, which a client lacks. Load the model file: dpoutlier.load(path).{self.name}"
        )


class Client(ScoresPoints):
    """A model on a server, with the methods of a fitted detector. Scoring is free of privacy cost, however often.

    Scores are those of the model file, to the bit, and errors about points are the same: the client checks columns and values
    against the server's description of the features, and sends nothing that does not fit. It sends points as Arrow, in as many
    requests as the server's limits need. If the server replaces the model during a call, the call starts again, once: no answer
    mixes two releases.

    Parameters
    ----------
    url : str
        The address of the server, such as ``"https://host:8765"``.
    model : str, optional
        The id of the model. Not needed if the server has exactly one that the key may use.
    key : str, optional
        The key, as ``dpoutlier keys create`` printed it; by default from the environment variable ``DPOUTLIER_KEY``. It is never
        shown.
    ca : str or Path, optional
        File of the authority that signed the server's certificate; by default the authorities of the system.
    timeout : float, default 60
        Seconds for one request, with all its attempts.

    Attributes
    ----------
    release : str
        The release of the model that answers: 64 hex digits.
    publishable : bool
        Whether the model may be published.

    Raises
    ------
    InvalidParameterError
        If an argument cannot be used.
    ServerError
        If the server cannot be reached, or refuses; also raised by every method that asks the server.

    See Also
    --------
    dpoutlier.load : The same methods, for a model file on this machine.
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
        if model is not None and (not isinstance(model, str) or not MODEL_ID.fullmatch(model)):
            raise bad("model", "the id of a model: up to 64 letters, digits, dots, dashes and underscores", model)
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

    count_intervals = NeedsTheModel()
    estimator = NeedsTheModel()
    export_scores = NeedsTheModel()
    fitted_model = NeedsTheModel()
    guarantee_ = NeedsTheModel()
    model_ = NeedsTheModel()
    save = NeedsTheModel()
    walk = NeedsTheModel()

    def close(self) -> None:
        """Close the connections. The next call opens new ones."""
        self._connection.close()

    def models(self) -> list[dict[str, Any]]:
        """A summary of each model that the key may use."""
        return _models(self._connection)

    @property
    def release(self) -> str:
        """The release of the model that answers."""
        return self._served.description.release

    @property
    def publishable(self) -> bool:
        """Whether the model may be published. If not, it is secret and stays on the server."""
        return self._served.description.publishable

    def privacy_statement(self) -> PrivacyStatement:
        """What the fit promises, as data. Printed, it is a page of text."""
        return self._served.description.statement

    def outlier_scores(self, X: Any) -> NDArray[np.float64]:
        """The paper's s_y for each point: larger means more outlying. Free of privacy cost, however often."""
        return self.retry_on_replaced_model(lambda served: served.outlier_scores(X))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """``score_samples`` minus ``offset_``: negative for outliers."""
        return self.retry_on_replaced_model(lambda served: served.decision_function(X))

    def predict(self, X: Any) -> NDArray[np.int64]:
        """+1 for inliers and -1 for outliers, by the threshold of the model or of ``set_threshold``. A tie is an inlier."""
        return self.retry_on_replaced_model(lambda served: served.predict(X))

    def points(self, X: Any) -> NDArray[np.float64]:
        """Points as an array of shape (n, n_features), checked against the fit; level i of a category is ``i + 1/2``."""
        return self._served.points(X)

    def outside_bounds(self, X: Any) -> NDArray[np.bool_]:
        """Which points have a value outside the bounds; they were scored as if it lay on the bound."""
        return self._served.outside_bounds(X)

    def score_one(self, point: Mapping[Any, Any]) -> float:
        """``outlier_scores`` of one point, given as a dict from feature to value; for streams."""
        return self.retry_on_replaced_model(lambda served: served.score_one(point))

    def score_frame(self, X: Any, **names: Any) -> Any:
        """A frame of pandas, Polars or Arrow with the scores as another column; see ``FittedDetector.score_frame``.

        Frames that are not in memory are refused: each worker would need the key. Collect them, or load the model file.
        """
        engine = engine_of(X)
        if engine is not None:
            raise TypeError(
                f"a client scores frames in memory, of pandas, Polars or Arrow, got one of {type(X).__module__.split('.')[0]}. "
                "Collect it, or load the model file and score where the rows are."
            )
        return self.retry_on_replaced_model(lambda served: served.score_frame(X, **names))

    def explain(self, X: Any) -> ServedExplanation:
        """Which features make each point outlying, and what would have to be different. Free of privacy cost.

        Parameters
        ----------
        X : table of shape (n_points, n_features)

        Returns
        -------
        ServedExplanation
            An ``Explanation`` whose counterfactuals are sentences.
        """
        return self.retry_on_replaced_model(lambda served: served.explain(X))

    def only_scoring(self) -> ServedModel:
        """The current release with the current threshold. It raises ``ReplacedError`` once the server has another."""
        return self._served

    def retry_on_replaced_model(self, call: Callable[[ServedModel], T]) -> T:
        """Call a function of one release, and once again if the server replaced the release meanwhile, or has new limits."""
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
        if not all(isinstance(name, str) and MODEL_ID.fullmatch(name) for name in found):
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
            raise ServerError(f"the server was asked for {self._model!r} and described {description.name[:64]!r}.")
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
            self._become(self.retry_on_replaced_model(move))
            self._move = move  # also for releases to come

    def _fitted_domain(self) -> Domain:
        return self._served.description.domain

    def _outlier_scores(self, positions: Positions) -> NDArray[np.float64]:
        return self._served.scores_of(positions)

    def _threshold(self) -> float | None:
        return self._served._threshold()  # noqa: SLF001 - its sister


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
