"""Checks of arguments. Each error says which argument, what it must be, what it was, and what to do."""

import numbers
import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from dpoutlier.exceptions import InvalidParameterError


def parameter_error(name: str, must: str, got: object, remedy: str = "") -> InvalidParameterError:
    """The error for an argument; to be raised by the caller."""
    return InvalidParameterError(name=name, must=must, value=shown(got), remedy=remedy)


def shown(value: object) -> str:
    """A value for a message. Python cannot write out some values: numbers of thousands of digits, and deep nesting."""
    try:
        return repr(value)
    except (ValueError, RecursionError):
        return f"something too long to be shown ({type(value).__name__})"


def exact_number(text: str, digits: int = 30) -> Fraction | None:
    """The rational that a text such as 0.5, 1e-3 or 1/3 denotes, or None. Never long at work, whatever the text."""
    d = rf"[0-9]{{1,{digits}}}"
    parts = re.fullmatch(rf"\s*\+?({d}/{d}|({d}(\.({d})?)?|\.{d})([eE][+-]?[0-9]{{1,3}})?)\s*", text)
    try:
        return Fraction(text) if parts else None
    except ZeroDivisionError:
        return None


def is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def positive_int(most: int = 2**53, **named: Any) -> int:
    """``positive_int(k=k)``: the one named value as an int in 1..most."""
    ((name, value),) = named.items()
    if not is_whole(value) or not 1 <= value <= most:
        limit = "" if most == 2**53 else f" and at most {most}"
        raise parameter_error(name, f"a whole number of at least 1{limit}", value)
    return int(value)


def optional_at_least(least: int, **named: Any) -> int | None:
    ((name, value),) = named.items()
    if value is None:
        return None
    if not is_whole(value) or value < least:
        raise parameter_error(name, f"a whole number of at least {least}, or None for no limit", value)
    return int(value)


def true_or_false(**named: Any) -> bool:
    ((name, value),) = named.items()
    if not isinstance(value, bool | np.bool_):
        raise parameter_error(name, "True or False", value)
    return bool(value)


def one_of(choices: Iterable[str], **named: Any) -> str:
    ((name, value),) = named.items()
    choices = [str(choice) for choice in choices]
    if not isinstance(value, str) or value not in choices:
        raise parameter_error(name, "one of " + ", ".join(map(repr, choices)), value)
    return str(value)


def checked_share(**named: Any) -> float:
    """A number strictly between 0 and 1."""
    ((name, value),) = named.items()
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    try:
        found = float(value) if real else 0.0
    except OverflowError:  # a whole number past all floats
        found = 0.0
    if not 0 < found < 1:
        raise parameter_error(name, "a number between 0 and 1, both excluded", value)
    return found


def share_below_half(**named: Any) -> float:
    """A number from 0 and below 1/2."""
    ((name, value),) = named.items()
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or not 0 <= value < Fraction(1, 2):
        raise parameter_error(name, "a number of at least 0 and below 0.5", value)
    return float(value)
