"""The door out: exact counts go in, noisy counts come out."""

import numpy as np
from numpy.typing import NDArray

from dpoutlier.holders.dense import DenseCounts
from dpoutlier.holders.holder import UNSAFE_PER_ROW
from dpoutlier.holders.keyed import KEY_BYTES, SALT_BYTES, KeyedCounts, noise_of
from dpoutlier.noise.law import DiscreteLaplace
from dpoutlier.noise.sampling import draw_noise
from dpoutlier.noise.sources import ByteSource
from dpoutlier.noise.unsafe import unsafe_float_laplace
from dpoutlier.trusted.counts import Counts

__all__ = ["release_dense", "release_keyed", "release_vector"]


def release_vector(exact: NDArray[np.int64], law: DiscreteLaplace, source: ByteSource) -> NDArray[np.int64]:
    """Each entry plus independent noise of its own, in integers from end to end."""  # (P2)
    return exact + draw_noise(law, len(exact), source)


def release_dense(
    counts: Counts, n_cells: int, law: DiscreteLaplace, source: ByteSource, *, unsafe_float: bool = False
) -> DenseCounts:
    """Noise on every cell, occupied or not; the exact counts are dropped."""  # (P3)
    exact = np.zeros(n_cells, np.int64)
    exact[counts.ids[:, 1].astype(np.int64)] = counts.counts
    if unsafe_float:
        noisy = exact + unsafe_float_laplace(law.scale, n_cells, source)
        return DenseCounts(np.rint(noisy * UNSAFE_PER_ROW).astype(np.int64), unsafe_float=True)
    return DenseCounts(release_vector(exact, law, source))


def release_keyed(
    counts: Counts, law: DiscreteLaplace, source: ByteSource, *, key: bytes | None = None, unsafe_float: bool = False
) -> KeyedCounts:
    """The same noise in law, computed when a cell is asked for. The salt is fresh, also under a given key."""  # (P4)
    key = source.read(KEY_BYTES) if key is None else key
    return KeyedCounts(counts.ids, counts.counts, key, source.read(SALT_BYTES), law, unsafe_float, noise_of(law))
