"""Cell ids of 128 bits as two words of 64, (high, low)."""

from typing import Any

import numpy as np

from heap.jit import kernel

__all__ = ["find", "multiply_add"]

HALF = np.uint64(32)
LOW_HALF = np.uint64(0xFFFFFFFF)


@kernel
def multiply_add(high: Any, low: Any, factor: Any, addend: Any) -> tuple[Any, Any]:
    """``id * factor + addend`` for ids below 2**128, with factor and addend below 2**32."""
    bottom = (low & LOW_HALF) * factor + addend
    top = (low >> HALF) * factor + (bottom >> HALF)
    return high * factor + (top >> HALF), (top << HALF) | (bottom & LOW_HALF)


@kernel
def find(ids: Any, high: Any, low: Any) -> int:
    """Index of an id in the sorted array ``ids`` of shape (n, 2), or -1."""
    first, last = 0, ids.shape[0]
    while first < last:
        middle = (first + last) // 2
        if ids[middle, 0] < high or (ids[middle, 0] == high and ids[middle, 1] < low):
            first = middle + 1
        else:
            last = middle
    if first < ids.shape[0] and ids[first, 0] == high and ids[first, 1] == low:
        return first
    return -1
