"""Count rows by cell id: into an array where all cells have room, else into a hash table."""

from typing import Any

from dpoutlier.kernels.jit import kernel
from dpoutlier.kernels.occupied import Occupied, hash_of, slot_of


@kernel
def tally_dense(low: Any, counts: Any) -> None:
    """Add one to the count of each id."""
    for i in range(low.shape[0]):
        counts[low[i]] += 1


@kernel
def tally_sparse(high: Any, low: Any, amounts: Any, occupied: Occupied, used: Any, start: int) -> int:
    """Add the amounts to the counts of the ids from ``start`` on. Returns where it stopped because the table was half full."""
    most = occupied.count.shape[0] // 2
    for i in range(start, low.shape[0]):
        slot = slot_of(occupied, high[i], low[i], hash_of(high[i], low[i]))
        if occupied.count[slot] == 0:
            if used[0] == most:
                return i
            used[0] += 1
            occupied.low[slot], occupied.high[slot] = low[i], high[i]
        occupied.count[slot] += amounts[i]
    return int(low.shape[0])
