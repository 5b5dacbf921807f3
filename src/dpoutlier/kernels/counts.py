"""The noisy counts of many cells at once, for every holder: the only thing that a scoring kernel may ask."""

from typing import Any, NamedTuple

import numpy as np

from dpoutlier.kernels.guided import GuidedTable, guided_draw
from dpoutlier.kernels.guided import UNDECIDED as UNDECIDED
from dpoutlier.kernels.jit import kernel
from dpoutlier.kernels.laplace import RAN_OUT, draw
from dpoutlier.kernels.occupied import Occupied, add_exact_counts
from dpoutlier.kernels.siphash import siphash_pairs, siphash_words

__all__ = ["DENSE", "EXACT", "KEYED", "KEYED_BY_TABLE", "UNSAFE_KEYED_FLOAT", "CountTable", "look_up", "noisy_counts_of"]

EXACT, DENSE, KEYED, UNSAFE_KEYED_FLOAT, KEYED_BY_TABLE = 0, 1, 2, 3, 4
BATCH = 12  # words computed at a time where a draw takes many
MANTISSA = np.uint64(11)  # drops all but 53 bits
LAST_BIT = np.uint64(1)


class CountTable(NamedTuple):
    """What a kernel needs of a holder. Counts are integers, in units of ``1 / per_row`` rows."""

    kind: int
    per_row: int  # 1, but for the unsafe float noise
    dense: Any  # noisy counts by cell id; empty unless DENSE
    occupied: Occupied  # exact counts; empty if DENSE
    subkey: Any  # two words
    rate: Any  # of the noise, in units of 2**-40
    scale: float  # of the unsafe float noise, in rows
    guided: GuidedTable  # of the noise, if KEYED_BY_TABLE


@kernel
def long_draw(table: CountTable, high: Any, low: Any) -> Any:
    """Noise of a cell from the words PRF(subkey, cell, 0), PRF(subkey, cell, 1), ... Returns (noise, at).

    For KEYED all words are hashes of three words (sampler version 1); for KEYED_BY_TABLE word 0 is a hash of two.
    """
    key0, key1 = table.subkey[0], table.subkey[1]
    words, stop = np.empty(4 * BATCH, np.uint64), 0
    while True:
        if stop + BATCH > words.shape[0]:  # of negligible probability, and still exact
            longer = np.empty(2 * words.shape[0] + BATCH, np.uint64)
            longer[:stop] = words[:stop]
            words = longer
        for counter in range(stop, stop + BATCH):
            words[counter] = siphash_words(key0, key1, low, high, np.uint64(counter))
        if table.kind == KEYED_BY_TABLE:
            siphash_pairs(key0, key1, np.array([low]), np.array([high]), words[:1])
        stop += BATCH
        if table.kind == KEYED_BY_TABLE:
            noise, at = guided_draw(table.guided, words, stop, 0)
        else:
            noise, at = draw(table.rate, words, stop, 0)
        if at != RAN_OUT:
            return noise, at


@kernel
def add_table_noise(table: CountTable, low: Any, high: Any, words: Any, out: Any) -> bool:
    """Add each cell's noise by the guided table. Returns False where the table needs more digits (see ``guided``)."""
    guided, last = table.guided, 2 * table.guided.n
    siphash_pairs(table.subkey[0], table.subkey[1], low, high, words)
    for i in range(out.shape[0]):
        word = words[i]
        q = np.int64(guided.guide[word >> guided.shift])
        while guided.first[q] < word:
            q += 1
        if q == 0 or q == last or guided.first[q] == word:  # noqa: PLR1714 - a tuple costs
            noise, at = long_draw(table, high[i], low[i])
            if at == UNDECIDED:
                return False
            out[i] += noise
        else:
            out[i] += q - guided.n
    return True


@kernel
def unsafe_keyed_float(key0: Any, key1: Any, high: Any, low: Any, scale: float) -> Any:
    """Laplace noise by the logarithm of a float, as in the paper. Not private: for the reproduction only."""
    size = siphash_words(key0, key1, low, high, np.uint64(0))
    sign = siphash_words(key0, key1, low, high, np.uint64(1))
    magnitude = -scale * np.log((float(size >> MANTISSA) + 0.5) * 2.0**-53)
    return magnitude if (sign & LAST_BIT) == LAST_BIT else -magnitude


@kernel
def add_slow_noise(table: CountTable, low: Any, high: Any, out: Any) -> None:
    """Noise of files of sampler version 1, of very wide noise, and of the unsafe float."""
    for i in range(out.shape[0]):
        if table.kind == KEYED:
            out[i] += long_draw(table, high[i], low[i])[0]
        else:
            noise = unsafe_keyed_float(table.subkey[0], table.subkey[1], high[i], low[i], table.scale)
            out[i] += np.int64(np.rint(noise * table.per_row))


@kernel
def noisy_counts_of(table: CountTable, low: Any, high: Any, words: Any, out: Any) -> bool:
    """Noisy counts of cells, in units of ``1 / table.per_row`` rows. Returns False where the table needs more digits.

    Noise is drawn for every cell that is asked for, occupied or not. ``words`` is a buffer as long as ``out``.
    """
    if table.kind == DENSE:
        for i in range(out.shape[0]):
            out[i] = table.dense[low[i]]
        return True
    out[:] = 0
    add_exact_counts(table.occupied, low, high, table.per_row, out)
    if table.kind == KEYED_BY_TABLE:
        return bool(add_table_noise(table, low, high, words, out))
    if table.kind != EXACT:
        add_slow_noise(table, low, high, out)
    return True


@kernel
def look_up(table: CountTable, ids: Any, out: Any) -> bool:
    """Noisy counts of the cells ``ids`` of shape (n, 2) into ``out``. Returns False where the table needs more digits."""
    low, high = ids[:, 1].copy(), ids[:, 0].copy()
    return bool(noisy_counts_of(table, low, high, np.empty_like(low), out))
