"""The discrete Laplace law by a guided table, exact to the last bit: sampler version 2.

Words of a stream are the digits, in base 2**64, of one uniform number U in [0, 1). The noise is read off the distribution
function F at U. The table holds the first digits of F at 2 n values, so one word decides, unless it *equals* a table entry
(then the next digits of both are compared, as many as it takes) or lies past the table's ends (then the tail, which has no
memory, is drawn again from the following words). docs/privacy.md proves that the law is exact.

Secret files name this sampler; its words-to-noise map is frozen by golden vectors.
"""

from typing import Any, NamedTuple

import numpy as np

from dpoutlier.kernels.jit import kernel, shared
from dpoutlier.kernels.laplace import RAN_OUT

__all__ = ["RAN_OUT", "UNDECIDED", "GuidedTable", "guided_draw", "guided_fill", "guided_outcome"]

UNDECIDED = -2


class GuidedTable(NamedTuple):
    """Outcome q stands for the noise q - n; outcomes 0 and 2 n for "-n or less" and "n or more"."""

    digits: Any  # (2 n + 1, number of digits): digits of F between the outcomes, ascending, and a last row of highest digits
    first: Any  # the first digit of each, on its own
    guide: Any  # per upper bits of a word: how many first digits lie below all words with these bits
    shift: Any  # what takes a word to its upper bits
    n: int


@shared
def guided_outcome(table: GuidedTable, words: Any, stop: Any, at: Any) -> Any:
    """How many of the table's values are at most U, whose digits are words[at:stop]. Returns (outcome, at)."""
    if at >= stop:
        return 0, RAN_OUT
    word = words[at]
    at += 1
    q = np.int64(table.guide[word >> table.shift])
    while table.first[q] < word:
        q += 1
    if table.first[q] > word or q == 2 * table.n:
        return q, at
    for digit in range(1, table.digits.shape[1]):
        if at >= stop:
            return 0, RAN_OUT
        word = words[at]
        at += 1
        if word < table.digits[q, digit]:
            return q, at
        if word > table.digits[q, digit]:
            return q + 1, at
    return 0, UNDECIDED  # the caller makes a table of more digits


@shared
def guided_draw(table: GuidedTable, words: Any, stop: Any, at: Any) -> Any:
    """One draw from words[at:stop]. Returns (noise, at); ``at`` is RAN_OUT with too few words, UNDECIDED with too few digits."""
    n = table.n
    q, at = guided_outcome(table, words, stop, at)
    if at < 0 or 0 < q < 2 * n:
        return np.int64(q - n), at
    negative, magnitude = q == 0, n
    while True:
        # Past n the magnitude starts again: it is n plus a draw of the same law, given that this is not negative.
        q, at = guided_outcome(table, words, stop, at)
        if at < 0:
            return np.int64(0), at
        if q >= n:
            magnitude += q - n
            if q < 2 * n:
                return np.int64(-magnitude if negative else magnitude), at


@kernel
def guided_fill(table: GuidedTable, words: Any, out: Any, start: int) -> Any:
    """Draw out[start:] from ``words``. Returns (first entry not drawn, words taken by those that were, 0 or why it stopped)."""
    at = 0
    for i in range(start, out.shape[0]):
        noise, then = guided_draw(table, words, words.shape[0], at)
        if then < 0:
            return i, at, then
        out[i] = noise
        at = then
    return out.shape[0], at, 0
