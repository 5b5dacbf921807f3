"""At most m rows of each person: which rows stay depends on that person's rows alone, and not on their order."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["kept_rows", "row_keys"]

Block = tuple[NDArray[np.int64], NDArray[np.uint32]]
"""A number for the person of each row, and the rows' positions."""

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


def kept_rows(blocks: Callable[[], Iterable[Block]], most: int) -> NDArray[np.bool_]:
    """Which rows stay: of each person the ``most`` with the least keys. Rows without an id (a negative number) do not.

    ``blocks`` gives all rows from the first on, as often as it is called; only ids and keys of all rows are held at once.
    """  # (P9)
    parts = [(ids, row_keys(positions)) for ids, positions in blocks()]
    ids, keys = (np.concatenate([np.zeros(0, np.int64), *(part[which] for part in parts)]) for which in (0, 1))
    order = np.lexsort((keys, ids))
    tied = (ids[order][1:] == ids[order][:-1]) & (keys[order][1:] == keys[order][:-1])
    if tied.any():  # nearly always of equal rows
        order = _by_positions(order, ids, keys, tied, blocks)
    place = np.arange(len(ids)) - np.searchsorted(ids[order], ids[order], side="left")
    kept = np.zeros(len(ids), np.bool_)
    kept[order] = (place < most) & (ids[order] >= 0)
    return kept


def _by_positions(
    order: NDArray[np.int64],
    ids: NDArray[np.int64],
    keys: NDArray[np.int64],
    tied: NDArray[np.bool_],
    blocks: Callable[[], Iterable[Block]],
) -> NDArray[np.int64]:
    """The same order, but rows of one person and key that differ go by their positions, so that the table's order says nothing."""
    among = np.zeros(len(order), np.bool_)
    among[:-1] |= tied
    among[1:] |= tied
    rows = np.sort(order[among])
    parts, start = [], 0
    for own, positions in blocks():
        inside = rows[(rows >= start) & (rows < start + len(own))] - start
        parts.append(positions[inside])
        start += len(own)
    positions = np.concatenate(parts)
    # Places of tied rows are next to each other and ordered by (id, key), so sorting them among themselves keeps all others.
    order[among] = rows[np.lexsort((*positions.T[::-1], keys[rows], ids[rows]))]
    return order
