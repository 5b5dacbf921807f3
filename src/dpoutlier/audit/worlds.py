"""Worst-case neighbours: two data sets that differ by one person, whose rows change as many cells as they can."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpoutlier.audit.configuration import Configuration, coordinates
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.model.model import Model
from dpoutlier.partitions.base import CellIds
from dpoutlier.scoring.nearest_cells import NearestCells
from dpoutlier.tables.rows import Rows

PAST_THE_CAP = 3
"""Rows of the person above the cap, where a column identifies people: they must not count."""
FAR = 10
"""Distance in scales of the noise. Noise hardly ever goes further."""
TRIES = 2000
MAX_CROWD = 20_000
"""Largest crowd for scores of logarithms. With more noise than that, nothing is seen anyway."""
MAX_ROWS = 5_000_000


class Changed(NamedTuple):
    """The cells whose exact counts differ, and these counts in both worlds."""

    ids: CellIds
    here: NDArray[np.int64]
    there: NDArray[np.int64]


@dataclass(frozen=True)
class Worlds:
    """The person's rows lie at ``place``; in the other world nowhere, or at ``other``. A crowd lies at both, in both worlds."""

    configuration: Configuration
    place: NDArray[np.float64]
    other: NDArray[np.float64]
    crowd: int

    @cached_property
    def tables(self) -> tuple[Any, Any]:
        """The data with the person, and the data without, or with another in place."""
        own = self.configuration.rows_per_person
        if self.configuration.arguments.get("person") is not None:
            own += PAST_THE_CAP
        crowd = np.repeat([self.place, self.other], self.crowd, axis=0)
        here, there = (np.repeat([place], own, axis=0) for place in (self.place, self.other))
        everyone = np.arange(1, len(crowd) + 1)  # the person is number 0
        mine = np.zeros(own, np.int64)
        table = self.configuration.table
        with_row = table(np.concatenate([crowd, here]), np.concatenate([everyone, mine]))
        if self.configuration.replaces:
            return with_row, table(np.concatenate([crowd, there]), np.concatenate([everyone, mine]))
        return with_row, table(crowd, everyone)

    def positions(self, model: Model) -> NDArray[np.uint32]:
        """The two places on the lattice of this model."""
        return positions_of(model, np.stack([self.place, self.other]))

    def changed(self, model: Model) -> Changed:
        """Which counts of this model differ, from what the attacker knows: all rows but one, and the partition."""
        own = self.configuration.rows_per_person
        cells = cells_of(model, np.stack([self.place, self.other]))
        ids, where = np.unique(cells.reshape(-1, 2), axis=0, return_inverse=True)
        here, there = np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int64)
        at_place, at_other = where.reshape(2, -1)
        np.add.at(here, at_place, self.crowd + own)
        np.add.at(here, at_other, self.crowd)
        np.add.at(there, at_place, self.crowd)
        np.add.at(there, at_other, self.crowd + own * self.configuration.replaces)
        differ = here != there
        return Changed(np.ascontiguousarray(ids[differ]), here[differ], there[differ])


def made_points(configuration: Configuration, places: NDArray[np.float64]) -> Any:
    """Points to be scored: rows without the column of people."""
    arguments = {**configuration.arguments, "person": None}
    return Configuration(configuration.detector, arguments, configuration.n_features).table(
        places, np.empty(0, np.int64)
    )


def positions_of(model: Model, places: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Places of the unit cube on the model's lattice: the same rows as :func:`made_rows` makes of them."""
    columns = [coordinates(model.domain, j, places[:, j]) for j in range(model.domain.n_features)]
    return Rows(columns, model.domain)[:]


def cells_of(model: Model, places: NDArray[np.float64]) -> CellIds:
    """Ids of the cells at these places, of shape (n, cells per row, 2)."""
    return model.partition.cells(positions_of(model, places))


def crowd_for(configuration: Configuration, model: Model) -> int:
    """How many other rows lie at both places: the number that makes scores reveal most.

    On a grid a walk ends at once if the first cell holds k rows, so that the person should be the k-th. A logarithm of counts
    tells all counts apart that are well above the noise.
    """
    if isinstance(model.scorer, NearestCells):
        return max(model.scorer.k - configuration.rows_per_person, 0)
    return min(math.ceil(FAR / float(model.noise_laws[0].rate)) + 1, MAX_CROWD)


def worlds_of(configuration: Configuration) -> Worlds:
    """Two places that share no cell, if there are such: two opposite corners, or the best of many random pairs."""
    model = configuration.model()
    d = configuration.n_features
    pairs = np.random.default_rng(0).random((TRIES, 2, d))
    pairs = np.concatenate([[[np.ones(d) - 1e-9, np.zeros(d)]], pairs])
    cells = cells_of(model, pairs.reshape(-1, d)).reshape(len(pairs), 2, -1, 2)
    apart = (cells[:, 0] != cells[:, 1]).any(axis=2).sum(axis=1)
    place, other = pairs[int(np.argmax(apart))]  # the first of the best
    crowd = crowd_for(configuration, model)
    rows = 2 * crowd + configuration.rows_per_person
    if rows > MAX_ROWS:
        raise InvalidParameterError(
            f"an audit of this configuration would make up {rows:,} rows for every fit, more than {MAX_ROWS:,}: its "
            "worst case is one person beside k others. Audit it with a smaller k or rows_per_person."
        )
    return Worlds(configuration, place, other, crowd)
