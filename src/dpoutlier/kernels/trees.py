"""Random trees on the lattice: grow their cuts from a public key.

A tree of depth h has its nodes in heap order: the root is 1, below node v are 2 v and 2 v + 1, and leaf i is node 2**h + i. All
nodes of a level cut the same feature. Cuts and leaves of a tree start at the same index.
"""

from typing import Any, NamedTuple

import numpy as np

from dpoutlier.kernels.jit import kernel
from dpoutlier.kernels.siphash import siphash_words

__all__ = ["LEAST_SHARE", "MORE_SHARE", "TreeArrays", "cut_words", "grow"]

HALF = np.uint64(32)
WIDTH = np.uint64(1 << 32)
LEAST_SHARE = np.uint64(1503238553)  # 0.35 * 2**32, rounded down
MORE_SHARE = np.uint64(1288490188)  # 0.3 * 2**32, rounded down


class TreeArrays(NamedTuple):
    """All trees of a forest."""

    first: Any  # per tree: index of its first cut and leaf
    depth: Any  # per tree
    feature: Any  # [tree, level]
    cut: Any  # by first + node; a position below it goes left


@kernel
def cut_words(key: Any, tree: int, purpose: int, out: Any) -> None:
    """Words of a public stream: SipHash-2-4 of (tree, purpose, i)."""
    for i in range(out.shape[0]):
        out[i] = siphash_words(key[0], key[1], np.uint64(tree), np.uint64(purpose), np.uint64(i))


@kernel
def grow(feature: Any, words: Any, cut: Any) -> None:
    """Cuts of one tree into ``cut``, of 2**depth entries; entry 0 is not used. ``feature`` numbers the tree's own features from 0.

    A node that holds positions low..high - 1 of its feature cuts at low + (high - low) * u with u in [0.35, 0.65), in integers. Of
    all that was cut before, u depends on the cuts of the same feature alone: on ``words[feature, k]``, where k is 1 for its first
    cut and becomes 2 k or 2 k + 1 to the left or right of a cut. What holds a single position cannot be cut: all of it goes right.
    """
    cut[0] = 0
    for node in range(1, cut.shape[0]):
        level = 0
        while node >> (level + 1) > 0:
            level += 1
        own, low, high = feature[level], np.uint64(0), WIDTH
        above, at, path, steps = node, level, 0, 0
        while above > 1:
            right = above & 1
            above >>= 1
            at -= 1
            if feature[at] == own:
                path |= right << steps
                steps += 1
                if right == 1:
                    low = max(low, np.uint64(cut[above]))
                else:
                    high = min(high, np.uint64(cut[above]))
        word = words[own, (1 << steps) | path]
        share = LEAST_SHARE + (((word >> HALF) * MORE_SHARE) >> HALF)
        cut[node] = low + (((high - low) * share) >> HALF)
