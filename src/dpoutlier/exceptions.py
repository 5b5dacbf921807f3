"""Errors of dpoutlier. Messages and fields name the argument, the value and the remedy, and never a reference value."""

from copy import copy
from typing import Self

__all__ = [
    "BudgetExceededError",
    "ColumnNamesWarning",
    "DpoutlierError",
    "InvalidParameterError",
    "LargeEpsilonWarning",
    "LedgerError",
    "LedgerWarning",
    "MissingExtraError",
    "ModelFileError",
    "OutputExistsError",
    "PointsError",
    "ReferenceDataError",
    "RepeatedFitWarning",
    "SecretError",
    "ServerError",
    "ThresholdNotSetError",
    "ThresholdWarning",
    "TooManyCellsError",
    "UnsafeWarning",
]


class DpoutlierError(Exception):
    """Base of every error that dpoutlier raises on purpose.

    The text is the problem, then the remedy. Programs read the fields and never need to parse the text.

    Attributes
    ----------
    problem : str
        What is wrong.
    remedy : str
        What to do about it; empty if the problem says it, or if nothing is known to help.
    code : str or None
        A short name of the reason, where a program may want to tell it from others.
    """

    def __init__(self, problem: str = "", *, remedy: str = "", code: str | None = None) -> None:
        self.problem, self.remedy, self.code = problem, remedy, code
        super().__init__(f"{problem} {remedy}" if remedy else problem)

    def within(self, place: object) -> Self:
        """Make the same error with the file or feature in front of its problem. It keeps all fields.

        Parameters
        ----------
        place : object
            What the problem is in, such as a path.

        Returns
        -------
        DpoutlierError
            The new error, of the same class.
        """
        placed = copy(self)
        placed.problem = f"{place}: {self.problem}"
        super(DpoutlierError, placed).__init__(f"{place}: {self}")  # text of built-in errors that keep it elsewhere
        return placed


class InvalidParameterError(DpoutlierError, ValueError):
    """An argument has a value that cannot be used.

    Attributes
    ----------
    name : str
        The argument; empty if the error is about several, or about a file.
    must : str
        What the argument must be; empty if there is no name.
    value : str or None
        The value as text; None if it is not shown.
    """

    def __init__(
        self,
        problem: str = "",
        *,
        name: str = "",
        must: str = "",
        value: str | None = None,
        remedy: str = "",
        code: str | None = None,
    ) -> None:
        self.name, self.must, self.value = name, must, value
        got = "" if value is None else f", got {value}"
        super().__init__(f"{name} must be {must}{got}." if name else problem, remedy=remedy, code=code)


class TooManyCellsError(InvalidParameterError):
    """A grid would have more cells than can be told apart."""


class PointsError(DpoutlierError, ValueError):
    """Points to be scored do not fit the model. Points are public, so the message may show them.

    Attributes
    ----------
    row : int or None
        The row of the value that is meant, counted from 0; None if no value is meant, or nobody knows the row.
    column : str or None
        The column of that value.
    """

    def __init__(
        self,
        problem: str = "",
        *,
        remedy: str = "",
        code: str | None = None,
        row: int | None = None,
        column: str | None = None,
    ) -> None:
        super().__init__(problem, remedy=remedy, code=code)
        self.row, self.column = row, column


class ReferenceDataError(DpoutlierError, ValueError):
    """The reference data could not be read.

    The text is fixed: an error that depended on a row would tell something about it.
    """


class SecretError(DpoutlierError):
    """A secret (keyed, unsafe or non-private) model was about to be treated as a publishable one."""


class ModelFileError(DpoutlierError):
    """A model file is missing, damaged, from a newer version, or not a model file at all."""


class OutputExistsError(DpoutlierError, FileExistsError):
    """A file of that name exists, and replacing it was not permitted."""


class ServerError(DpoutlierError):
    """A server could not be reached, or refused; the problem is in the server's own words if it gave any.

    ``code`` is the server's short name for the reason, or "certificate" if the server could not prove who it is.

    Attributes
    ----------
    status : int or None
        The HTTP status; None if there was no answer, or none that could be read.
    again : bool
        Whether the same request may be answered later.
    """

    def __init__(
        self,
        problem: str = "",
        *,
        remedy: str = "",
        code: str | None = None,
        status: int | None = None,
        again: bool = False,
    ) -> None:
        super().__init__(problem, remedy=remedy, code=code)
        self.status, self.again = status, again


class MissingExtraError(DpoutlierError, ImportError):
    """A part of dpoutlier needs packages that come with one of its extras."""


class ThresholdNotSetError(DpoutlierError, AttributeError):
    """A prediction or a false-positive rate was asked for, and the model has no threshold or no histogram of scores."""

    @classmethod
    def no_histogram(cls, *, merged: bool) -> Self:
        """The error of a model that cannot aim at a false-positive rate."""
        if merged:
            return cls(
                "a merged model has no histogram of its own scores, so a false-positive rate cannot set its threshold. Each part "
                "has a histogram of its own scores only.",
                remedy="Set a threshold on the outlier score yourself: set_threshold(score=...).",
                code="merged-model",
            )
        return cls(
            "the fit spent no epsilon on a histogram of scores, so a false-positive rate cannot set the threshold.",
            remedy="Fit with target_fpr=0.05 (it takes threshold_share of epsilon), or set a threshold on the outlier score "
            "yourself: set_threshold(score=...).",
            code="no-histogram",
        )

    @classmethod
    def no_p_values(cls, *, merged: bool) -> Self:
        """The error of a model without a histogram that p-values could be read from."""
        why = (
            "a merge has no histogram of its own scores"
            if merged
            else "the fit spent no epsilon on a histogram of scores"
        )
        return cls(
            f"the model gives no p-values: {why}.",
            remedy="Fit with target_fpr=0.05 (it takes threshold_share of epsilon), and do not merge.",
            code="no-p-values",
        )


class UnsafeWarning(UserWarning):
    """The requested mode gives no privacy."""


class LargeEpsilonWarning(UserWarning):
    """Epsilon is so large that little is protected."""


class RepeatedFitWarning(UserWarning):
    """A process has fitted a second time, and no ledger adds up the cost."""


class ThresholdWarning(UserWarning):
    """A fit has made a threshold that cannot be trusted."""


class ColumnNamesWarning(UserWarning):
    """Bounds are given by name, but the columns have no names."""


class LedgerError(DpoutlierError):
    """A ledger is missing, damaged or an old copy, or cannot account for this fit."""


class BudgetExceededError(LedgerError):
    """The budget of a data set does not cover this fit. No row was read and nothing was charged."""


class LedgerWarning(UserWarning):
    """A fit was charged and made, but its release could not be noted in the ledger."""
