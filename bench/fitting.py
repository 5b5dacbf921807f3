"""Fitting, against a plain sum over the same array and against the engines' own group-by."""

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from data import reference
from dpoutlier import DPGridKNN
from dpoutlier.tables.parquet import ParquetTable
from measure import interleaved

FEATURES, BINS = 8, 3


def fit_in_memory(report):
    rows = []
    n = 10**6 if report.quick else 10**7
    for dtype in (np.float64, np.float32):
        for order in "CF":
            table = np.asarray(reference(n, FEATURES), dtype, order=order)
            fits = {jobs: DPGridKNN(1, features=(0, 1), bins=BINS, n_jobs=jobs) for jobs in (1, 2)}
            times = interleaved(
                {
                    "sum": table.sum,
                    "fit": lambda f=fits, t=table: f[1].fit(t),
                    "two": lambda f=fits, t=table: f[2].fit(t),
                }
            )
            share = {name: 100 * times["sum"] / times[name] for name in ("fit", "two")}
            rows.append([
                np.dtype(dtype).name, order, *(f"{times[name] * 1e3:.1f}" for name in ("sum", "fit", "two")),
                f"{share['fit']:.0f} %", f"{share['two']:.0f} %",
            ])  # fmt: skip
            if dtype is np.float64:
                layout = "rows contiguous (C)" if order == "C" else "columns contiguous (Fortran)"
                report.target(f"fit in memory, share of a plain sum, float64, {layout}", share["fit"], 60, unit="%")
    report.section(
        "Fit in memory",
        f"{n:,} rows of {FEATURES} features, {BINS} bins each, epsilon 1; the whole fit, noise and model included, against "
        "`array.sum()`.",
        ["type", "order", "sum, ms", "fit, ms", "fit, two threads, ms", "share of the sum", "two threads"],
        rows,
    )


def fit_from_parquet(report, folder):
    n = 10**6 if report.quick else 10**7
    names = [f"x{j}" for j in range(FEATURES)]
    path = folder / "rows.parquet"
    table = reference(n, FEATURES)
    pq.write_table(pa.table(dict(zip(names, table.T, strict=True))), path, row_group_size=2**20)
    del table
    bounds = dict.fromkeys(names, (0, 1))
    pa.set_cpu_count(1)

    def ours():
        return DPGridKNN(1, features=bounds, bins=BINS).fit(ParquetTable(path, names))

    def polars():
        key = sum(
            (pl.col(name) * BINS).clip(0, BINS - 1).floor().cast(pl.Int64) * BINS ** (FEATURES - 1 - j)
            for j, name in enumerate(names)
        )
        return pl.scan_parquet(path).group_by(key.alias("key")).agg(pl.len()).collect(engine="streaming")

    def duck():
        cells = " + ".join(
            f"cast(floor(greatest(0, least({BINS - 1}, {name} * {BINS}))) as bigint) * {BINS ** (FEATURES - 1 - j)}"
            for j, name in enumerate(names)
        )
        duckdb.sql("set threads = 1")
        return duckdb.sql(f"select {cells} as key, count(*) from '{path}' group by key").fetchall()

    times = interleaved({"ours": ours, "Polars": polars, "DuckDB": duck}, rounds=3)
    assert int(polars()["len"].sum()) == n
    report.target("fit from Parquet against Polars' own group-by", times["Polars"] / times["ours"], 2)
    report.section(
        "Fit from Parquet",
        f"{n:,} rows of {FEATURES} features, {path.stat().st_size / 1e6:.0f} MB in the page cache; one thread each, and ours "
        "one more that reads ahead. Polars (streaming) and DuckDB only group and count; ours is the whole fit.",
        ["", "seconds", "against ours"],
        [[name, f"{found:.2f}", f"{found / times['ours']:.2f}"] for name, found in times.items()],
    )
