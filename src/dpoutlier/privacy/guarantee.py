"""What is promised: the neighbouring relation, the sensitivity, and what each part of a fit costs."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any, cast

from dpoutlier._validate import exact_number, one_of, parameter_error, positive_int
from dpoutlier.noise.mechanism import Mechanism, Noise, Sensitivity
from dpoutlier.noise.registry import mechanism_from_json, mechanism_to_json

MIN_EPSILON, MAX_EPSILON = Fraction(1, 10**12), Fraction(10**9)
LEAKED = "the bounds were taken from the reference rows: every score depends on them, and no noise covers that."
"""What voids a guarantee whose bounds come from ``unsafe_bounds``.

Model files hold this text, and only by it do they know that their bounds were leaked: it can never change.
"""


class Neighbours(StrEnum):
    """Which two data sets must be hard to distinguish.

    Attributes
    ----------
    ADD_OR_REMOVE_ONE : str
        'add-or-remove-one': one data set has the rows of one person more than the other.
    REPLACE_ONE : str
        'replace-one': the data sets differ in the rows of one person. This is the paper's relation, and it needs twice the noise.

    See Also
    --------
    Guarantee : What a fit guarantees under one of them.

    References
    ----------
    .. [1] C. Dwork, F. McSherry, K. Nissim and A. Smith, "Calibrating noise to sensitivity in private data analysis", TCC 2006.
    .. [2] J. Rauch, I. E. Olatunji and M. Khosla, "Achieving differential privacy for k-nearest neighbors based outlier detection
       by data partitioning", arXiv:2104.07938, Definition 1 (eq. 3).

    Examples
    --------
    >>> from dpoutlier import Neighbours
    >>> list(Neighbours) == ["add-or-remove-one", "replace-one"]
    True
    """

    ADD_OR_REMOVE_ONE = "add-or-remove-one"
    REPLACE_ONE = "replace-one"


def sensitivity(neighbours: Neighbours, rows_per_person: int = 1, cells_per_row: int = 1) -> Sensitivity:
    """How far neighbours can move the whole vector of counts.

    ``cells_per_row`` is the number of cells of the partition that a row is counted in: 1 for a grid.

    >>> sensitivity(Neighbours.ADD_OR_REMOVE_ONE).l1, sensitivity(Neighbours.REPLACE_ONE).l1
    (1, 2)
    """
    match neighbours:
        case Neighbours.ADD_OR_REMOVE_ONE:
            changes = 1  # one cell changes by one
        case Neighbours.REPLACE_ONE:
            changes = 2  # one cell loses the row, another gains it
    return Sensitivity(changes * int(rows_per_person) * int(cells_per_row), int(rows_per_person))


def as_epsilon(value: Any) -> Fraction | None:
    """The number a user wrote, exactly; None for infinity.

    A float is read as it prints: 0.1 is exactly one tenth, and not the slightly larger binary number.

    >>> as_epsilon(0.1), as_epsilon("1/3"), as_epsilon(float("inf"))
    (Fraction(1, 10), Fraction(1, 3), None)
    """
    remedy = "Give a positive number such as 0.5 (float, Fraction, Decimal, or text such as '1/3'), or infinity."
    usable = isinstance(value, numbers.Real | Decimal | str) and not isinstance(value, bool)
    text = repr(float(value)) if isinstance(value, float) else str(value)
    if usable and text.strip().lower() in {"inf", "infinity"}:
        return None
    exact = exact_number(text) if usable else None
    if exact is None or exact <= 0:
        raise parameter_error("epsilon", "a positive number", value, remedy)
    if not MIN_EPSILON <= exact <= MAX_EPSILON:
        raise parameter_error(
            "epsilon", "a positive number between 1e-12 and 1e9", value, "Values outside this range are not supported."
        )
    return exact


class Purpose(StrEnum):
    """What a part of a fit releases, by its word in files and statements."""

    ROW_COUNT = "number of rows"
    BOUNDS = "bounds"
    RANGES = "ranges"
    COUNTS = "counts"
    THRESHOLD = "threshold"

    @property
    def is_choice(self) -> bool:
        """Whether something is chosen by permute-and-flip, and nothing gets noise."""
        return self in {Purpose.BOUNDS, Purpose.RANGES}


@dataclass(frozen=True)
class Charge:
    """One part of a fit that reads reference rows, and what it costs.

    ``epsilon`` is the most it may cost; the parameters of the mechanism are rounded, so ``epsilon_in_use`` is at most that.
    """

    purpose: Purpose
    epsilon: Fraction
    sensitivity: Sensitivity
    mechanism: Mechanism

    @property
    def rate(self) -> Fraction:
        return self.mechanism.rate

    @property
    def noise(self) -> Noise:
        """The mechanism of any charge but that for a choice, which gets no noise."""
        assert not self.purpose.is_choice
        return cast(Noise, self.mechanism)

    @property
    def epsilon_in_use(self) -> Fraction:
        return self.mechanism.cost(self.sensitivity).epsilon

    def to_json(self) -> dict[str, Any]:
        """For files: the L1 sensitivity alone, since the other follows from the guarantee."""
        numbers = {"purpose": self.purpose, "epsilon": str(self.epsilon), "sensitivity": self.sensitivity.l1}
        return numbers | mechanism_to_json(self.mechanism, self.purpose)

    @classmethod
    def from_json(cls, content: dict[str, Any], rows_per_person: int) -> Charge:
        """The charge of a fit whose guarantee has these ``rows_per_person``."""
        purpose, epsilon = (
            Purpose(one_of(Purpose, purpose=content["purpose"])),
            exact_number(content["epsilon"], digits=200),
        )
        if epsilon is None:
            raise parameter_error("epsilon of a charge", "an exact number", content["epsilon"][:80])
        l1 = positive_int(sensitivity=content["sensitivity"])
        return cls(purpose, epsilon, Sensitivity(l1, rows_per_person), mechanism_from_json(content, purpose))


@dataclass(frozen=True)
class Guarantee:
    """The privacy guarantee of one fit.

    The attribute ``guarantee_`` of a fitted detector holds it.

    Parameters
    ----------
    epsilon : Fraction or None
        Total privacy loss of the fit. None if nothing is guaranteed.
    neighbours : Neighbours, default=Neighbours.ADD_OR_REMOVE_ONE
        Which two data sets are hard to distinguish.
    rows_per_person : int, default=1
        Largest number of rows of one person. The guarantee protects a person; with 1, a row.
    delta : Fraction, default=0
        Total delta. 0 means pure differential privacy, the only kind that detectors offer so far.
    voided_by : tuple of str, default=()
        Reasons why there is no guarantee after all. Empty for a private fit.
    person : str, default=None
        Column that identifies people, if rows past ``rows_per_person`` were left out. None if the custodian declared the limit.

    Raises
    ------
    InvalidParameterError
        If ``neighbours``, ``rows_per_person`` or ``delta`` is out of range.

    See Also
    --------
    PrivacyStatement : The guarantee with its conditions, as a page to print.

    References
    ----------
    .. [1] C. Dwork, F. McSherry, K. Nissim and A. Smith, "Calibrating noise to sensitivity in private data analysis", TCC 2006.
    .. [2] J. Rauch, I. E. Olatunji and M. Khosla, "Achieving differential privacy for k-nearest neighbors based outlier detection
       by data partitioning", arXiv:2104.07938, Definition 1 (eq. 3) and Theorem 1.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dpoutlier import Guarantee, Neighbours
    >>> Guarantee(Fraction(1, 2)).epsilon_for(Neighbours.REPLACE_ONE)
    Fraction(1, 1)
    """

    epsilon: Fraction | None
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE_ONE
    rows_per_person: int = 1
    delta: Fraction = Fraction(0)
    voided_by: tuple[str, ...] = ()
    person: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", Neighbours(one_of(Neighbours, neighbours=self.neighbours)))
        object.__setattr__(self, "rows_per_person", positive_int(2**31, rows_per_person=self.rows_per_person))
        if not 0 <= self.delta < 1 or (self.epsilon is None and self.delta):
            raise parameter_error("delta", "0, or a number below 1 with a finite epsilon", self.delta)

    @property
    def private(self) -> bool:
        """Whether anything is guaranteed."""
        return self.epsilon is not None and not self.voided_by

    def sensitivity(self, cells_per_row: int = 1) -> Sensitivity:
        """Compute the largest change of the counts between neighbouring data sets.

        Parameters
        ----------
        cells_per_row : int, default=1
            Number of cells in which a row is counted: 1 for a grid, the number of trees for a forest.

        Returns
        -------
        Sensitivity
            How far neighbours are apart at most, in rows; ``l1`` is the sum of the changes of all counts.
        """
        return sensitivity(self.neighbours, self.rows_per_person, cells_per_row)

    def epsilon_for(self, neighbours: Neighbours) -> Fraction | None:
        """Compute the epsilon of the same noise under either relation.

        Under pure differential privacy 'replace-one' costs twice as much as 'add-or-remove-one'. With a delta that is not true in
        general, so then only the relation of the guarantee itself has an answer.

        Parameters
        ----------
        neighbours : Neighbours
            The relation.

        Returns
        -------
        Fraction or None
            Epsilon under this relation. None if nothing is guaranteed, or if it is not known.
        """
        wanted = Neighbours(one_of(Neighbours, neighbours=neighbours))
        if self.epsilon is None or (self.delta and wanted != self.neighbours):
            return None
        return self.epsilon * Fraction(sensitivity(wanted).l1, sensitivity(self.neighbours).l1)
