"""``dpoutlier.Client``: the methods of a fitted detector, answered by a server."""

from __future__ import annotations

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
from dpoutlier.client.explanation import ToldExplanation
from dpoutlier.client.served import WAITS, ReplacedError, ServedModel
from dpoutlier.detectors.scores import ScoresPoints
from dpoutlier.engines.kinds import engine_of
from dpoutlier.exceptions import InvalidParameterError, ServerError, ThresholdNotSetError
from dpoutlier.features.domain import Domain
from dpoutlier.model.name import MODEL_NAME
from dpoutlier.model.statement import PrivacyStatement
from dpoutlier.tables.rows import Positions

__all__ = ["Client"]

T = TypeVar("T")


class NeedsTheModel:
    """What a fitted detector has and a client has not: to ask for it is an ``AttributeError`` that says what to do."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, client: Any, owner: type) -> NoReturn:
        raise AttributeError(
            f"{self.name} needs the model itself, and a client has none. Load the model file: dpoutlier.load(path).{self.name}"
        )


class Client(ScoresPoints):
    """A model on a server, with the methods of a fitted detector. To ask is free of privacy cost, as often as wanted.

    Scores are those of the model file to the bit, and errors about points are the same: columns and values are checked here, by
    what the server tells of the features, and nothing is sent if they do not fit. Points travel as Arrow, in as many requests as
    the server's limits ask for. If the server replaces the model while a call is under way, the call starts again, once: no answer
    mixes two releases.

    Parameters
    ----------
    url : str
        The address of the server, such as ``"https://host:8765"``.
    model : str, optional
        The id of the model; not needed where the server has exactly one that the key may use.
    key : str, optional
        As ``dpoutlier keys create`` printed it; taken from the variable ``DPOUTLIER_KEY`` unless given. It is never shown.
    ca : str or Path, optional
        The file of the authority that signed the server's certificate; that of the system unless given.
    timeout : float
        Seconds that one request may take, with all its attempts.

    Attributes
    ----------
    release : str
        Which release of the model answers: 64 hex digits.
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
            raise bad("model", "the id of a model: up to 64 letters, digits, dots, dashes and underscores", model)
        self._connection = Connection(url, key=key, ca=ca, timeout=timeout)
        self._lock = threading.RLock()
        self._wanted: tuple[str, Any] | None = None
        self._model = self._only_model() if model is None else model
        told = self._described()
        self._become(ServedModel(self._connection, told, told.threshold))

    def __repr__(self) -> str:
        told = self._served.description
        return f"<client of {self._connection.url}: {told.detector} {told.name!r}, release {told.release[:12]}>"

    def __reduce__(self) -> NoReturn:
        """Refused: a pickle would carry the key to wherever it goes."""
        raise TypeError("a client is not pickled, since it holds a key. Make one where it is needed.")

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
        """Close the connections. The next call opens them again."""
        self._connection.close()

    def models(self) -> list[dict[str, Any]]:
        """A summary of each model that the key may use."""
        return _models(self._connection)

    @property
    def release(self) -> str:
        """Which release of the model answers."""
        return self._served.description.release

    @property
    def publishable(self) -> bool:
        """Whether the model may be published, or is secret and stays with the server."""
        return self._served.description.publishable

    def privacy_statement(self) -> PrivacyStatement:
        """What the fit promises, as data; print it for the page."""
        return self._served.description.statement

    def outlier_scores(self, X: Any) -> NDArray[np.float64]:
        """The paper's s_y for each point: larger means more outlying. Free of privacy cost, as often as wanted."""
        return self.steadily(lambda served: served.outlier_scores(X))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """``score_samples`` minus ``offset_``: negative for outliers."""
        return self.steadily(lambda served: served.decision_function(X))

    def predict(self, X: Any) -> NDArray[np.int64]:
        """+1 for inliers and -1 for outliers, by the threshold that was bought or set. A tie is an inlier."""
        return self.steadily(lambda served: served.predict(X))

    def score_one(self, point: Mapping[Any, Any]) -> float:
        """``outlier_scores`` of one point, given by the names of its features; for streams."""
        return self.steadily(lambda served: served.score_one(point))

    def score_frame(self, X: Any, **names: Any) -> Any:
        """The frame of pandas, Polars or Arrow with scores as a column more; see ``FittedDetector.score_frame``.

        Frames that are not in memory would ask from wherever their rows are, with the key: collect them, or load the model file.
        """
        engine = engine_of(X)
        if engine is not None:
            raise TypeError(
                f"a client scores frames in memory, of pandas, Polars or Arrow, got one of {type(X).__module__.split('.')[0]}. "
                "Collect it, or load the model file and score where the rows are."
            )
        return self.steadily(lambda served: served.score_frame(X, **names))

    def explain(self, X: Any) -> ToldExplanation:
        """Which features make each point outlying, and what would have to be otherwise. Free of privacy cost.

        Parameters
        ----------
        X : table of shape (n_points, n_features)

        Returns
        -------
        ToldExplanation
            An ``Explanation`` whose counterfactuals are sentences.
        """
        return self.steadily(lambda served: served.explain(X))

    def only_scoring(self) -> ServedModel:
        """The release as it is now, with the threshold of this moment; it raises ``ReplacedError`` when the server has another."""
        return self._served

    def steadily(self, call: Callable[[ServedModel], T]) -> T:
        """What a function of one release gives; called once again if the server replaces it meanwhile, or has new limits."""
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
            raise ServerError("the server's answer cannot be used: it names a model as none is named.")
        if len(found) != 1:
            names = ", ".join(map(str, found[:20])) or "none"
            raise InvalidParameterError(
                f"model must be given, unless the server has exactly one that the key may use. It has: {names}."
            )
        return str(found[0])

    def _described(self) -> Description:
        told = Description.from_json(self._connection.get(f"/v1/models/{self._model}").json())
        if told.name != self._model:
            raise ServerError(f"the server was asked for {self._model!r}, and told of {told.name[:64]!r}.")
        return told

    def _renewed(self, before: ServedModel, release: str) -> ServedModel:
        """The release that the server has now. Threads that find out together ask once."""
        with self._lock:
            if self._served is before or self._served.description.release == before.description.release:
                for wait in (*WAITS, 0):
                    told = self._described()
                    if told.release == release:
                        break
                    time.sleep(wait)  # another worker has answered, who is yet to turn
                served = ServedModel(self._connection, told, told.threshold, patient=True)
                self._become(self._with_wanted(served))
            return self._served

    def _become(self, served: ServedModel) -> None:
        self._served = served
        self._keep_schema(served.description.domain)

    def _with_wanted(self, served: ServedModel) -> ServedModel:
        """With the threshold that was asked for, which stays when a release is replaced."""
        if self._wanted is None:
            return served
        rule, value = self._wanted
        return served.with_threshold(value if rule == "score" else _threshold_for(served, value))

    def _set_threshold(self, *, target_fpr: float | None, score: float | None) -> None:
        wanted = ("target_fpr", target_fpr) if score is None else ("score", float(score))

        def moved(served: ServedModel) -> ServedModel:
            return served.with_threshold(float(score) if score is not None else _threshold_for(served, target_fpr))

        with self._lock:
            served = self.steadily(moved)
            self._wanted = wanted
            self._become(served)

    def _fitted_domain(self) -> Domain:
        return self._served.description.domain

    def _outlier_scores(self, positions: Positions) -> NDArray[np.float64]:
        return self._served.scores_of(positions)

    def _threshold(self) -> float | None:
        return self._served._threshold()  # noqa: SLF001 - its sister

    def _features_of(self, X: Any) -> Any:
        return self._served._features_of(X)  # noqa: SLF001

    def _check_points(self, X: Any) -> Domain:
        return self._served._check_points(X)  # noqa: SLF001

    def _name(self) -> str:
        return self._served._name()  # noqa: SLF001

    def _estimator_like(self) -> Any:
        return self._served._estimator_like()  # noqa: SLF001


def _models(connection: Connection) -> list[dict[str, Any]]:
    found = connection.get("/v1/models").json().get("models")
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ServerError("the server did not tell its models; is it a dpoutlier server?")
    return found


def _threshold_for(served: ServedModel, target_fpr: Any) -> float | None:
    """The server's threshold, or its refusal as the error that a model raises here."""
    none_bought = served.description.target_fpr is None
    number = 0.5 if none_bought else checked_share(target_fpr=target_fpr)
    try:
        return served.threshold_for(number)
    except ServerError as error:
        if error.status != 400:
            raise
        kind = ThresholdNotSetError if none_bought else InvalidParameterError
        text = str(error).removeprefix("target_fpr: ")
    raise kind(text)
