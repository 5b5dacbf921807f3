"""Definitions read aloud: Algorithm 1 over all cells, the sampler on Python integers, SipHash by the book.

Slow, plain, and obviously right; the package is tested against it.
"""

import hashlib
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

LATTICE = 2**32


def position(x: float, lower: float, upper: float) -> int:
    """floor(clip((x - lower) * s, 0, 2**32 - 1)) with s = 2**32 / (upper - lower)."""
    moved = (float(x) - lower) * (LATTICE / (upper - lower))
    return int(min(max(moved, 0.0), LATTICE - 1.0))


NUMBERS = (0, False, False)  # (levels, unordered, a cell for missing values), as an Axis has them
Axis = tuple[int, bool, bool]


def kinds(axes: Sequence[Axis], bins: Sequence[int]) -> Sequence[Axis]:
    return axes or [NUMBERS] * len(bins)


def cells_of(bins: Sequence[int], axes: Sequence[Axis] = ()) -> list[int]:
    """Cells along each feature: its bins, and one for missing values where it has that."""
    return [b + missing for b, (_, _, missing) in zip(bins, kinds(axes, bins))]


def home_bin(p: int, b: int, axis: Axis = NUMBERS) -> int:
    return b if axis[2] and p == LATTICE - 1 else p * b // LATTICE


def home_of(point: Sequence[int], bins: Sequence[int], axes: Sequence[Axis] = ()) -> tuple[int, ...]:
    return tuple(home_bin(p, b, axis) for p, b, axis in zip(point, bins, kinds(axes, bins)))


def apart(a: int, c: int, b: int, axis: Axis) -> bool:
    """Whether two cells are one step and a distance of 1 apart, rather than on a line."""
    return a != c and (axis[1] or b in (a, c))


def steps(a: int, c: int, b: int, axis: Axis) -> int:
    return 1 if apart(a, c, b, axis) else abs(a - c)


def length(a: int, c: int, b: int, axis: Axis) -> Fraction:
    return Fraction(1) if apart(a, c, b, axis) else Fraction(abs(a - c), b)


def cost(p: int, b: int, c: int, axis: Axis = NUMBERS) -> int:
    """Distance of a position to the middle of bin c, in units of 2**-32, rounded down.

    The point is the middle of its position, but not past the upper edge of its home bin. A level has no inside, and neither has a
    missing value.
    """
    home = home_bin(p, b, axis)
    if apart(home, c, b, axis):
        return LATTICE
    if axis[1] or home == b:
        return 0
    point = min(Fraction(2 * p + 1, 2), Fraction((home + 1) * LATTICE, b))
    middle = Fraction((2 * c + 1) * LATTICE, 2 * b)
    return int(abs(point - middle))


def ranked(p: int, b: int, axis: Axis = NUMBERS) -> list[int]:
    """Bins of one feature by (cost, steps from home, index)."""
    home = home_bin(p, b, axis)
    return sorted(range(b + axis[2]), key=lambda c: (cost(p, b, c, axis), steps(home, c, b, axis), c))


def cells_within(
    home: Sequence[int], bins: Sequence[int], axes: Sequence[Axis], most: int | None
) -> Iterator[tuple[int, ...]]:
    """All cells within a number of steps from home, feature after feature. None: all cells."""
    if not bins:
        yield ()
        return
    for c in range(bins[0] + axes[0][2]):
        left = None if most is None else most - steps(home[0], c, bins[0], axes[0])
        if left is None or left >= 0:
            yield from ((c, *rest) for rest in cells_within(home[1:], bins[1:], axes[1:], left))


