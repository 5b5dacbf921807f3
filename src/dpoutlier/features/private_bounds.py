"""Bounds that are to be bought, as a user declares them."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from dpoutlier._validate import bad, share
from dpoutlier.features.domain import check_range

__all__ = ["PrivateBounds", "is_pair", "number"]


def number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise bad(name, "a number", value)
    try:
        return float(value)
    except OverflowError:
        raise bad(name, "a number below 1e308", value) from None


def is_pair(value: object) -> TypeGuard[Sequence[Any]]:
    if isinstance(value, np.ndarray):
        return value.ndim > 0 and len(value) == 2
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray) and len(value) == 2


@dataclass(frozen=True)
class PrivateBounds:
    """Bounds that are bought at the fit: noisy quantiles of the reference rows within a wide public range.

    Parameters
    ----------
    share : float
        Share of epsilon that all bought bounds of a fit cost together; every ``PrivateBounds`` of a fit states the same.
    outer : pair of numbers
        A public range that the feature cannot leave. The closer, the better what is bought; ``docs/private-bounds.md``.

    Examples
    --------
    >>> PrivateBounds(outer=(0, 1e6))
    PrivateBounds(share=0.1, outer=(0.0, 1000000.0))
    """

    share: float = 0.1
    outer: tuple[float, float] = (-1e9, 1e9)

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", share(share=self.share))
        if not is_pair(self.outer):
            raise bad("outer", "a pair (lower, upper)", self.outer)
        low, high = (number("outer", side) for side in self.outer)
        check_range("outer", low, high)
        object.__setattr__(self, "outer", (low, high))
