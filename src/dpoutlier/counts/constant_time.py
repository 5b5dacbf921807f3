"""Keyed counts in constant time: the same noisy counts, in a time that reveals nothing else about a cell."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier.counts.base import empty_table, kernel_table
from dpoutlier.counts.keyed import KeyedCounts
from dpoutlier.exceptions import SecretError
from dpoutlier.kernels.constant_time import BUCKET, CELL_WORDS, ConstantTimeTable, put_in_buckets
from dpoutlier.kernels.counts import CONSTANT_TIME, CountTable
from dpoutlier.noise.laplace_powers import law_powers
from dpoutlier.noise.laplace_table import DIGITS, MAX_SCALE, guided_table

MIN_SLOTS = 2**16
STEP = 4  # between numbers of slots
MAX_FULL = 0.75
_PERSON = b"dpoutlier steady"  # fixed: it decides where cells lie


@dataclass(frozen=True, eq=False, repr=False)
class ConstantTimeCounts(KeyedCounts):
    """Keyed counts whose table has the kind CONSTANT_TIME. A model with them is saved as a keyed one."""

    def table(self, digits: int = DIGITS) -> CountTable:
        """The table in constant time. For more than two digits, the table of keyed counts.

        More digits are asked for if noise could not be decided: with a probability of at most 2**-60 for each cell.
        """
        if digits > DIGITS:
            return super().table(digits)
        guided = guided_table(self.noise.rate)
        buckets, place_key = self._buckets()
        ends = np.array([guided.first[guided.n - 1], guided.first[0]], np.uint64)
        return empty_table(CONSTANT_TIME)._replace(
            subkey=self.subkey(),
            constant_time=ConstantTimeTable(buckets, place_key, law_powers(self.noise.rate), ends, guided.n, 63),
        )

    def _buckets(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """The cells in their buckets, and the key that says where they are.

        The key is secret, so nobody can choose rows whose cells collide. If some cells do not fit, another key is tried.
        """
        share = int(self._words(0)[0]) / 2**64
        slots, attempt = slots_for(len(self.ids), share), 1
        while True:
            buckets, key = np.empty(slots // BUCKET * CELL_WORDS, np.uint64), self._words(attempt)
            buckets.fill(0)  # by writing: a page that was never written is slow to read the first time
            if put_in_buckets(self.ids, self.exact, buckets, key):
                return buckets, key
            attempt += 1

    def _words(self, number: int) -> NDArray[np.uint64]:
        """Two words for each number; of no use to find the key or the noise."""
        digest = hashlib.blake2b(bytes([number]), digest_size=16, key=self.key, salt=self.salt, person=_PERSON).digest()
        return np.frombuffer(digest, "<u8").astype(np.uint64)

    def __reduce__(self) -> tuple[Any, ...]:
        return (ConstantTimeCounts, super().__reduce__()[1])


def slots_for(n: int, share: float) -> int:
    """The number of slots for n occupied cells: 2**16 times a power of four.

    The number grows by a step when the slots are between 3/16 and 3/4 full. ``share``, drawn once for each fit, sets the exact
    point. So one cell more or less changes the number with a probability of less than 1 / n, and never up to 12,288 cells.
    """
    slots, full = MIN_SLOTS, MAX_FULL * STEP**-share
    while n > slots * full:
        slots *= STEP
    return slots


def in_constant_time(counts: KeyedCounts) -> ConstantTimeCounts:
    """The same counts and noise, for clients that may measure time. Its table is made here, since that takes some time."""
    if counts.sampler_version == 1:
        raise SecretError(
            f"this keyed model has noise of the first sampler (scale {counts.noise.scale:.6g} rows), and the time of that sampler "
            "depends on the noise that it draws, so clients must not time its answers. New fits take it only for noise wider "
            f"than {MAX_SCALE:,} rows. Fit again with a larger epsilon, or with counts='sparse', whose models may be "
            "published; a new fit is a new release and costs epsilon again."
        )
    made = ConstantTimeCounts(
        counts.ids, counts.exact, counts.key, counts.salt, counts.noise, sampler_version=counts.sampler_version
    )
    kernel_table(made)
    return made
