"""Noisy counts in a time that depends only on the number of cells and on their ids: neither on counts nor on noise.

No branch and no address below depends on a secret. Two parts:

*Exact counts.* A cell can stand in two buckets of four, and where they are follows from its id and a key of their own. Both are
always read in full, and what does not match is masked out. So a cell that is empty and one that is not look alike.

*Noise.* That of ``guided.py``, to the bit, without its table. With the first bit of a word as sign, and v the word or its
complement, the magnitude is the number of j with ``a**j / (1 + a) > v``: its bits are found from the highest down, each by one
product of 128 bits. Products are cut off, so they are a little too small; v lies closer to one than that with a probability below
2**-100. What lies past the end of the table is drawn again from the following words; the first that is not negative noise counts.
All words are made for all cells, and all but one are masked out. With a probability of at most 2**-60 for each cell there are too
few words. Then nothing is guessed, and the result says so.

Masks are words of all ones or all zeros, made by shifting a sign bit by 63 places. The compiler must not know that it is 63 places:
it would see that a mask has two values only, and make branches of them.
tests/kernels/test_constant_time.py looks at what it made.
"""

from typing import Any, NamedTuple

import numpy as np

from dpoutlier.kernels.jit import inlined, kernel
from dpoutlier.kernels.siphash import LENGTH_16, LENGTH_24, absorb, finish, siphash_two, start

BLOCK = 8  # cells at once, always this number: each loop over them becomes a few vector instructions, without a rest
WORDS = 46  # after the first. A tail, of probability below 2**-15, needs one of 45 that is not negative: 2**-45 that there is none
BUCKET = 4
CELL_WORDS = 3 * BUCKET  # of a bucket: four lower words of ids, four upper ones, four counts
MAX_KICKS = 2000
MULTIPLIER = np.uint64(6364136223846793005)  # of Knuth's generator, which says who moves

ZERO, ONE, HALF = np.uint64(0), np.uint64(1), np.uint64(32)
LOW_HALF = np.uint64(0xFFFFFFFF)
NEAR_BITS = np.uint64(8)  # products are less than 2**8 units too small: 2 for the first, 9 more for each of at most 15
CELLS, FOUR, EIGHT, WIDTH = np.uint64(BLOCK), np.uint64(BUCKET), np.uint64(2 * BUCKET), np.uint64(CELL_WORDS)

# What is kept of each cell, by its offset. May be known:
LOW, HIGH, PLACE_0, PLACE_1 = (np.uint64(i * BLOCK) for i in range(4))
# Is secret:
(
    COUNT,
    S0, S1, S2, S3,  # SipHash after the id
    WORD_0, WORD_1, FIRST, SECOND,  # digits of the first draw, and of the one that counts for the tail
    TAKEN, DONE, LOST, SUM,  # masks of the tail, and how often it went past the end, times n
    P1, P0, V1, V0, TIMES, SHUT, MAGNITUDE,
) = (np.uint64(i * BLOCK) for i in range(20))  # fmt: skip


class ConstantTimeTable(NamedTuple):
    """What the kernels below need of counts."""

    buckets: Any  # flat: buckets of CELL_WORDS words. Where a count is 0 nothing stands
    place_key: Any  # two words: where cells stand
    powers: (
        Any  # (steps + 1, 2): 1 / (1 + a), then a**(2**i) from the highest i down to 0; two digits, cut off or one less
    )
    ends: Any  # first digits of P(noise >= 1) and of P(noise >= n)
    n: int  # as in the guided table
    bits: int  # 63: how far a sign must be shifted, which the compiler does not know


class ConstantTimeBuffers(NamedTuple):
    """Buffers of one thread."""

    asked: Any  # ids of cells and where their buckets begin
    cells: Any  # what is secret of them


def new_constant_time_buffers() -> ConstantTimeBuffers:
    return ConstantTimeBuffers(np.zeros(4 * BLOCK, np.uint64), np.zeros(20 * BLOCK, np.uint64))


def no_constant_time_table() -> ConstantTimeTable:
    """What kernels get where nobody asked for it."""
    nothing = np.zeros(2, np.uint64)
    return ConstantTimeTable(np.zeros(CELL_WORDS, np.uint64), nothing, np.zeros((1, 2), np.uint64), nothing, 1, 63)


@inlined
def sign_of(x: Any, bits: Any) -> Any:
    """A mask: all ones where the first bit is set. ``bits`` is 63."""
    return np.uint64(np.int64(x) >> bits)


@inlined
def is_zero(x: Any, bits: Any) -> Any:
    """A mask: all ones for 0."""
    return sign_of(~x & (x - ONE), bits)


@inlined
def less(x: Any, y: Any, bits: Any) -> Any:
    """1 where x < y, else 0."""
    return ((~x & y) | ((~x | y) & (x - y))) >> np.uint64(bits)


@inlined
def chosen(mask: Any, one: Any, other: Any) -> Any:
    """The one where the mask is set, else the other."""
    return other ^ ((one ^ other) & mask)


# Exact counts ---------------------------------------------------------------------------------------------------------------


