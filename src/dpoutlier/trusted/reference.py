"""Read reference rows as lattice positions, in silence: no message, warning or error depends on a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpoutlier.engines.base import QueryEngine
from dpoutlier.engines.registry import ENGINES
from dpoutlier.exceptions import ReferenceDataError
from dpoutlier.features.domain import Domain
from dpoutlier.tables import convert
from dpoutlier.tables.batched import BatchedTable
from dpoutlier.tables.rows import Rows
from dpoutlier.trusted.people import Block, kept_rows, places_of

UNREADABLE = (
    "the reference data could not be read as a table of numbers. The cause is not shown, because it could reveal something "
    "about a row. Check that every row has the same number of values, that the columns are numbers or text, that files are "
    "complete and still there, and that a query runs by itself."
)
R = TypeVar("R")


class Reference:
    """Reference rows in blocks, as often as a fit needs them. Each row's positions depend on that row alone.

    ``are_values`` says that an engine has converted the columns to values already, as ``tables.convert.columns`` makes them.
    """  # (P5)

    def __init__(
        self, table: Any, domain: Domain, kept: NDArray[np.bool_] | None = None, *, are_values: bool = False
    ) -> None:
        self._table, self._domain, self._kept, self._are_values = table, domain, kept, are_values
        self._whole = None if isinstance(table, BatchedTable) else in_silence(lambda: self._rows(table, 0)[0])

    def __iter__(self) -> Iterator[Rows]:
        if self._whole is not None:
            yield self._whole
            return
        batches, done = in_silence(lambda: iter(self._table.batches())), 0
        while (batch := in_silence(lambda: next(batches, None))) is not None:
            rows, read = in_silence(partial(self._rows, batch, done))
            done += read
            yield rows

    def _rows(self, table: Any, start: int) -> tuple[Rows, int]:
        """The rows of a table that stay, and how many it has; ``start`` rows came before."""
        rows = Rows(convert.values(table, None if self._are_values else self._domain), self._domain)
        read = len(rows)
        if self._kept is None:
            return rows, read
        part = self._kept[start : start + read]
        return Rows([column[part] for column in rows.columns], self._domain), read

    def with_domain(self, domain: Domain) -> Reference:
        """The same rows under other bounds."""
        return Reference(self._table, domain, self._kept, are_values=self._are_values)

    def number_of_rows(self) -> int:
        """Exact, hence private."""
        if self._kept is not None:
            return int(self._kept.sum())
        return in_silence(self._table.number_of_rows) if self._whole is None else len(self._whole)


def in_silence(read: Callable[[], R]) -> R:
    """Run ``read``. Replace any error by one with a fixed text.

    Warnings are not filtered here: filters belong to the whole process, and other threads would lose theirs. Code that
    reads rows puts no value into a warning (``tables.convert.columns``).
    """
    try:
        return read()
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it was, its text may hold a value; that of an engine's panic too
        stopped = _is_interrupt(error)
    # Raised out here, so that the error carries no other one as its context.
    if stopped:
        raise KeyboardInterrupt
    raise ReferenceDataError(UNREADABLE)


def _is_interrupt(error: BaseException) -> bool:
    try:
        return any(engine.was_interrupted(error) for engine in ENGINES if isinstance(engine, QueryEngine))
    except Exception:  # noqa: BLE001 - an error that cannot even be looked at
        return False


def read_reference(
    reference: Any, domain: Domain, person: str | None = None, rows_per_person: int = 1, *, are_values: bool = False
) -> Reference:
    """The rows of a table, or of a ``BatchedTable``, which is then read batch by batch.

    With a ``person`` column: at most ``rows_per_person`` rows of each person, and no row without an id. ``are_values`` is about the
    other columns, as in ``Reference``.
    """
    if person is None:
        return Reference(reference, domain, are_values=are_values)
    known: dict[str, int] = {}

    def blocks() -> Iterator[Block]:
        parts = reference.batches() if isinstance(reference, BatchedTable) else iter([reference])
        for part in parts:
            rows = Rows(convert.values(convert.without(part, person), None if are_values else domain), domain)
            values = np.column_stack([column.astype(np.float64) for column in rows.columns])
            yield Block(convert.codes_of(part, person, known), places_of(values, rows[:], domain.estimated), values)

    kept = in_silence(lambda: kept_rows(blocks, rows_per_person))
    return Reference(convert.without(reference, person), domain, kept, are_values=are_values)
