"""The public stream of words that trees grow from: which features a tree has, and where it cuts them."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from dpoutlier.kernels.trees import LEAST_SHARE, MORE_SHARE, cut_words

__all__ = ["CUTS", "ORDER", "deal", "line_cuts", "public_key", "public_words", "share_of"]

PACK, ORDER, CUTS = 0, 1, 64
"""What a word of the public stream is for. Rounds of levels count from ORDER on, a tree's features from CUTS."""
_PERSON = b"dpoutlier trees1"


def public_key(seed: int) -> NDArray[np.uint64]:
    """The key of the public stream that a seed makes trees from."""
    digest = hashlib.blake2b(seed.to_bytes(8, "little"), digest_size=16, person=_PERSON).digest()
    return np.frombuffer(digest, "<u8").astype(np.uint64)


def public_words(key: NDArray[np.uint64], tree: int, purpose: int, n: int) -> NDArray[np.uint64]:
    words = np.empty(n, np.uint64)
    cut_words(key, tree, purpose, words)
    return words


def deal(key: NDArray[np.uint64], sizes: tuple[int, ...], n_features: int) -> list[NDArray[np.int64]]:
    """Features of each tree, from the top of a shuffled pack; where that runs short, the rest comes from a new pack."""
    pack, packs, dealt = np.empty(0, np.int64), 0, []
    for size in sizes:
        hand, pack = pack[:size], pack[size:]
        if len(hand) < size:
            fresh = np.argsort(public_words(key, packs, PACK, n_features), kind="stable")
            packs += 1
            others = fresh[~np.isin(fresh, hand)]
            more = others[: size - len(hand)]
            hand, pack = np.append(hand, more), fresh[~np.isin(fresh, more)]
        dealt.append(hand)
    return dealt


def share_of(word: int) -> int:
    """Where a word of the stream cuts: in [0.35, 0.65), in units of 2**-32; as ``grow`` does."""
    return int(LEAST_SHARE) + (((word >> 32) * int(MORE_SHARE)) >> 32)


def line_cuts(words: list[int], k: int, low: int, high: int, cuts: int) -> list[int]:
    """Positions low..high - 1 cut so many times over; words as in ``grow``."""
    if not cuts:
        return []
    cut = low + (((high - low) * share_of(words[k])) >> 32)
    return [
        *line_cuts(words, 2 * k, low, cut, cuts - 1),
        cut,
        *line_cuts(words, 2 * k + 1, cut, high, cuts - 1),
    ]
