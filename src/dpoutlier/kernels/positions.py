"""Values of one feature as lattice positions, as ``features.lattice`` defines them."""

from typing import Any

import numpy as np

from dpoutlier.kernels.jit import inlined, kernel


@inlined
def moved(value: Any, lower: Any, scale: Any) -> Any:
    """A value in units of positions, neither clipped nor rounded down."""
    return (np.float64(value) - lower) * scale


@kernel
def fill_positions(values: Any, lower: float, scale: float, last: float, absent: int, out: Any) -> int:
    """Positions of ``values``, of any float type and stride, into ``out``; ``absent`` for those that are missing.

    Returns how many values are missing.
    """
    missing = 0
    for i in range(out.shape[0]):
        value = np.float64(values[i])
        above = max(0.0, moved(value, lower, scale))  # 0 for NaN
        out[i] = np.uint32(min(last, above))
        missing += value != value  # noqa: PLR0124 - true for NaN
    if missing > 0 and absent > 0:
        for i in range(out.shape[0]):
            if np.isnan(values[i]):
                out[i] = np.uint32(absent)
    return missing
