"""Read reference rows as lattice positions, in silence: no message, warning or error depends on a row."""

import warnings
from typing import Any

from dpoutlier import tables
from dpoutlier.domain import Domain
from dpoutlier.exceptions import ReferenceDataError
from dpoutlier.rows import Rows

__all__ = ["UNREADABLE", "read_reference"]

UNREADABLE = (
    "the reference data could not be read as a table of numbers. The cause is withheld, since it could tell something "
    "about a row. Check that every row has the same number of values and that the columns are numbers or text."
)


def read_reference(reference: Any, domain: Domain) -> Rows:
    """The rows, whose lattice positions are made block by block; each depends on its own row alone."""  # (P5)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Rows(tables.values(reference), domain)
    except Exception:  # noqa: BLE001, S110 - whatever it was, its text may hold a value
        pass
    # Raised out here, so that the error carries no other one as its context.
    raise ReferenceDataError(UNREADABLE)
