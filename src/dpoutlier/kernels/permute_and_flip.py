"""Flip one coin for each candidate of a choice: up with probability ``exp(-gap * numerator / denominator)``, exactly.

On integers, by Algorithm 1 of Canonne, Kamath and Steinke (2020). A coin first needs as many successes of Bernoulli(exp(-1)) as the
exponent has whole units, and is down at the first that fails; so a gap takes a few words, however large it is. As in the other
samplers a coin that finds too few words starts again from its first one.
"""

from typing import Any

import numpy as np

from dpoutlier.kernels.jit import kernel, shared
from dpoutlier.kernels.laplace import MOST, ONE, RAN_OUT, bernoulli_exp, one_in

__all__ = ["RAN_OUT", "TABLE_ENDS", "flip_coins"]

TABLE_ENDS = -2


@shared
def share_of(part: Any, whole: Any, words: Any, stop: Any, at: Any) -> Any:
    """Bernoulli(part / whole), exactly: a uniform integer below ``whole`` is below ``part``. Returns (outcome, at)."""
    share = MOST // whole
    while at < stop:
        word = words[at]
        at += 1
        if word < share * part:
            return True, at
        if word < share * whole:
            return False, at
    return False, RAN_OUT


@shared
def bernoulli_exp_of(part: Any, whole: Any, words: Any, stop: Any, at: Any) -> Any:
    """Bernoulli(exp(-part / whole)) for part < whole. Returns (outcome, at)."""
    k = 1
    while part > 0:
        success, at = share_of(part, whole, words, stop, at)
        if at == RAN_OUT or not success:
            break
        success, at = one_in(k, words, stop, at)
        if at == RAN_OUT or not success:
            break
        k += 1
    return k % 2 == 1, at


@shared
def coin(gap: Any, numerator: Any, denominator: Any, limits: Any, words: Any, stop: Any, at: Any) -> Any:
    """One coin from words[at:stop]. ``limits[i]`` is the largest gap with an exponent below i + 1. Returns (outcome, at)."""
    whole = 0
    while gap > limits[whole]:
        success, at = bernoulli_exp(ONE, words, stop, at)
        if at == RAN_OUT or not success:
            return False, at
        whole += 1
        if whole == limits.shape[0]:
            return False, TABLE_ENDS
    # Both products may pass 2**64, but their difference is below the denominator: modulo 2**64 it is right.
    part = gap * numerator - np.uint64(whole) * denominator
    return bernoulli_exp_of(part, denominator, words, stop, at)


@kernel
def flip_coins(gaps: Any, numerator: Any, denominator: Any, limits: Any, words: Any, up: Any, start: int) -> Any:
    """Flip up[start:]. Returns (first coin not flipped, words taken by those that were, 0 or why it stopped)."""
    at = 0
    for i in range(start, up.shape[0]):
        outcome, then = coin(gaps[i], numerator, denominator, limits, words, words.shape[0], at)
        if then < 0:
            return i, at, then
        up[i] = outcome
        at = then
    return up.shape[0], at, 0
