"""Tables in a query engine (Polars, DuckDB, Dask, Spark): the same positions and cells, computed where the rows are."""
