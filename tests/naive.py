"""Definitions read aloud: Algorithm 1 over all cells, the sampler on Python integers, SipHash by the book.

Slow, plain, and obviously right; the package is tested against it.
"""

import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

LATTICE = 2**32


def position(x: float, lower: float, upper: float) -> int:
    """floor(clip((x - lower) * s, 0, 2**32 - 1)) with s = 2**32 / (upper - lower)."""
    moved = (float(x) - lower) * (LATTICE / (upper - lower))
    return int(min(max(moved, 0.0), LATTICE - 1.0))


def home_of(point: Sequence[int], bins: Sequence[int]) -> tuple[int, ...]:
    return tuple(p * b // LATTICE for p, b in zip(point, bins))


def cost(p: int, b: int, c: int) -> int:
    """Distance of a position to the middle of bin c, in units of 2**-32, rounded down.

    The point is the middle of its position, but not past the upper edge of its home bin.
    """
    home = p * b // LATTICE
    point = min(Fraction(2 * p + 1, 2), Fraction((home + 1) * LATTICE, b))
    middle = Fraction((2 * c + 1) * LATTICE, 2 * b)
    return int(abs(point - middle))


def ranked(p: int, b: int) -> list[int]:
    """Bins of one feature by (cost, steps from home, index)."""
    home = p * b // LATTICE
    return sorted(range(b), key=lambda c: (cost(p, b, c), abs(c - home), c))


def cells_within(home: Sequence[int], bins: Sequence[int], steps: int | None) -> Iterator[tuple[int, ...]]:
    """All cells within so many steps from home, feature after feature; all there are for None."""
    if not bins:
        yield ()
        return
    for c in range(bins[0]):
        left = None if steps is None else steps - abs(c - home[0])
        if left is None or left >= 0:
            yield from ((c, *rest) for rest in cells_within(home[1:], bins[1:], left))


def visiting_order(point: Sequence[int], bins: Sequence[int], max_depth: int | None) -> list[tuple[int, ...]]:
    """All cells within max_depth steps from home, by (sum of costs, rank vector)."""
    home = home_of(point, bins)
    costs = [[cost(p, b, c) for c in range(b)] for p, b in zip(point, bins)]
    rank = [{c: r for r, c in enumerate(ranked(p, b))} for p, b in zip(point, bins)]

    def key(cell: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        return sum(costs[j][c] for j, c in enumerate(cell)), tuple(rank[j][c] for j, c in enumerate(cell))

    return sorted(cells_within(home, bins, max_depth), key=key)


def number_of(cell: Sequence[int], bins: Sequence[int]) -> int:
    """Mixed-radix number of a cell, the first feature most significant."""
    number = 0
    for c, b in zip(cell, bins):
        number = number * b + c
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
) -> tuple[float, int, int]:
    """Algorithm 1. Returns (score, gathered, visited)."""
    home = home_of(point, bins)
    gathered, result, visited = 0, Fraction(0), 0
    for cell in visiting_order(point, bins, max_depth)[:max_cells]:
        q = count(number_of(cell, bins))
        if distance == "cell":
            length = sum((Fraction(abs(c - h), b) for c, h, b in zip(cell, home, bins)), Fraction(0))
        else:
            length = Fraction(sum(cost(p, b, c) for p, b, c in zip(point, bins, cell)), LATTICE)
        gathered += q
        visited += 1
        result = result + q * length if weighted else length
        if gathered >= k:
            return float(result), gathered, visited
    if exhausted == "outlying":
        diameter = len(bins)
        result = result + (k - gathered) * diameter if weighted else Fraction(diameter)
    return float(result), gathered, visited


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


# Logarithms ------------------------------------------------------------------------------------------------------------


def log_of_count(count: int, floor: Fraction, bend: Fraction = Fraction(0)) -> Decimal:
    """The logarithm of m = max(count, floor), or with a bend of m / (m + bend), times 2**32, to 40 digits."""
    largest = max(Fraction(count), floor)
    ratio = largest / (largest + bend) if bend else largest
    with localcontext() as context:
        context.prec = 40
        return (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln() * 2**32
