"""Where a value lies, as an expression of any engine: lattice positions, as ``rows`` has them, to the bit.

All is done in whole numbers below 2**53 within float64, on which engines agree; on how to divide or round whole numbers, or what
a cast does, they do not. What is missing is handled first: some engines cannot cast it, and others call it the largest number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import narwhals.stable.v2 as nw

from dpoutlier.engines.values import is_missing, value
from dpoutlier.features.axes import MISSING
from dpoutlier.features.domain import Domain

__all__ = ["floor", "position", "positions", "total"]


def position(feature: int) -> str:
    """The column that has a feature's position."""
    return f"p{feature}"


def positions(domain: Domain) -> list[nw.Expr]:
    """The position of each feature, float64 and a whole number, from the columns of ``value_frame``."""
    return [_position(nw.col(value(j)), domain, j).alias(position(j)) for j in range(domain.n_features)]


def floor(given: nw.Expr) -> nw.Expr:
    """As float64; Spark's own is a whole number."""
    return given.floor().cast(nw.Float64)


def _position(given: nw.Expr, domain: Domain, j: int) -> nw.Expr:
    """Clipped to the bounds first: the same positions, and no sum or product can overflow, which some engines refuse."""
    lower, upper = domain.lower[j], domain.upper[j]
    moved = (given.clip(lower, upper) - lower) * domain.scales[j]
    last = float(MISSING - domain.axes[j].missing)
    found = floor(moved.clip(0.0, last))
    return nw.when(is_missing(given)).then(nw.lit(float(domain.lines[j].missing))).otherwise(found)


def total(terms: Iterable[nw.Expr]) -> nw.Expr:
    """A sum in pairs: engines walk expressions by recursion, and thousands of terms one inside the other are too deep."""
    parts: Sequence[nw.Expr] = list(terms)
    while len(parts) > 1:
        parts = [parts[i] + parts[i + 1] if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
    return parts[0]
