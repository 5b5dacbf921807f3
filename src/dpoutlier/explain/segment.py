"""A part of one feature, as partitions cut it: from where to where along the axis."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple


class Segment(NamedTuple):
    """Shares of the axis, 0 at its lower end and 1 at its upper; ``high`` is outside. Level i of L is i / L to (i + 1) / L."""

    low: Fraction
    high: Fraction
    missing: bool = False
    """The cell for missing values of a line, which lies nowhere on it."""

    @classmethod
    def of_cell(cls, cell: int, bins: int) -> Segment:
        """The segment of a cell of a grid: one of the equal bins, or the cell for missing values after them."""
        return cls(Fraction(cell, bins), Fraction(cell + 1, bins), missing=cell == bins)
