"""Tables in a query engine (Polars, DuckDB, Dask, Spark): positions and cells as in memory, computed where the rows are."""
