"""Values of one feature as lattice positions: ``floor(clip((x - lower) * scale, 0, 2**32 - 1))``, and 0 for a missing value."""

from typing import Any

import numpy as np

from dpoutlier.kernels.jit import kernel

__all__ = ["fill_positions"]

LAST = 2.0**32 - 1.0


@kernel
def fill_positions(values: Any, lower: float, scale: float, out: Any) -> int:
    """Positions of ``values``, of any float type and stride, into ``out``. Returns how many values are missing."""
    missing = 0
    for i in range(out.shape[0]):
        value = np.float64(values[i])
        moved = (value - lower) * scale
        above = max(0.0, moved)  # false for what is no number
        out[i] = np.uint32(min(LAST, above))
        missing += value != value  # noqa: PLR0124 - true for what is no number
    return missing
