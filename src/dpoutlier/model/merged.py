"""What a merged model was made of: its parts, what each of them cost, and what all of them cost together."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise

from dpoutlier._validate import parameter_error
from dpoutlier.noise.laplace import RATE_BITS
from dpoutlier.privacy.guarantee import Charge, Purpose
from dpoutlier.privacy.receipt import Receipt

MAX_PARTS = 1000


class People(StrEnum):
    """Whose rows the parts were fitted on: that decides whether their epsilons add up."""

    DISJOINT = "disjoint"
    OVERLAPPING = "overlapping"


@dataclass(frozen=True)
class Part:
    """One release in a merge. ``release`` is its id, a SHA-256."""

    release: str
    epsilon: Fraction
    charges: tuple[Charge, ...]
    receipt: Receipt | None = None
    """Where in a ledger the release was charged, if there is one."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[0-9a-f]{64}", self.release):
            raise parameter_error("release", "a SHA-256 in hexadecimal", self.release[:80])
        if [charge.purpose for charge in self.charges].count(Purpose.COUNTS) != 1:
            raise parameter_error(
                "charges", "those of a release of counts", [charge.purpose for charge in self.charges]
            )

    @property
    def epsilon_in_use(self) -> Fraction:
        return sum((charge.epsilon_in_use for charge in self.charges), Fraction(0))

    @property
    def rate(self) -> Fraction:
        """Rate of the noise on the counts."""
        return next(charge.rate for charge in self.charges if charge.purpose == Purpose.COUNTS)


def charged_to_same_dataset(parts: Iterable[Part]) -> tuple[Part, Part] | None:
    """Two parts charged to the same data set of the same ledger: they are releases of the same people. None if there are none."""
    known: dict[tuple[str, str], Part] = {}
    for part in parts:
        if part.receipt is not None:
            other = known.setdefault((part.receipt.ledger, part.receipt.dataset), part)
            if other is not part:
                return other, part
    return None


@dataclass(frozen=True)
class Merged:
    """Parts in ascending order of ``release``, so that neither order nor grouping of a merge can be seen in its result."""

    people: People
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        if not 2 <= len(self.parts) <= MAX_PARTS:
            raise parameter_error("the number of releases to merge", f"2 to {MAX_PARTS}", len(self.parts))
        releases = [part.release for part in self.parts]
        if any(one >= other for one, other in pairwise(releases)):
            raise parameter_error(
                "the parts of a merge", "different releases, in order", [release[:12] for release in releases]
            )
        if self.people is People.DISJOINT and charged_to_same_dataset(self.parts) is not None:
            raise parameter_error(
                "people", "'overlapping' for releases that were charged to one data set", self.people.value
            )

    @property
    def charges(self) -> tuple[Charge, ...]:
        """Those of all parts. What they cost together is ``epsilon``, which is less than their sum for disjoint people."""
        return tuple(charge for part in self.parts for charge in part.charges)

    @property
    def epsilon(self) -> Fraction:
        return self._together([part.epsilon for part in self.parts])

    @property
    def epsilon_in_use(self) -> Fraction:
        return self._together([part.epsilon_in_use for part in self.parts])

    def _together(self, epsilons: list[Fraction]) -> Fraction:
        match self.people:
            case People.DISJOINT:
                return max(epsilons)  # a person's rows are in one part only
            case People.OVERLAPPING:
                return sum(epsilons, Fraction(0))

    @property
    def rate(self) -> Fraction:
        r"""Rate of one noise as wide as that of all parts, :math:`(\sum_i r_i^{-2})^{-1/2}`, rounded down to a multiple of 2**-40.

        Variances of independent noise add up, and the variance is about :math:`2 / r^2`. Found in integers, so it is the same
        everywhere: with :math:`r_i = u_i 2^{-40}` the units of the result are :math:`\lfloor (\sum_i u_i^{-2})^{-1/2} \rfloor`.
        """
        squares = [int(part.rate * 2**RATE_BITS) ** 2 for part in self.parts]
        product = math.prod(squares)
        return Fraction(math.isqrt(product // sum(product // square for square in squares)), 2**RATE_BITS)
