"""The door out: exact counts go in, noisy counts come out."""

import numpy as np
from numpy.typing import NDArray

from dpoutlier.counts.dense import DenseCounts
from dpoutlier.counts.keyed import KEY_BYTES, SALT_BYTES, KeyedCounts, sampler_version_for
from dpoutlier.counts.sparse import SparseCounts
from dpoutlier.noise.binomial import draw_binomial
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.noise.mechanism import Noise
from dpoutlier.noise.sources import ByteSource
from dpoutlier.noise.uniform import draw_distinct_below, same_as_before
from dpoutlier.trusted.counts import Counts

SPARE = 64


def release_vector(exact: NDArray[np.int64], noise: Noise, source: ByteSource) -> NDArray[np.int64]:
    """Each entry plus independent noise of its own, in integers from end to end."""  # (P2)
    return exact + noise.draw(len(exact), source)


def release_dense(counts: Counts, n_cells: int, noise: Noise, source: ByteSource) -> DenseCounts:
    """Noise on every cell, occupied or not; the exact counts are dropped."""  # (P3)
    exact = np.zeros(n_cells, np.int64)
    exact[counts.ids[:, 1].astype(np.int64)] = counts.counts
    return DenseCounts(release_vector(exact, noise, source))


def release_keyed(
    counts: Counts, noise: DiscreteLaplace, source: ByteSource, *, key: bytes | None = None
) -> KeyedCounts:
    """Noise of the same law, computed when a cell is asked for. The salt is fresh, even if the key is given."""  # (P4)
    key = source.read(KEY_BYTES) if key is None else key
    return KeyedCounts(counts.ids, counts.counts, key, source.read(SALT_BYTES), noise, sampler_version_for(noise))


def release_sparse(counts: Counts, n_cells: int, noise: DiscreteLaplace, tau: int, source: ByteSource) -> SparseCounts:
    """The same law as noise on every cell, keeping counts of at least ``tau``. Empty cells are not looked at."""  # (P7)
    noisy = release_vector(counts.counts, noise, source)
    # Every cell of the grid, occupied or not, is marked with the chance that an empty one passes, independently of all others: so
    # many are marked, and given how many, all sets of so many are equally likely.
    marked = draw_distinct_below(n_cells, draw_binomial(n_cells, noise, tau, source), source)
    # Noise of at least tau is tau and more by the law given that it is not negative. Drawn for every mark, occupied or not.
    passed = tau + _not_negative(noise, len(marked), source)
    # Marks on occupied cells are dropped, whether these passed or not: the others are independent of them, so that each empty cell
    # has passed with its own chance. In ascending order nothing tells which cell is which.
    ids, values = np.concatenate([counts.ids, marked]), np.concatenate([noisy, passed])
    order = np.lexsort((ids[:, 1], ids[:, 0]))  # stable: of two equal ids the occupied cell is the first
    ids, values = ids[order], values[order]
    kept = ~same_as_before(ids) & (values >= tau)
    return SparseCounts(ids[kept], values[kept], tau)


def _not_negative(noise: DiscreteLaplace, n: int, source: ByteSource) -> NDArray[np.int64]:
    """``n`` draws of the law, each drawn again while it is negative: P(g) = (1 - a) a**g."""
    found = np.empty(0, np.int64)
    while len(found) < n:
        drawn = noise.draw(2 * (n - len(found)) + SPARE, source)
        found = np.concatenate([found, drawn[drawn >= 0]])
    return found[:n]
