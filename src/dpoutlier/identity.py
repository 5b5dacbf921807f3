"""By which text a person is known: the values of the column that tells people apart."""

from __future__ import annotations

import math
import numbers
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

from dpoutlier._validate import is_whole

__all__ = ["identity"]

NO_ID = {"", "na", "n/a", "nan", "null", "none", "<na>", "nat"}
"""Words that stand for a missing id."""


def identity(value: Any) -> str | None:
    """The text by which a person is known; None for a missing id, and for what can be no id. No value can make this fail.

    Two people must not become one, nor one two: either would make a person cost more than is charged.
    """
    try:
        if isinstance(value, bytearray | memoryview):
            value = bytes(value)
        if isinstance(value, bytes):
            return _of_bytes(value)
        if isinstance(value, str):
            text = value.strip()
            return None if text.lower() in NO_ID else text
        if is_whole(value):
            return str(int(value))
        if isinstance(value, numbers.Real | Decimal) and not isinstance(value, bool):
            return _of_real(value)
        text = str(value) if isinstance(value, UUID | date | bool | np.bool_) else ""
        return None if text.lower() in NO_ID else text
    except Exception:  # noqa: BLE001 - objects may raise what they like
        return None


def _of_bytes(value: bytes) -> str | None:
    """Every byte counts: blanks at the end of a binary id are part of it."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return f"bytes {value.hex()}"
    return None if text.strip().lower() in NO_ID else text


def _of_real(value: Any) -> str | None:
    """Digits that do not depend on how the number is held: 1, 1.0 and Decimal("1.00") are one."""
    if isinstance(value, Decimal) and value.is_finite():
        return str(int(value)) if value == value.to_integral_value() else f"{value.normalize():f}"
    number = float(value)
    if not math.isfinite(number):
        return None
    return str(int(number)) if number.is_integer() else repr(number)
