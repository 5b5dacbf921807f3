"""Cell ids of 128 bits as two words of 64, (high, low)."""

from typing import Any

import numpy as np

from dpoutlier.kernels.jit import inlined

HALF = np.uint64(32)
LOW_HALF = np.uint64(0xFFFFFFFF)


@inlined
def multiply_add(high: Any, low: Any, factor: Any, addend: Any) -> tuple[Any, Any]:
    """``id * factor + addend`` for ids below 2**128, with factor and addend below 2**32."""
    bottom = (low & LOW_HALF) * factor + addend
    top = (low >> HALF) * factor + (bottom >> HALF)
    return high * factor + (top >> HALF), (top << HALF) | (bottom & LOW_HALF)
