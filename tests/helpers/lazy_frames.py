"""One table as a frame of each engine, where its values lie there, and values that tell engines apart."""

import dask.dataframe as dd
import duckdb
import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pyarrow as pa

from dpoutlier.engines.expressions.positions import position, positions
from dpoutlier.engines.expressions.values import value_frame
from dpoutlier.engines.registry import query_engine_of
from dpoutlier.tables import convert
from dpoutlier.tables.rows import Rows

EMBEDDED = ["polars", "duckdb", "dask"]
ENGINES = [*EMBEDDED, "spark"]
EAGER = ["pandas", "polars eager", "pyarrow"]
SPECIAL = [0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1.0, -1.0, 1e308, -1e308, np.inf, -np.inf, np.nan]


def lazy(engine, table, request=None):
    """An Arrow table as a lazy frame. Spark's session comes from the test's fixture."""
    match engine:
        case "polars":
            return pl.from_arrow(table).lazy()
        case "duckdb":
            return duckdb.connect().from_arrow(table)
        case "dask":
            return dd.from_pandas(table.to_pandas(types_mapper=pandas_type), npartitions=2)
        case "spark":
            return request.getfixturevalue("spark").createDataFrame(table)
    raise AssertionError(engine)


def pandas_type(kind):
    """Types that hold what Arrow's hold: pandas' own make floats of whole numbers that miss a value."""
    import pandas as pd

    return pd.ArrowDtype(kind) if not pa.types.is_floating(kind) else None


def around_edges(lower, upper, bins):
    """Values at every edge of equal bins, and one and two floats either side."""
    edges = lower + (upper - lower) * (np.arange(bins + 1) / bins)
    found = [edges]
    for towards in (-np.inf, np.inf):
        beside = edges
        for _ in range(2):
            beside = np.nextafter(beside, towards)
            found.append(beside)
    return np.concatenate(found)


def eager(engine, table):
    match engine:
        case "pandas":
            return nw.from_native(table.to_pandas())
        case "polars eager":
            return nw.from_native(pl.from_arrow(table))
        case "pyarrow":
            return nw.from_native(table)
    raise AssertionError(engine)


def frame_of(engine, table, domain, request=None):
    """The values of a table, after its first column, which numbers the rows: engines may reorder them."""
    frame = eager(engine, table) if engine in EAGER else plain(lazy(engine, table, request))
    first = frame.collect_schema().names()[0]
    frame = frame.rename({first: "row"}) if first != "row" else frame
    return value_frame(frame, dict(frame.collect_schema()), domain, "row")


def plain(native):
    engine = query_engine_of(native)
    return engine.plain(native, engine.schema(native))[0]


def values_of(engine, table, domain, request):
    """The engine, and the values alone."""
    frame = plain(lazy(engine, table.drop_columns(["row"]), request))
    return query_engine_of(frame.to_native()), value_frame(frame, dict(frame.collect_schema()), domain)


def arrow(frame):
    return query_engine_of(frame.to_native()).run(frame) if isinstance(frame, nw.LazyFrame) else frame.to_arrow()


def positions_in(frame, domain):
    table = arrow(frame.select("row", *positions(domain)))
    found = np.column_stack([table.column(position(j)).to_numpy() for j in range(domain.n_features)])
    return found[np.argsort(table.column("row").to_numpy())]


def rows_of(table, domain):
    return Rows(convert.values(table.drop_columns(["row"]), domain), domain)


def numbered(columns):
    return pa.table({"row": np.arange(len(next(iter(columns.values())))), **columns})
