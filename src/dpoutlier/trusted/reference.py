"""Read reference rows as lattice positions, in silence: no message, warning or error depends on a row."""

import warnings
from collections.abc import Iterator
from typing import Any

from dpoutlier import tables
from dpoutlier.domain import Domain
from dpoutlier.exceptions import ReferenceDataError
from dpoutlier.parquet import ParquetTable
from dpoutlier.rows import Rows

__all__ = ["UNREADABLE", "Reference", "read_reference"]

UNREADABLE = (
    "the reference data could not be read as a table of numbers. The cause is withheld, since it could tell something "
    "about a row. Check that every row has the same number of values and that the columns are numbers or text."
)


class Reference:
    """Reference rows in blocks, as often as a fit needs them. Each row's positions depend on that row alone."""  # (P5)

    def __init__(self, table: Any, domain: Domain) -> None:
        self._table, self._domain = table, domain
        self._whole = None if isinstance(table, ParquetTable) else _read(lambda: Rows(tables.values(table), domain))

    def __iter__(self) -> Iterator[Rows]:
        if self._whole is not None:
            yield self._whole
            return
        batches = self._table.batches()
        while (rows := _read(lambda: self._next(batches))) is not None:
            yield rows

    def _next(self, batches: Iterator[Any]) -> Rows | None:
        batch = next(batches, None)
        return None if batch is None else Rows(tables.values(batch), self._domain)

    def number_of_rows(self) -> int:
        """Exact, hence private."""
        return sum(len(rows) for rows in self)


def _read(read: Any) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return read()
    except Exception:  # noqa: BLE001, S110 - whatever it was, its text may hold a value
        pass
    # Raised out here, so that the error carries no other one as its context.
    raise ReferenceDataError(UNREADABLE)


def read_reference(reference: Any, domain: Domain) -> Reference:
    """The rows of a table, or of a Parquet file, which is then read batch by batch."""
    return Reference(reference, domain)
