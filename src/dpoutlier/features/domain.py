"""A domain: the features of a table with their public ranges and levels, and with it the map of a row onto the lattice."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import parameter_error
from dpoutlier.features.axes import MISSING, Axis, level_position
from dpoutlier.features.category import Category
from dpoutlier.features.lattice import LAST, Line, scale

MAX_FEATURES, LONGEST_NAME = 10_000, 200

Pair = tuple[float, float]
R = TypeVar("R")


@dataclass(frozen=True)
class Domain:
    """Features with their public bounds; frozen, and valid by construction.

    A category of L levels lies in the bounds (0, L), and its level i at ``i + 1/2``; ``other`` is a level, and so is a missing
    value that has a cell of its own, unless the levels are ordered.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    names: tuple[str, ...] | None = None
    categories: tuple[Category | None, ...] | None = None
    """One entry for each feature; None: no feature has levels."""
    missing: tuple[bool, ...] | None = None
    """Which features have a cell for missing values; None: none has."""
    outer: tuple[Pair | None, ...] | None = None
    """The public range within which bounds are estimated, for features with private bounds; None: all are declared."""
    declared: tuple[Pair | None, ...] | None = None
    """The declared range, for features whose bounds a fit has narrowed to where the rows lie; None: all are as declared."""
    labels: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """Names for messages, made up where there are none."""
    axes: tuple[Axis, ...] = field(init=False, repr=False, compare=False)
    scales: tuple[float, ...] = field(init=False, repr=False, compare=False)
    """Positions per unit of each feature."""
    lines: tuple[Line, ...] = field(init=False, repr=False, compare=False)
    """How values of each feature become positions. A level, which is ``i + 1/2``, has the middle of its part of the lattice."""
    estimated: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """The features whose bounds are estimated with epsilon."""

    def __post_init__(self) -> None:
        n_names = len(self.lower) if self.names is None else len(self.names)
        if not 0 < len(self.lower) == len(self.upper) == n_names:
            raise parameter_error(
                "bounds", "as many lowers as uppers and names", (len(self.lower), len(self.upper), n_names)
            )
        if len(self.lower) > MAX_FEATURES:
            raise parameter_error("the number of features", f"at most {MAX_FEATURES}", len(self.lower))
        for name in self.names or ():
            check_feature_name(name)
        if self.names is not None and len(set(self.names)) < len(self.names):
            raise parameter_error("bounds", "given once for each feature", self.names)
        self._keep("labels", self.names or tuple(f"feature {j}" for j in range(len(self.lower))))
        for label, low, high in zip(self.labels, self.lower, self.upper, strict=True):
            check_range(label, low, high)
        self._check_lengths()
        # All of this is made now, and nothing at first use: what a fit needed of it would depend on the rows. (P5)
        features = range(len(self.lower))
        self._keep("axes", tuple(axis_of(self.category(j), missing=self.has_missing_cell(j)) for j in features))
        self._keep("scales", tuple(map(scale, self.lower, self.upper)))
        self._keep("lines", tuple(map(self._line, features)))
        self._keep("estimated", tuple(j for j, outer in enumerate(self.outer or ()) if outer))
        self._check_kinds()

    def _keep(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _line(self, j: int) -> Line:
        axis = self.axes[j]
        return Line(self.lower[j], self.upper[j], self.scales[j], LAST - axis.missing, self._missing_position(j))

    def _missing_position(self, j: int) -> int:
        """Position of missing values: in their cell, or in the first cell if they have none."""
        axis = self.axes[j]
        if not self.has_missing_cell(j):
            return 0
        return MISSING if axis.missing else level_position(axis.levels - 1, axis.levels)

    def _check_lengths(self) -> None:
        for what, given, empty in (("categories", self.categories, None), ("missing", self.missing, False)):
            # One way to write each domain: what no feature has is not written at all.
            if given is not None and (len(given) != len(self.lower) or all(one is empty for one in given)):
                raise parameter_error(what, "one entry for each feature, or nothing", given)
        for what, ranges in (("outer", self.outer), ("declared", self.declared)):
            if ranges is not None and (len(ranges) != len(self.lower) or not any(ranges)):
                raise parameter_error(what, "a range for some of the features, or nothing", ranges)

    def _check_kinds(self) -> None:
        for j, (label, axis) in enumerate(zip(self.labels, self.axes, strict=True)):
            if axis.levels and (self.lower[j], self.upper[j]) != (0.0, float(axis.levels)):
                raise parameter_error(
                    f"bounds of {label}", "left out, since it has levels", (self.lower[j], self.upper[j])
                )
            outer, declared = self.outer_range(j), self.declared_range(j)
            if outer is not None and declared is not None:
                raise parameter_error(f"bounds of {label}", "estimated or narrowed, not both", (outer, declared))
            for what, wide in (("outer", outer), ("declared", declared)):
                if wide is None:
                    continue
                check_range(label, *wide)
                if axis.levels or not wide[0] <= self.lower[j] < self.upper[j] <= wide[1]:
                    raise parameter_error(f"bounds of {label}", f"within their {what} range", wide)

    @property
    def n_features(self) -> int:
        return len(self.lower)

    def category(self, j: int) -> Category | None:
        return None if self.categories is None else self.categories[j]

    def outer_range(self, j: int) -> Pair | None:
        """The outer range of a feature with private bounds, else None."""
        return None if self.outer is None else self.outer[j]

    def declared_range(self, j: int) -> Pair | None:
        """The declared range of a feature whose bounds were narrowed, else None."""
        return None if self.declared is None else self.declared[j]

    @property
    def loose(self) -> tuple[int, ...]:
        """The features with a declared range, which may be too wide: those without levels, and without private bounds."""
        return tuple(j for j, axis in enumerate(self.axes) if not axis.levels and self.outer_range(j) is None)

    def has_missing_cell(self, j: int) -> bool:
        return self.missing is not None and self.missing[j]

    def with_bounds(self, bounds: dict[int, Pair]) -> Domain:
        """The same with other bounds for some features."""
        lower, upper = list(self.lower), list(self.upper)
        for j, (low, high) in bounds.items():
            lower[j], upper[j] = float(low), float(high)
        return replace(self, lower=tuple(lower), upper=tuple(upper))

    def narrowed(self, parts: dict[int, tuple[Fraction, Fraction]]) -> Domain:
        """The same where bounds are a part of the declared range: from and to, as shares of it."""
        found: dict[int, Pair] = {}
        for j, (first, last) in parts.items():
            low, width = self.lower[j], self.upper[j] - self.lower[j]
            pair = (
                low + width * float(first) if first else low,
                low + width * float(last) if last < 1 else self.upper[j],
            )
            if pair[0] < pair[1] and math.isfinite(scale(*pair)) and pair != (low, self.upper[j]):
                found[j] = pair
        if not found:
            return self
        declared = tuple((self.lower[j], self.upper[j]) if j in found else None for j in range(self.n_features))
        return replace(self.with_bounds(found), declared=declared)

    def outside(self, columns: NDArray[Any] | Sequence[NDArray[Any]]) -> NDArray[np.bool_]:
        """Which *public* points have a value outside the bounds. A level never lies outside, nor does a missing value.

        ``columns`` has the values of each feature. An array of shape (n_features, n) is compared at once, which is faster for few
        points; a sequence is compared column by column, which takes less memory.
        """
        if isinstance(columns, np.ndarray):
            low, high = np.array(self.lower)[:, np.newaxis], np.array(self.upper)[:, np.newaxis]
            return np.asarray(_beyond(columns, low, high).any(axis=0))
        found = np.zeros(len(columns[0]), np.bool_)
        for j, column in enumerate(columns):
            found |= self.beyond(j, column)
        return found

    def beyond(self, j: int, values: Any) -> Any:
        """Whether a value of one feature lies outside its bounds, or which of an array do."""
        return _beyond(values, self.lower[j], self.upper[j])

    def to_json(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "lower": list(self.lower),
            "upper": list(self.upper),
            "names": None if self.names is None else list(self.names),
            "scales": list(self.scales),
        }
        if self.categories is not None:
            content["categories"] = [one and one.to_json() for one in self.categories]
        if self.missing is not None:
            content["missing"] = list(self.missing)
        if self.outer is not None:
            content["outer"] = [one and list(one) for one in self.outer]
        if self.declared is not None:
            content["declared"] = [one and list(one) for one in self.declared]
        return content

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Domain:
        return cls(
            lower=tuple(map(float, content["lower"])),
            upper=tuple(map(float, content["upper"])),
            names=None if content["names"] is None else tuple(str(name) for name in content["names"]),
            categories=_each(content.get("categories"), Category.from_json),
            missing=None if content.get("missing") is None else tuple(one is True for one in content["missing"]),
            outer=_each(content.get("outer"), _pair),
            declared=_each(content.get("declared"), _pair),
        )


def _pair(given: Sequence[Any]) -> Pair:
    return float(given[0]), float(given[1])


def _each(entries: Sequence[Any] | None, make: Callable[[Any], R]) -> tuple[R | None, ...] | None:
    """``make`` of each entry; None for features without an entry. None if no feature has one."""
    return None if entries is None else tuple(None if one is None else make(one) for one in entries)


def _beyond(values: Any, lower: Any, upper: Any) -> Any:
    """What "outside the bounds" means, here and in SQL."""
    return (values < lower) | (values > upper)


def axis_of(category: Category | None, *, missing: bool) -> Axis:
    if category is None:
        return Axis(missing=missing)
    if category.ordered:
        return Axis(len(category.names), missing=missing)
    return Axis(len(category.names) + missing, unordered=True)


def check_feature_name(name: str) -> None:
    if not name.isprintable() or len(name) > LONGEST_NAME:
        raise parameter_error(
            "a feature's name", f"printable text of at most {LONGEST_NAME} characters", name[:LONGEST_NAME]
        )


def check_range(label: str, lower: float, upper: float) -> None:
    if not (math.isfinite(lower) and math.isfinite(upper)):
        raise parameter_error(f"bounds of {label}", "two finite numbers", (lower, upper))
    if not lower < upper:
        raise parameter_error(f"bounds of {label}", "(lower, upper) with lower < upper", (lower, upper))
    if not math.isfinite(upper - lower) or not math.isfinite(scale(lower, upper)):
        raise parameter_error(f"bounds of {label}", "neither wider than 1e308 nor narrower than 1e-298", (lower, upper))
