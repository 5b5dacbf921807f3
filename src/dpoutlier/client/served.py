"""One release of a model on a server. It scores as the model does, and raises an error once the server has another release."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpoutlier.client.bodies import FOR_AN_ANSWER, most_bytes, points_batches, points_body, scores_of_answer
from dpoutlier.client.connection import ARROW, JSON, Answer, Connection
from dpoutlier.client.description import Description, threshold_of
from dpoutlier.client.explanation import ServedExplanation
from dpoutlier.detectors.scores import ScoresPoints
from dpoutlier.exceptions import ServerError, ThresholdNotSetError
from dpoutlier.features.domain import Domain
from dpoutlier.scoring.false_alarms import FalseAlarms
from dpoutlier.scoring.p_values import PValues
from dpoutlier.tables import convert
from dpoutlier.tables.rows import MissingValueError, Positions, Rows

WAITS = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds between requests while the workers of a server change to a new release, one after the other."""
SHOWN_COLUMNS = 6
FOR_A_REASON = 4096
"""Most bytes of an explanation for each feature of a point."""

NO_P_VALUES = "They need a fit with target_fpr, and a detector for which they are proved: see docs/alerts.md."
T = TypeVar("T")


class ReplacedError(ServerError):
    """The server now has another release of the model than when the call began."""

    def __init__(self, release: str) -> None:
        super().__init__(
            "the server replaced the model several times during one call.",
            remedy="Scores of two releases are never mixed: call again when the server has finished.",
        )
        self.release = release


class ServedModel(ScoresPoints):
    """A release as the server described it, with a threshold. It never changes.

    Parameters
    ----------
    connection : Connection
    description : Description
    threshold : float, optional
    patient : bool
        Ask again, for some seconds, if a worker of the server still has another release.
    """

    def __init__(
        self, connection: Connection, description: Description, threshold: float | None, *, patient: bool = False
    ) -> None:
        self.connection, self.description, self.patient = connection, description, patient
        self._moved = threshold
        self._keep_schema(description.domain)

    def __repr__(self) -> str:
        model = self.description
        return f"<release {model.release[:12]} of {model.name!r} at {self.connection.url}>"

    def with_threshold(self, threshold: float | None) -> ServedModel:
        """The same with another threshold."""
        return ServedModel(self.connection, self.description, threshold, patient=self.patient)

    def threshold_for(self, target_fpr: Any) -> float | None:
        """The threshold for a false-positive rate, from the server's histogram of scores."""
        body = json.dumps({"points": []}).encode()

        def read(answer: Answer) -> tuple[str, float | None]:
            content = answer.json()
            try:
                return str(content["release"]), threshold_of(content["threshold"])
            except (KeyError, TypeError, ValueError, OverflowError):
                pass
            raise ServerError("the server returned no threshold.", remedy="Does it run another version of dpoutlier?")

        query = {"target_fpr": repr(float(target_fpr))}
        return self._of_this_release(lambda: read(self._post("score", body, JSON, JSON, query, most=FOR_AN_ANSWER)))

    def explain(self, X: Any) -> ServedExplanation:
        """Why each point scores as it does, from the server."""
        return self._of_points(X, self._explain)

    def _outlier_scores(self, positions: Positions) -> NDArray[np.float64]:
        columns = self._complete(positions)
        if not len(columns[0]):
            return np.empty(0)
        limits = self.description.limits
        places = points_batches(columns, self.description.domain, limits, limits.rows)
        found = [self._of_this_release(partial(self._scored, columns, first, last)) for first, last in places]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _scored(self, columns: list[NDArray[Any]], first: int, last: int) -> tuple[str, NDArray[np.float64]]:
        body = points_body(columns, self.description.domain, first, last)
        answer = self._post("score", body, ARROW, ARROW, most=most_bytes(last - first))
        return scores_of_answer(answer, last - first)

    def _explain(self, positions: Positions) -> ServedExplanation:
        columns, domain, limits = self._complete(positions), self.description.domain, self.description.limits
        values = np.stack(columns, axis=1).astype(np.float64, copy=False)
        places = points_batches(columns, domain, limits, limits.explain_rows)
        answers = [self._of_this_release(partial(self._explained, columns, first, last)) for first, last in places]
        return ServedExplanation.of(answers, domain, values)

    def _explained(self, columns: list[NDArray[Any]], first: int, last: int) -> tuple[str, dict[str, Any]]:
        body = points_body(columns, self.description.domain, first, last)
        most = FOR_AN_ANSWER + FOR_A_REASON * (last - first) * self.description.domain.n_features
        content = self._post("explain", body, ARROW, JSON, most=most).json()
        return str(content.get("release")), content

    def _complete(self, positions: Positions) -> list[NDArray[Any]]:
        """The columns of rows, after a check that values are missing only where the model has a cell for that."""
        assert isinstance(positions, Rows)
        for j, column in enumerate(positions.columns):
            if positions.complete and not positions.domain.has_missing_cell(j) and np.isnan(column).any():
                raise MissingValueError
        return positions.columns

    def _post(self, what: str, body: bytes, kind: str, accept: str, query: Any = None, *, most: int) -> Answer:
        path = f"/v1/models/{self.description.name}/{what}"
        return self.connection.post(path, body, kind, accept, query, most=most)

    def _of_this_release(self, ask: Callable[[], tuple[str, T]]) -> T:
        """An answer of this release, or ``ReplacedError``."""
        for wait in (*(WAITS if self.patient else ()), None):
            release, found = ask()
            if release == self.description.release:
                return found
            if wait is not None:
                time.sleep(wait)
        raise ReplacedError(release)

    def _features_of(self, X: Any) -> Any:
        """The table without the column that identifies people, which points may have."""
        return convert.without_person(X, self.description.person)

    def _check_points(self, X: Any) -> Domain:
        """The check of a loaded model. If there are too many columns, the error also says what to do."""
        try:
            return super()._check_points(X)
        except ValueError as error:
            names, known = convert.column_names(X) or [], self.description.domain.names
            if known is None or not set(known) < set(names):
                raise
            shown = ", ".join(map(repr, known[:SHOWN_COLUMNS])) + (", ..." if len(known) > SHOWN_COLUMNS else "")
            error.add_note(
                f"Pass the model's columns only ({shown}), or use score_frame, which leaves others as they are."
            )
            raise

    def _fitted_domain(self) -> Domain:
        return self.description.domain

    def _threshold(self) -> float | None:
        return self._moved

    def _false_alarms(self) -> FalseAlarms | None:
        """What the server says of its own threshold. Of one that was moved it says nothing."""
        return self.description.false_alarms if self._moved == self.description.threshold else None

    def _p_table(self) -> PValues:
        if self.description.p_values is None:
            raise ThresholdNotSetError("the server has no p-values for this model.", remedy=NO_P_VALUES)
        return self.description.p_values

    def _set_threshold(self, *, target_fpr: float | None, score: float | None) -> None:  # noqa: ARG002
        raise TypeError(f"{self!r} cannot change. Set the threshold of the client.")

    def _name(self) -> str:
        return self.description.detector

    def _estimator_like(self) -> Any:
        from sklearn.base import BaseEstimator  # noqa: PLC0415 - slow to import, and only needed for its error messages

        estimator = type(self.description.detector, (BaseEstimator,), {})()
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(estimator, name, getattr(self, name))
        return estimator
