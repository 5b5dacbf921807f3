"""At most m rows of each person, as an expression of an engine: the same rows as ``people.kept_rows`` keeps."""

from __future__ import annotations

import math
from typing import Any

import narwhals.stable.v2 as nw

from dpoutlier.domain import Domain
from dpoutlier.engines.places import floor, is_missing, number, plain_text, position, positions, total
from dpoutlier.identity import NO_ID
from dpoutlier.trusted.people import PRIME, factors

__all__ = ["kept_frame"]

WHOLE = 2.0**53
"""From here on, numbers have no digits after the point."""


def kept_frame(
    frame: nw.LazyFrame[Any], types: dict[str, Any], domain: Domain, person: str, most: int
) -> nw.LazyFrame[Any]:
    """The features of the rows that stay: of each person the ``most`` with the least keys, and none without an id.

    The frame is one of ``plain_frame``. Rows of one person with the same key go by their values, so that their order in the table
    says nothing; what still ties is equal in all of them.
    """  # (P9)
    features = {name: dtype for name, dtype in types.items() if name != person}
    names = list(features)
    who, valid = _identity(person, types[person])
    named = frame.select(
        *names,
        who.alias("who"),
        valid.alias("valid"),
        *_places(features, domain),
        *_values(features, domain),
    )
    named = named.filter(nw.col("valid"))
    n_places = domain.n_features + len(domain.bought)
    keyed = named.with_columns(*(_key(i, n_places) for i in (0, 1)), nw.lit(1).alias("one"))
    order = ["key0", "key1", *(f"v{j}" for j in _lines(domain))]
    place = nw.col("one").cum_sum().over("who", order_by=order)
    return keyed.with_columns(place.alias("place")).filter(nw.col("place") <= most).select(*names)


def _identity(person: str, dtype: Any) -> tuple[nw.Expr, nw.Expr]:
    """What tells people apart, as ``identity`` has it, and whether it does."""
    if dtype == nw.Boolean or dtype.is_integer() or dtype.is_decimal():
        return nw.col(person), ~nw.col(person).is_null()
    if dtype.is_float():
        value = number(person)
        return value, ~(is_missing(value) | (value.abs() == math.inf))
    text = plain_text(person)
    return text, ~(text.is_null() | text.str.to_lowercase().is_in(sorted(NO_ID)))


def _lines(domain: Domain) -> list[int]:
    """Features that are numbers; of others the position tells the value."""
    return [j for j in range(domain.n_features) if domain.category(j) is None]


def _values(types: dict[str, Any], domain: Domain) -> list[nw.Expr]:
    """Numbers to sort by. A missing one comes last; it never ties with one that is infinite, which lies elsewhere."""
    names = list(types)
    return [
        nw.when(is_missing(number(names[j]))).then(nw.lit(math.inf)).otherwise(number(names[j])).alias(f"v{j}")
        for j in _lines(domain)
    ]


def _places(types: dict[str, Any], domain: Domain) -> list[nw.Expr]:
    """What the key of a row is made of, as in ``people.places_of``."""
    names = list(types)
    found = [at.alias(position(j)) for j, at in enumerate(positions(types, domain))]
    found += [_digits(number(names[j])).alias(position(domain.n_features + i)) for i, j in enumerate(domain.bought)]
    return found


def _digits(value: nw.Expr) -> nw.Expr:
    """The 32 bits after the point."""
    within = value.clip(-WHOLE, WHOLE)
    digits = floor(((within - floor(within)) * 2.0**32).clip(0.0, 2.0**32 - 1))
    return nw.when(is_missing(value)).then(nw.lit(0.0)).otherwise(digits)


def _key(which: int, n_places: int) -> nw.Expr:
    """One of the two sums of ``people.row_keys``."""
    own = [int(factor) for factor in factors(n_places)[which]]
    terms = [nw.col(position(j)).cast(nw.Int64) * own[j] % PRIME for j in range(n_places)]
    return ((total(terms) + own[-1]) % PRIME).alias(f"key{which}")
