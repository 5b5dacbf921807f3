"""Bounds: the public range of each feature, and with it the map of a row onto the lattice."""

from __future__ import annotations

import json
import math
import numbers
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier import lattice
from dpoutlier._validate import bad
from dpoutlier.exceptions import InvalidParameterError

__all__ = ["Bounds", "Domain"]

MOST_FEATURES, LONGEST_NAME = 10_000, 200
REMEDY = (
    "State the range each feature may have, from knowledge of its meaning and never from the reference rows: "
    "bounds={'age': (0, 120), 'bmi': (10, 80)}, bounds=(lowers, uppers), bounds=(0, 1) for all features alike, "
    "or bounds='features.toml'."
)


@dataclass(frozen=True)
class Domain:
    """Features with their public bounds; frozen, and valid by construction."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        n_names = len(self.lower) if self.names is None else len(self.names)
        if not 0 < len(self.lower) == len(self.upper) == n_names:
            raise bad("bounds", "as many lowers as uppers and names", (len(self.lower), len(self.upper), n_names))
        if len(self.lower) > MOST_FEATURES:
            raise bad("the number of features", f"at most {MOST_FEATURES}", len(self.lower))
        for name in self.names or ():
            if not name.isprintable() or len(name) > LONGEST_NAME:
                raise bad(
                    "a feature's name", f"printable text of at most {LONGEST_NAME} characters", name[:LONGEST_NAME]
                )
        if self.names is not None and len(set(self.names)) < len(self.names):
            raise bad("bounds", "given once for each feature", self.names)
        for label, low, high in zip(self.labels, self.lower, self.upper, strict=True):
            _check_range(label, low, high)

    @property
    def n_features(self) -> int:
        return len(self.lower)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names for messages, made up where there are none."""
        return self.names or tuple(f"feature {j}" for j in range(len(self.lower)))

    @property
    def scales(self) -> tuple[float, ...]:
        return tuple(lattice.scale(low, high) for low, high in zip(self.lower, self.upper, strict=True))

    def outside(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Which values of *public* points lie outside the bounds."""
        return np.asarray((values < np.array(self.lower)) | (values > np.array(self.upper)))


def _check_range(label: str, lower: float, upper: float) -> None:
    if not (math.isfinite(lower) and math.isfinite(upper)):
        raise bad(f"bounds of {label}", "two finite numbers", (lower, upper))
    if not lower < upper:
        raise bad(f"bounds of {label}", "(lower, upper) with lower < upper", (lower, upper))
    if not math.isfinite(upper - lower) or not math.isfinite(lattice.scale(lower, upper)):
        raise bad(f"bounds of {label}", "neither wider than 1e308 nor narrower than 1e-298", (lower, upper))


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise bad(name, "a number", value)
    return float(value)


class Bounds:
    """Declared bounds, not yet matched with the columns of a table.

    Parameters
    ----------
    lower, upper : number or sequence of numbers
        One for all features, or one for each.
    names : sequence of str, optional
        The features' names. With names, columns are found by name.

    Examples
    --------
    >>> Bounds(0, [120, 80], names=["age", "bmi"]).domain(2, ["age", "bmi"]).upper
    (120.0, 80.0)
    """

    def __init__(self, lower: Any, upper: Any, names: Sequence[str] | None = None) -> None:
        self.lower, self.upper = lower, upper
        self.names = None if names is None else tuple(names)

    def __repr__(self) -> str:
        return f"Bounds({self.lower!r}, {self.upper!r}, names={self.names!r})"

    @classmethod
    def of(cls, given: Any) -> Bounds:
        """Bounds from whatever a user may pass as ``bounds``."""
        if given is None:
            raise InvalidParameterError(f"bounds are required and were not given. {REMEDY}")
        if isinstance(given, Bounds):
            return given
        if isinstance(given, str | Path):
            return cls.from_file(given)
        if isinstance(given, Mapping):
            return cls._of_mapping(given)
        if isinstance(given, Sequence | np.ndarray) and len(given) == 2:
            return cls(given[0], given[1])
        raise bad("bounds", "a Bounds, a dict, a pair or the path of a features file", given, REMEDY)

    @classmethod
    def _of_mapping(cls, given: Mapping[Any, Any]) -> Bounds:
        lower, upper = [], []
        for name, pair in given.items():
            if not isinstance(name, str):
                raise bad("bounds", "a dict from feature name to (lower, upper)", given, REMEDY)
            if isinstance(pair, str) or not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
                raise bad(f"bounds of {name}", "a pair (lower, upper)", pair)
            lower.append(_number(f"lower bound of {name}", pair[0]))
            upper.append(_number(f"upper bound of {name}", pair[1]))
        if not lower:
            raise bad("bounds", "given for at least one feature", given, REMEDY)
        return cls(lower, upper, names=list(given))

    @classmethod
    def from_file(cls, path: str | Path) -> Bounds:
        """Bounds from a features file (TOML or JSON); see docs/features-file.md."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8-sig")
            content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        except FileNotFoundError:
            raise InvalidParameterError(f"features file {path} does not exist.") from None
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise InvalidParameterError(f"features file {path} cannot be read: {error}.") from None
        return cls._of_mapping(_ranges(path, content))

    @property
    def n_features(self) -> int | None:
        """The number of features, if the bounds tell it."""
        if self.names is not None:
            return len(self.names)
        lengths = [len(side) for side in (self.lower, self.upper) if np.ndim(side) == 1]
        return lengths[0] if lengths else None

    def domain(self, n_features: int, names: Sequence[str] | None = None) -> Domain:
        """The bounds matched with the columns of a table. Every column must have bounds, and in the table's order."""
        found = None if names is None else tuple(names)
        if self.names is None:
            return Domain(self._each("lower", n_features), self._each("upper", n_features), found)
        lower = dict(zip(self.names, self._each("lower", len(self.names)), strict=True))
        upper = dict(zip(self.names, self._each("upper", len(self.names)), strict=True))
        if found is None:
            if n_features != len(self.names):
                raise InvalidParameterError(
                    f"bounds are declared for {len(self.names)} features {list(self.names)}, "
                    f"and the data has {n_features} columns without names."
                )
            found = self.names
        self._check_names(found)
        return Domain(tuple(lower[n] for n in found), tuple(upper[n] for n in found), found)

    def _check_names(self, found: tuple[str, ...]) -> None:
        assert self.names is not None
        unknown = [name for name in found if name not in self.names]
        absent = [name for name in self.names if name not in found]
        if unknown or absent:
            raise InvalidParameterError(
                "bounds and columns do not match:"
                + (f" columns without bounds: {unknown};" if unknown else "")
                + (f" bounds without a column: {absent};" if absent else "")
                + " declare bounds for exactly the columns you pass."
            )

    def _each(self, side: str, n_features: int) -> tuple[float, ...]:
        given = getattr(self, side)
        if isinstance(given, Sequence | np.ndarray) and np.ndim(given) == 1:
            if len(given) != n_features:
                raise bad(f"bounds ({side})", f"one number, or one for each of {n_features} features", given)
            return tuple(_number(f"{side} bound of feature {j}", value) for j, value in enumerate(given))
        return (_number(f"{side} bound", given),) * n_features


def _ranges(path: Path, content: Any) -> dict[str, Any]:
    """Ranges by name from the content of a features file."""
    features = content.get("features") if isinstance(content, dict) else None
    if not isinstance(features, dict) or not features or set(content) != {"features"}:
        raise InvalidParameterError(
            f"features file {path} must hold one table named 'features', one entry for each feature, such as "
            "[features] / age = [0, 120]."
        )
    ranges = {}
    for name, entry in features.items():
        if isinstance(entry, dict) and set(entry) == {"lower", "upper"}:
            ranges[name] = [entry["lower"], entry["upper"]]
        elif isinstance(entry, list) and len(entry) == 2:
            ranges[name] = entry
        else:
            raise InvalidParameterError(
                f"features file {path}: {name} must be [lower, upper] or {{lower = ..., upper = ...}}, got {entry!r}."
            )
    return ranges
