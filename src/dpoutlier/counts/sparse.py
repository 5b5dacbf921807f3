"""Sparse counts: the cells whose noisy count reached a public threshold; all others count zero. Publishable."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import positive_int
from dpoutlier.counts.base import MAX_COUNT, empty_table, occupied_cells
from dpoutlier.counts.file_arrays import Arrays, listed_cells
from dpoutlier.kernels.counts import EXACT, CountTable
from dpoutlier.noise.binomial import Between, chance_of_at_least, directed
from dpoutlier.noise.laplace import RATE_BITS, DiscreteLaplace
from dpoutlier.noise.laplace_table import DIGITS
from dpoutlier.partitions.base import CellIds, Partition

MAX_SPARSE_SIZE = 10**7  # a file of 240 megabytes


@dataclass(frozen=True, eq=False, repr=False)
class SparseCounts:
    """Ids of the cells that passed, ascending, and their noisy counts, each of them at least ``tau``."""

    kind: ClassVar[str] = "sparse"
    publishable: ClassVar[bool] = True

    ids: CellIds
    noisy: NDArray[np.int64]
    tau: int

    def __post_init__(self) -> None:
        self.ids.setflags(write=False)
        self.noisy.setflags(write=False)

    def table(self, digits: int = DIGITS) -> CountTable:  # noqa: ARG002 - the noise was drawn
        return empty_table(EXACT)._replace(occupied=occupied_cells(self.ids, self.noisy))

    def listed(self) -> tuple[CellIds, NDArray[np.int64]] | None:
        return self.ids, self.noisy

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"ids": self.ids, "noisy": self.noisy}

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "threshold": self.tau}

    @classmethod
    def from_file(cls, content: dict[str, Any], arrays: Arrays, partition: Partition) -> SparseCounts:
        """Counts of the cells of this partition, every array checked."""
        tau = positive_int(MAX_COUNT - 1, threshold=content["threshold"])
        return cls(*listed_cells(arrays, partition, "noisy", tau), tau)


def _expected(n_cells: int, noise: DiscreteLaplace, tau: int, digits: int) -> Between:
    """How many of ``n_cells`` empty cells are expected to pass."""
    chance, (down, up) = chance_of_at_least(noise, tau, digits), directed(digits)
    return Between(down.multiply(n_cells, chance.below), up.multiply(n_cells, chance.above))


def tau_for(n_cells: int, noise: DiscreteLaplace, size: int) -> int:
    """The least threshold from 1 at which at most ``size`` of ``n_cells`` empty cells are expected to pass. Public.

    >>> from fractions import Fraction
    >>> tau_for(10**30, DiscreteLaplace(Fraction(1)), 10_000)
    60
    """
    down, up = directed(80)
    a = down.exp(down.divide(-noise.rate_units, 2**RATE_BITS))
    wanted = up.ln(up.divide(up.divide(n_cells, size), down.add(1, a)))
    tau = max(
        math.ceil(up.divide(up.multiply(wanted, 2**RATE_BITS), noise.rate_units)), 1
    )  # to so many digits; now exactly
    while not _at_most(n_cells, noise, tau, size):
        tau += 1
    while tau > 1 and _at_most(n_cells, noise, tau - 1, size):
        tau -= 1
    return tau


def _at_most(n_cells: int, noise: DiscreteLaplace, tau: int, size: int) -> bool:
    """Whether at most ``size`` empty cells are expected to pass.

    This ends, since the number is never whole: exp(-rate) is transcendental.
    """
    digits = 60
    while True:
        expected = _expected(n_cells, noise, tau, digits)
        if expected.above <= size or expected.below > size:
            return expected.above <= size
        digits *= 2


def expected_empty(n_cells: int, noise: DiscreteLaplace, tau: int) -> Decimal:
    """How many cells are expected to pass where all are empty: at most this, and right to fifty digits."""
    return _expected(n_cells, noise, tau, 50).above


def least_size_for(n_cells: int, noise: DiscreteLaplace, tau: int) -> int:
    """A size for which ``tau_for`` gives this threshold, if any does.

    >>> from fractions import Fraction
    >>> least_size_for(10**30, DiscreteLaplace(Fraction(1)), 60)
    6402
    """
    return max(math.ceil(expected_empty(n_cells, noise, tau)), 1)