@inlined
def find_places(table: ConstantTimeTable, asked: Any) -> None:
    """Where the two buckets of each cell begin."""
    key0, key1, last = table.place_key[0], table.place_key[1], np.uint64(table.buckets.shape[0] // CELL_WORDS - 1)
    for i in range(CELLS):
        mixed = siphash_two(key0, key1, asked[LOW + i], asked[HIGH + i])
        asked[PLACE_0 + i] = (mixed & last) * WIDTH
        asked[PLACE_1 + i] = ((mixed >> HALF) & last) * WIDTH


@inlined
def found_in(buckets: Any, at: Any, low: Any, high: Any, bits: Any) -> Any:
    """The count of a cell if it stands in the bucket, else 0."""
    count = ZERO
    for j in range(FOUR):
        differs = (buckets[at + j] ^ low) | (buckets[at + FOUR + j] ^ high)
        count |= buckets[at + EIGHT + j] & is_zero(differs, bits)
    return count


@inlined
def find_counts(table: ConstantTimeTable, asked: Any, cells: Any) -> None:
    """Exact counts into COUNT."""
    for i in range(CELLS):
        low, high = asked[LOW + i], asked[HIGH + i]
        one = found_in(table.buckets, asked[PLACE_0 + i], low, high, table.bits)
        other = found_in(table.buckets, asked[PLACE_1 + i], low, high, table.bits)
        cells[COUNT + i] = one | other  # both find it where the two buckets are the same


@kernel
def put_in_buckets(ids: Any, counts: Any, buckets: Any, place_key: Any) -> bool:
    """Put the cells ``ids`` of shape (n, 2) into empty buckets. Returns False if that needs another key.

    A cell whose buckets are full takes the place of another, which moves to its other bucket, and so on. For the custodian alone:
    how long it takes depends on the cells.
    """
    last, chance = np.uint64(buckets.shape[0] // CELL_WORDS - 1), ONE
    for i in range(ids.shape[0]):
        high, low, count, left = ids[i, 0], ids[i, 1], np.uint64(counts[i]), ZERO
        placed = False
        for _ in range(MAX_KICKS):
            mixed = siphash_two(place_key[0], place_key[1], low, high)
            one, other = (mixed & last) * WIDTH, ((mixed >> HALF) & last) * WIDTH
            for j in range(EIGHT):
                slot = (one if j < FOUR else other) + (j & np.uint64(3))
                if not placed and buckets[slot + EIGHT] == ZERO:
                    buckets[slot], buckets[slot + FOUR], buckets[slot + EIGHT] = low, high, count
                    placed = True
            if placed:
                break
            chance = chance * MULTIPLIER + ONE
            left = other if left == one else one
            at = left + (chance >> np.uint64(62))
            low, buckets[at] = buckets[at], low
            high, buckets[at + FOUR] = buckets[at + FOUR], high
            count, buckets[at + EIGHT] = buckets[at + EIGHT], count
        if not placed:
            return False
    return True


# Noise ----------------------------------------------------------------------------------------------------------------------


@inlined
def start_words(table: ConstantTimeTable, subkey: Any, asked: Any, cells: Any) -> None:
    """SipHash of each id, words 0 and 1, and no tail as yet."""
    key0, key1, n = subkey[0], subkey[1], np.uint64(table.n)
    for i in range(CELLS):
        v0, v1, v2, v3 = start(key0, key1)
        v0, v1, v2, v3 = absorb(v0, v1, v2, v3, asked[LOW + i])
        v0, v1, v2, v3 = absorb(v0, v1, v2, v3, asked[HIGH + i])
        cells[S0 + i], cells[S1 + i], cells[S2 + i], cells[S3 + i] = v0, v1, v2, v3
        cells[WORD_0 + i] = finish(v0, v1, v2, v3, LENGTH_16)
    for i in range(CELLS):
        v0, v1, v2, v3 = absorb(cells[S0 + i], cells[S1 + i], cells[S2 + i], cells[S3 + i], ONE)
        cells[WORD_1 + i] = finish(v0, v1, v2, v3, LENGTH_24)
        cells[FIRST + i], cells[SECOND + i], cells[SUM + i] = ZERO, ZERO, n
        cells[TAKEN + i], cells[DONE + i], cells[LOST + i] = ZERO, ZERO, ZERO


@inlined
def look_for_tails(table: ConstantTimeTable, cells: Any) -> None:
    """The words to use if word 0 is past the end: FIRST, which is neither negative noise nor past the end, and SECOND after it.

    Each further word past the end adds n to SUM. LOST: a word equals an end, so that the next word belongs to the same draw.
    """
    n, bits, first_end, last_end = np.uint64(table.n), table.bits, table.ends[0], table.ends[1]
    for w in range(ONE, np.uint64(WORDS + 1)):
        for i in range(CELLS):
            v0, v1, v2, v3 = absorb(cells[S0 + i], cells[S1 + i], cells[S2 + i], cells[S3 + i], w)
            word, done = finish(v0, v1, v2, v3, LENGTH_24), cells[DONE + i]
            flip = sign_of(word, bits)
            value = word ^ flip
            counts = ~done & (flip | ~sign_of(value - first_end, bits))  # values and ends are below 2**63
            past = flip & sign_of(value - last_end, bits)
            taken = counts & ~past
            cells[LOST + i] |= ~done & (is_zero(value ^ first_end, bits) | is_zero(value ^ last_end, bits))
            cells[SUM + i] += n & counts & past
            cells[SECOND + i] = chosen(cells[TAKEN + i], word, cells[SECOND + i])
            cells[FIRST + i] = chosen(taken, word, cells[FIRST + i])
            cells[TAKEN + i], cells[DONE + i] = taken, done | taken


@inlined
def high_product(x: Any, y: Any) -> Any:
    """The upper word of x * y, or up to three less."""
    x1, x0, y1, y0 = x >> HALF, x & LOW_HALF, y >> HALF, y & LOW_HALF
    return x1 * y1 + ((x1 * y0) >> HALF) + ((x0 * y1) >> HALF)


@inlined
def full_product(x: Any, y: Any) -> Any:
    """The product in two words."""
    x1, x0, y1, y0 = x >> HALF, x & LOW_HALF, y >> HALF, y & LOW_HALF
    middle = x1 * y0 + ((x0 * y0) >> HALF)
    other = x0 * y1 + (middle & LOW_HALF)
    return x1 * y1 + (middle >> HALF) + (other >> HALF), x * y


@inlined
def count_powers(table: ConstantTimeTable, upper: Any, lower: Any, cells: Any) -> None:
    """How many a**j / (1 + a) are larger than the two digits at these offsets, into TIMES; SHUT where that is too close to tell."""
    steps, bits = table.powers.shape[0] - 1, table.bits
    for i in range(CELLS):
        flip = sign_of(cells[upper + i], bits)
        cells[V1 + i], cells[V0 + i] = cells[upper + i] ^ flip, cells[lower + i] ^ flip
        cells[P1 + i], cells[P0 + i] = table.powers[0, 0], table.powers[0, 1]
        cells[TIMES + i], cells[SHUT + i] = ZERO, ZERO
    for step in range(1, steps + 1):
        a1, a0, times = table.powers[step, 0], table.powers[step, 1], ONE << np.uint64(steps - step)
        for i in range(CELLS):
            p1, p0 = cells[P1 + i], cells[P0 + i]
            high, low = full_product(p1, a1)
            part = high_product(p1, a0)
            low += part
            high += less(low, part, bits)
            part = high_product(p0, a1)
            low += part
            high += less(low, part, bits)
            rest = cells[V1 + i] - high - less(cells[V0 + i], low, bits)  # both are below 2**127
            larger = sign_of(rest, bits)
            cells[P1 + i], cells[P0 + i] = chosen(larger, high, p1), chosen(larger, low, p0)
            cells[TIMES + i] += times & larger
            cells[SHUT + i] |= is_zero(rest | ((cells[V0 + i] - low) >> NEAR_BITS), bits)


@inlined
def add_noise(table: ConstantTimeTable, subkey: Any, asked: Any, cells: Any) -> None:
    """Add the noise to COUNT. LOST where it could not be decided."""
    n, bits, last_end = np.uint64(table.n), table.bits, table.ends[1]
    start_words(table, subkey, asked, cells)
    look_for_tails(table, cells)
    count_powers(table, FIRST, SECOND, cells)
    for i in range(CELLS):
        cells[MAGNITUDE + i] = cells[SUM + i] + (cells[TIMES + i] & sign_of(cells[FIRST + i], bits))
        cells[LOST + i] |= cells[SHUT + i] | ~cells[DONE + i]
    count_powers(table, WORD_0, WORD_1, cells)
    for i in range(CELLS):
        tail = ~sign_of(cells[TIMES + i] - n, bits)
        negative = ~sign_of(cells[WORD_0 + i], bits)
        magnitude = chosen(tail, cells[MAGNITUDE + i], cells[TIMES + i])
        cells[COUNT + i] += (magnitude ^ negative) - negative
        cells[LOST + i] = cells[SHUT + i] | (tail & (cells[LOST + i] | is_zero(cells[V1 + i] ^ last_end, bits)))


@inlined
def constant_time_block(
    table: ConstantTimeTable, subkey: Any, low: Any, high: Any, room: ConstantTimeBuffers, out: Any
) -> Any:
    """Noisy counts of at most BLOCK cells. Returns 0, or what is not 0 if some noise could not be decided."""
    asked, cells, n = room.asked, room.cells, np.uint64(out.shape[0])
    for i in range(n):  # what was there before stays in the other places
        asked[LOW + i], asked[HIGH + i] = low[i], high[i]
    find_places(table, asked)
    find_counts(table, asked, cells)
    add_noise(table, subkey, asked, cells)
    lost = ZERO
    for i in range(n):
        out[i] = np.int64(cells[COUNT + i])
        lost |= cells[LOST + i]
    return lost
