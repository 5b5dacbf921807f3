"""Declared features: bounds, levels and missing cells, not yet matched with the columns of a table."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dpoutlier._validate import parameter_error
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.category import Category
from dpoutlier.features.domain import Domain, axis_of
from dpoutlier.features.file import read_features
from dpoutlier.features.private_bounds import PrivateBounds, is_pair, number

REMEDY = (
    "State the range each feature may have, from knowledge of its meaning and never from the reference rows: "
    "features={'age': (0, 120), 'bmi': (10, 80)}, features=(lowers, uppers), features=(0, 1) for all features alike, "
    "or features='features.toml'. Where nobody knows it, spend part of epsilon on it: features=PrivateBounds(outer=(0, 1e6))."
)
Key = str | int


class Bounds:
    """Public ranges of the features.

    Detectors take a dict, a pair or a features file as well, so most users need no ``Bounds``. State the ranges from knowledge of
    the features' meaning, never from the reference rows.

    Parameters
    ----------
    lower : number or sequence of numbers
        Lower bound of all features, or of each.
    upper : number or sequence of numbers
        Upper bound of all features, or of each.
    names : sequence of str, default=None
        Names of the features. With names, columns are found by name.

    Attributes
    ----------
    leaked : bool
        Whether the bounds were taken from the reference rows, so that no guarantee holds.

    Raises
    ------
    InvalidParameterError
        If ``names`` is not a list of different texts. ``domain`` and ``fit`` check the numbers, when there is a table.

    See Also
    --------
    PrivateBounds : Bounds that the fit estimates with a part of epsilon.
    Category : The levels of a categorical feature.

    Examples
    --------
    >>> from dpoutlier import Bounds
    >>> Bounds(0, [120, 80], names=["age", "bmi"]).domain(2, ["age", "bmi"]).upper
    (120.0, 80.0)
    """

    leaked = False

    def __init__(self, lower: Any, upper: Any, names: Sequence[str] | None = None) -> None:
        self.lower, self.upper = lower, upper
        self.names = None if names is None else _checked_names(names)
        self._special: dict[Key, PrivateBounds | Category] = {}
        self._missing: frozenset[Key] | bool = False
        self._private: PrivateBounds | None = None  # for all features that have no range of their own

    def __repr__(self) -> str:
        special = f", {self._special!r}" if self._special else ""
        private = f", {self._private!r}" if self._private is not None else ""
        cells = self._missing if isinstance(self._missing, bool) else sorted(self._missing, key=str)
        missing = f", missing={cells!r}" if cells else ""
        leaked = ", leaked" if self.leaked else ""
        return f"Bounds({self.lower!r}, {self.upper!r}, names={self.names!r}{special}{private}{missing}{leaked})"

    @classmethod
    def of(cls, features: Any, categories: Any = None, missing: Any = "error") -> Bounds:
        """Make bounds from the arguments of a detector.

        Parameters
        ----------
        features : dict, Bounds, PrivateBounds, pair or path
            Public range of each feature, as for :class:`DPForest`. None if ``categories`` names all features.
        categories : dict, default=None
            Public levels of categorical features, by name or column number.
        missing : {'error', 'cell'} or list of features, default='error'
            Features that have a cell for missing values.

        Returns
        -------
        Bounds
            All that was declared.

        Raises
        ------
        InvalidParameterError
            If nothing, or something without meaning, was declared.

        See Also
        --------
        from_file : Read bounds from a file.

        Examples
        --------
        >>> from dpoutlier import Bounds
        >>> declared = Bounds.of({"age": (0, 120)}, categories={"sex": ["f", "m"]}, missing=["age"])
        >>> declared.names, declared.n_features
        (('age', 'sex'), 2)
        """
        if features is None and categories is None:
            raise InvalidParameterError(f"features are required and were not given. {REMEDY}")
        more, cells = _categories(categories), _missing(missing)
        found = (
            cls(None, None, [] if any(isinstance(key, str) for key in more) else None)
            if features is None
            else cls._of(features)
        )
        return found if not more and cells is False else found._with(more, cells)  # noqa: SLF001 - its own kind

    @classmethod
    def _of(cls, given: Any) -> Bounds:
        if isinstance(given, Bounds):
            return given
        if isinstance(given, PrivateBounds):
            found = cls(*given.outer)
            found._private = given
            return found
        if isinstance(given, str | Path):
            entries, cells = read_features(given)
            return cls.of(entries, missing=cells or "error")
        if isinstance(given, Mapping):
            return cls._of_mapping(given)
        if is_pair(given):
            return cls(given[0], given[1])
        raise parameter_error("features", "a Bounds, a dict, a pair or the path of a features file", given, REMEDY)

    @classmethod
    def _of_mapping(cls, given: Mapping[Any, Any]) -> Bounds:
        lower, upper, special = [], [], dict[Key, PrivateBounds | Category]()
        for name, entry in given.items():
            if not isinstance(name, str):
                raise parameter_error("features", "a dict from feature name to (lower, upper)", given, REMEDY)
            if isinstance(entry, Category | PrivateBounds):
                special[name] = entry
                pair: Any = entry.outer if isinstance(entry, PrivateBounds) else (0.0, 1.0)
            else:
                pair = entry
            if not is_pair(pair):
                raise parameter_error(f"bounds of {name}", "a pair (lower, upper), a Category or a PrivateBounds", pair)
            lower.append(number(f"lower bound of {name}", pair[0]))
            upper.append(number(f"upper bound of {name}", pair[1]))
        if not lower:
            raise parameter_error("features", "given for at least one feature", given, REMEDY)
        found = cls(lower, upper, names=list(given))
        found._special = special
        return found

    @classmethod
    def from_file(cls, path: str | Path) -> Bounds:
        """Read bounds from a features file.

        Parameters
        ----------
        path : str or Path
            A TOML or JSON file; ``dpoutlier features`` drafts one, and docs/features-file.md describes it.

        Returns
        -------
        Bounds
            All that the file declares.

        Raises
        ------
        InvalidParameterError
            If the file does not exist or declares something without meaning.

        See Also
        --------
        of : Make bounds from the arguments of a detector.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from dpoutlier import Bounds
        >>> path = Path(tempfile.mkdtemp()) / "features.toml"
        >>> _ = path.write_text("features = {age = [0, 120], bmi = [10, 80]}")
        >>> Bounds.from_file(path)
        Bounds([0.0, 10.0], [120.0, 80.0], names=('age', 'bmi'))
        """
        return cls._of(path)

    @classmethod
    def _of_domain(cls, domain: Domain, share: float, *, leaked: bool) -> Bounds:
        """What was declared for a domain, where private bounds cost this share of epsilon."""
        pairs = [domain.declared_range(j) or (domain.lower[j], domain.upper[j]) for j in range(domain.n_features)]
        found = cls([low for low, _ in pairs], [high for _, high in pairs], domain.names)
        found.leaked = leaked
        keys: Sequence[Key] = domain.names or range(domain.n_features)
        for j, key in enumerate(keys):
            outer, category = domain.outer_range(j), domain.category(j)
            if category is not None:
                found._special[key] = category
            elif outer is not None:
                found._special[key] = PrivateBounds(share, outer)
        found._missing = frozenset(key for j, key in enumerate(keys) if domain.has_missing_cell(j)) or False
        return found

    @classmethod
    def _as_fitted(cls, domain: Domain, *, leaked: bool) -> Bounds:
        """The bounds of a domain, where those that a fit has chosen are declared."""
        return cls._of_domain(replace(domain, outer=None, declared=None), 0.0, leaked=leaked)

    def _with(self, categories: dict[Key, Category], missing: frozenset[Key] | bool) -> Bounds:
        """The same with levels for some features, named or counted from 0, and cells for missing values."""
        twice = [name for name in categories if name in (self.names or ()) or name in self._special]
        if twice:
            raise parameter_error(
                "categories", "given for features that have no bounds", twice[0], "Declare each feature once."
            )
        names, lower, upper = self.names, self.lower, self.upper
        if names is not None:
            more = [name for name in categories if isinstance(name, str)]
            lower = (*self._each("lower", len(names)), *[0.0] * len(more))
            upper = (*self._each("upper", len(names)), *[1.0] * len(more))
            names = (*names, *more)
        found = Bounds(lower, upper, names)
        found._private, found.leaked = self._private, self.leaked
        found._special = {**self._special, **categories}
        named = [cells for cells in (self._missing, missing) if not isinstance(cells, bool)]
        found._missing = self._missing is True or missing is True or frozenset[Key]().union(*named)
        return found

    @property
    def n_features(self) -> int | None:
        """Number of features; None if the bounds fit any number."""
        if self.names is not None:
            return len(self.names)
        lengths = [len(side) for side in (self.lower, self.upper) if np.ndim(side) == 1]
        return lengths[0] if lengths else None

    def _share(self) -> float | None:
        """Share of epsilon that all private bounds cost together; None without any."""
        private = [entry for entry in self._special.values() if isinstance(entry, PrivateBounds)]
        shares = {entry.share for entry in (private if self._private is None else [*private, self._private])}
        if len(shares) > 1:
            raise parameter_error(
                "share", "the same in every PrivateBounds, since it is what all of them cost together", sorted(shares)
            )
        return next(iter(shares), None)

    def domain(self, n_features: int, names: Sequence[str] | None = None) -> Domain:
        """Match the bounds with the columns of a table.

        Parameters
        ----------
        n_features : int
            Number of columns.
        names : sequence of str, default=None
            Names of the columns, in the order of the table.

        Returns
        -------
        Domain
            The features in the order of the table, each with its bounds or levels.

        Raises
        ------
        InvalidParameterError
            If a column has no bounds, or bounds have no column.
        """
        self._share()  # refused here if shares differ
        found = None if names is None else tuple(names)
        if self.names is None:
            return self._domain(self._each("lower", n_features), self._each("upper", n_features), found)
        lower = dict(zip(self.names, self._each("lower", len(self.names)), strict=True))
        upper = dict(zip(self.names, self._each("upper", len(self.names)), strict=True))
        if found is None:
            if n_features != len(self.names):
                raise InvalidParameterError(
                    f"the declared features are {list(self.names)}, but the data has {n_features} columns, without names."
                )
            found = self.names
        self._check_names(found)
        return self._domain(tuple(lower[n] for n in found), tuple(upper[n] for n in found), found)

    def _domain(self, lower: tuple[float, ...], upper: tuple[float, ...], names: tuple[str, ...] | None) -> Domain:
        n = len(lower)
        special: dict[int, PrivateBounds | Category] = {}
        for key, entry in self._special.items():
            place = self._place(key, names, n, "categories")
            if place in special:
                raise parameter_error("categories", "given once for each feature", key)
            special[place] = entry
        cells = self._missing_cells(names, n)
        low, high = list(lower), list(upper)
        for j in range(n):
            own = special.get(j, self._private)
            if isinstance(own, Category):
                low[j], high[j] = 0.0, float(axis_of(own, missing=cells[j]).levels)
            elif isinstance(own, PrivateBounds):
                low[j], high[j] = own.outer
            elif self.lower is None:
                label = f"feature {j}" if names is None else names[j]
                raise InvalidParameterError(f"bounds of {label} are required and were not given. {REMEDY}")
        categories = tuple(_only(special.get(j), Category) for j in range(n))
        private = tuple(_only(special.get(j, self._private), PrivateBounds) for j in range(n))
        return Domain(
            lower=tuple(low),
            upper=tuple(high),
            names=names,
            categories=categories if any(categories) else None,
            missing=tuple(cells) if any(cells) else None,
            outer=tuple(None if one is None else one.outer for one in private) if any(private) else None,
        )

    def _missing_cells(self, names: tuple[str, ...] | None, n: int) -> list[bool]:
        if isinstance(self._missing, bool):
            return [self._missing] * n
        places = {self._place(key, names, n, "missing") for key in self._missing}
        return [j in places for j in range(n)]

    def _place(self, key: Key, names: tuple[str, ...] | None, n: int, what: str) -> int:
        """The number of the feature that a key means."""
        if isinstance(key, str) and names is not None and key in names:
            return names.index(key)
        if isinstance(key, int) and self.names is None and 0 <= key < n:
            return key
        how = "by names of columns" if self.names is not None else "by names of columns, or by their numbers from 0"
        raise parameter_error(what, f"given {how}", key, f"The features are {', '.join(names[:10])}." if names else "")

    def _check_names(self, found: tuple[str, ...]) -> None:
        assert self.names is not None
        own, given = set(self.names), set(found)
        unknown = [name for name in found if name not in own]
        absent = [name for name in self.names if name not in given]
        if unknown or absent:
            raise InvalidParameterError(
                "bounds and columns do not match:"
                + (f" columns without bounds: {unknown};" if unknown else "")
                + (f" bounds without a column: {absent};" if absent else "")
                + " declare bounds for exactly the columns you pass, or select the columns that have some."
            )

    def _each(self, side: str, n_features: int) -> tuple[float, ...]:
        given = getattr(self, side)
        if given is None:  # only levels are declared
            return (math.nan,) * n_features
        if isinstance(given, Sequence | np.ndarray) and np.ndim(given) == 1:
            if len(given) != n_features:
                raise parameter_error(
                    f"bounds ({side})", f"one number, or one for each of {n_features} features", given
                )
            return tuple(number(f"{side} bound of feature {j}", value) for j, value in enumerate(given))
        return (number(f"{side} bound", given),) * n_features


def _only(entry: Any, kind: type) -> Any:
    return entry if isinstance(entry, kind) else None


def _categories(given: Any) -> dict[Key, Category]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise parameter_error("categories", "a dict from feature to its levels, such as {'sex': ['f', 'm']}", given)
    found: dict[Key, Category] = {}
    for key, levels in given.items():
        try:
            found[_key("categories", key)] = levels if isinstance(levels, Category) else Category(levels)
        except InvalidParameterError as error:
            raise error.within(f"categories of {key!r}") from None
    return found


def _missing(given: Any) -> frozenset[Key] | bool:
    if isinstance(given, str) and given in {"cell", "error"}:
        return given == "cell"
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise parameter_error(
            "missing", "'error', 'cell', or a list of the features that have a cell for missing values", given
        )
    return frozenset(_key("missing", key) for key in given)


def _key(what: str, key: Any) -> Key:
    if isinstance(key, str):
        return str(key)
    if isinstance(key, bool) or not isinstance(key, numbers.Integral):
        raise parameter_error(what, "given by the name of a feature, or its number from 0", key)
    return int(key)


def _checked_names(names: Any) -> tuple[str, ...]:
    found = () if isinstance(names, str) else tuple(names)
    if isinstance(names, str) or not all(isinstance(name, str) for name in found):
        raise parameter_error("names", "a list of texts", names)
    if len(set(found)) < len(found):
        raise parameter_error("names", "given once for each feature", list(found))
    return found
