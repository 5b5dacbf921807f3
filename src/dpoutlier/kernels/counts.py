"""The noisy counts of many cells at once, for every kind of counts: the only thing that a scoring kernel may ask."""

from typing import Any, NamedTuple

import numpy as np

from dpoutlier.kernels.constant_time import (
    BLOCK,
    ConstantTimeBuffers,
    ConstantTimeTable,
    constant_time_block,
    new_constant_time_buffers,
)
from dpoutlier.kernels.jit import inlined, kernel, shared
from dpoutlier.kernels.laplace import RAN_OUT, draw
from dpoutlier.kernels.laplace_by_table import GuidedTable, guided_draw
from dpoutlier.kernels.occupied import Occupied, add_exact_counts
from dpoutlier.kernels.siphash import siphash_pairs, siphash_two, siphash_words

EXACT, DENSE, KEYED, KEYED_BY_TABLE, CONSTANT_TIME = 0, 1, 2, 3, 4
BATCH = 12  # words computed at a time where a draw takes many
ZERO, LAST_BIT = np.uint64(0), np.uint64(1)


class CountTable(NamedTuple):
    """What a kernel needs of counts. Counts are whole numbers of rows."""

    kind: int
    dense: Any  # noisy counts by cell id; empty unless DENSE
    occupied: Occupied  # exact counts; empty if DENSE or CONSTANT_TIME
    subkey: Any  # two words
    rate: Any  # of the noise, in units of 2**-40
    guided: GuidedTable  # of the noise, if KEYED_BY_TABLE
    constant_time: ConstantTimeTable  # exact counts, and what makes the noise of KEYED_BY_TABLE, if CONSTANT_TIME


class Scratch(NamedTuple):
    """Buffers of one thread."""

    words: Any  # one for each cell that is asked for at once
    stream: Any  # the words of one cell
    constant_time: ConstantTimeBuffers


def new_scratch(cells: int, stream: int) -> Scratch:
    """For ``cells`` cells at once. Most draws take one word of the stream, and hardly any takes more than twenty."""
    return Scratch(np.empty(cells, np.uint64), np.empty(stream, np.uint64), new_constant_time_buffers())


@shared
def long_draw(table: CountTable, high: Any, low: Any, stream: Any) -> Any:
    """Noise of a cell from the words PRF(subkey, cell, 0), PRF(subkey, cell, 1), ... Returns (noise, at).

    For KEYED all words are hashes of three words (sampler version 1); for KEYED_BY_TABLE word 0 is a hash of two. A negative
    ``at`` means that the stream or the digits of the table were too few.
    """
    key0, key1, stop = table.subkey[0], table.subkey[1], 0
    while True:
        following = min(stop + BATCH, stream.shape[0])
        for counter in range(stop, following):
            stream[counter] = siphash_words(key0, key1, low, high, np.uint64(counter))
        stop = following
        if table.kind == KEYED_BY_TABLE:
            stream[0] = siphash_two(key0, key1, low, high)
            noise, at = guided_draw(table.guided, stream, stop, 0)
        else:
            noise, at = draw(table.rate, stream, stop, 0)
        if at != RAN_OUT or stop == stream.shape[0]:
            return noise, at


@inlined
def add_table_noise(table: CountTable, low: Any, high: Any, scratch: Scratch, out: Any) -> Any:
    """Add each cell's noise by the guided table. Returns False where the table or the stream is too short."""
    guided, last = table.guided, np.uint64(2 * table.guided.n)
    words = scratch.words
    siphash_pairs(table.subkey[0], table.subkey[1], low, high, words[: out.shape[0]])
    for i in range(out.shape[0]):
        word = words[i]
        q = np.uint64(guided.guide[word >> guided.shift])
        while guided.first[q] < word:
            q += LAST_BIT
        if q == ZERO or q == last or guided.first[q] == word:  # noqa: PLR1714, SIM109 - a tuple costs
            noise, at = long_draw(table, high[i], low[i], scratch.stream)
            if at < 0:
                return False
            out[i] += noise
        else:
            out[i] += np.int64(q) - guided.n
    return True


@shared
def add_slow_noise(table: CountTable, low: Any, high: Any, stream: Any, out: Any) -> bool:
    """Noise of files of sampler version 1, and very wide noise."""
    for i in range(out.shape[0]):
        noise, at = long_draw(table, high[i], low[i], stream)
        if at < 0:
            return False
        out[i] += noise
    return True


@inlined
def noisy_counts_of(table: CountTable, low: Any, high: Any, scratch: Scratch, out: Any) -> Any:
    """Noisy counts of cells, in rows. Returns False where the table or the stream is too short.

    Noise is drawn for every cell that is asked for, occupied or not.
    """
    if table.kind == DENSE:
        for i in range(out.shape[0]):
            out[i] = table.dense[low[i]]
        return True
    return noise_and_counts_of(table, low, high, scratch, out)


@shared
def constant_time_counts_of(table: CountTable, low: Any, high: Any, scratch: Scratch, out: Any) -> bool:
    """The same in a time that depends on the number of cells and their ids alone."""
    lost = ZERO
    for first in range(0, out.shape[0], BLOCK):
        last = min(first + BLOCK, out.shape[0])
        lost |= constant_time_block(
            table.constant_time, table.subkey, low[first:last], high[first:last], scratch.constant_time, out[first:last]
        )
    return bool(lost == ZERO)


@shared
def noise_and_counts_of(table: CountTable, low: Any, high: Any, scratch: Scratch, out: Any) -> bool:
    """The same for what is not dense. Not inlined: compilation would take three times as long."""
    if table.kind == CONSTANT_TIME:
        return constant_time_counts_of(table, low, high, scratch, out)
    for i in range(out.shape[0]):
        out[i] = 0
    add_exact_counts(table.occupied, low, high, out)
    if table.kind == KEYED_BY_TABLE:
        return bool(add_table_noise(table, low, high, scratch, out))
    if table.kind != EXACT:
        return add_slow_noise(table, low, high, scratch.stream, out)
    return True


@kernel
def look_up(table: CountTable, low: Any, high: Any, scratch: Scratch, out: Any) -> bool:
    """``noisy_counts_of``, to be called from outside."""
    return bool(noisy_counts_of(table, low, high, scratch, out))
