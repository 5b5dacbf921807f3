"""Errors of dpoutlier. Messages name the argument, the value and the remedy, and never a reference value."""

__all__ = [
    "BudgetExceededError",
    "ColumnNamesWarning",
    "DataSetError",
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
    "TooManyCellsError",
    "UnsafeWarning",
]


class DpoutlierError(Exception):
    """Base of every error that dpoutlier raises on purpose."""


class InvalidParameterError(DpoutlierError, ValueError):
    """An argument has a value that cannot be used."""


class TooManyCellsError(InvalidParameterError):
    """A grid would have more cells than can be told apart."""


class PointsError(DpoutlierError, ValueError):
    """Points to be scored do not fit the model. Points are public, so the message may show them."""


class ReferenceDataError(DpoutlierError, ValueError):
    """The reference data could not be read.

    The text is fixed: an error that depended on a row would tell something about it.
    """


class SecretError(DpoutlierError):
    """A secret (keyed, unsafe or non-private) model was about to be treated as a publishable one."""


class DataSetError(DpoutlierError):
    """A public data set of the experiments is missing, or is not the one that it should be."""


class ModelFileError(DpoutlierError):
    """A model file is missing, damaged, from a newer version, or not a model file at all."""


class OutputExistsError(DpoutlierError, FileExistsError):
    """A file of that name exists, and nobody said that it may be replaced."""


class ServerError(DpoutlierError):
    """A server could not be reached, or refused; the message is the server's own if it gave one.

    Attributes
    ----------
    status : int or None
        The status of HTTP; None if there was no answer, or none that could be read.
    code : str or None
        The server's short name for the reason; "certificate" if it could not prove who it is.
    again : bool
        Whether the same request may be answered later.
    """

    def __init__(
        self, message: str, *, status: int | None = None, code: str | None = None, again: bool = False
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.again = status, code, again


class MissingExtraError(DpoutlierError, ImportError):
    """A part of dpoutlier needs packages that come with one of its extras."""

    def __init__(self, what: str, absent: str | None, extra: str) -> None:
        super().__init__(
            f"{what} need what is not installed ({absent}): pip install 'dpoutlier[{extra}]', or '.[{extra}]' where its source is.",
            name=absent,
        )


class ThresholdNotSetError(DpoutlierError, AttributeError):
    """A prediction was asked for, and no threshold has been bought or set."""


class UnsafeWarning(UserWarning):
    """The requested mode gives no privacy."""


class LargeEpsilonWarning(UserWarning):
    """Epsilon is so large that little is protected."""


class RepeatedFitWarning(UserWarning):
    """A process has fitted a second time, and no ledger adds up what the fits cost."""


class ColumnNamesWarning(UserWarning):
    """Bounds are given by name, and the columns have no names by which to find them."""


class LedgerError(DpoutlierError):
    """A ledger is missing, damaged or an old copy, or cannot account for this fit."""


class BudgetExceededError(LedgerError):
    """The budget of a data set does not cover this fit. No row was read and nothing was charged."""


class LedgerWarning(UserWarning):
    """A fit was charged and made, and noting its release in the ledger failed."""
