"""Laplace noise by floating point, as the paper's authors draw it: to reproduce it, and to show that it leaks (Mironov 2012)."""

import numpy as np
from numpy.typing import NDArray

from dpoutlier.noise.sources import ByteSource

__all__ = ["unsafe_float_laplace"]


def unsafe_float_laplace(scale: float, n: int, source: ByteSource) -> NDArray[np.float64]:
    """``n`` floats ``-scale * sign * log(u)``. The low bits of count + noise tell the count: not private."""
    words = np.frombuffer(source.read(16 * n), "<u8").reshape(2, n)
    magnitude = -scale * np.log(((words[0] >> np.uint64(11)) + 0.5) * 2.0**-53)
    return np.asarray(np.where(words[1] & np.uint64(1), magnitude, -magnitude))
