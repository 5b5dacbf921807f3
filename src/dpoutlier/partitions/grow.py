"""Trees from a public seed: which features each tree has, where it cuts them, and how its leaves are numbered."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpoutlier.features.axes import MISSING, Axis
from dpoutlier.features.lattice import POSITIONS, first_position
from dpoutlier.kernels.siphash import stream_of_words
from dpoutlier.partitions.members import CutAxis, Digit, Member, numbered, strides_of

LEVELS_PER_FEATURE = 3
MIN_SHARE = 1503238553  # 0.35 * 2**32, rounded down
MORE_SHARE = 1288490188  # 0.3 * 2**32, rounded down
PACK, ORDER, CUTS, SHUFFLE = 0, 1, 64, 1024
"""What a word of the public stream is for: the order of a pack of features; of a tree's features in a round (rounds count from
ORDER on); the cuts of a tree's feature (from CUTS on); the order in which cuts see its levels (from SHUFFLE on)."""
_PERSON = b"dpoutlier trees1"


def grow(axes: Sequence[Axis], sizes: Sequence[int], depth: int, seed: int, *, by_level: bool) -> tuple[Member, ...]:
    """Trees with ``sizes[t]`` features each. ``by_level``: leaf numbers have a digit for each level, not one for each feature."""
    key = _public_key(seed)
    return numbered(
        _tree(key, t, hand.tolist(), axes, depth, by_level=by_level)
        for t, hand in enumerate(_deal(key, sizes, len(axes)))
    )


def _public_key(seed: int) -> NDArray[np.uint64]:
    """The key of the public stream that a seed makes trees from."""
    digest = hashlib.blake2b(seed.to_bytes(8, "little"), digest_size=16, person=_PERSON).digest()
    return np.frombuffer(digest, "<u8").astype(np.uint64)


def _words(key: NDArray[np.uint64], tree: int, purpose: int, n: int) -> NDArray[np.uint64]:
    """Words of the public stream."""
    words = np.empty(n, np.uint64)
    stream_of_words(key, tree, purpose, words)
    return words


def _order(key: NDArray[np.uint64], tree: int, purpose: int, n: int) -> NDArray[np.int64]:
    """A random order of n things."""
    return np.argsort(_words(key, tree, purpose, n), kind="stable")


def _deal(key: NDArray[np.uint64], sizes: Sequence[int], n_features: int) -> list[NDArray[np.int64]]:
    """Features of each tree, from the top of a shuffled pack; where that runs short, the rest comes from a new pack."""
    pack, packs, dealt = np.empty(0, np.int64), 0, []
    for size in sizes:
        hand, pack = pack[:size], pack[size:]
        if len(hand) < size:
            fresh = _order(key, packs, PACK, n_features)
            packs += 1
            others = fresh[~np.isin(fresh, hand)]
            more = others[: size - len(hand)]
            hand, pack = np.append(hand, more), fresh[~np.isin(fresh, more)]
        dealt.append(hand)
    return dealt


def _tree(
    key: NDArray[np.uint64], t: int, hand: list[int], axes: Sequence[Axis], depth: int, *, by_level: bool
) -> Member:
    """Tree number t, over the features that it was dealt."""
    levels = _levels(key, t, depth, [_most_cuts(axes[j]) for j in hand])
    own = {i: _cells(key, t, i, axes[j], levels.count(i)) for i, j in enumerate(hand) if i in levels or axes[j].missing}
    places = levels if by_level else list(own)
    sizes = [2 if by_level else own[i].size for i in places]
    strides = strides_of(sizes)
    made = []
    for i, cells in own.items():
        digits = [digit for place, *digit in zip(places, sizes, strides, strict=True) if place == i]
        made.append(CutAxis(hand[i], cells.cuts, cells.cells, _adds(digits)))
    return Member(tuple(made), tuple(Digit(hand[i], size) for i, size in zip(places, sizes, strict=True)))


def _most_cuts(axis: Axis) -> int:
    """How often a feature can be cut in two: L levels at most ceil(log2 L) times."""
    return min(LEVELS_PER_FEATURE, (axis.levels - 1).bit_length()) if axis.levels else LEVELS_PER_FEATURE


def _levels(key: NDArray[np.uint64], tree: int, depth: int, most: list[int]) -> list[int]:
    """Which of the tree's features each level cuts: in each round all that can be cut again, in a new random order."""
    levels: list[int] = []
    for turn in range(LEVELS_PER_FEATURE):
        levels += [i for i in _order(key, tree, ORDER + turn, len(most)).tolist() if most[i] > turn]
    return levels[:depth]


def _adds(digits: list[list[int]]) -> tuple[int, ...]:
    """What each cell of a feature adds to a leaf's number, from (size, stride) of the digits that the feature sets."""
    adds = [0]
    for size, stride in digits:
        adds = [add + value * stride for add in adds for value in range(size)]
    return tuple(adds)


class _Cells(NamedTuple):
    """How one feature of a tree is cut."""

    size: int
    cuts: tuple[int, ...]
    cells: bytes


def _cells(key: NDArray[np.uint64], tree: int, i: int, axis: Axis, cuts: int) -> _Cells:
    """The cells of a tree's i-th feature after ``cuts`` rounds of cuts, and a cell for missing values."""
    words = _words(key, tree, CUTS + i, 2**LEVELS_PER_FEATURE).tolist()
    if not axis.levels:
        return _line([*_line_cuts(words, 1, 0, POSITIONS, cuts), *[MISSING] * axis.missing])
    groups = _level_groups(words, 1, range(axis.levels), cuts)
    if axis.missing:  # ordered levels lie on a line, whose last position is that of missing values
        return _line([*(first_position(group[0], axis.levels) for group in groups[1:]), MISSING])
    cells = np.repeat(np.arange(len(groups), dtype=np.uint8), [len(group) for group in groups])
    if axis.unordered:
        cells[_order(key, tree, SHUFFLE + i, axis.levels)] = cells.copy()
    return _Cells(len(groups), (), cells.tobytes())


def _line(cuts: list[int]) -> _Cells:
    return _Cells(len(cuts) + 1, tuple(cuts), b"")


def _share_of(word: int) -> int:
    """Where a word of the stream cuts: in [0.35, 0.65), in units of 2**-32."""
    return MIN_SHARE + (((word >> 32) * MORE_SHARE) >> 32)


def _line_cuts(words: list[int], k: int, low: int, high: int, cuts: int) -> list[int]:
    """Cut positions low..high - 1 in two, then each part, for ``cuts`` rounds, in integers.

    A cut depends on earlier cuts of the same feature only: on ``words[k]``, where k is 1 for the first cut and becomes 2 k or
    2 k + 1 to the left or right of a cut. A position that equals a cut lies to the right.
    """
    if not cuts:
        return []
    cut = low + (((high - low) * _share_of(words[k])) >> 32)
    return [
        *_line_cuts(words, 2 * k, low, cut, cuts - 1),
        cut,
        *_line_cuts(words, 2 * k + 1, cut, high, cuts - 1),
    ]


def _level_groups(words: list[int], k: int, levels: range, cuts: int) -> list[range]:
    """Cut levels into two parts that are not empty, for ``cuts`` rounds. A single level is not cut."""
    if not cuts or len(levels) == 1:
        return [levels]
    at = min(max((2 * len(levels) * _share_of(words[k]) + 2**32) >> 33, 1), len(levels) - 1)
    below = _level_groups(words, 2 * k, levels[:at], cuts - 1)
    return [*below, *_level_groups(words, 2 * k + 1, levels[at:], cuts - 1)]
