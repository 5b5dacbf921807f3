"""Points to measure with: eight clusters in the unit cube, and one query in a hundred from anywhere."""

import numpy as np

CLUSTERS, SPREAD, STRAY = 8, 0.05, 0.01


def reference(n, d, seed=0):
    """N rows around eight centres, float64."""
    rng, centres = np.random.default_rng(seed), np.random.default_rng(5).uniform(0.2, 0.8, (CLUSTERS, d))
    return np.clip(centres[rng.integers(0, CLUSTERS, n)] + rng.normal(0, SPREAD, (n, d)), 0, 1)


def queries(n, d, seed=1):
    """The same, with every hundredth point uniform in the cube: an outlier."""
    points = reference(n, d, seed)
    stray = np.arange(n) % round(1 / STRAY) == 0
    points[stray] = np.random.default_rng(seed).uniform(size=(stray.sum(), d))
    return points
