"""Points from a body, as columns of numbers; equal to what the library and the command line make of the same values."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpoutlier.features.domain import Domain
from dpoutlier.server.error_responses import Refusal, cut
from dpoutlier.tables import convert

SHOWN_COLUMNS = 20
PLAIN = frozenset({int, float, bool})
SCALARS = frozenset({int, float, bool, str, type(None)})


class Points(NamedTuple):
    """Points, as kernels read them and as they were written."""

    columns: list[NDArray[np.float64]]
    value: Callable[[int, int], Any]
    """The value of a point (its number) in a feature (its number)."""

    def __len__(self) -> int:
        return len(self.columns[0])


def chosen_columns(found: Sequence[str], domain: Domain, person: str | None) -> list[int]:
    """Where the features stand among the columns of a table."""
    if domain.names is None:
        places = [j for j, name in enumerate(found) if name != person]
        if len(places) != domain.n_features:
            raise Refusal(
                "no-such-column",
                f"the points have {len(found)} columns, but the model has {domain.n_features} features without names.",
            )
        return places
    known: dict[str, int] = {}
    for j, name in enumerate(found):
        if name in known and name in domain.names:
            raise Refusal("malformed-body", f"two columns are named {cut(name)}; give each a name of its own.")
        known[name] = j
    for name in domain.names:
        if name not in known:
            raise absent_column(name, found)
    return [known[name] for name in domain.names]


def absent_column(name: str, found: Sequence[str]) -> Refusal:
    shown = ", ".join(cut(one) for one in found[:SHOWN_COLUMNS]) + (", ..." if len(found) > SHOWN_COLUMNS else "")
    return Refusal(
        "no-such-column",
        f"the points have no column {name!r}, which the model needs. Their columns are: {shown or 'none'}.",
    )


def too_many_rows(most: int) -> Refusal:
    return Refusal("too-many-rows", f"a request must have at most {most} points. Send them in several requests.")


def columns_of_values(values: Sequence[Sequence[Any]], domain: Domain) -> list[NDArray[np.float64]]:
    """Numbers from values of JSON, one list for each feature."""
    return [_numbers(column, domain, j) for j, column in enumerate(values)]


def _numbers(values: Sequence[Any], domain: Domain, j: int) -> NDArray[np.float64]:
    category, types = domain.category(j), set(map(type, values))
    if category is None and types <= PLAIN:
        try:
            return np.array(values, np.float64)
        except OverflowError:  # a whole number past all floats
            pass
    if not types <= SCALARS:
        row = next(i for i, value in enumerate(values) if type(value) not in SCALARS)
        raise Refusal(
            "malformed-body",
            f"the value of {domain.labels[j]!r} in point {row} must be a number, a text, true, false or null, got "
            f"{type(values[row]).__name__}.",
        )
    if category is not None:
        return convert.level_values(values, category)
    column = np.empty((len(values), 1), object)
    column[:, 0] = values
    return convert.columns(column)[0]


def missing_value(points: Points, domain: Domain) -> Refusal:
    """The error for the first value that is missing where the model has no cell for it."""
    j, row, n_missing, must = convert.first_missing(points.columns, domain)
    value = points.value(row, j)
    return Refusal(
        "missing-value",
        f"a point has a missing value or a value that is not {must} in {domain.labels[j]}, point {row} (counted from 0): "
        f"{cut(value)}. Remove or fill such points ({n_missing} in this column), or ask with missing=null, "
        "which gives them no score.",
        place={
            "row": row,
            "column": domain.labels[j],
            "value": None if value in (None, "") or value != value else cut(value),  # noqa: PLR0124 - NaN
            "must": must,
        },
    )
