"""The value of a feature as float64, an expression of any engine: to the bit what ``tables.convert.columns`` makes of it.

This is the one conversion of a lazy frame. It is done first, and all that follows (order, positions, counts, scores) sees only its
result: two conversions that differ in the last bit would put rows that tie in one of them into different cells of the other.
"""

import math
from contextlib import suppress
from typing import Any

import narwhals.stable.v2 as nw

from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.category import Category, text_of
from dpoutlier.features.domain import Domain
from dpoutlier.tables.batched import type_text
from dpoutlier.tables.convert import read_by_text

BLANKS = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680"
    + "".join(map(chr, range(0x2000, 0x200B)))
    + "\u2028\u2029\u202f\u205f\u3000"
)
"""What Python strips from text; each engine has a list of its own."""


def value(feature: int) -> str:
    """The column that has a feature's value."""
    return f"v{feature}"


def value_frame(
    frame: nw.LazyFrame[Any], types: dict[str, Any], domain: Domain, person: str | None = None
) -> nw.LazyFrame[Any]:
    """A frame of ``QueryEngine.plain`` as float64 values ``v0``, ``v1``, ...; level i is ``i + 1/2``. The person column stays."""
    features = [(name, dtype) for name, dtype in types.items() if name != person]
    each = [
        (number(name, dtype) if category is None else _level(name, dtype, category)).alias(value(j))
        for j, (name, dtype) in enumerate(features)
        for category in [domain.category(j)]
    ]
    found = None
    with suppress(Exception):  # Dask tries expressions on rows that it makes up, and a type may not hold them
        found = frame.select(*each, *([] if person is None else [nw.col(person)]))
    if found is None:
        kinds = ", ".join(sorted({type_text(dtype) for _, dtype in features}))
        raise InvalidParameterError(
            f"the engine cannot convert columns of these types to float64: {kinds}. Convert them in the query that you pass."
        )
    return found


def number(name: str, dtype: Any) -> nw.Expr:
    """A column of numbers as the nearest float64; the two zeros are one."""
    column = nw.col(name).cast(nw.String) if read_by_text(dtype) else nw.col(name)
    return column.cast(nw.Float64) + 0.0


def is_missing(found: nw.Expr) -> nw.Expr:
    """Whether a float64 is missing or not a number."""
    return found.is_null() | found.is_nan()


def plain_text(name: str) -> nw.Expr:
    """A column of text without blanks around it."""
    return nw.col(name).cast(nw.String).str.strip_chars(BLANKS)


def _level(name: str, dtype: Any, category: Category) -> nw.Expr:
    """The level of a value, or of ``other`` for a value that is not declared; null where neither exists."""
    if dtype == nw.Boolean:
        true, false = (nw.lit(_middle(category.code(truth))) for truth in (True, False))
        found = nw.when(nw.col(name)).then(true).otherwise(false)
        there = ~nw.col(name).is_null()
    else:
        by_number = dtype.is_numeric()
        given = number(name, dtype) if by_number else plain_text(name)
        known: dict[Any, int] = (
            _numbers_of(category) if by_number else {own: i for i, own in enumerate(category.levels)}
        )
        default = _middle(len(category.levels) if category.other else None)
        found = _replaced(given, {own: _middle(code) for own, code in known.items()}, default)
        there = ~is_missing(given) if by_number else ~(given.is_null() | (given == ""))
    return nw.when(there & (found > NO_LEVEL)).then(found)


NO_LEVEL = -1.0


def _middle(code: int | None) -> float:
    """Where a level lies in its feature's bounds."""
    return NO_LEVEL if code is None else code + 0.5


def _replaced(given: nw.Expr, known: dict[Any, float], default: float) -> nw.Expr:
    if not known:
        return nw.lit(default)
    return given.replace_strict(list(known), list(known.values()), default=default, return_dtype=nw.Float64)


def _numbers_of(category: Category) -> dict[Any, int]:
    """The numbers that are levels. A level that is text counts if it is how a number is written as a level."""
    found = {}
    for code, level in enumerate(category.levels):
        try:
            own = float(level)
        except ValueError:
            continue
        if not math.isnan(own) and (category.numeric or text_of(own) == level):
            found[own] = code
    return found
