r"""What a user would do without dpoutlier: synthetic rows under differential privacy, then ordinary k-NN on them.

Two makers, on 10 bins per feature, with Gaussian noise under zero-concentrated DP for one row more or less; :math:`\rho` follows
from :math:`\epsilon = \rho + 2 \sqrt{\rho \ln(1 / \delta)}` (Bun and Steinke 2016):

- ``marginals``: one histogram for each feature; features are sampled independently.
- ``tree``: after McKenna, Miklau and Sheldon's MST (2021). A third of :math:`\rho` pays for the histograms; a third chooses a
  spanning tree of feature pairs by the exponential mechanism, scored by how far a pair is from independence; a third pays for the
  histograms of those pairs. A feature is sampled given its parent in the tree.

Small and plain, for comparison only: floating-point noise from numpy's generator, so **not private** as it stands.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

BINS = 10
DELTA = 1e-6

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def rho_of(epsilon: float, delta: float = DELTA) -> float:
    """The largest rho whose zCDP is (epsilon, delta)-DP.

    >>> rho = rho_of(1.0)
    >>> round(rho + 2 * math.sqrt(rho * math.log(1 / DELTA)), 9)
    1.0
    """
    log = math.log(1 / delta)
    return (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2


@dataclass(frozen=True)
class Binned:
    """Reference rows as bins, with their exact histograms of one and two features."""

    bins: Ints
    ones: Floats
    """[feature, bin]"""
    pairs: Ints
    """[pair, 2]: features"""
    twos: Floats
    """[pair, bin of the first, bin of the second]"""

    @classmethod
    def of(cls, unit_rows: Floats) -> Self:
        """From rows in the unit cube."""
        bins = np.clip((unit_rows * BINS).astype(np.int64), 0, BINS - 1)
        d = bins.shape[1]
        ones = np.stack([np.bincount(bins[:, j], minlength=BINS) for j in range(d)]).astype(float)
        first, second = np.triu_indices(d, 1)
        twos = np.empty((len(first), BINS, BINS))
        for p, (i, j) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
            twos[p] = np.bincount(bins[:, i] * BINS + bins[:, j], minlength=BINS**2).reshape(BINS, BINS)
        return cls(bins, ones, np.stack([first, second], axis=1), twos)


def sample_by_marginals(binned: Binned, epsilon: float, n: int, rng: np.random.Generator) -> Floats:
    """So many synthetic rows in the unit cube, all features independent."""
    noisy = _noisy(binned.ones, rho_of(epsilon), len(binned.ones), rng)
    drawn = np.stack([rng.choice(BINS, n, p=p) for p in _distributions(noisy)], axis=1)
    return _somewhere_in(drawn, rng)


def sample_by_tree(binned: Binned, epsilon: float, n: int, rng: np.random.Generator) -> Floats:
    """So many synthetic rows in the unit cube, each feature given its parent in a noisy spanning tree."""
    rho, d = rho_of(epsilon) / 3, len(binned.ones)
    ones = _distributions(_noisy(binned.ones, rho, d, rng))
    drawn = np.empty((n, d), np.int64)
    drawn[:, 0] = rng.choice(BINS, n, p=ones[0])
    if d == 1:
        return _somewhere_in(drawn, rng)
    edges = _spanning_tree(binned, ones, rho, rng)
    twos = _noisy(binned.twos[edges], rho, len(edges), rng)
    for parent, child, table in _outwards(binned.pairs[edges], twos):
        known = table.sum(axis=1, keepdims=True)
        given = np.where(known > 0, table / np.where(known > 0, known, 1.0), ones[child])
        below = np.cumsum(given, axis=1)[drawn[:, parent]]
        drawn[:, child] = np.minimum((rng.random((n, 1)) > below).sum(axis=1), BINS - 1)
    return _somewhere_in(drawn, rng)


def _noisy(counts: Floats, rho: float, members: int, rng: np.random.Generator) -> Floats:
    """A row is counted once in each member, so the L2 sensitivity is the root of their number.

    What does not pass the standard deviation of the noise counts as nothing: else the noise of many empty cells is sampled.
    """
    sd = math.sqrt(members / (2 * rho))
    noisy = counts + rng.normal(0, sd, counts.shape)
    return np.where(noisy < sd, 0.0, noisy)


def _distributions(noisy: Floats) -> Floats:
    total = noisy.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0, noisy / np.where(total > 0, total, 1.0), 1 / BINS))


def _spanning_tree(binned: Binned, ones: Floats, rho: float, rng: np.random.Generator) -> Ints:
    """Numbers of the chosen pairs: Kruskal's steps, each by the exponential mechanism at its share of rho.

    A pair's score is the L1 distance of its histogram from independence; one row changes it by at most 2 (its own cell, and the
    expected counts by one in all).
    """
    i, j = binned.pairs.T
    expected = binned.twos.sum(axis=(1, 2))[:, None, None] * ones[i][:, :, None] * ones[j][:, None, :]
    scores = np.abs(binned.twos - expected).sum(axis=(1, 2))
    d = len(ones)
    epsilon = math.sqrt(8 * rho / (d - 1))  # an epsilon-DP choice by exponential mechanism is epsilon**2 / 8-zCDP
    group, chosen = np.arange(d), []
    for _ in range(d - 1):
        noisy = scores * epsilon / 4 + rng.gumbel(size=len(scores))
        noisy[group[i] == group[j]] = -np.inf
        best = int(noisy.argmax())
        chosen.append(best)
        group[group == group[j[best]]] = group[i[best]]
    return np.array(chosen)


def _outwards(pairs: Ints, twos: Floats) -> list[tuple[int, int, Floats]]:
    """The edges from feature 0 on: (parent, child, table with the parent's bins as rows)."""
    left = [(int(a), int(b), table) for (a, b), table in zip(pairs, twos, strict=True)]
    reached, ordered = {0}, []
    while left:
        for edge in left:
            a, b, table = edge
            if (a in reached) != (b in reached):
                ordered.append((a, b, table) if a in reached else (b, a, table.T))
                reached |= {a, b}
                left.remove(edge)
                break
    return ordered


def _somewhere_in(drawn: Ints, rng: np.random.Generator) -> Floats:
    return np.asarray((drawn + rng.random(drawn.shape)) / BINS)
