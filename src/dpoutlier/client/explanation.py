"""An explanation from a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import parameter_error
from dpoutlier.exceptions import ServerError
from dpoutlier.explain.explanation import Explanation
from dpoutlier.explain.wording import value_text
from dpoutlier.features.domain import Domain


@dataclass(frozen=True)
class ServedPoint:
    """What the server says about one point, besides numbers."""

    region_note: str | None
    """What the nearest region of a grid means; None for other detectors."""
    counterfactual: str | None
    instead: dict[str, tuple[str, str]]
    """For each feature: the values at which the point would be usual, and the score there."""


@dataclass(frozen=True)
class ServedExplanation(Explanation):
    """An ``Explanation`` whose texts a server made. What the server does not send needs the model itself.

    ``counterfactual()`` is a sentence. For a grid, ``region()``, ``regions``, ``found`` and ``k`` are not available.
    """

    domain: Domain = field(kw_only=True, repr=False, compare=False)
    values: NDArray[np.float64] = field(kw_only=True, repr=False, compare=False)
    points: tuple[ServedPoint, ...] = field(kw_only=True, repr=False, compare=False)
    grid: bool = field(kw_only=True, repr=False, compare=False)

    @classmethod
    def of(cls, answers: Sequence[dict[str, Any]], domain: Domain, values: NDArray[np.float64]) -> ServedExplanation:
        """From the answers to all batches."""
        try:
            explained = [point for answer in answers for point in answer["explanations"]]
            points = tuple(map(_point, explained))
            shape = values.shape
            contributions = np.array([point["contributions"] for point in explained], np.float64).reshape(shape)
            empty = np.array([point["empty"] for point in explained], np.float64).reshape(shape)  # None is NaN
            scores = np.array([point["outlier_score"] for point in explained], np.float64).reshape(shape[:1])
            return cls(
                domain.labels,
                contributions,
                empty,
                scores,
                float(answers[0]["typical_score"]),
                domain=domain,
                values=values,
                points=points,
                grid=any(point.region_note is not None for point in points),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            pass
        raise ServerError(
            "the server returned no explanation for each point.", remedy="Does it run another version of dpoutlier?"
        )

    def __getstate__(self) -> dict[str, Any]:
        """All of it: an explanation from a server holds no model."""
        return self.__dict__

    @property
    def k(self) -> None:
        """Not available for a grid; None for other detectors."""
        return self._not_of_grid("k")

    @property
    def found(self) -> None:
        """Not available for a grid; None for other detectors."""
        return self._not_of_grid("found")

    @property
    def regions(self) -> None:
        """Not available for a grid; None for other detectors."""
        return self._not_of_grid("regions")

    def region(self, point: int = 0) -> None:
        """Not available for a grid; None for other detectors."""
        self._check_point(point)
        return self._not_of_grid("region")

    def counterfactual(self, point: int = 0, feature: str | None = None) -> str | None:  # type: ignore[override]
        """What would have to be different for a point to be usual, as a sentence; None if nothing within reach is usual."""
        self._check_point(point)
        if feature is not None and (self.grid or feature != self.ranking(point)[0][0]):
            raise _not_sent("the counterfactual of one feature (instead() gives what a table shows of it)")
        return self.points[point].counterfactual

    def value(self, feature: str, point: int = 0, given: Any = None) -> str:
        """A point's value in words. The value as it was ``given`` is shown if it is not a declared level."""
        return value_text(self.domain, self.features.index(feature), self.values[point], given)

    def instead(self, feature: str, point: int = 0) -> tuple[str, ...]:
        """What a table shows of one feature: the usual values; for forests and marginals also the score there."""
        self._check_point(point)
        if feature not in self.features:
            raise parameter_error("feature", f"one of {list(self.features)}", feature)
        return self.points[point].instead[feature][: 1 if self.grid else 2]

    def _region_note(self, point: int) -> str:
        return self.points[point].region_note or ""

    @property
    def _of_grid(self) -> bool:
        return self.grid

    def _not_of_grid(self, what: str) -> None:
        if self.grid:
            raise _not_sent(what)


def _point(content: dict[str, Any]) -> ServedPoint:
    instead = {row["feature"]: (row["instead"] or "", row["then"] or "") for row in content["rows"]}
    return ServedPoint(content.get("region_note"), content["counterfactual"], instead)


def _not_sent(what: str) -> AttributeError:
    return AttributeError(f"a server does not send {what}: load the model file to get it.")
