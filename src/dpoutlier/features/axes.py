"""Axes: what a partition needs to know of each feature's kind, and all it may know. Public."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from dpoutlier._validate import parameter_error, positive_int
from dpoutlier.features.lattice import LAST

MAX_LEVELS = 2**16
MISSING = LAST
"""The position of a missing value on a line that has a cell for it: the last one, which no number then takes."""


class Axis(NamedTuple):
    """One feature on the lattice.

    A *line* holds numbers or ordered levels: cells have a distance by their order. An *unordered* axis holds levels, all of them
    one step and a distance of 1 apart. On a line a missing value may have a cell of its own after all others, one step and a
    distance of 1 from each of them; on an unordered axis that is simply one level more.
    """

    levels: int = 0
    """Number of levels; 0 for numbers, whose bins are the partition's choice."""
    unordered: bool = False
    missing: bool = False
    """Whether a line has a cell for missing values."""

    def bins(self, wanted: int) -> int:
        """Cells along the line, or levels; the cell of missing values is not among them."""
        return self.levels or wanted


LINE = Axis()
Axes = tuple[Axis, ...]


def plain(axes: Sequence[Axis]) -> Axes:
    """The axes; empty if all are plain lines, so that such a partition is written as before there were other kinds."""
    return () if all(axis == LINE for axis in axes) else tuple(axes)


def each_axis(axes: Axes, n_features: int) -> Axes:
    return axes or (LINE,) * n_features


def level_position(level: int, levels: int) -> int:
    """The middle of a level's part of the lattice.

    >>> [level_position(i, 2) * 2 >> 32 for i in range(2)]
    [0, 1]
    """
    return ((2 * level + 1) << 32) // (2 * levels)


def axes_to_json(axes: Axes) -> dict[str, Any]:
    """Nothing at all for plain lines."""
    return {"axes": [list(axis) for axis in axes]} if axes else {}


def axes_from_json(content: dict[str, Any]) -> Axes:
    return plain([_checked(*entry) for entry in content["axes"]]) if "axes" in content else ()


def _checked(levels: Any, unordered: Any, missing: Any) -> Axis:
    if levels != 0:
        positive_int(MAX_LEVELS, levels=levels)
    if type(unordered) is not bool or type(missing) is not bool or (unordered and (missing or not levels)):
        raise parameter_error(
            "axes", "[levels, unordered, missing], where levels without an order have no cell more", unordered
        )
    return Axis(levels, unordered, missing)
