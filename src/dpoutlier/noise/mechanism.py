"""The interface of a mechanism: all that fits, files, statements, intervals and audits may know of it.

A new noise is one file beside this one, with a class like ``laplace.DiscreteLaplace``, and one line in ``registry.py``.
"""

from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dpoutlier.noise.sources import ByteSource


class Sensitivity(NamedTuple):
    """How far neighbours can move a vector of counts. ``Guarantee.sensitivity`` returns it.

    The squared L2 norm of the change is at most ``l1 * largest``.

    Attributes
    ----------
    l1 : int
        Largest sum of the changes of all counts, in rows.
    largest : int
        The most that one count changes, in rows.
    """

    l1: int
    largest: int = 1


class Cost(NamedTuple):
    """The privacy loss of one release."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)


class Mechanism(Protocol):
    """A way to release something of the reference rows. Frozen, and equal to others of the same parameters."""

    name: ClassVar[str]
    """The word for it in files."""

    @property
    def rate(self) -> Fraction:
        """One over its scale in rows, exactly: files hold it, and scores are rounded by it."""

    @classmethod
    def costing(cls, cost: Cost, sensitivity: Sensitivity) -> Self:
        """The mechanism that makes a release of this sensitivity cost at most so much."""

    def cost(self, sensitivity: Sensitivity) -> Cost:
        """What a release of this sensitivity costs."""

    def to_json(self) -> dict[str, Any]:
        """Its parameters. ``name`` is added to them where a file could not know it otherwise."""

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self: ...


class Noise(Mechanism, Protocol):
    """A mechanism that adds independent noise to whole numbers."""

    words: ClassVar[str]
    """What a privacy statement calls it."""

    @property
    def scale(self) -> float:
        """Width of the noise, in rows."""

    @property
    def variance(self) -> float:
        """Variance of the noise, in rows squared; it may be that of the continuous law."""

    def draw(self, n: int, source: ByteSource) -> NDArray[np.int64]:
        """``n`` independent draws, exactly by the law."""

    def log_ratio(self, noisy: NDArray[Any], here: NDArray[Any], there: NDArray[Any]) -> NDArray[np.float64]:
        """Logarithm of how much likelier each noisy count is if the true one is ``here`` than if it is ``there``."""

    def half_width(self, level: Fraction) -> int:
        """The least t with P(|noise| <= t) >= level, compared exactly."""

    def coverage(self, t: int) -> float:
        """P(|noise| <= t) for t of at least 0."""

    def log_moment(self, x: float) -> float:
        """Logarithm of the expectation of exp(x noise), for 0 < x < rate."""

    def log_characteristic(self, sines: NDArray[np.float64]) -> NDArray[np.float64]:
        """Logarithm of the characteristic function at angles of which sin(angle / 2) is given."""
