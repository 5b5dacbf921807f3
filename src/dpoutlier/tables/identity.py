"""The text that identifies a person, from a value of the person column."""

import numbers
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

from dpoutlier._validate import is_whole

NO_ID = {"", "na", "n/a", "nan", "null", "none", "<na>", "nat"}
"""Words that stand for a missing id."""
MAX_DIGITS = 400


def identity(value: Any) -> str | None:
    """The text that identifies a person; None for a missing id, or a value that cannot be one. No value can make this fail.

    Two people must not become one, nor one person two: either would make a person cost more than is charged. Equal numbers are the
    same id, whatever their type: 1, 1.0 and Decimal("1.00").

    >>> identity(" p7 "), identity(1.0), identity("NA")
    ('p7', '1', None)
    """
    try:
        if isinstance(value, bytearray | memoryview):
            value = bytes(value)
        if isinstance(value, bytes):
            return _of_bytes(value)
        if isinstance(value, str):
            text = value.strip()
            return None if text.lower() in NO_ID else text
        if isinstance(value, numbers.Real | Decimal) and not isinstance(value, bool | np.bool_):
            return _of_number(value)
        text = str(value) if isinstance(value, UUID | date | bool | np.bool_) else ""
        return None if text.lower() in NO_ID else text
    except Exception:  # noqa: BLE001 - objects may raise what they like
        return None


def _of_bytes(value: bytes) -> str | None:
    """Every byte counts, also a blank at the end. Bytes that are not UTF-8 become a value that no text can equal."""
    text = value.decode("utf-8", "surrogateescape")
    return None if text.strip().lower() in NO_ID else text


def _of_number(value: Any) -> str | None:
    """The number itself as a fraction, exactly."""
    if isinstance(value, Decimal) and abs(value.adjusted()) > MAX_DIGITS:
        return None  # its digits would fill the memory
    if is_whole(value):
        return str(int(value))
    numerator, denominator = value.as_integer_ratio()  # fails for NaN and infinity
    return str(numerator) if denominator == 1 else f"{numerator}/{denominator}"
