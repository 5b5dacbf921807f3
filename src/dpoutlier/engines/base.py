"""What an engine must be able to do. A new engine is one file beside this one, and one line in ``registry``.

Modules of engines import their engine, narwhals and pyarrow only where they use them: all are slow to import.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from dpoutlier.tables.batched import BatchedTable

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw


BATCH = 1 << 20  # values: 8 MB of float64. Engines keep some batches ready, so that this is not all that they take


class AddedColumns(Protocol):
    """Columns to add to a frame: a function of a batch of rows."""

    @property
    def features(self) -> list[Any]:
        """The columns of the frame that the function reads."""

    @property
    def names(self) -> list[str]:
        """The columns that it adds."""

    def fields(self) -> list[Any]:
        """The same as Arrow fields."""

    def arrays(self, features: Any) -> list[Any]:
        """The added columns as Arrow arrays, for a table of any kind that has the ``features`` alone, in their order."""

    def pandas(self, frame: Any) -> Any:
        """A pandas frame with the added columns."""


class Engine(ABC):
    """An engine whose frames can be scored."""

    name: ClassVar[str]
    ignores_case: ClassVar[bool] = False
    """Whether column names that differ only in case are the same name."""

    @abstractmethod
    def holds(self, table: Any) -> bool:
        """Whether a table is one of this engine. Called for tables of any kind, so it must not import the engine."""

    def column_names(self, frame: Any) -> list[str]:
        return list(frame.columns)

    def schema(self, frame: Any, names: Sequence[str] | None = None) -> Mapping[str, Any]:
        """The types of the columns, or of those named, as narwhals calls them. No row is read."""
        import narwhals.stable.v2 as nw  # noqa: PLC0415

        lazy: Any = nw.from_native(frame)
        return dict((lazy if names is None else lazy.select(*names)).collect_schema())

    @abstractmethod
    def with_columns(self, frame: Any, added: AddedColumns) -> Any:
        """The frame with columns added after its own. No row is read."""


class QueryEngine(Engine):
    """An engine that counts rows by a query, so that a model can be fitted. Its frames are lazy frames of narwhals."""

    def check(self, frame: Any, types: Mapping[str, Any]) -> None:
        """Refuse a frame that the engine cannot count, by its types alone."""

    def plain(self, frame: Any, types: Mapping[str, Any]) -> tuple[nw.LazyFrame[Any], dict[str, Any]]:
        """The same rows in columns ``x0``, ``x1``, ..., whose text is compared byte by byte, and the types of these columns.

        Engines read patterns and parts of columns into other names, and two texts may be equal by a collation. Then two people
        could become one.
        """
        import narwhals.stable.v2 as nw  # noqa: PLC0415

        names = {name: f"x{j}" for j, name in enumerate(types)}
        return nw.from_native(frame).rename(names), {names[name]: dtype for name, dtype in types.items()}

    def was_interrupted(self, error: BaseException) -> bool:  # noqa: ARG002 - most raise KeyboardInterrupt
        """Whether this is what the engine makes of Ctrl-C."""
        return False

    def run(self, query: nw.LazyFrame[Any]) -> Any:
        """The result of a query as an Arrow table."""
        return query.collect("pyarrow").to_native()

    def in_one_column(self, frame: nw.LazyFrame[Any], parts: Sequence[nw.Expr], name: str) -> nw.LazyFrame[Any]:
        """The values of several expressions, which have names, as one column."""
        chosen = frame.select(*parts)
        return chosen.unpivot(on=chosen.collect_schema().names(), variable_name="of", value_name=name)


class LocalEngine(QueryEngine):
    """An engine in this process, which can hand its rows over."""

    fixed_order: ClassVar[bool] = True
    """Whether rows come in the same order each time, and can be put in order within a group."""

    @abstractmethod
    def from_arrow(self, table: Any) -> Any:
        """An Arrow table as a frame of this engine: for audits of made-up rows."""

    @abstractmethod
    def batches(self, frame: Any, names: Sequence[str]) -> Iterator[Any]:
        """The named columns, in this order, as Arrow tables of some rows each: never the whole table at once.

        Refuses at once what cannot be read so; no row is read before the first batch is asked for.
        """


class ClusterEngine(QueryEngine):
    """An engine whose rows stay on other machines, where functions of ours can be run. It can put rows in order within a group."""

    how_to_install: ClassVar[str]
    """How dpoutlier gets to the workers: a sentence without its full stop, for messages."""

    @abstractmethod
    def workers_have(self, frame: Any, module: str) -> bool:
        """Whether the workers can import a module. No row is read."""

    @abstractmethod
    def map_tables(self, frame: Any, function: Callable[[Iterator[Any]], Iterator[Any]], schema: Any) -> Any:
        """A frame of what a function returns, which runs on the workers. No row is read.

        It takes the Arrow tables of a part of the rows, one after the other, and returns tables of an Arrow ``schema``. A part may
        be computed again; only one result of it counts.
        """


class StreamedTable(BatchedTable):
    """A table that an engine holds, read batch by batch as often as wanted. ``types`` are those of its columns, by name."""

    def __init__(self, engine: LocalEngine, frame: Any, types: dict[str, Any]) -> None:
        self.engine, self.frame, self.names, self._types = engine, frame, list(types), types

    def types(self) -> dict[str, Any]:
        return {name: self._types[name] for name in self.names}

    def batches(self) -> Iterator[Any]:
        return self.engine.batches(self.frame, self.names)


def rows_of_a_batch(names: Sequence[str]) -> int:
    return max(1, BATCH // max(1, len(names)))


def is_instance(table: Any, module: str, kind: str) -> bool:
    """``isinstance`` without an import: if a module was never imported, no object has a class from it."""
    found = getattr(sys.modules.get(module), kind, None)
    return found is not None and isinstance(table, found)


def append_columns(added: AddedColumns, table: Any) -> Any:
    """An Arrow table with the added columns."""
    for field, values in zip(added.fields(), added.arrays(table.select(added.features)), strict=True):
        table = table.append_column(field, values)
    return table


def unused_name(name: str, taken: Sequence[str]) -> str:
    """The name, made longer until it differs from all others in more than its case."""
    while name.lower() in {other.lower() for other in taken}:
        name += "_"
    return name
