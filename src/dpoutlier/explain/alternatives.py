"""What one feature of a point would have to be for the point to be usual: post-processing of released counts, free of charge.

Between two neighbouring cuts of a feature the score of forests and marginals stays the same. So the point is scored once in each of
these pieces, all other features held, and the nearest segment of pieces is taken in which the score is low enough.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpoutlier.counts.base import NoisyCounts
from dpoutlier.explain.segment import Segment
from dpoutlier.features.axes import MISSING, Axis, each_axis
from dpoutlier.features.lattice import POSITIONS
from dpoutlier.partitions.base import Partition
from dpoutlier.scoring.base import Scorer

ENOUGH = 0.5


@dataclass(frozen=True)
class Alternative:
    segment: Segment
    score: float
    """The highest score anywhere in the segment."""


def nearest_alternative(
    position: NDArray[np.uint32], j: int, partition: Partition, counts: NoisyCounts, scorer: Scorer, typical: float
) -> Alternative | None:
    """The nearest segment of feature j in which the point scores at most ``typical``.

    If no segment has so low a score: the segment around the lowest score, extended while the score falls by at least half as much.
    (A nearer segment with half of the fall may show only noise.) None if the point already scores at most ``typical``, or if no
    change lowers its score. Unordered levels and the cell for missing values are all equally near, and so are all segments for a
    point whose value is missing. Among equally near segments, the one with the lowest score is chosen.
    """
    axis = each_axis(partition.axes, partition.n_features)[j]
    parts, places = pieces(partition, j)
    points = np.repeat(position[None, :], len(parts) + 1, axis=0)
    points[1:, j] = places
    own, *moved = scorer.outlier_scores(points, partition, counts).tolist()
    least = min(moved)
    if own <= typical or least >= own:
        return None
    reached = least <= typical
    target = typical if reached else own - ENOUGH * (own - least)
    target = max(target, least)  # whatever was rounded on the way
    p = int(position[j])
    far = [_distance(p, part, axis) for part in parts]
    wanted = target if reached else least
    first = min((i for i, score in enumerate(moved) if score <= wanted), key=lambda i: (far[i], moved[i], i))
    last = first
    while not axis.unordered and last + 1 < len(parts) and not parts[last + 1].missing and moved[last + 1] <= target:
        last += 1
    while not axis.unordered and first > 0 and not parts[first].missing and moved[first - 1] <= target:
        first -= 1
    return Alternative(Segment(parts[first].low, parts[last].high, parts[first].missing), max(moved[first : last + 1]))


def _distance(p: int, part: Segment, axis: Axis) -> Fraction:
    """Distance from the point to the segment: 0 within it; 1 without an order, and from or to missing values."""
    if axis.unordered or part.missing or (axis.missing and p == MISSING):
        return Fraction(1)
    at = Fraction(2 * p + 1, 2 * POSITIONS)
    return max(part.low - at, at - part.high, Fraction(0))


def pieces(partition: Partition, j: int) -> tuple[list[Segment], NDArray[np.uint32]]:
    """The segments of feature j that no cell of the partition cuts, in order, and a position in each."""
    axis = each_axis(partition.axes, partition.n_features)[j]
    if axis.levels:
        edges = {Fraction(i, axis.levels) for i in range(axis.levels + 1)}
    else:
        of_feature = (own.edges for member in partition.members for own in member.axes if own.feature == j)
        most = Fraction(POSITIONS - axis.missing, POSITIONS)
        edges = {Fraction(0), Fraction(1), *(edge for edge in set().union(*of_feature) if 0 < edge < most)}
    found = [Segment(low, high) for low, high in pairwise(sorted(edges))]
    places = [int((part.low + part.high) / 2 * POSITIONS) for part in found]
    if axis.missing:
        found.append(Segment(Fraction(1), Fraction(1), missing=True))
        places.append(MISSING)
    return found, np.array(places, np.uint32)
