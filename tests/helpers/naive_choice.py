"""Permute-and-flip read aloud: the candidates in a random order, the coin of each, the first that is up."""

import itertools
import math
from fractions import Fraction

import numpy as np

EVERY = 2**64


def naive_below(n, words):
    """A uniform integer below n."""
    while True:
        share, word = (EVERY - 1) // n, next(words)
        if word < share * n:
            return word // share


def naive_exp(x, words):
    """Bernoulli(exp(-x)) for x in [0, 1]: Algorithm 1 of Canonne, Kamath and Steinke."""
    k = 1
    while x > 0:
        if x < 1 and naive_below(x.denominator, words) >= x.numerator:
            break
        if k > 1 and naive_below(k, words) > 0:
            break
        k += 1
    return k % 2 == 1


def naive_coin(x, words):
    """Bernoulli(exp(-x)) for any x >= 0."""
    while x >= 1:
        if not naive_exp(Fraction(1), words):
            return False
        x -= 1
    return naive_exp(x, words)


def naive_choice(utilities, rate, words):
    """The candidates in a random order; the first whose coin is up."""
    left = list(range(len(utilities)))
    while True:
        r = left.pop(naive_below(len(left), words))
        if naive_coin(rate * (max(utilities) - utilities[r]), words):
            return r


def exact_law(utilities, rate):
    """P(r) by the sum over the sets of coins that are up: an order says only which of them is first."""
    ups = [math.exp(-float(rate) * (max(utilities) - u)) for u in utilities]
    law = [0.0] * len(ups)
    for coins in itertools.product([False, True], repeat=len(ups)):
        probability = math.prod(up if coin else 1 - up for up, coin in zip(ups, coins))
        for r in np.flatnonzero(coins):
            law[r] += probability / sum(coins)
    return law


def integral_law(utilities, rate):
    """P(r) by the integral of docs/privacy.md, a polynomial in t."""
    ups = [math.exp(-float(rate) * (max(utilities) - u)) for u in utilities]
    law = []
    for r, up in enumerate(ups):
        product = np.polynomial.Polynomial([1.0])
        for other in ups[:r] + ups[r + 1 :]:
            product *= np.polynomial.Polynomial([1.0, -other])
        law.append(up * float(product.integ()(1.0)))
    return law
