"""Made-up rows as a frame of an engine, with numbers stored as a type of choice."""

from typing import Any

import numpy as np
import pyarrow as pa

from dpoutlier._validate import parameter_error
from dpoutlier.engines import registry
from dpoutlier.engines.base import LocalEngine
from dpoutlier.exceptions import InvalidParameterError

_LOCAL = {engine.name.lower(): engine for engine in registry.ENGINES if isinstance(engine, LocalEngine)}
ENGINES = tuple(_LOCAL)


def stored_type(name: str) -> pa.DataType:
    """An Arrow type of numbers by its name.

    >>> stored_type("decimal128(38, 15)")
    Decimal128Type(decimal128(38, 15))
    """
    try:
        if name.startswith("decimal128(") and name.endswith(")"):
            precision, scale = map(int, name[len("decimal128(") : -1].split(","))
            return pa.decimal128(precision, scale)
        kind = pa.type_for_alias(name)
    except ValueError:
        kind = pa.null()
    if not pa.types.is_integer(kind) and not pa.types.is_floating(kind):
        raise parameter_error("stored", "a type of numbers such as 'float64', 'int64' or 'decimal128(38, 15)'", name)
    return kind


def engine_frame(rows: Any, engine: str, stored: str) -> Any:
    """An array or a table as a lazy frame, its floats stored as another type."""
    if isinstance(rows, np.ndarray):
        rows = pa.table({f"feature {j}": column for j, column in enumerate(rows.T)})
    kind = stored_type(stored)
    columns = [
        column.cast(kind, safe=False) if pa.types.is_floating(column.type) else column for column in rows.columns
    ]
    table = pa.table(columns, rows.column_names)
    try:
        return _LOCAL[engine].from_arrow(table)
    except ImportError as error:
        package = (error.name or engine).partition(".")[0]
    raise InvalidParameterError(
        f"engine: {package} is not installed here, so nothing can be audited in its frames. Install it: pip install {package}"
    )
