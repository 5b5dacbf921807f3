"""How much a release speaks for one of two worlds: its log-likelihood ratio under the law that is claimed."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier.audit.worlds import Changed, Worlds
from dpoutlier.counts.sparse import SparseCounts
from dpoutlier.model.model import Model
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.noise.mechanism import Noise
from dpoutlier.partitions.base import CellIds
from dpoutlier.privacy.guarantee import Purpose
from dpoutlier.scoring.threshold import bin_of

LookUp = Callable[[CellIds], NDArray[Any]]
"""Released counts of cells, as the attacker sees them; of a sparse release 0 for cells that are not listed."""


def log_ratio(model: Model, worlds: Worlds, changed: Changed, noisy: NDArray[Any]) -> float:
    """Log-likelihood ratio of a whole release: the counts that can differ, and what else the fit estimated with epsilon."""
    return float(log_ratios_of_counts(model, noisy, changed.here, changed.there).sum()) + other_releases(model, worlds)


def log_ratios_of_counts(
    model: Model, noisy: NDArray[Any], here: NDArray[np.int64], there: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Log-likelihood ratio of each count. Counts are independent."""
    law = model.noise_laws[0]
    ratios = law.log_ratio(noisy, here, there)
    if isinstance(model.counts, SparseCounts):
        assert isinstance(law, DiscreteLaplace)
        tau = model.counts.tau
        hidden = [_hidden(law, tau, a, b) for a, b in zip(here.ravel().tolist(), there.ravel().tolist(), strict=True)]
        ratios = np.where(noisy == 0, np.reshape(hidden, here.shape), ratios)
    return ratios


@lru_cache(maxsize=1024)
def _hidden(law: DiscreteLaplace, tau: int, here: int, there: int) -> float:
    """Log-likelihood ratio of a count that did not reach the threshold."""
    below = [max(1 - law.at_least(tau - count), 1e-300) for count in (here, there)]
    return float(np.log(below[0]) - np.log(below[1]))


def other_releases(model: Model, worlds: Worlds) -> float:
    """Log-likelihood ratio of an estimated number of rows and of a histogram of scores. Bounds show in the cells."""
    total = 0.0
    own, crowd = worlds.configuration.rows_per_person, 2 * worlds.crowd
    for charge in model.charges:
        if charge.purpose == Purpose.ROW_COUNT and not worlds.configuration.replaces and model.n_rows_hint is not None:
            total += float(charge.noise.log_ratio(*map(np.asarray, (model.n_rows_hint, crowd + own, crowd))))
        if charge.purpose == Purpose.THRESHOLD and model.score_histogram is not None:
            total += _of_histogram(model, worlds, charge.noise)
    return total


def _of_histogram(model: Model, worlds: Worlds, noise: Noise) -> float:
    histogram = model.score_histogram
    assert histogram is not None
    bins = bin_of(model.own_scores(worlds.positions(model)), histogram.levels)
    own, crowd = worlds.configuration.rows_per_person, worlds.crowd
    exact = np.zeros((2, len(histogram.counts)), np.int64)
    for world, rows in enumerate(((crowd + own, crowd), (crowd, crowd + own * worlds.configuration.replaces))):
        np.add.at(exact[world], bins, rows)
    return float(noise.log_ratio(histogram.counts, exact[0], exact[1]).sum())
