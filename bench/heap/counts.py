"""The noisy count of a cell, for every holder: the only thing that a scoring kernel may ask."""

from typing import Any, NamedTuple

import numpy as np

from dpoutlier.kernels.jit import kernel
from dpoutlier.kernels.laplace import RAN_OUT, draw
from dpoutlier.kernels.siphash import siphash_words
from dpoutlier.kernels.wide import find

__all__ = ["DENSE", "EXACT", "KEYED", "UNSAFE_KEYED_FLOAT", "CountTable", "keyed_noise", "look_up", "noisy_count"]

EXACT, DENSE, KEYED, UNSAFE_KEYED_FLOAT = 0, 1, 2, 3
BATCH = 12  # words computed at a time: most draws need fewer
MANTISSA = np.uint64(11)  # drops all but 53 bits
LAST_BIT = np.uint64(1)


class CountTable(NamedTuple):
    """What a kernel needs of a holder. Counts are integers, in units of ``1 / per_row`` rows."""

    kind: int
    per_row: int  # 1, but for the unsafe float noise
    dense: Any  # noisy counts by cell id; empty unless DENSE
    ids: Any  # (n, 2) sorted ids of the occupied cells; empty if DENSE
    exact: Any  # their exact counts, in rows
    subkey: Any  # two words
    rate: Any  # of the noise, in units of 2**-40
    scale: float  # of the unsafe float noise, in rows


@kernel
def keyed_noise(key0: Any, key1: Any, high: Any, low: Any, rate: Any, words: Any) -> Any:
    """Noise of a cell: the exact sampler on the words PRF(subkey, cell, 0), PRF(subkey, cell, 1), ..."""
    stop = 0
    while True:
        if stop + BATCH > words.shape[0]:  # of negligible probability, and still exact
            longer = np.empty(2 * words.shape[0] + BATCH, np.uint64)
            longer[:stop] = words[:stop]
            words = longer
        for counter in range(stop, stop + BATCH):
            words[counter] = siphash_words(key0, key1, low, high, np.uint64(counter))
        stop += BATCH
        noise, at = draw(rate, words, stop, 0)
        if at != RAN_OUT:
            return noise


@kernel
def unsafe_keyed_float(key0: Any, key1: Any, high: Any, low: Any, scale: float) -> Any:
    """Laplace noise by the logarithm of a float, as in the paper. Not private: for the reproduction only."""
    size = siphash_words(key0, key1, low, high, np.uint64(0))
    sign = siphash_words(key0, key1, low, high, np.uint64(1))
    magnitude = -scale * np.log((float(size >> MANTISSA) + 0.5) * 2.0**-53)
    return magnitude if (sign & LAST_BIT) == LAST_BIT else -magnitude


@kernel
def noisy_count(table: CountTable, high: Any, low: Any, words: Any) -> Any:
    """Noisy count of one cell, in units of ``1 / table.per_row`` rows."""
    if table.kind == DENSE:
        return table.dense[np.int64(low)]
    index = find(table.ids, high, low)
    count = np.int64(0)
    if index >= 0:
        count = table.exact[index] * table.per_row
    if table.kind == KEYED:
        # Drawn for every cell that is asked for, occupied or not.
        count += keyed_noise(table.subkey[0], table.subkey[1], high, low, table.rate, words)
    elif table.kind == UNSAFE_KEYED_FLOAT:
        noise = unsafe_keyed_float(table.subkey[0], table.subkey[1], high, low, table.scale)
        count += np.int64(np.rint(noise * table.per_row))
    return count


@kernel
def look_up(table: CountTable, ids: Any, out: Any) -> None:
    """Noisy counts of the cells ``ids`` of shape (n, 2) into ``out``."""
    words = np.empty(4 * BATCH, np.uint64)
    for i in range(ids.shape[0]):
        out[i] = noisy_count(table, ids[i, 0], ids[i, 1], words)
