"""The public lattice: 2**32 positions per feature, the same in every engine and on every machine."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["POSITIONS", "scale", "unit_cube"]

POSITIONS = 2**32


def scale(lower: float, upper: float) -> float:
    """Positions per unit of a feature. Computed once and stored with the model."""
    return POSITIONS / (upper - lower)


def unit_cube(lattice: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Positions as real numbers in [0, 1)."""
    return np.asarray(lattice.astype(np.float64) / POSITIONS)
