"""Tables that are read batch by batch, as often as wanted, and never whole."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from pathlib import Path
from typing import Any, Self, TypeVar

from dpoutlier.exceptions import InvalidParameterError

BATCH = 1 << 22  # values: 32 MB of float64, enough to make the overhead of a batch small
MAX_ROWS = 1 << 19  # of a batch, where columns are few: they may be long text
T = TypeVar("T")
Watch = Callable[[int, int], None]


class BatchedTable(ABC):
    """Columns with names, whose rows come in batches. A fit takes one of these wherever it takes a data frame."""

    names: list[str]
    """The columns, in the order in which they are given."""

    @abstractmethod
    def types(self) -> dict[str, Any]:
        """The types of the columns, as narwhals calls them: the schema, which is public."""

    @abstractmethod
    def batches(self) -> Iterator[Any]:
        """Arrow tables of some rows each: at every call the same rows in the same order."""

    def number_of_rows(self) -> int:
        """Exact, hence private. Reads all rows, unless a subclass knows a faster way."""
        return sum(len(batch) for batch in self.batches())

    def without(self, name: str) -> Self:
        """The same table, one column less."""
        other = copy(self)
        other.names = [own for own in self.names if own != name]
        return other


class FileTable(BatchedTable):
    """Files of one format, one after the other."""

    paths: Sequence[Path]
    watch: Watch | None = None
    """Called at each batch with the number of bytes read so far and in total. Each pass starts at 0."""

    def batches(self) -> Iterator[Any]:
        sizes = [path.stat().st_size for path in self.paths]
        for i, path in enumerate(self.paths):
            for batch, share in self._batches(path):
                if self.watch is not None:
                    self.watch(int(sum(sizes[:i]) + share * sizes[i]), sum(sizes))
                yield batch
        if self.watch is not None:
            self.watch(sum(sizes), sum(sizes))

    @abstractmethod
    def _batches(self, path: Path) -> Iterator[tuple[Any, float]]:
        """The batches of one file, each with the share of the file that is then read."""


def rows_of_a_batch(n_columns: int) -> int:
    """How many rows are read at once."""
    return max(1, min(MAX_ROWS, BATCH // max(1, n_columns)))


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items. A thread makes each item while the caller uses the one before."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item


def not_a_number(name: str, dtype: Any, where: str = "") -> InvalidParameterError:
    """The error for a column whose type a feature cannot have; the caller raises it."""
    return InvalidParameterError(
        f"column {name!r}{where} has type {type_text(dtype)}; a feature must be a number. Convert or leave it out."
    )


def type_text(dtype: Any) -> str:
    """A type of narwhals for a message, without what is inside of it: the levels of an enumeration may be those of the rows."""
    return type(dtype).__name__ if type(dtype).__name__ == "Enum" or dtype.is_nested() else str(dtype)
