"""The noisy count of one cell."""

from typing import Any, NamedTuple

import numpy as np

from dpoutlier.kernels.laplace import RAN_OUT, draw
from dpoutlier.kernels.siphash import siphash_words
from heap.jit import kernel
from heap.wide import find

__all__ = ["BATCH", "DENSE", "EXACT", "KEYED", "CountTable", "noisy_count"]

EXACT, DENSE, KEYED = 0, 1, 2
BATCH = 12  # words computed at a time: most draws need fewer


class CountTable(NamedTuple):
    """What a kernel needs of counts."""

    kind: int
    dense: Any  # noisy counts by cell id; empty unless DENSE
    ids: Any  # (n, 2) sorted ids of the occupied cells; empty if DENSE
    exact: Any  # their exact counts, in rows
    subkey: Any  # two words
    rate: Any  # of the noise, in units of 2**-40


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
def noisy_count(table: CountTable, high: Any, low: Any, words: Any) -> Any:
    """Noisy count of one cell."""
    if table.kind == DENSE:
        return table.dense[np.int64(low)]
    index = find(table.ids, high, low)
    count = np.int64(0)
    if index >= 0:
        count = table.exact[index]
    if table.kind == KEYED:
        # Drawn for every cell that is asked for, occupied or not.
        count += keyed_noise(table.subkey[0], table.subkey[1], high, low, table.rate, words)
    return count
