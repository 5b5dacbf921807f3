"""Where a value lies, as an expression of any engine: lattice positions, as ``rows`` and ``category`` have them, to the bit.

All is done in whole numbers below 2**53 within float64, on which engines agree; on how to divide or round whole numbers, or what
a cast does, they do not. What is missing is handled first: some engines cannot cast it, and others call it the largest number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import narwhals.stable.v2 as nw

from dpoutlier.axes import MISSING, level_position
from dpoutlier.category import Category, text_of
from dpoutlier.domain import Domain

__all__ = ["BLANKS", "floor", "is_missing", "number", "plain_text", "position", "positions", "total"]

BLANKS = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680"
    + "".join(map(chr, range(0x2000, 0x200B)))
    + "\u2028\u2029\u202f\u205f\u3000"
)
"""What Python strips from text; each engine has a list of its own."""


def position(feature: int) -> str:
    """The column that has a feature's position."""
    return f"p{feature}"


def positions(types: dict[str, Any], domain: Domain) -> list[nw.Expr]:
    """The position of each feature, float64 and a whole number; ``types`` are those of the features' columns, in their order."""
    return [
        (
            _number_position(name, domain, j) if domain.category(j) is None else _level_position(name, dtype, domain, j)
        ).alias(position(j))
        for j, (name, dtype) in enumerate(types.items())
    ]


def number(name: str) -> nw.Expr:
    """A column of numbers as float64, where the two zeros are one."""
    return nw.col(name).cast(nw.Float64) + 0.0


def floor(value: nw.Expr) -> nw.Expr:
    """As float64; Spark's own is a whole number."""
    return value.floor().cast(nw.Float64)


def is_missing(value: nw.Expr) -> nw.Expr:
    """Whether a float64 is missing or not a number."""
    return value.is_null() | value.is_nan()


def plain_text(name: str) -> nw.Expr:
    """A column of text without blanks around it."""
    return nw.col(name).cast(nw.String).str.strip_chars(BLANKS)


def _number_position(name: str, domain: Domain, j: int) -> nw.Expr:
    """Clipped to the bounds first: the same positions, and no sum or product can overflow, which some engines refuse."""
    value, lower, upper = number(name), domain.lower[j], domain.upper[j]
    moved = (value.clip(lower, upper) - lower) * domain.scales[j]
    last = float(MISSING - domain.axes[j].missing)
    found = floor(moved.clip(0.0, last))
    return nw.when(is_missing(value)).then(nw.lit(float(domain.missing_positions[j]))).otherwise(found)


def _level_position(name: str, dtype: Any, domain: Domain, j: int) -> nw.Expr:
    """The values that are levels, each with its position; any other value has that of ``other``, or is missing."""
    category = domain.category(j)
    assert category is not None
    absent, levels = float(domain.missing_positions[j]), domain.axes[j].levels

    def of_code(code: int | None) -> float:
        return absent if code is None else float(level_position(code, levels))

    if dtype == nw.Boolean:
        true, false = (nw.lit(of_code(category.code(truth))) for truth in (True, False))
        column = nw.col(name)
        return nw.when(column.is_null()).then(nw.lit(absent)).otherwise(nw.when(column).then(true).otherwise(false))
    default = of_code(len(category.levels) if category.other else None)
    known: dict[Any, int]
    if dtype.is_numeric():
        value = number(name)
        missing, known = is_missing(value), _numbers_of(category)
    else:
        value = plain_text(name)
        missing, known = (
            value.is_null() | (value == ""),
            dict(zip(category.levels, range(len(category.levels)), strict=True)),
        )
    if not known:
        return nw.when(missing).then(nw.lit(absent)).otherwise(nw.lit(default))
    found = value.replace_strict(
        list(known), [of_code(code) for code in known.values()], default=default, return_dtype=nw.Float64
    )
    return nw.when(missing).then(nw.lit(absent)).otherwise(found)


def _numbers_of(category: Category) -> dict[float, int]:
    """The numbers that are levels: of levels that are text, those which some number is known by."""
    found = {}
    for code, level in enumerate(category.levels):
        try:
            value = float(level)
        except ValueError:
            continue
        if not math.isnan(value) and (category.numeric or text_of(value) == level):
            found[value] = code
    return found


def total(terms: Iterable[nw.Expr]) -> nw.Expr:
    """A sum in pairs: engines walk expressions by recursion, and thousands of terms one inside the other are too deep."""
    parts: Sequence[nw.Expr] = list(terms)
    while len(parts) > 1:
        parts = [parts[i] + parts[i + 1] if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
    return parts[0]
