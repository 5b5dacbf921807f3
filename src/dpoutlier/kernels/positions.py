"""Values of one feature as lattice positions: ``floor(clip((x - lower) * scale, 0, last))``; missing ones all have the same."""

from typing import Any

import numpy as np

from dpoutlier.kernels.jit import kernel

__all__ = ["fill_positions"]


@kernel
def fill_positions(values: Any, lower: float, scale: float, last: float, absent: int, out: Any) -> int:
    """Positions of ``values``, of any float type and stride, into ``out``; ``absent`` for those that are missing.

    Returns how many values are missing.
    """
    missing = 0
    for i in range(out.shape[0]):
        value = np.float64(values[i])
        moved = (value - lower) * scale
        above = max(0.0, moved)  # false for what is no number
        out[i] = np.uint32(min(last, above))
        missing += value != value  # noqa: PLR0124 - true for what is no number
    if missing > 0 and absent > 0:
        for i in range(out.shape[0]):
            if np.isnan(values[i]):
                out[i] = np.uint32(absent)
    return missing
