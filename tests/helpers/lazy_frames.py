"""One table as a lazy frame of each engine, and values that tell engines apart."""

import dask.dataframe as dd
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

EMBEDDED = ["polars", "duckdb", "dask"]
ENGINES = [*EMBEDDED, "spark"]
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
