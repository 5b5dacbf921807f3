"""Released counts of the same cells, added up."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import parameter_error
from dpoutlier.counts.base import MAX_COUNT, NoisyCounts
from dpoutlier.counts.dense import DenseCounts
from dpoutlier.counts.sparse import SparseCounts


def added(all_held: Sequence[NoisyCounts]) -> NoisyCounts:
    """The cell-by-cell sum of publishable counts of one kind."""
    (kind,) = {held.kind for held in all_held}
    return ADDED_BY_KIND[kind](all_held)


def _dense(all_held: Sequence[NoisyCounts]) -> NoisyCounts:
    total = np.array(all_held[0].arrays()["counts"], np.int64)
    for held in all_held[1:]:
        total += held.arrays()["counts"]
    _check_size(total)
    return DenseCounts(total)


def _sparse(all_held: Sequence[NoisyCounts]) -> NoisyCounts:
    """The cells that any of them lists; a part that does not list a cell adds nothing to it."""
    sparse = [held for held in all_held if isinstance(held, SparseCounts)]
    ids, which = np.unique(np.concatenate([held.ids for held in sparse]), axis=0, return_inverse=True)
    total = np.zeros(len(ids), np.int64)
    np.add.at(total, which.reshape(-1), np.concatenate([held.noisy for held in sparse]))
    _check_size(total)
    (tau,) = {held.tau for held in sparse}
    return SparseCounts(ids, total, tau)


def _check_size(total: NDArray[np.int64]) -> None:
    if (total >= MAX_COUNT).any() or (total <= -MAX_COUNT).any():
        raise parameter_error("the merged counts", "below 2**38 rows in every cell", "more", "Merge fewer releases.")


ADDED_BY_KIND: dict[str, Callable[[Sequence[NoisyCounts]], NoisyCounts]] = {"dense": _dense, "sparse": _sparse}
"""How to add counts, by their kind. A new kind of publishable counts adds its function here."""
