"""Released counts added up along one feature: post-processing, at no price."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpoutlier.features.lattice import POSITIONS
from dpoutlier.partitions.grid import Grid
from dpoutlier.partitions.members import CutAxis, Digit, EvenAxis, Member, strides_of

if TYPE_CHECKING:
    from dpoutlier.model.model import Model


def members_of(model: "Model") -> tuple[Member, ...]:
    """The members of any partition; a grid is one."""
    grid = model.partition
    if not isinstance(grid, Grid):
        return grid.members
    kinds = grid.axes or (None,) * len(grid.bins)
    axes = tuple(
        EvenAxis(j, bins, bool(kind and kind.missing))
        for j, (bins, kind) in enumerate(zip(grid.bins, kinds, strict=True))
    )
    return (Member(axes, tuple(Digit(axis.feature, axis.size) for axis in axes)),)


class Sums(NamedTuple):
    """Noisy rows in each cell of one feature's axis, in one member, and the number of cells that they are the sum of."""

    rows: NDArray[np.int64]
    cells: NDArray[np.int64]

    @classmethod
    def of(
        cls, member: Member, axis: CutAxis | EvenAxis, counts: NDArray[np.int64], used: NDArray[np.bool_] | None = None
    ) -> "Sums":
        """Of all cells, or of those that are ``used``."""
        digits = member.digits_of(axis.feature)
        others = tuple(at for at in range(len(member.digits)) if at not in digits)
        shaped = counts.reshape(member.shape)
        used = np.ones(member.shape, np.bool_) if used is None else used.reshape(member.shape)
        rows, cells, strides = shaped.sum(axis=others), used.sum(axis=others), strides_of(member.shape)
        if isinstance(axis, EvenAxis):
            places: list[tuple[int, ...]] = [(i,) for i in range(axis.size)]
        else:
            places = [tuple(add // strides[at] % member.shape[at] for at in digits) for add in axis.adds]
        return cls(np.array([rows[place] for place in places]), np.array([cells[place] for place in places]))


def edges_of(axis: CutAxis | EvenAxis) -> list[float]:
    """Where the cells of a line begin and end, between 0 and 1; a cell for missing values comes after them."""
    if isinstance(axis, EvenAxis):
        return [i / axis.bins for i in range(axis.bins + 1)]
    return [0.0, *(cut / POSITIONS for cut in axis.cuts), 1.0]