def visiting_order(
    point: Sequence[int], bins: Sequence[int], max_depth: int | None, axes: Sequence[Axis] = ()
) -> list[tuple[int, ...]]:
    """All cells within max_depth steps from home, by (sum of costs, rank vector)."""
    home, each = home_of(point, bins, axes), kinds(axes, bins)
    costs = [[cost(p, b, c, axis) for c in range(b + axis[2])] for p, b, axis in zip(point, bins, each)]
    rank = [{c: r for r, c in enumerate(ranked(p, b, axis))} for p, b, axis in zip(point, bins, each)]

    def key(cell: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        return sum(costs[j][c] for j, c in enumerate(cell)), tuple(rank[j][c] for j, c in enumerate(cell))

    return sorted(cells_within(home, bins, each, max_depth), key=key)


def number_of(cell: Sequence[int], bins: Sequence[int], axes: Sequence[Axis] = ()) -> int:
    """Mixed-radix number of a cell, the first feature most significant."""
    number = 0
    for c, n in zip(cell, cells_of(bins, axes)):
        number = number * n + c
    return number


def score(
    point: Sequence[int],
    bins: Sequence[int],
    count: Callable[[int], int],
    *,
    k: int,
    weighted: bool,
    distance: str,
    max_depth: int | None,
    max_cells: int,
    exhausted: str,
    axes: Sequence[Axis] = (),
) -> tuple[float, int, int]:
    """Algorithm 1. Returns (score, gathered, visited)."""
    home, each = home_of(point, bins, axes), kinds(axes, bins)
    gathered, result, visited = 0, Fraction(0), 0
    for cell in visiting_order(point, bins, max_depth, axes)[:max_cells]:
        q = count(number_of(cell, bins, axes))
        if distance == "cell":
            far = sum((length(h, c, b, axis) for h, c, b, axis in zip(home, cell, bins, each)), Fraction(0))
        else:
            far = Fraction(sum(cost(p, b, c, axis) for p, b, c, axis in zip(point, bins, cell, each)), LATTICE)
        gathered += q
        visited += 1
        result = result + q * far if weighted else far
        if gathered >= k:
            return float(result), gathered, visited
    if exhausted == "outlying":
        diameter = len(bins)
        result = result + (k - gathered) * diameter if weighted else Fraction(diameter)
    return float(result), gathered, visited


def score_of_listed(
    point: Sequence[int], bins: Sequence[int], counts: Mapping[int, int], **rule: Any
) -> tuple[float, int, int]:
    """Algorithm 1 where all cells but a few count nothing. No limit on cells; of the visited ones only these are given."""
    met = []

    def count(number: int) -> int:
        met.append(number)
        return counts.get(number, 0)

    result, gathered, _ = score(point, bins, count, **{**rule, "max_cells": 2**60})
    return result, gathered, sum(number in counts for number in met)


# The sampler of Canonne, Kamath and Steinke, on Python integers and one stream of words -------------------------------


def uniform_below_is_zero(n: int, words: Iterator[int]) -> bool:
    """Bernoulli(1/n): a uniform integer below n, by rejection, is 0."""
    if n == 1:
        return True
    share = (2**64 - 1) // n
    word = next(words)
    while word >= share * n:
        word = next(words)
    return word < share


def bernoulli_exp(numerator: int, words: Iterator[int]) -> bool:
    """Bernoulli(exp(-numerator / 2**40)), their Algorithm 1."""
    k = 1
    while (numerator == 2**40 or (next(words) >> 24) < numerator) and uniform_below_is_zero(k, words):
        k += 1
    return k % 2 == 1


def discrete_laplace(rate_units: int, words: Iterator[int]) -> int:
    """Their Algorithm 2 with t = 2**40 and s = rate_units."""
    while True:
        u = next(words) >> 24
        if not bernoulli_exp(u, words):
            continue
        v = 0
        while bernoulli_exp(2**40, words):
            v += 1
        magnitude = (u + 2**40 * v) // rate_units
        negative = next(words) >> 63 == 1
        if not (negative and magnitude == 0):
            return -magnitude if negative else magnitude


# SipHash-2-4, from its definition over bytes --------------------------------------------------------------------------


def siphash_2_4(key: bytes, message: bytes) -> int:
    mask = 2**64 - 1

    def rotate(x: int, n: int) -> int:
        return ((x << n) | (x >> (64 - n))) & mask

    def rounds(v: list[int], n: int) -> None:
        for _ in range(n):
            v[0] = (v[0] + v[1]) & mask
            v[1] = rotate(v[1], 13) ^ v[0]
            v[0] = rotate(v[0], 32)
            v[2] = (v[2] + v[3]) & mask
            v[3] = rotate(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & mask
            v[3] = rotate(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & mask
            v[1] = rotate(v[1], 17) ^ v[2]
            v[2] = rotate(v[2], 32)

    k0, k1 = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]
    padded = message + bytes(7 - len(message) % 8) + bytes([len(message) % 256])
    for i in range(0, len(padded), 8):
        block = int.from_bytes(padded[i : i + 8], "little")
        v[3] ^= block
        rounds(v, 2)
        v[0] ^= block
    v[2] ^= 0xFF
    rounds(v, 4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


# The sampler by the distribution function, on fractions and one stream of words ----------------------------------------


BITS = 600  # of fixed point; all that is computed here is right to 500 and more


def exp_minus(x: Fraction) -> int:
    """exp(-x) * 2**BITS: the series at x / 2**32, squared 32 times."""
    one = 1 << BITS
    small = (x.numerator << BITS) // (x.denominator << 32)
    term, total, n = one, one, 0
    while term:
        n += 1
        term = term * small // (n << BITS)
        total += -term if n % 2 else term
    for _ in range(32):
        total = total * total >> BITS
    return total


def tails(rate: Fraction, n: int) -> list[int]:
    """P(Z >= j) * 2**BITS for j = 1..n: a**j / (1 + a) with a = exp(-rate)."""
    a = exp_minus(rate)
    found = [(1 << 2 * BITS) // ((1 << BITS) + a)]
    for _ in range(n):
        found.append(found[-1] * a >> BITS)
    return found[1:]


def outcome_by_distribution(thresholds: Sequence[int], words: Iterator[int]) -> int:
    """How many thresholds lie below U, the number whose digits in base 2**64 are the words: read until it is certain."""
    low, bits = 0, BITS
    while True:
        bits -= 64
        low += next(words) << bits
        surely = sum(t <= low for t in thresholds)
        if surely == sum(t < low + (1 << bits) for t in thresholds):
            return surely


def discrete_laplace_by_distribution(rate: Fraction, n: int, words: Iterator[int]) -> int:
    """Noise between -n and n by one U; beyond, n more than a non-negative draw of the same law."""
    below = tails(rate, n)[::-1]
    thresholds = below + [(1 << BITS) - t for t in below[::-1]]
    q = outcome_by_distribution(thresholds, words)
    if 0 < q < 2 * n:
        return q - n
    sign, magnitude = (-1 if q == 0 else 1), n
    while True:
        q = outcome_by_distribution(thresholds, words)
        if q >= n:
            magnitude += q - n
        if n <= q < 2 * n:
            return sign * magnitude


# Public trees, from their definition -----------------------------------------------------------------------------------


def tree_word(seed: int, tree: int, purpose: int, i: int) -> int:
    """Word i of the public stream of a tree: SipHash-2-4 under a key made of the seed."""
    key = hashlib.blake2b(seed.to_bytes(8, "little"), digest_size=16, person=b"dpoutlier trees1").digest()
    return siphash_2_4(key, b"".join(n.to_bytes(8, "little") for n in (tree, purpose, i)))


def deal_features(seed: int, sizes: Sequence[int], n_features: int) -> list[list[int]]:
    """The features of each tree: cards from the top of a pack; when it is used up, from a new one, but none twice in a hand."""
    pack: list[int] = []
    packs, hands = 0, []
    for size in sizes:
        hand = [pack.pop(0) for _ in range(min(size, len(pack)))]
        if len(hand) < size:
            pack = sorted(range(n_features), key=lambda j, number=packs: tree_word(seed, number, 0, j))
            packs += 1
            for card in [card for card in pack if card not in hand][: size - len(hand)]:
                pack.remove(card)
                hand.append(card)
        hands.append(hand)
    return hands


def tree_levels(seed: int, tree: int, depth: int, hand: Sequence[int]) -> list[int]:
    """The card of the hand that each level cuts, by its place: all of them, in rounds of a new order each."""
    levels: list[int] = []
    for r in itertools.count():
        if len(levels) >= depth:
            return levels[:depth]
        order = sorted(range(len(hand)), key=lambda i, number=r: tree_word(seed, tree, 1 + number, i))
        levels += order
    return levels


def tree_leaf(point: Sequence[int], seed: int, tree: int, depth: int, hand: Sequence[int]) -> int:
    """The leaf of a point, counted from the left: go down, and keep the box in which the point lies."""
    low, high, path = [0] * len(hand), [LATTICE] * len(hand), [1] * len(hand)
    leaf = 0
    for i in tree_levels(seed, tree, depth, hand):
        share = LATTICE * 35 // 100 + ((tree_word(seed, tree, 64 + i, path[i]) >> 32) * (LATTICE * 3 // 10) >> 32)
        cut = low[i] + ((high[i] - low[i]) * share >> 32)
        right = point[hand[i]] >= cut
        (low if right else high)[i] = cut
        path[i] = 2 * path[i] + right
        leaf = 2 * leaf + right
    return leaf


def line_cells(words: Callable[[int], int], cuts: int) -> list[tuple[int, int]]:
    """The intervals of a line after a number of rounds of cuts. Each round cuts all of them near their middles."""
    cells = [(1, 0, LATTICE)]
    for _ in range(cuts):
        cells = [half for cell in cells for half in _halves(*cell, words)]
    return [(low, high) for _, low, high in cells]


def _halves(k: int, low: int, high: int, words: Callable[[int], int]) -> list[tuple[int, int, int]]:
    cut = low + ((high - low) * _share(words(k)) >> 32)
    return [(2 * k, low, cut), (2 * k + 1, cut, high)]


def _share(word: int) -> int:
    return LATTICE * 35 // 100 + ((word >> 32) * (LATTICE * 3 // 10) >> 32)


def level_cells(words: Callable[[int], int], levels: list[int], cuts: int, k: int = 1) -> list[list[int]]:
    """Groups of levels after a number of rounds of cuts. A group of one level is not cut."""
    if cuts == 0 or len(levels) == 1:
        return [levels]
    at = round(Fraction(len(levels) * _share(words(k)), LATTICE))
    at = min(max(at, 1), len(levels) - 1)
    return level_cells(words, levels[:at], cuts - 1, 2 * k) + level_cells(words, levels[at:], cuts - 1, 2 * k + 1)


def mixed_leaf(
    point: Sequence[int], seed: int, tree: int, depth: int, hand: Sequence[int], axes: Sequence[Axis]
) -> tuple[int, int]:
    """(leaf of a point, number of leaves) of a tree over features of any kind: its cell in a small uneven grid."""
    most = [min(3, math.ceil(math.log2(axes[j][0]))) if axes[j][0] else 3 for j in hand]
    cuts = [0] * len(hand)
    for r in range(3):
        for i in sorted(range(len(hand)), key=lambda i, number=r: tree_word(seed, tree, 1 + number, i)):
            if sum(cuts) < depth and cuts[i] < most[i]:
                cuts[i] += 1
    leaf, leaves = 0, 1
    for i, j in enumerate(hand):
        levels, unordered, missing = axes[j]
        p, absent = point[j], missing and point[j] == LATTICE - 1
        words = lambda k, i=i: tree_word(seed, tree, 64 + i, k)  # noqa: E731
        if levels:
            order = list(range(levels))
            if unordered:
                order.sort(key=lambda level, i=i: tree_word(seed, tree, 1024 + i, level))
            groups = level_cells(words, order, cuts[i])
            cell, size = [p * levels // LATTICE in group for group in groups].index(True), len(groups)
        else:
            lines = line_cells(words, cuts[i])
            cell, size = [low <= p < high for low, high in lines].index(True), len(lines)
        cell, size = (size if absent else cell), size + missing
        leaf, leaves = leaf * size + cell, leaves * size
    return leaf, leaves


# Logarithms ------------------------------------------------------------------------------------------------------------


def log_of_count(count: int, floor: Fraction, bend: Fraction = Fraction(0)) -> Decimal:
    """The logarithm of m = max(count, floor), or with a bend of m / (m + bend), times 2**32, to 40 digits."""
    largest = max(Fraction(count), floor)
    ratio = largest / (largest + bend) if bend else largest
    with localcontext() as context:
        context.prec = 40
        return (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln() * 2**32
