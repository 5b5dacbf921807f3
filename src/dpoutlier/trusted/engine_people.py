"""At most m rows of each person, as an expression of an engine: rows in the same cells as those that ``people.kept_rows`` keeps."""

import math
import sys
from typing import Any

import narwhals.stable.v2 as nw

from dpoutlier.engines.expressions.positions import floor, position, positions, total
from dpoutlier.engines.expressions.values import is_missing, number, plain_text, value
from dpoutlier.features.domain import Domain
from dpoutlier.tables.identity import NO_ID
from dpoutlier.trusted.people import PRIME, factors

WHOLE = 2.0**53
"""From here on, numbers have no digits after the point."""
LARGEST = sys.float_info.max


def kept_frame(frame: nw.LazyFrame[Any], domain: Domain, person: str, kind: Any, most: int) -> nw.LazyFrame[Any]:
    """The values of the rows that stay: for each person, the ``most`` rows with the smallest keys; no row without an id.

    The frame is one of ``value_frame``, and ``kind`` the type of its person column. Rows of one person with the same key go by
    their values, so that their order in the table says nothing. What still ties is equal in all that is read of it later.
    """  # (P9)
    names = [value(j) for j in range(domain.n_features)]
    who, valid = _identity(person, kind)
    named = frame.select(*names, who.alias("who"), valid.alias("valid"), *_places(domain), *_order(domain))
    named = named.filter(nw.col("valid"))
    n_places = domain.n_features + len(domain.estimated)
    keyed = named.with_columns(*(_key(i, n_places) for i in (0, 1)), nw.lit(1).alias("one"))
    order = ["key0", "key1", *(f"o{j}" for j in range(domain.n_features))]
    place = nw.col("one").cum_sum().over("who", order_by=order)
    return keyed.with_columns(place.alias("place")).filter(nw.col("place") <= most).select(*names)


def _identity(person: str, kind: Any) -> tuple[nw.Expr, nw.Expr]:
    """The id of a person, as ``identity`` defines it, and whether the row has one."""
    if kind == nw.Boolean or kind.is_integer() or kind.is_decimal():
        return nw.col(person), ~nw.col(person).is_null()
    if kind.is_float():
        own = number(person, kind)
        return own, ~(is_missing(own) | (own.abs() == math.inf))
    text = plain_text(person)
    return text, ~(text.is_null() | text.str.to_lowercase().is_in(sorted(NO_ID)))


def _order(domain: Domain) -> list[nw.Expr]:
    """Numbers to sort by. A missing one comes last; infinity counts as the largest number, which lies in the same cells."""
    each = [(nw.col(value(j)), f"o{j}") for j in range(domain.n_features)]
    return [
        nw.when(is_missing(own)).then(nw.lit(math.inf)).otherwise(own.clip(upper_bound=LARGEST)).alias(name)
        for own, name in each
    ]


def _places(domain: Domain) -> list[nw.Expr]:
    """What the key of a row is made of, as in ``people.places_of``."""
    digits = [_digits(nw.col(value(j))) for j in domain.estimated]
    return [*positions(domain), *(own.alias(position(domain.n_features + i)) for i, own in enumerate(digits))]


def _digits(given: nw.Expr) -> nw.Expr:
    """The 32 bits after the point."""
    within = given.clip(-WHOLE, WHOLE)
    digits = floor(((within - floor(within)) * 2.0**32).clip(0.0, 2.0**32 - 1))
    return nw.when(is_missing(given)).then(nw.lit(0.0)).otherwise(digits)


def _key(which: int, n_places: int) -> nw.Expr:
    """One of the two sums of ``people.row_keys``."""
    own = [int(factor) for factor in factors(n_places)[which]]
    terms = [nw.col(position(j)).cast(nw.Int64) * own[j] % PRIME for j in range(n_places)]
    return ((total(terms) + own[-1]) % PRIME).alias(f"key{which}")
