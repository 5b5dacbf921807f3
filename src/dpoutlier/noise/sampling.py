"""Draw many values of the discrete Laplace law from a source of bytes, exactly."""

import numpy as np
from numpy.typing import NDArray

from dpoutlier.kernels.guided import UNDECIDED, guided_fill
from dpoutlier.kernels.laplace import fill
from dpoutlier.noise.guide import DIGITS, guided_table, has_table
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.noise.sources import ByteSource

__all__ = ["draw_noise"]

MOST_WORDS = 1 << 20  # read at a time; what is missing then is read in the next round


def draw_noise(law: DiscreteLaplace, n: int, source: ByteSource) -> NDArray[np.int64]:
    """``n`` independent draws. Words that a round did not use open the next one, so the stream has no seams."""
    return _by_table(law, n, source) if has_table(law) else _without_table(law, n, source)


def _by_table(law: DiscreteLaplace, n: int, source: ByteSource) -> NDArray[np.int64]:
    noise, words = np.empty(n, np.int64), np.empty(0, np.uint64)
    done, digits = 0, DIGITS
    while done < n:
        words = _more(words, n - done + 64, source)
        done, used, why = guided_fill(guided_table(law, digits), words, noise, done)
        words = words[used:]
        digits *= 2 if why == UNDECIDED else 1
    return noise


def _without_table(law: DiscreteLaplace, n: int, source: ByteSource) -> NDArray[np.int64]:
    """Noise too wide for a table, by sampler version 1, which takes nine words on average."""
    noise, words = np.empty(n, np.int64), np.empty(0, np.uint64)
    rate, done = np.uint64(law.rate_units), 0
    while done < n:
        words = _more(words, 12 * (n - done) + 64, source)
        done, used = fill(rate, words, noise, done)
        words = words[used:]
    return noise


def _more(words: NDArray[np.uint64], wanted: int, source: ByteSource) -> NDArray[np.uint64]:
    fresh = np.frombuffer(source.read(8 * min(wanted, MOST_WORDS)), "<u8")
    return np.concatenate([words, fresh.astype(np.uint64, copy=False)])
