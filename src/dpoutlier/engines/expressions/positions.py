"""The position of a value as an expression of any engine: to the bit as ``features.lattice`` defines it.

All is done in whole numbers below 2**53 within float64, on which engines agree; on how to divide or round whole numbers, or what
a cast does, they do not. What is missing is handled first: some engines cannot cast it, and others call it the largest number.
"""

from collections.abc import Iterable, Sequence

import narwhals.stable.v2 as nw

from dpoutlier.engines.expressions.values import is_missing, value
from dpoutlier.features.domain import Domain
from dpoutlier.features.lattice import Line


def position(feature: int) -> str:
    """The column that has a feature's position."""
    return f"p{feature}"


def positions(domain: Domain) -> list[nw.Expr]:
    """The position of each feature, float64 and a whole number, from the columns of ``value_frame``."""
    return [_position(nw.col(value(j)), line).alias(position(j)) for j, line in enumerate(domain.lines)]


def floor(given: nw.Expr) -> nw.Expr:
    """Floor as float64. Spark's own floor is a whole number."""
    return given.floor().cast(nw.Float64)


def _position(given: nw.Expr, line: Line) -> nw.Expr:
    """The position of a value. The value is clipped to the bounds first, since some engines refuse a product that overflows."""
    moved = (given.clip(line.lower, line.upper) - line.lower) * line.scale
    found = floor(moved.clip(0.0, float(line.last)))
    return nw.when(is_missing(given)).then(nw.lit(float(line.missing))).otherwise(found)


def total(terms: Iterable[nw.Expr]) -> nw.Expr:
    """A sum in pairs: engines walk expressions by recursion, and thousands of terms one inside the other are too deep."""
    parts: Sequence[nw.Expr] = list(terms)
    while len(parts) > 1:
        parts = [parts[i] + parts[i + 1] if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
    return parts[0]
