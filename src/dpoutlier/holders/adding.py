"""Released counts of the same cells, added up."""

from collections.abc import Callable, Sequence

import numpy as np

from dpoutlier._validate import bad
from dpoutlier.holders.dense import DenseCounts
from dpoutlier.holders.holder import MOST_COUNT, NoisyCounts

__all__ = ["added"]


def added(holders: Sequence[NoisyCounts]) -> NoisyCounts:
    """The cell-by-cell sum of publishable holders of one kind."""
    (kind,) = {holder.kind for holder in holders}
    return ADDED_BY_KIND[kind](holders)


def _dense(holders: Sequence[NoisyCounts]) -> NoisyCounts:
    total = np.array(holders[0].arrays()["counts"], np.int64)
    for holder in holders[1:]:
        total += holder.arrays()["counts"]
    if (total >= MOST_COUNT).any() or (total <= -MOST_COUNT).any():
        raise bad("the merged counts", "below 2**38 rows in every cell", "more", "Merge fewer releases.")
    return DenseCounts(total)


ADDED_BY_KIND: dict[str, Callable[[Sequence[NoisyCounts]], NoisyCounts]] = {"dense": _dense}
"""How to add holders, by the word for them. Whoever writes another publishable holder adds it here."""
