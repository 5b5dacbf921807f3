"""Any table in (arrays, data frames, CSV, Parquet), positions of its rows out. Knows no privacy and no model."""
