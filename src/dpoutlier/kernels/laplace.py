"""The exact discrete Laplace sampler, on integers (Canonne, Kamath and Steinke 2020, Algorithms 1 and 2).

``P(z)`` is proportional to ``exp(-|z| * rate / 2**40)``, with ``rate`` an integer. The sampler reads uniform words of 64 bits
from an array and says how many it took. When the array ends too early it returns ``at = RAN_OUT``: the caller appends words
and starts the same draw again *from the same first word*, so that no draw is ever favoured for being short.

This is sampler version 1. Secret files name it; its words-to-noise map is frozen by golden vectors.
"""

from typing import Any

import numpy as np

from dpoutlier.kernels.jit import kernel, shared

RATE_BITS = 40
ONE = np.uint64(1 << RATE_BITS)
DROP = np.uint64(64 - RATE_BITS)  # a word's upper 40 bits are a uniform integer below ONE
SIGN = np.uint64(63)
NEGATIVE = np.uint64(1)
MOST = np.uint64(0xFFFFFFFFFFFFFFFF)
RAN_OUT = -1


@shared
def one_in(k: Any, words: Any, stop: Any, at: Any) -> Any:
    """Bernoulli(1/k), exactly: a uniform integer below k is 0. Returns (outcome, at)."""
    if k == 1:
        return True, at
    share = MOST // np.uint64(k)
    while at < stop:
        word = words[at]
        at += 1
        if word < share:
            return True, at
        if word < share * np.uint64(k):
            return False, at
    return False, RAN_OUT


@shared
def bernoulli_exp(numerator: Any, words: Any, stop: Any, at: Any) -> Any:
    """Bernoulli(exp(-numerator / 2**40)) for numerator <= 2**40 (Algorithm 1 of the source). Returns (outcome, at)."""
    k = 1
    while True:
        # One trial of probability numerator / (2**40 k): both factors must come up.
        if numerator < ONE:
            if at >= stop:
                return False, RAN_OUT
            below = (words[at] >> DROP) < numerator
            at += 1
            if not below:
                break
        success, at = one_in(k, words, stop, at)
        if at == RAN_OUT:
            return False, RAN_OUT
        if not success:
            break
        k += 1
    return k % 2 == 1, at


@shared
def geometric(words: Any, stop: Any, at: Any) -> Any:
    """Number of successes of Bernoulli(exp(-1)) before the first failure. Returns (number, at)."""
    successes = 0
    while True:
        success, at = bernoulli_exp(ONE, words, stop, at)
        if at == RAN_OUT or not success:
            return successes, at
        successes += 1


@shared
def draw(rate: Any, words: Any, stop: Any, at: Any) -> Any:
    """One draw from words[at:stop] (Algorithm 2 of the source). Returns (noise, at)."""
    while at < stop:
        fraction = words[at] >> DROP
        accepted, at = bernoulli_exp(fraction, words, stop, at + 1)
        if at == RAN_OUT:
            break
        if not accepted:
            continue
        whole, at = geometric(words, stop, at)
        if at == RAN_OUT or at >= stop:
            break
        magnitude = np.int64((fraction + np.uint64(whole) * ONE) // rate)
        negative = (words[at] >> SIGN) == NEGATIVE
        at += 1
        if negative and magnitude == 0:
            continue  # zero would count twice
        return (-magnitude if negative else magnitude), at
    return np.int64(0), RAN_OUT


@kernel
def fill(rate: Any, words: Any, out: Any, start: int) -> tuple[int, int]:
    """Draw out[start:] from ``words``. Returns (first entry not drawn, words taken by those that were)."""
    at = 0
    for i in range(start, out.shape[0]):
        noise, then = draw(rate, words, words.shape[0], at)
        if then == RAN_OUT:
            return i, at
        out[i] = noise
        at = then
    return out.shape[0], at
