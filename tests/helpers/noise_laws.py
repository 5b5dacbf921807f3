"""Draws of noise and the law that they should have."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st
from scipy import stats

from dpoutlier.counts.keyed import KeyedCounts
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.noise.mechanism import Cost, Sensitivity
from dpoutlier.noise.sources import UnsafeSeededBytes
from dpoutlier.trusted.counts import Counts

# A test of a correct sampler fails with at most this probability, and its seed is fixed besides.
FALSE_ALARM = 1e-7


DRAWS = 300_000


EPSILONS = [Fraction(5), Fraction(1), Fraction("0.3"), Fraction("0.015")]


words_of_64_bits = st.integers(0, 2**64 - 1)


def law_of(epsilon):
    return DiscreteLaplace.costing(Cost(Fraction(epsilon)), Sensitivity(1))


def log_probability(law, value):
    """Logarithm of P(noise = value)."""
    rate = float(law.rate)
    return math.log(-math.expm1(-rate)) - math.log1p(math.exp(-rate)) - abs(value) * rate


NOTHING = Counts(np.empty((0, 2), np.uint64), np.empty(0, np.int64))


def keyed(law, version, key=bytes(32), salt=bytes(16)):
    return KeyedCounts(NOTHING.ids, NOTHING.counts, key, salt, law, sampler_version=version)


def dense_draws(law, n, seed=0):
    return law.draw(n, UnsafeSeededBytes(seed))


def chi_square(noise, law):
    """p-value of draws against the exact law; values are pooled until 30 are expected in each class."""
    reach = math.ceil(law.scale * math.log(len(noise) / 60)) + 2
    width = max(1, reach // 40)
    edges = np.arange(-reach, reach + 1, width)
    observed = np.histogram(noise, np.concatenate([[-np.inf], edges - 0.5, [np.inf]]))[0]
    above = np.array([law.at_least(int(edge)) for edge in edges])
    expected = -np.diff(np.concatenate([[1.0], above, [0.0]])) * len(noise)
    keep = expected >= 30
    return stats.chisquare(
        np.append(observed[keep], observed[~keep].sum()),
        np.append(expected[keep], expected[~keep].sum() or 1e-9) * (len(noise) / expected.sum()),
    ).pvalue
