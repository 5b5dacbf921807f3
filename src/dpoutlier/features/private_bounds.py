"""Bounds that the fit estimates privately, as a user declares them."""

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from dpoutlier._validate import checked_share, parameter_error
from dpoutlier.features.domain import check_range


def number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise parameter_error(name, "a number", value)
    try:
        return float(value)
    except OverflowError:
        raise parameter_error(name, "a number below 1e308", value) from None


def is_pair(value: object) -> TypeGuard[Sequence[Any]]:
    if isinstance(value, np.ndarray):
        return value.ndim > 0 and len(value) == 2
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray) and len(value) == 2


@dataclass(frozen=True)
class PrivateBounds:
    """Bounds that the fit estimates with a part of epsilon, where nobody knows the range of a feature.

    The fit takes private quantiles of the reference rows within a wide public range.

    Parameters
    ----------
    share : float, default=0.1
        Share of epsilon that all private bounds of a fit cost together, above 0 and below 1. Every ``PrivateBounds`` of a fit
        must state the same share.
    outer : pair of numbers, default=(-1e9, 1e9)
        Public range that the feature cannot leave, in the feature's unit. A narrower range gives better bounds.

    Raises
    ------
    InvalidParameterError
        If ``share`` is not between 0 and 1, or if ``outer`` is not a pair of finite numbers, the smaller one first.

    See Also
    --------
    Bounds : Bounds that are known.

    References
    ----------
    .. [1] R. McKenna and D. Sheldon, "Permute-and-flip: a new mechanism for differentially private selection", NeurIPS 2020.

    Examples
    --------
    >>> from dpoutlier import PrivateBounds
    >>> PrivateBounds(outer=(0, 1e6))
    PrivateBounds(share=0.1, outer=(0.0, 1000000.0))
    """

    share: float = 0.1
    outer: tuple[float, float] = (-1e9, 1e9)

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", checked_share(share=self.share))
        if not is_pair(self.outer):
            raise parameter_error("outer", "a pair (lower, upper)", self.outer)
        low, high = (number("outer", side) for side in self.outer)
        check_range("outer", low, high)
        object.__setattr__(self, "outer", (low, high))
