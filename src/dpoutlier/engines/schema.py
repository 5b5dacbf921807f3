"""Whether the columns of a lazy frame can be features, by their types alone. Types are public, and no row is read."""

from collections.abc import Mapping
from typing import Any

from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.category import Category
from dpoutlier.features.domain import Domain
from dpoutlier.tables.batched import type_text


def check_feature_types(types: Mapping[str, Any], domain: Domain, person: str | None = None) -> None:
    """Refuse a column whose type is not that of its feature.

    Text is never read as a number: engines do not agree on which text is a number.
    """
    features = (name for name in types if name != person)
    for j, name in enumerate(features):
        dtype, category = types[name], domain.category(j)
        if _is_number(dtype) or (category is not None and not category.numeric and is_text(dtype)):
            continue
        raise InvalidParameterError(
            f"column {name!r} has type {type_text(dtype)}; {_wanted(category)}. Convert it in the query that you pass, or leave it "
            "out."
        )
    if person is not None and not (_is_number(types[person]) or is_text(types[person])):
        raise InvalidParameterError(
            f"column {person!r}, which identifies people, has type {type_text(types[person])}; it must be text or a number. "
            "Convert it in the query that you pass."
        )


def _is_number(dtype: Any) -> bool:
    import narwhals.stable.v2 as nw  # noqa: PLC0415 - slow to import, and an array must not wait for it

    return bool(dtype.is_numeric()) or dtype == nw.Boolean


def is_text(dtype: Any) -> bool:
    import narwhals.stable.v2 as nw  # noqa: PLC0415

    return any(dtype == kind for kind in (nw.String, nw.Categorical, nw.Enum))


def _wanted(category: Category | None) -> str:
    if category is None:
        return "a feature must be a number"
    return "its levels are numbers, so it must be a number" if category.numeric else "levels must be text or numbers"
