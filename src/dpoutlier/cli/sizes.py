"""Sizes with a unit, such as 16MiB."""

import re

from dpoutlier._validate import parameter_error

UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "kb": 10**3, "mb": 10**6, "gb": 10**9}
LEAST, MOST = 1 << 10, 1 << 32


def bytes_of(name: str, text: str) -> int:
    """A number of bytes.

    >>> bytes_of("--max-bytes", "16MiB")
    16777216
    """
    found = re.fullmatch(r"\s*([0-9]{1,12})\s*([a-zA-Z]*)\s*", text)
    size = int(found[1]) * UNITS.get(found[2].lower(), 0) if found else 0
    if not LEAST <= size <= MOST:
        raise parameter_error(name, "a size from 1KiB to 4GiB, such as 16MiB", text[:80])
    return size
