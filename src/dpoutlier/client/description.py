"""A server's description of a model: its public features, threshold and statement, and the limits of a request."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from dpoutlier.exceptions import DpoutlierError, ServerError
from dpoutlier.features.category import Category
from dpoutlier.features.domain import Domain, axis_of
from dpoutlier.model.statement import PrivacyStatement
from dpoutlier.scoring.false_alarms import FalseAlarms
from dpoutlier.scoring.p_values import PValues

RELEASE, DETECTOR = re.compile("[0-9a-f]{1,64}"), re.compile("[A-Za-z][A-Za-z0-9]{0,63}")

MOST = 2**53
"""The largest limit: divisions of larger numbers are not exact."""


@dataclass(frozen=True)
class Limits:
    """How much a server accepts in one request."""

    rows: int
    bytes: int
    explain_rows: int


@dataclass(frozen=True)
class Description:
    """All that the server says about one model."""

    name: str
    release: str
    detector: str
    domain: Domain
    person: str | None
    """The column that identifies people. Points may have it; it is not sent."""
    threshold: float | None
    target_fpr: float | None
    """The false-positive rate of the fit; None if the model has no histogram of scores."""
    false_alarms: FalseAlarms | None
    """Of the model's own threshold; None if the server says nothing of it."""
    p_values: PValues | None
    """The p-value of each bin of scores; None if the model gives none."""
    limits: Limits
    statement: PrivacyStatement
    publishable: bool

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Description:
        """The description, or an error if the content is not one."""
        try:
            limits = content["limits"]
            return cls(
                name=str(content["id"]),
                release=_fitting(RELEASE, content["release"]),
                detector=_fitting(DETECTOR, content["detector"]),
                domain=_domain(content["features"], named=content["named"] is True),
                person=None if content["person"] is None else str(content["person"]),
                threshold=threshold_of(content["threshold"]),
                target_fpr=None if content["target_fpr"] is None else float(content["target_fpr"]),
                false_alarms=_false_alarms(content.get("false_alarms"), content["threshold"]),
                p_values=_p_values(content.get("p_values")),
                limits=Limits(*(min(max(1, int(limits[field.name])), MOST) for field in fields(Limits))),
                statement=statement_of(content["statement"], str(content["statement_text"])),
                publishable=content["publishable"] is True,
            )
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError, DpoutlierError):
            pass
        raise ServerError(
            "the server's description of the model cannot be read.",
            remedy="Is it a dpoutlier server of another version?",
        )


def _fitting(pattern: re.Pattern[str], text: str) -> str:
    """A text that will be shown, if it has the pattern: some characters control a terminal."""
    if not pattern.fullmatch(text):
        raise ValueError
    return text


def threshold_of(value: Any) -> float | None:
    """A threshold from JSON, which has no infinity."""
    if value is None:
        return None
    if isinstance(value, bool) or math.isnan(float(value)):
        raise ValueError
    return float(value)


def _false_alarms(content: dict[str, Any] | None, threshold: Any) -> FalseAlarms | None:
    if content is None:
        return None
    expected, lower, upper, level = (float(content[name]) for name in ("expected", "lower", "upper", "level"))
    if not (0 <= lower <= upper <= 1 and 0 <= expected <= 1 and 0 < level < 1):
        raise ValueError
    return FalseAlarms(expected, lower, upper, level, float(threshold))


def _p_values(content: dict[str, Any] | None) -> PValues | None:
    if content is None:
        return None
    levels, values = (np.array([float(one) for one in content[name]]) for name in ("levels", "values"))
    if len(levels) != len(values) or not len(levels) or (np.diff(levels) <= 0).any():
        raise ValueError
    if not ((values > 0) & (values <= 1)).all() or not np.isfinite(levels).all():
        raise ValueError
    return PValues(levels, values)


def _domain(features: list[dict[str, Any]], *, named: bool) -> Domain:
    """The domain of the fit, without the outer ranges of private bounds, which points do not need."""
    categories, missing = [_category(one) for one in features], [one["missing"] is True for one in features]
    bounds = [
        (float(one["lower"]), float(one["upper"])) if own is None else (0.0, float(axis_of(own, missing=cell).levels))
        for one, own, cell in zip(features, categories, missing, strict=True)
    ]
    return Domain(
        lower=tuple(low for low, _ in bounds),
        upper=tuple(high for _, high in bounds),
        names=tuple(str(one["name"]) for one in features) if named else None,
        categories=tuple(categories) if any(categories) else None,
        missing=tuple(missing) if any(missing) else None,
    )


def _category(feature: dict[str, Any]) -> Category | None:
    if feature["kind"] == "number":
        return None
    other = feature["other"] is True  # the server lists it as the last level
    flags = {name: feature[name] is True for name in ("numeric", "ordered")}
    return Category.from_json({"levels": feature["levels"][: len(feature["levels"]) - other], "other": other, **flags})


class ServedStatement(PrivacyStatement):
    """A statement with the page that the server wrote, in the words of another version."""

    _page: str

    def __str__(self) -> str:
        return self._page


def statement_of(content: dict[str, Any], page: str) -> PrivacyStatement:
    """The statement as data. Printed, it is the server's page."""
    known = {field.name: _frozen(content.get(field.name)) for field in fields(PrivacyStatement)}
    statement = PrivacyStatement(**known)
    if str(statement) != page:
        statement = ServedStatement(**known)
        object.__setattr__(statement, "_page", page)
    return statement


def _frozen(value: Any) -> Any:
    """Turn lists back into tuples, except within the features, which do have lists."""
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, dict) and "parts" in value:
        return value | {"parts": tuple(value["parts"])}
    return value
