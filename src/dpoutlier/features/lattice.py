"""How a value becomes a position: the one definition. Every form of it (kernels, engines, SQL) is tested against this one.

A feature is cut into 2**32 positions, the same in every engine and on every machine. All arithmetic is float64, in this order:

    position(x) = floor(min(max((x - lower) * scale, 0), last))        scale = 2**32 / (upper - lower)

- A value at or below ``lower`` (also -inf, and a product that underflows) has position 0; one at or above ``upper`` (also inf) has
  ``last``.
- A value that lies on the edge of two positions belongs to the upper one, and -0.0 is 0.0.
- ``last`` is 2**32 - 1. Where missing values have a cell of their own, that is their position, and ``last`` is one less.
- NaN is a missing value. Without a cell of its own it has position 0.

Bin number ``i`` of ``bins`` equal bins holds the positions with ``position * bins // 2**32 == i`` (``bin_of_position``).

A form may clip x to the bounds first: it finds the same positions, and no sum or product can overflow.
"""

from typing import Any, NamedTuple

POSITIONS = 2**32
LAST = POSITIONS - 1


def scale(lower: float, upper: float) -> float:
    """Positions per unit of a feature. Computed once and stored with the model."""
    return POSITIONS / (upper - lower)


def bin_of_position(position: Any, bins: Any) -> Any:
    """The number of the bin that holds a position; of integers, or of arrays of 64 bits.

    >>> bin_of_position(2**31, 3)
    1
    """
    return position * bins // POSITIONS


def first_position(number: Any, bins: Any) -> Any:
    """The least position in a bin.

    >>> first_position(1, 3), bin_of_position(1431655766, 3), bin_of_position(1431655765, 3)
    (1431655766, 1, 0)
    """
    return -(-number * POSITIONS // bins)


class Line(NamedTuple):
    """What the definition needs to know of a feature."""

    lower: float
    upper: float
    scale: float
    last: int
    """The largest position of a number."""
    missing: int
    """The position of a missing value."""

    def position(self, value: float) -> int:
        """The definition, for one value.

        >>> line = Line(0.0, 1.0, scale(0.0, 1.0), LAST, missing=0)
        >>> [line.position(value) for value in (-1.0, 0.0, 0.5, 1.0, float("inf"), float("nan"))]
        [0, 0, 2147483648, 4294967295, 4294967295, 0]
        """
        if value != value:  # noqa: PLR0124 - NaN
            return self.missing
        return int(min(max((value - self.lower) * self.scale, 0.0), self.last))
