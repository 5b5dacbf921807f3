"""How sure is a count? An interval for the true count behind a noisy one: post-processing, free of charge."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import is_whole, parameter_error
from dpoutlier.counts.base import NoisyCounts, noisy_counts
from dpoutlier.counts.sparse import SparseCounts
from dpoutlier.noise.mechanism import Noise
from dpoutlier.noise.summed import SummedNoise, as_level
from dpoutlier.partitions.base import Partition
from dpoutlier.partitions.grid import Grid
from dpoutlier.partitions.region import cells_within, check_steps, home_bins
from dpoutlier.tables.rows import Positions

CHUNK = 2**14  # points at a time


@dataclass(frozen=True)
class CountIntervals:
    r"""Intervals for the true number of reference rows around each point.

    The method ``count_intervals`` of a fitted detector returns it. It reads released counts only and has no privacy cost.
    Arrays have the shape (n_points, cells_per_row). A column is the point's cell in a grid (or the region around it), its leaf
    in one tree, or its bin of one feature.

    Attributes
    ----------
    noisy : ndarray of int
        Released counts, in rows. They may be negative. 0 for cells that sparse counts do not list.
    lower : ndarray of int
        Lower end of each interval, included. Never below 0.
    upper : ndarray of int
        Upper end of each interval, included. Never below 0.
    level : float
        The requested probability of coverage.
    coverage : ndarray of float
        Probability that an interval covers a true count of at least 1. It is at least ``level``, and larger only because noise
        consists of whole numbers. A true count of 0 is covered at least as often.
    cells : ndarray of int
        Number of cells that were counted together: 1, except for regions of a grid.

    See Also
    --------
    DPForest.count_intervals : Compute the intervals.

    Notes
    -----
    An interval reaches t rows to both sides of the noisy count, and its ends are cut at 0. Here t is the least whole number with
    :math:`P(|Z| \le t) \ge` ``level``, and Z is the noise of these cells together. For one draw of discrete Laplace noise with
    scale s [1]_, :math:`P(|Z| \le t) = 1 - 2 a^{t+1} / (1 + a)` with :math:`a = \exp(-1 / s)`. For several draws, in regions and
    in merged models, the probability follows from the characteristic function of Z: see ``dpoutlier/noise/summed.py``.
    A cell that sparse counts do not list had a noisy count below their threshold: its interval is from 0 to the threshold - 1 + t.

    References
    ----------
    .. [1] S. Inusah and T. J. Kozubowski, "A discrete analogue of the Laplace distribution", Journal of Statistical Planning and
       Inference 136(3), 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from dpoutlier import DPMarginals
    >>> detector = DPMarginals(epsilon=1, features=(0, 1), bins=4).fit(np.full((500, 1), 0.3))
    >>> found = detector.count_intervals([[0.3]], level=0.99999)
    >>> bool(found.lower[0, 0] <= 500 <= found.upper[0, 0])
    True
    """

    noisy: NDArray[np.int64]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    level: float
    coverage: NDArray[np.float64]
    cells: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.noisy)


def count_intervals(
    positions: Positions,
    partition: Partition,
    counts: NoisyCounts,
    laws: tuple[Noise, ...],
    *,
    level: Any,
    steps: Any,
) -> CountIntervals:
    """Intervals at a level; ``laws`` are those of the independent draws on each cell, none where counts are exact.

    A cell that sparse counts do not list had a noisy count below its threshold: that is all that is known of it.
    """
    exact_level = as_level(level)
    if not is_whole(steps) or steps < 0:
        raise parameter_error("steps", "a whole number of at least 0", steps)
    if steps and not isinstance(partition, Grid):
        raise parameter_error("steps", f"0 for {partition.kind}", steps, "Only grids measure distance in steps.")
    if steps and isinstance(counts, SparseCounts):
        raise parameter_error(
            "steps", "0 for sparse counts", steps, "A sparse model does not hold the counts of unlisted cells."
        )
    noisy = np.empty((len(positions), partition.cells_per_row), np.int64)
    cells = np.ones_like(noisy)
    if isinstance(partition, Grid) and steps:
        check_steps(partition, int(steps))
    for first in range(0, len(positions), CHUNK):
        part = slice(first, first + CHUNK)
        if isinstance(partition, Grid) and steps:
            noisy[part, 0], cells[part, 0] = _of_regions(positions[part], partition, counts, int(steps))
        else:
            noisy[part] = _of_cells(positions[part], partition, counts)
    widths, coverage = np.empty_like(noisy), np.empty(noisy.shape)
    for n in np.unique(cells).tolist():
        noise, same = SummedNoise(laws, n), cells == n
        widths[same] = noise.half_width(exact_level)
        coverage[same] = noise.coverage(noise.half_width(exact_level))
    lower, upper = np.maximum(noisy - widths, 0), np.maximum(noisy + widths, 0)
    if isinstance(counts, SparseCounts):
        unlisted = noisy == 0
        lower[unlisted], upper[unlisted] = 0, (counts.tau - 1 + widths)[unlisted]
    return CountIntervals(noisy, lower, upper, float(exact_level), coverage, cells)


def _of_cells(positions: NDArray[np.uint32], partition: Partition, counts: NoisyCounts) -> NDArray[np.int64]:
    ids = partition.cells(positions)
    return noisy_counts(counts, ids.reshape(-1, 2)).reshape(ids.shape[:2])


def _of_regions(
    positions: NDArray[np.uint32], grid: Grid, counts: NoisyCounts, steps: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Noisy rows and number of cells of the region around each point; points in the same cell share it."""
    homes, which = np.unique(home_bins(grid, positions), axis=0, return_inverse=True)
    found = np.empty((len(homes), 2), np.int64)
    for region, home in zip(found, homes, strict=True):  # one at a time: together they may be large
        ids = cells_within(grid, home, steps)
        region[:] = noisy_counts(counts, ids).sum(), len(ids)
    totals, sizes = found[which.reshape(-1)].T
    return totals, sizes
