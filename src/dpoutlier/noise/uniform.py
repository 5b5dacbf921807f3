"""Uniform sets of whole numbers of up to 128 bits, by rejection from random bytes."""

import numpy as np
from numpy.typing import NDArray

from dpoutlier.noise.sources import ByteSource

SPARE = 64


def draw_below(n: int, size: int, source: ByteSource) -> NDArray[np.uint64]:
    """``size`` independent uniform numbers below ``n``, at most 2**128, as words (high, low) of shape (size, 2)."""
    last_high, last_low = divmod(n - 1, 2**64)
    mask = (1 << (n - 1).bit_length()) - 1
    masks = np.array(divmod(mask, 2**64), np.uint64)
    found = np.empty((0, 2), np.uint64)
    while len(found) < size:
        # As many bits as n - 1 has: at least every second number is below n.
        wanted = 2 * (size - len(found)) + SPARE
        words = np.frombuffer(source.read(16 * wanted), "<u8").astype(np.uint64, copy=False).reshape(-1, 2) & masks
        high, low = words[:, 0], words[:, 1]
        below = (high < np.uint64(last_high)) | ((high == np.uint64(last_high)) & (low <= np.uint64(last_low)))
        found = np.concatenate([found, words[below]])
    return found[:size]


def draw_distinct_below(n: int, size: int, source: ByteSource) -> NDArray[np.uint64]:
    """A uniform set of ``size`` numbers below ``n``, ascending, as words (high, low).

    Numbers that came before are drawn again, never more than are missing: no set is favoured, since nothing here but the order
    depends on which numbers they are.
    """
    assert size <= n
    found = np.empty((0, 2), np.uint64)
    while len(found) < size:
        found = np.concatenate([found, draw_below(n, size - len(found), source)])
        found = found[np.lexsort((found[:, 1], found[:, 0]))]
        found = found[~same_as_before(found)]
    return found


def same_as_before(ids: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which of the sorted ``ids`` stood there already."""
    return np.append(np.zeros(min(len(ids), 1), np.bool_), (ids[1:] == ids[:-1]).all(axis=1))
