"""Categories: declared levels of a feature, and which level a value is. Public."""

from __future__ import annotations

import math
import numbers
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np

from dpoutlier._validate import parameter_error, true_or_false

MAX_LEVELS, LONGEST_LEVEL = 10_000, 200
NO_NUMBER = {"nan", "+nan", "-nan"}
# The levels that a truth value may mean; the first of them that is declared is meant. Programs write them in many ways.
TRUTH = {False: ("false", "False", "FALSE", "0"), True: ("true", "True", "TRUE", "1")}

# Possessive throughout: a long value must not take long.
NUMBER = re.compile(
    r"\s*+[+-]?+(?:(?:\d++(?:\.\d*+)?+|\.\d++)(?:e[+-]?+\d++)?+|inf(?:inity)?+)\s*+", re.IGNORECASE | re.ASCII
)
DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}(?:[T ].*)?|\d{1,2}:\d{2}(?::\d{2}.*)?", re.ASCII)


def text_of(value: Any) -> str | None:
    """A value as the text by which levels are known; None if it is missing. No value can make this fail.

    Blanks around text do not count, and neither does how a whole number is written.

    >>> text_of(" low "), text_of(2.0), text_of(True), text_of(float("nan"))
    ('low', '2', 'true', None)
    """
    try:
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        if isinstance(value, str):
            return str(value).strip() or None
        if isinstance(value, bool | np.bool_):
            return "true" if value else "false"
        return _number_text(value) if isinstance(value, numbers.Real | Decimal) else None
    except Exception:  # noqa: BLE001 - objects may raise what they like
        return None


def _number_text(value: Any) -> str | None:
    if isinstance(value, numbers.Integral) and abs(int(value)) < 2**53:
        return str(int(value))
    try:
        number = float(value)
    except OverflowError:  # as the same number written out would be
        number = math.inf if value > 0 else -math.inf
    if math.isnan(number):
        return None
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


@dataclass(frozen=True, init=False)
class Category:
    """Public levels of a categorical feature.

    State the levels from knowledge of the feature's meaning, never from the reference rows: a level that is declared because one
    person has it would publish that.

    Parameters
    ----------
    levels : sequence of str, of numbers, or of False and True
        The levels. A number is the same level however it is written: 1, 1.0 or "1.0". Blanks around texts do not count. A truth
        value is the level "true" or, if there is none, "True", "TRUE" or 1.
    ordered : bool, default=False
        Whether the levels have an order. Levels i and j of L ordered levels are ``|i - j| / L`` apart; levels without order are all
        1 apart.
    other : bool, default=None
        Whether there is one more level for all values that are not declared. None means: unless the levels are ordered. Without it,
        such a value counts as missing.

    Attributes
    ----------
    levels : tuple of str
        The declared levels.
    numeric : bool
        Whether the levels are numbers.
    ordered : bool
        Whether the levels have an order.
    other : bool
        Whether there is a level for all other values.

    Raises
    ------
    InvalidParameterError
        If there are no levels, more than 10,000, or two equal ones; if they are not all of one kind; if one is not printable text
        of 1 to 200 characters; or if ``ordered`` and ``other`` are both True.

    See Also
    --------
    Bounds : Ranges of numbers.

    Examples
    --------
    >>> from dpoutlier import Category
    >>> Category(["never", "former", "current"]).names
    ('never', 'former', 'current', 'other')
    >>> Category([1, 2, 3], ordered=True).code("3.0")
    2
    """

    levels: tuple[str, ...]
    numeric: bool
    ordered: bool
    other: bool
    _codes: dict[str, int] = field(init=False, repr=False, compare=False)

    def __init__(self, levels: Iterable[Any], *, ordered: bool = False, other: bool | None = None) -> None:
        if isinstance(levels, str | bytes | AbstractSet | Mapping) or not isinstance(levels, Iterable):
            raise parameter_error("levels", "a list of texts or of numbers", levels)
        given = list(levels)
        numeric = bool(given) and all(_is_number(level) for level in given)
        if not given or not (numeric or _all_are(given, str) or _all_are(given, bool | np.bool_)):
            raise parameter_error("levels", "a list of texts, or of finite numbers, and not empty", given[:10])
        found = tuple(str(text_of(level) or "") for level in given)
        if len(found) > MAX_LEVELS:
            raise parameter_error("levels", f"at most {MAX_LEVELS} in number", len(found))
        for level in found:
            if not level or not level.isprintable() or len(level) > LONGEST_LEVEL:
                raise parameter_error(
                    "a level", f"printable text of 1 to {LONGEST_LEVEL} characters", level[:LONGEST_LEVEL]
                )
        if len(set(found)) < len(found):
            raise parameter_error("levels", "given once each", Counter(found).most_common(1)[0][0])
        ordered = true_or_false(ordered=ordered)
        other = not ordered if other is None else true_or_false(other=other)
        if ordered and other:
            raise parameter_error(
                "other",
                "False where levels are ordered",
                other,
                "With ordered levels, an undeclared value counts as missing.",
            )
        codes = {level: i for i, level in enumerate(found)}
        made = {"levels": found, "numeric": numeric, "ordered": ordered, "other": other, "_codes": codes}
        for name, value in made.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        levels = f"[{', '.join(self.levels)}]" if self.numeric else repr(list(self.levels))
        return f"Category({levels}, ordered={self.ordered}, other={self.other})"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all levels, including the one for other values."""
        if not self.other:
            return self.levels
        name = "other"
        while name in self.levels:
            name = f"({name})"
        return (*self.levels, name)

    def code(self, value: Any) -> int | None:
        """Find the level of a value.

        Parameters
        ----------
        value : object
            A value as it stands in a table.

        Returns
        -------
        int or None
            Number of the level, from 0. None if the value is missing, or is not declared and there is no level for other values.

        Examples
        --------
        >>> from dpoutlier import Category
        >>> smoking = Category(["never", "former", "current"])
        >>> smoking.code(" former "), smoking.code("a pipe"), smoking.code(None)
        (1, 3, None)
        """
        text = text_of(value)
        if text is None or (self.numeric and text.lower() in NO_NUMBER):
            return None
        if isinstance(value, bool | np.bool_):
            text = next((known for known in TRUTH[bool(value)] if known in self._codes), text)
        elif self.numeric and NUMBER.fullmatch(text):
            text = str(text_of(float(text)))
        return self._codes.get(text, len(self.levels) if self.other else None)

    def to_json(self) -> dict[str, Any]:
        """Describe the category in JSON's types.

        Returns
        -------
        dict
            What ``from_json`` takes.
        """
        return {"levels": list(self.levels), "numeric": self.numeric, "ordered": self.ordered, "other": self.other}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Category:
        """Make a category from what ``to_json`` returned.

        Parameters
        ----------
        content : dict
            What ``to_json`` returned.

        Returns
        -------
        Category
            The same category.

        Raises
        ------
        InvalidParameterError
            If the levels are not as ``to_json`` writes them.
        """
        levels: Sequence[Any] = content["levels"]
        found = cls(
            map(float, levels) if content["numeric"] else levels, ordered=content["ordered"], other=content["other"]
        )
        if found.to_json() != content:
            raise parameter_error("levels", "as they are written to files", levels[:10])
        return found


def _all_are(values: list[Any], kind: Any) -> bool:
    return all(isinstance(value, kind) for value in values)


def _is_number(value: Any) -> bool:
    try:
        return isinstance(value, numbers.Real | Decimal) and not isinstance(value, bool) and math.isfinite(value)
    except (OverflowError, ValueError):  # past all floats, or a Decimal that signals
        return False
