"""What a fit asks of reference rows, and the answers from rows that pass by in blocks. Every answer is exact, hence private."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpoutlier.features.domain import Domain, Pair
from dpoutlier.model.model import Model
from dpoutlier.partitions.base import Partition
from dpoutlier.scoring.threshold import bin_of
from dpoutlier.trusted.counts import Counts, count_rows
from dpoutlier.trusted.quantiles import EdgeCounts
from dpoutlier.trusted.reference import Reference


class ReferenceQueries(Protocol):
    """The reference rows of a fit, wherever they are. With a person column: at most ``rows_per_person`` of each person."""

    def with_domain(self, domain: Domain) -> ReferenceQueries:
        """The same rows under other bounds."""

    def number_of_rows(self) -> int: ...

    def counts(self, partition: Partition, n_jobs: int) -> Counts:
        """How many rows lie in each occupied cell."""

    def edge_counts(self, outer: dict[int, Pair]) -> EdgeCounts:
        """How many rows lie between candidate bounds, for some features and their outer ranges."""

    def score_counts(self, model: Model, levels: NDArray[np.float64], n_jobs: int) -> NDArray[np.int64]:
        """How many rows have a score in each bin between ``levels``, each scored as if it were not among the rows."""


class StreamedReference:
    """Rows that come to us, block by block, as often as a fit needs them."""

    def __init__(self, reference: Reference) -> None:
        self._reference = reference

    def with_domain(self, domain: Domain) -> StreamedReference:
        return StreamedReference(self._reference.with_domain(domain))

    def number_of_rows(self) -> int:
        return self._reference.number_of_rows()

    def counts(self, partition: Partition, n_jobs: int) -> Counts:
        return count_rows(self._reference, partition, n_jobs)

    def edge_counts(self, outer: dict[int, Pair]) -> EdgeCounts:
        found = EdgeCounts(list(outer.values()))
        for block in self._reference:
            found.add([block.columns[j] for j in outer])
        return found

    def score_counts(self, model: Model, levels: NDArray[np.float64], n_jobs: int) -> NDArray[np.int64]:
        found = np.zeros(len(levels), np.int64)
        for block in self._reference:
            found += np.bincount(bin_of(model.own_scores(block, n_jobs), levels), minlength=len(levels))
        return found
