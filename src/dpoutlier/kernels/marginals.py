"""One histogram for each feature: bins ``(p * b) // 2**32``, numbered over all features; a missing value may have one more."""

from typing import Any

import numpy as np

from dpoutlier.kernels.jit import inlined, kernel

HALF = np.uint64(32)


@inlined
def bin_of(position: Any, bins: Any, absent: Any) -> Any:
    """The bin of a position; one past the last for ``absent``, the position of missing values, if it is one at all."""
    return ((np.uint64(position) * bins) >> HALF) + np.uint64(np.uint64(position) == absent)


@kernel
def tally_bins(positions: Any, bins: Any, absent: Any, first: Any, counters: Any) -> None:
    """Add one to the counter of each row's bin in each feature."""
    for j in range(bins.shape[0]):
        b, own = np.uint64(bins[j]), counters[first[j] :]
        for i in range(positions.shape[0]):
            own[bin_of(positions[i, j], b, absent[j])] += 1


@kernel
def add_bin_terms(positions: Any, bins: Any, absent: Any, first: Any, terms: Any, out: Any) -> None:
    """Add the terms of each row's bins to ``out``."""
    for j in range(bins.shape[0]):
        b, own = np.uint64(bins[j]), terms[first[j] :]
        for i in range(positions.shape[0]):
            out[i] += own[bin_of(positions[i, j], b, absent[j])]


@kernel
def bin_ids(positions: Any, bins: Any, absent: Any, first: Any, out: Any) -> None:
    """The bin of each row in each feature, into ``out`` of shape (n, features)."""
    for j in range(bins.shape[0]):
        b = np.uint64(bins[j])
        for i in range(positions.shape[0]):
            out[i, j] = first[j] + np.int64(bin_of(positions[i, j], b, absent[j]))
