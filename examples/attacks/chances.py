"""What epsilon permits an attacker, and how sure a measured share is."""

import math

import numpy as np
from scipy import stats

SURE = 1 - 1e-7  # level of the intervals by which a verdict is given


def most_right(epsilon):
    """The largest share of right guesses, if two neighbouring data sets are equally likely: e^epsilon / (1 + e^epsilon)."""
    return 1 / (1 + math.exp(-epsilon))


def most_detected(false_alarms, epsilon):
    """The largest share of members that an attacker finds who accuses this share of the others."""
    false_alarms = np.asarray(false_alarms, float)
    return np.minimum(math.exp(epsilon) * false_alarms, 1 - math.exp(-epsilon) * (1 - false_alarms))


def percent(share, digits=1):
    return f"{100 * share:.{digits}f} %"


def interval(right, n, level=0.95):
    """The share that ``right`` of ``n`` estimate lies in here with probability ``level`` or more (Clopper and Pearson)."""
    tail = (1 - level) / 2
    low = stats.beta.ppf(tail, right, n - right + 1) if right > 0 else 0.0
    high = stats.beta.isf(tail, right + 1, n - right) if right < n else 1.0
    return float(low), float(high)


class Guesses:
    """How often an attacker was right."""

    def __init__(self, right):
        """One entry for each guess, true where it was right."""
        right = np.asarray(right)
        self.right, self.n = int(np.count_nonzero(right)), len(right)

    @property
    def share(self):
        return self.right / self.n

    def interval(self, level=0.95):
        return interval(self.right, self.n, level)

    @property
    def surely(self):
        """The least share that these guesses are compatible with."""
        return self.interval(SURE)[0]

    def __str__(self):
        low, high = self.interval()
        return f"{percent(self.share)} ({100 * low:.1f} to {100 * high:.1f})"
