"""Count the values of one feature between sorted edges: a guide by sign, exponent and first bits leaves few edges to compare."""

from typing import Any, NamedTuple

import numpy as np

from dpoutlier.kernels.jit import kernel

SHIFT = 44  # of a float64's bits; what is left of a magnitude is its exponent and 8 bits


class Guide(NamedTuple):
    """Classes of floats in ascending order, by ``bits of the magnitude >> SHIFT``, cut off at ``first`` and ``last``."""

    start: Any  # per class: how many edges are at or below all of it; and a last entry, the number of edges
    first: int
    last: int


@kernel
def count_between(values: Any, edges: Any, guide: Guide, counts: Any) -> None:
    """Add one to counts[i] for each value in [edges[i], edges[i + 1]). Values outside go to the ends, missing ones nowhere."""
    n_classes = guide.last - guide.first + 1
    for i in range(values.shape[0]):
        value = np.float64(values[i])
        if value != value:  # noqa: PLR0124 - true for NaN
            continue
        bits: Any = np.float64(abs(value)).view(np.int64)
        key = min(guide.last, max(guide.first, bits >> SHIFT)) - guide.first
        at = n_classes + key if value >= 0.0 else n_classes - 1 - key
        low, high = np.int64(guide.start[at]), np.int64(guide.start[at + 1])
        while low < high:  # edges[:low] <= value < edges[high:]
            middle = (low + high) // 2
            if edges[middle] <= value:
                low = middle + 1
            else:
                high = middle
        counts[min(max(low - 1, 0), counts.shape[0] - 1)] += 1
