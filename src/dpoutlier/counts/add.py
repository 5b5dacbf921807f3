"""Released counts of the same cells, added up."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import bad
from dpoutlier.counts.base import MOST_COUNT, NoisyCounts
from dpoutlier.counts.dense import DenseCounts
from dpoutlier.counts.sparse import SparseCounts

__all__ = ["added"]


def added(holders: Sequence[NoisyCounts]) -> NoisyCounts:
    """The cell-by-cell sum of publishable holders of one kind."""
    (kind,) = {holder.kind for holder in holders}
    return ADDED_BY_KIND[kind](holders)


def _dense(holders: Sequence[NoisyCounts]) -> NoisyCounts:
    total = np.array(holders[0].arrays()["counts"], np.int64)
    for holder in holders[1:]:
        total += holder.arrays()["counts"]
    _check_size(total)
    return DenseCounts(total)


def _sparse(holders: Sequence[NoisyCounts]) -> NoisyCounts:
    """The cells that any of them lists; a part that does not list a cell adds nothing to it."""
    sparse = [holder for holder in holders if isinstance(holder, SparseCounts)]
    ids, which = np.unique(np.concatenate([holder.ids for holder in sparse]), axis=0, return_inverse=True)
    total = np.zeros(len(ids), np.int64)
    np.add.at(total, which.reshape(-1), np.concatenate([holder.noisy for holder in sparse]))
    _check_size(total)
    (tau,) = {holder.tau for holder in sparse}
    return SparseCounts(ids, total, tau)


def _check_size(total: NDArray[np.int64]) -> None:
    if (total >= MOST_COUNT).any() or (total <= -MOST_COUNT).any():
        raise bad("the merged counts", "below 2**38 rows in every cell", "more", "Merge fewer releases.")


ADDED_BY_KIND: dict[str, Callable[[Sequence[NoisyCounts]], NoisyCounts]] = {"dense": _dense, "sparse": _sparse}
"""How to add holders, by the word for them. Whoever writes another publishable holder adds it here."""
