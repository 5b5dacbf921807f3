"""One histogram for each feature: bins ``(p * b) // 2**32``, numbered over all features."""

from typing import Any

import numpy as np

from dpoutlier.kernels.jit import kernel

__all__ = ["add_bin_terms", "bin_ids", "tally_bins"]

HALF = np.uint64(32)


@kernel
def tally_bins(positions: Any, bins: Any, first: Any, counters: Any) -> None:
    """Add one to the counter of each row's bin in each feature."""
    for j in range(bins.shape[0]):
        b, own = np.uint64(bins[j]), counters[first[j] :]
        for i in range(positions.shape[0]):
            own[(np.uint64(positions[i, j]) * b) >> HALF] += 1


@kernel
def add_bin_terms(positions: Any, bins: Any, first: Any, terms: Any, out: Any) -> None:
    """Add the terms of each row's bins to ``out``."""
    for j in range(bins.shape[0]):
        b, own = np.uint64(bins[j]), terms[first[j] :]
        for i in range(positions.shape[0]):
            out[i] += own[(np.uint64(positions[i, j]) * b) >> HALF]


@kernel
def bin_ids(positions: Any, bins: Any, first: Any, out: Any) -> None:
    """The bin of each row in each feature, into ``out`` of shape (n, features)."""
    for j in range(bins.shape[0]):
        b = np.uint64(bins[j])
        for i in range(positions.shape[0]):
            out[i, j] = first[j] + np.int64((np.uint64(positions[i, j]) * b) >> HALF)
