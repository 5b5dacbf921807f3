"""At most m rows of each person: which rows stay depends on that person's rows alone, and not on their order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["kept_rows", "row_keys"]

PRIME = 2**31 - 1
_PERSON = b"dpoutlier rows 1"


@lru_cache(maxsize=8)
def _factors(n_features: int) -> NDArray[np.uint64]:
    """Public multipliers: for each of two sums one for each feature, and one to add."""
    words = hashlib.shake_256(_PERSON + n_features.to_bytes(4, "little")).digest(16 * (n_features + 1))
    return (np.frombuffer(words, "<u8") % PRIME).reshape(2, n_features + 1)


def row_keys(positions: NDArray[np.uint32]) -> NDArray[np.int64]:
    """A number below 2**62 for each row, made of its positions alone: two sums of ``a_j * p_j``, modulo a prime of 31 bits."""
    n_features = positions.shape[1]
    sums = []
    for factors in _factors(n_features):
        total = np.full(len(positions), factors[-1], np.uint64)
        for j in range(n_features):
            total += positions[:, j].astype(np.uint64) * factors[j] % np.uint64(PRIME)
        sums.append(total % np.uint64(PRIME))
    return np.asarray((sums[0] << np.uint64(31)) | sums[1], np.int64)


def kept_rows(blocks: Iterable[tuple[NDArray[np.int64], NDArray[np.uint32]]], most: int) -> NDArray[np.bool_]:
    """Which rows stay: of each person the ``most`` with the least keys. Rows without an id (a negative number) do not."""  # (P9)
    parts = [(ids, positions, row_keys(positions)) for ids, positions in blocks]
    if not parts:
        return np.zeros(0, np.bool_)
    ids, keys = np.concatenate([part[0] for part in parts]), np.concatenate([part[2] for part in parts])
    order = np.lexsort((keys, ids))
    tied = (ids[order][1:] == ids[order][:-1]) & (keys[order][1:] == keys[order][:-1])
    if tied.any():
        positions = np.concatenate([part[1] for part in parts])
        if (positions[order[1:][tied]] != positions[order[:-1][tied]]).any():
            # Rows that differ and have the same key: their positions decide, so that their order in the table does not.
            order = np.lexsort((*positions.T[::-1], keys, ids))
    place = np.arange(len(ids)) - np.searchsorted(ids[order], ids[order], side="left")
    kept = np.zeros(len(ids), np.bool_)
    kept[order] = (place < most) & (ids[order] >= 0)
    return kept
