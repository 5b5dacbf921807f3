"""Dask: data frames in partitions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dpoutlier.engines.base import AddedColumns, LocalEngine, is_instance, rows_of_a_batch
from dpoutlier.exceptions import InvalidParameterError

PARTITIONS = 2
"""Number of partitions of a frame that is made from a table."""


class DaskEngine(LocalEngine):
    """Frames that are ``dask.dataframe.DataFrame``."""

    name = "Dask"
    fixed_order = False

    def holds(self, table: Any) -> bool:
        return is_instance(table, "dask.dataframe", "DataFrame")

    def from_arrow(self, table: Any) -> Any:
        import dask.dataframe as dd  # noqa: PLC0415
        import pandas as pd  # noqa: PLC0415

        from_pandas: Any = dd.from_pandas
        return from_pandas(table.to_pandas(types_mapper=pd.ArrowDtype), npartitions=PARTITIONS)

    def check(self, frame: Any, types: Mapping[str, Any]) -> None:
        _check_objects(frame, types)

    def batches(self, frame: Any, names: Sequence[str]) -> Iterator[Any]:
        """Partition by partition; what partitions share is computed for each of them."""
        _check_objects(frame, names)
        return _batches(frame[list(names)], rows_of_a_batch(names))

    def with_columns(self, frame: Any, added: AddedColumns) -> Any:
        """Partition by partition."""
        return frame.map_partitions(_added, added, meta=added.pandas(frame._meta))  # noqa: SLF001 - its schema; there is no other way


def _added(part: Any, added: Any) -> Any:
    return added.pandas(part)


def _batches(chosen: Any, rows: int) -> Iterator[Any]:
    import pyarrow as pa  # noqa: PLC0415

    for number in range(chosen.npartitions):
        whole = pa.Table.from_pandas(chosen.get_partition(number).compute(), preserve_index=False)
        for first in range(0, max(len(whole), 1), rows):
            yield whole.slice(first, rows)


def _check_objects(frame: Any, names: Iterable[str]) -> None:
    """Refuse Python objects and categories not known to be text: their Arrow types would depend on the rows."""
    for name in names:
        kind = frame.dtypes[name]
        if str(kind) == "category" and not _known_text(kind.categories):
            raise InvalidParameterError(
                f"column {name!r} holds categories that are not known to be text; convert it: frame[{name!r}].astype('string')."
            )
        if str(kind) == "object":
            raise InvalidParameterError(
                f"column {name!r} holds Python objects; convert it to numbers or to text: frame[{name!r}].astype('string')."
            )


def _known_text(categories: Any) -> bool:
    """Whether categories are texts that Dask knows. If it does not, it holds a placeholder."""
    text = "str" in str(getattr(categories, "dtype", "")).lower()
    return text and "__UNKNOWN_CATEGORIES__" not in set(categories)


ENGINE = DaskEngine()
