"""Any table becomes rows on the public lattice: arrays, frames, CSV, Parquet, data sets. Knows no privacy and no model."""
