"""Points from JSON: objects by name, or lists in the order of the features."""

from typing import Any

from pydantic_core import from_json

from dpoutlier.features.domain import Domain
from dpoutlier.server.error_responses import Refusal, cut
from dpoutlier.server.points import Points, absent_column, columns_of_values, too_many_rows

SPARE_BRACKETS = 1000
"""Brackets allowed beyond two for each point, for example in text."""
LONGEST_NUMBER = 40
FORM = 'send {"points": [{"feature": value, ...}, ...]} or {"points": [[value, ...], ...]}'


def json_points(body: bytes, domain: Domain, most_rows: int) -> Points:
    """The points of a body. Names that are not features are ignored."""
    if body.count(b"[") + body.count(b"{") > 2 * most_rows + SPARE_BRACKETS:  # each would become an object of Python
        raise too_many_rows(most_rows)
    try:
        content = from_json(body, cache_strings="keys")
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise Refusal("malformed-body", f"the body must be a JSON object: {FORM}.")
    points = content.get("points")
    if not isinstance(points, list):
        raise Refusal("malformed-body", f"the body must have a list of points: {FORM}.")
    if len(content) > 1:
        other = next(name for name in content if name != "points")
        raise Refusal(
            "bad-parameter",
            f"unknown key {cut(other)} beside the points; parameters go into the query string: ?{_parameter(content, other)}.",
        )
    if len(points) > most_rows:
        raise too_many_rows(most_rows)
    kinds = set(map(type, points))
    if kinds <= {dict}:
        values = _by_name(points, domain)
    elif kinds == {list}:
        values = _by_place(points, domain)
    else:
        raise Refusal("malformed-body", f"all points must be objects, or all lists: {FORM}.")
    return Points(columns_of_values(values, domain), lambda row, j: values[j][row])


def _parameter(content: dict[str, Any], other: str) -> str:
    """How ``other`` is given in a query string. An example if it is not a parameter."""
    value = content[other]
    if (
        other in {"threshold", "target_fpr", "fdr"}
        and type(value) in {int, float}
        and len(repr(value)) < LONGEST_NUMBER
    ):
        return f"{other}={value!r}"
    return "missing=null" if other == "missing" else "threshold=1"


def _by_name(points: list[dict[str, Any]], domain: Domain) -> list[list[Any]]:
    try:
        return [[point[name] for point in points] for name in domain.labels]
    except KeyError:
        pass
    name, row, found = next(
        (name, row, list(point)) for name in domain.labels for row, point in enumerate(points) if name not in point
    )
    absent = absent_column(name, found)
    raise Refusal(absent.code, f"point {row} (counted from 0): {absent.message}")


def _by_place(points: list[list[Any]], domain: Domain) -> list[list[Any]]:
    for row, point in enumerate(points):
        if len(point) != domain.n_features:
            raise Refusal(
                "malformed-body",
                f"point {row} (counted from 0) has {len(point)} values, but the model has {domain.n_features} features: "
                f"{', '.join(domain.labels[:20])}.",
            )
    return [list(column) for column in zip(*points, strict=True)]
