"""The public lattice: 2**32 positions per feature, the same in every engine and on every machine."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["POSITIONS", "positions", "scale", "unit_cube"]

POSITIONS = 2**32


def scale(lower: float, upper: float) -> float:
    """Positions per unit of a feature. Computed once and stored with the model."""
    return POSITIONS / (upper - lower)


def positions(values: NDArray[Any], lower: float, scale: float) -> NDArray[np.uint32]:
    """``floor(clip((x - lower) * scale, 0, 2**32 - 1))`` of one feature; missing values go to position 0.

    >>> positions(np.array([-1.0, 0.0, 0.5, 1.0, np.inf]), 0.0, scale(0.0, 1.0)).tolist()
    [0, 0, 2147483648, 4294967295, 4294967295]
    """
    with np.errstate(all="ignore"):  # a warning would depend on the rows
        moved = (values.astype(np.float64) - lower) * scale
    missing = np.isnan(moved)
    return np.asarray(np.floor(np.clip(np.where(missing, 0.0, moved), 0.0, POSITIONS - 1.0)).astype(np.uint32))


def unit_cube(lattice: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Positions as real numbers in [0, 1)."""
    return np.asarray(lattice.astype(np.float64) / POSITIONS)
