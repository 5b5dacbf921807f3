"""Draw many values of the discrete Laplace law from a source of bytes, exactly."""

import numpy as np
from numpy.typing import NDArray

from dpoutlier.kernels.laplace import fill
from dpoutlier.noise.law import DiscreteLaplace
from dpoutlier.noise.sources import ByteSource

__all__ = ["draw_noise"]

WORDS_PER_DRAW = 12  # on average fewer; what is missing is read in the next round
MOST_WORDS = 1 << 20


def draw_noise(law: DiscreteLaplace, n: int, source: ByteSource) -> NDArray[np.int64]:
    """``n`` independent draws. Words that a round did not use open the next one, so the stream has no seams."""
    noise = np.empty(n, np.int64)
    words = np.empty(0, np.uint64)
    rate, done = np.uint64(law.rate_units), 0
    while done < n:
        fresh = min(MOST_WORDS, WORDS_PER_DRAW * (n - done) + 64)
        words = np.concatenate([words, np.frombuffer(source.read(8 * fresh), "<u8")])
        done, used = fill(rate, words, noise, done)
        words = words[used:]
    return noise
