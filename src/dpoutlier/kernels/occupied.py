"""Exact counts of the occupied cells by id: a hash table, with a bit set before it that answers for most empty cells."""

from typing import Any, NamedTuple

import numpy as np

from dpoutlier.kernels.jit import inlined, kernel

ODD_0, ODD_1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
HALF, BYTE_BITS, ONE = np.uint64(32), np.uint64(6), np.uint64(1)
LAST_SIX = np.uint64(63)


class Occupied(NamedTuple):
    """Open addressing with linear probing. A slot of count 0 is free."""

    low: Any  # per slot: id
    high: Any
    count: Any  # per slot: exact count in rows
    bits: Any  # words of 64 bits, eight or more bits for each occupied cell


def new_occupied(n: int) -> Occupied:
    """Room for n cells, at most half full."""
    slots = 1 << max(4, (2 * n).bit_length())
    return Occupied(
        np.zeros(slots, np.uint64),
        np.zeros(slots, np.uint64),
        np.zeros(slots, np.int64),
        np.zeros(slots // 8, np.uint64),
    )


@inlined
def hash_of(high: Any, low: Any) -> Any:
    """A mix of both words; its upper and its lower half are used on their own."""
    mixed = (low ^ (low >> HALF)) * ODD_0 + high * ODD_1
    mixed = (mixed ^ (mixed >> HALF)) * ODD_1
    return mixed ^ (mixed >> HALF)


@inlined
def slot_of(occupied: Occupied, high: Any, low: Any, mixed: Any) -> Any:
    """The slot of an id, or the free one where it would stand."""
    last = np.uint64(occupied.count.shape[0] - 1)
    slot = mixed & last
    while occupied.count[slot] != 0 and (occupied.low[slot] != low or occupied.high[slot] != high):
        slot = (slot + ONE) & last
    return slot


@kernel
def put_counts(ids: Any, counts: Any, occupied: Occupied) -> None:
    """Put the cells ``ids`` of shape (n, 2), each there once, into an empty table."""
    last_word = np.uint64(occupied.bits.shape[0] - 1)
    for i in range(ids.shape[0]):
        high, low = ids[i, 0], ids[i, 1]
        mixed = hash_of(high, low)
        slot = slot_of(occupied, high, low, mixed)
        occupied.low[slot], occupied.high[slot], occupied.count[slot] = low, high, counts[i]
        bit = mixed >> HALF
        occupied.bits[(bit >> BYTE_BITS) & last_word] |= ONE << (bit & LAST_SIX)


@inlined
def add_exact_counts(occupied: Occupied, low: Any, high: Any, out: Any) -> None:
    """Add the exact count of each cell to ``out``."""
    last_word = np.uint64(occupied.bits.shape[0] - 1)
    for i in range(out.shape[0]):
        mixed = hash_of(high[i], low[i])
        bit = mixed >> HALF
        if (occupied.bits[(bit >> BYTE_BITS) & last_word] >> (bit & LAST_SIX)) & ONE:
            out[i] += occupied.count[slot_of(occupied, high[i], low[i], mixed)]
