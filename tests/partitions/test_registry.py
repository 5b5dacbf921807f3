"""Every partition keeps what the interface promises: a new one joins by its line in ``SOME``."""

import json

import numpy as np
import pytest

from dpoutlier.features.axes import MISSING, Axis
from dpoutlier.features.lattice import POSITIONS
from dpoutlier.partitions.grid import Grid
from dpoutlier.partitions.marginals import Margins
from dpoutlier.partitions.members import EvenAxis
from dpoutlier.partitions.registry import PARTITIONS, partition_from_json
from dpoutlier.partitions.trees import Trees

KINDS = (Axis(), Axis(missing=True), Axis(3, unordered=True), Axis(5, missing=True))
SOME = {
    "grid": Grid((3, 4, 3, 5), KINDS),
    "trees": Trees(4, 6, 5, (1, 3), 2),
    "mixed-trees": Trees(4, 6, 5, (1, 3), 2, KINDS),
    "margins": Margins((3, 4, 3, 5), KINDS),
}


def points(n):
    random = np.random.default_rng(0)
    positions = random.integers(0, POSITIONS, (n, len(KINDS)), dtype=np.uint32)
    positions[random.random(positions.shape) < 0.1] = MISSING
    return positions


def added(axis, position):
    """What a feature adds to the number of a cell, by the definition of its axis."""
    if isinstance(axis, EvenAxis):
        return axis.bins if axis.missing and position == MISSING else position * axis.bins // POSITIONS
    if axis.levels:
        return axis.add[position * axis.levels // POSITIONS]
    return axis.add[sum(cut <= position for cut in axis.cuts)]


def test_every_partition_is_here():
    assert SOME.keys() == PARTITIONS.keys()
    assert all(partition.name == name for name, partition in SOME.items())


@pytest.mark.parametrize("partition", SOME.values(), ids=SOME)
def test_a_partition_comes_back_from_a_file(partition):
    assert partition_from_json(json.loads(json.dumps(partition.to_json()))) == partition


@pytest.mark.parametrize("partition", SOME.values(), ids=SOME)
def test_tallies_and_sums_of_terms_are_those_of_the_cells(partition):
    positions, terms = points(700), np.random.default_rng(1).integers(-(2**40), 2**40, partition.n_cells)
    ids = partition.cells(positions)[:, :, 1].astype(np.int64)
    assert ids.shape == (700, partition.cells_per_row)
    counters = np.zeros(partition.n_cells, np.int64)
    partition.tally(positions, counters)
    assert (counters == np.bincount(ids.ravel(), minlength=partition.n_cells)).all()
    if partition.members:
        out = np.arange(700)
        partition.add_terms(positions, terms, out)
        assert (out == np.arange(700) + terms[ids].sum(axis=1)).all()


@pytest.mark.parametrize("partition", [one for one in SOME.values() if one.name != "grid"], ids=lambda one: one.name)
def test_members_say_in_which_cells_a_row_lies(partition):
    """Scores, explanations, engines and SQL read the members alone; fits use ``cells`` and ``tally``."""
    assert [member.cells.start for member in partition.members] == [
        sum(before.n_cells for before in partition.members[:t]) for t in range(partition.cells_per_row)
    ]
    assert sum(member.n_cells for member in partition.members) == partition.n_cells
    positions = points(300)
    expected = [
        [member.first + sum(added(axis, row[axis.feature]) for axis in member.axes) for member in partition.members]
        for row in positions.tolist()
    ]
    assert partition.cells(positions)[:, :, 1].tolist() == expected
