"""At most m rows of each person: which rows stay depends on that person's rows alone, and not on their order."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Block(NamedTuple):
    """Some rows."""

    ids: NDArray[np.int64]
    """The number of each row's person; negative for rows without an id."""
    places: NDArray[np.uint32]
    """What the key of a row is made of: positions, and of features with private bounds the 32 bits after the point too."""
    values: NDArray[np.float64]
    """Everything that the fit knows of a row."""


PRIME = 2**31 - 1
_PERSON = b"dpoutlier rows 1"


@lru_cache(maxsize=8)
def factors(n_places: int) -> NDArray[np.uint64]:
    """Public multipliers: for each of two sums one for each place, and one to add."""
    words = hashlib.shake_256(_PERSON + n_places.to_bytes(4, "little")).digest(16 * (n_places + 1))
    return (np.frombuffer(words, "<u8") % PRIME).reshape(2, n_places + 1)


def places_of(
    values: NDArray[np.float64], positions: NDArray[np.uint32], estimated: Sequence[int]
) -> NDArray[np.uint32]:
    """What keys are made of. Within a wide outer range many rows share a position, so their digits after the point count too."""
    with np.errstate(invalid="ignore"):
        parts = values[:, list(estimated)] - np.floor(values[:, list(estimated)])
    digits = np.floor(np.nan_to_num(parts) * 2.0**32).clip(0, 2.0**32 - 1).astype(np.uint32)
    return np.concatenate([positions, digits], axis=1)


def row_keys(places: NDArray[np.uint32]) -> NDArray[np.int64]:
    """A number below 2**62 for each row, made of its places alone: two sums of ``a_j * p_j``, modulo a prime of 31 bits."""
    n_places = places.shape[1]
    sums = []
    for own in factors(n_places):
        total = np.full(len(places), own[-1], np.uint64)
        for j in range(n_places):
            total += places[:, j].astype(np.uint64) * own[j] % np.uint64(PRIME)
        sums.append(total % np.uint64(PRIME))
    return np.asarray((sums[0] << np.uint64(31)) | sums[1], np.int64)


def kept_rows(blocks: Callable[[], Iterable[Block]], most: int) -> NDArray[np.bool_]:
    """Which rows stay: for each person, the ``most`` rows with the smallest keys. Rows without an id (negative) are dropped.

    ``blocks`` gives all rows from the first on, as often as it is called; only ids and keys of all rows are held at once.
    """  # (P9)
    parts = [(block.ids, row_keys(block.places)) for block in blocks()]
    ids, keys = (np.concatenate([np.zeros(0, np.int64), *(part[which] for part in parts)]) for which in (0, 1))
    order = np.lexsort((keys, ids))
    tied = (ids[order][1:] == ids[order][:-1]) & (keys[order][1:] == keys[order][:-1])
    if tied.any():  # nearly always of equal rows
        order = _by_values(order, ids, keys, tied, blocks)
    place = np.arange(len(ids)) - np.searchsorted(ids[order], ids[order], side="left")
    kept = np.zeros(len(ids), np.bool_)
    kept[order] = (place < most) & (ids[order] >= 0)
    return kept


def _by_values(
    order: NDArray[np.int64],
    ids: NDArray[np.int64],
    keys: NDArray[np.int64],
    tied: NDArray[np.bool_],
    blocks: Callable[[], Iterable[Block]],
) -> NDArray[np.int64]:
    """The same order, but rows of one person and key go by their values, so that their order in the table says nothing.

    What still ties is equal in all values, and so in its cells under any bounds.
    """
    among = np.zeros(len(order), np.bool_)
    among[:-1] |= tied
    among[1:] |= tied
    rows = np.sort(order[among])
    parts, start = [], 0
    for block in blocks():
        inside = rows[(rows >= start) & (rows < start + len(block.ids))] - start
        parts.append(block.values[inside])
        start += len(block.ids)
    values = np.concatenate(parts)
    # Places of tied rows are next to each other and ordered by (id, key), so sorting them among themselves keeps all others.
    order[among] = rows[np.lexsort((*values.T[::-1], keys[rows], ids[rows]))]
    return order
