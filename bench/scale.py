"""A fit from a Parquet file of any size, against engines that only read and group. Alone: ``python bench/scale.py --rows 1e8``."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FEATURES, BINS = 8, 5
NAMES = [f"x{j}" for j in range(FEATURES)]
BOUNDS = dict.fromkeys(NAMES, (0, 1))
STRIDES = [BINS ** (FEATURES - 1 - j) for j in range(FEATURES)]
PIECE = 2**20  # rows of a row group
ROUNDS = 3

# Contestants, each in a process of its own with all cores: a path in, a table of counts or a model out. --------------------


def grid(path):
    from dpoutlier import DPGridKNN

    return DPGridKNN(1, features=BOUNDS, bins=BINS, n_jobs=-1).fit(path)


def marginals(path):
    from dpoutlier import DPMarginals

    return DPMarginals(1, features=BOUNDS, n_jobs=-1).fit(path)


def forest(path):
    from dpoutlier import DPForest

    return DPForest(1, features=BOUNDS, n_rows_hint=10**7, n_jobs=-1).fit(path)


def polars_key(path):
    """Reads all columns and groups by a key that stands in the file."""
    import polars as pl

    file = pl.scan_parquet(path)
    work = [file.group_by("key").agg(pl.len()), file.select(pl.col(NAMES).sum())]
    return pl.collect_all(work, engine="streaming")


def duckdb_key(path):
    import duckdb

    duckdb.sql(f"select {', '.join(f'sum({name})' for name in NAMES)} from '{path}'").fetchall()
    return duckdb.sql(f"select key, count(*) from '{path}' group by key").fetchnumpy()


def polars_expression(path):
    """Counts cells of the same grid: position on the lattice, bin, and a number of mixed radix."""
    import polars as pl

    def bin_of(name):
        position = ((pl.col(name) - 0.0) * 2.0**32).clip(0, 2.0**32 - 1).floor()
        return (position * (BINS / 2**32)).floor().cast(pl.Int64)

    key = sum(bin_of(name) * stride for name, stride in zip(NAMES, STRIDES, strict=True))
    return pl.scan_parquet(path).group_by(key.alias("cell")).agg(pl.len()).collect(engine="streaming")


def duckdb_expression(path):
    import duckdb

    position = "floor(least(greatest(({} - 0.0) * 4294967296.0, 0), 4294967295.0))"
    bins = [f"cast(floor({position.format(name)} * {BINS / 2**32!r}) as bigint)" for name in NAMES]
    key = " + ".join(f"{one} * {stride}" for one, stride in zip(bins, STRIDES, strict=True))
    return duckdb.sql(f"select {key} as cell, count(*) from '{path}' group by cell").fetchnumpy()


CONTESTANTS = {
    "DPGridKNN": grid,
    "Polars, scan and group by a column": polars_key,
    "DuckDB, scan and group by a column": duckdb_key,
    "Polars, group by an expression": polars_expression,
    "DuckDB, group by an expression": duckdb_expression,
    "DPMarginals": marginals,
    "DPForest": forest,
}
ENGINES = [name for name in CONTESTANTS if "by a column" in name]
EXPRESSIONS = [name for name in CONTESTANTS if "expression" in name]


def child(name, small, path):
    """One run after a small one that loads and compiles: prints seconds and the peak of memory in MB."""
    CONTESTANTS[name](small)
    start = time.perf_counter()
    CONTESTANTS[name](path)
    taken = time.perf_counter() - start
    # Not from getrusage, whose peak a process takes over from the one that started it.
    peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
    print(json.dumps([taken, peak / 1024]))


# -------------------------------------------------------------------------------------------------------------------------


def write_rows(path, n):
    """Rows and their cell's number, in pieces: a file may be larger than memory."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from data import reference

    schema = pa.schema([*((name, pa.float64()) for name in NAMES), ("key", pa.int64())])
    with pq.ParquetWriter(path, schema, use_dictionary=["key"]) as file:
        for first in range(0, n, PIECE):
            rows = reference(min(PIECE, n - first), FEATURES, seed=first)
            key = np.clip(np.floor(rows * BINS), 0, BINS - 1).astype(np.int64) @ np.array(STRIDES)
            file.write_table(pa.table([*np.ascontiguousarray(rows.T), key], schema), row_group_size=PIECE)
    return path


def measure(name, small, path):
    threads = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"}
    everything = {key: value for key, value in os.environ.items() if key not in threads}
    command = [sys.executable, __file__, "--child", name, str(small), str(path)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=everything).stdout)


def scale(report, folder, n=10**7):
    """Time and peak memory of each, in turn, round after round; the slower detectors once."""
    n = 10**6 if report.quick else n
    small, path = write_rows(folder / "small.parquet", 10**4), write_rows(folder / "large.parquet", n)
    runs = {name: [] for name in CONTESTANTS}
    for turn in range(ROUNDS):
        names = [name for name in CONTESTANTS if turn == 0 or name not in {"DPMarginals", "DPForest"}]
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            runs[name].append(measure(name, small, path))
    times = {name: statistics.median(taken for taken, _ in found) for name, found in runs.items()}
    memory = {name: max(peak for _, peak in found) for name, found in runs.items()}
    ours = times["DPGridKNN"]
    engine, expression = (min(times[name] for name in group) for group in (ENGINES, EXPRESSIONS))
    what = f"fit of {n:.0e} rows from Parquet, all cores"
    report.target(f"{what}: against the best engine's scan and group-by", ours / engine, 1.3, at_most=True)
    report.target(f"{what}: the best engine's expression against it", expression / ours, 1)
    report.target(f"{what}: peak of memory, everything included", memory["DPGridKNN"], 2000, at_most=True, unit="MB")
    report.section(
        "Files larger than memory",
        f"{n:,} rows of {FEATURES} features, {path.stat().st_size / 1e9:.1f} GB, all cores, each in a process of its own. The "
        "engines read the eight columns and group by one that tells the cell already, or make the cell by an expression; ours "
        f"are whole fits, {BINS} bins each. Peak of memory with Python and all libraries.",
        ["", "seconds", "against DPGridKNN", "million rows a second", "peak, MB"],
        [
            [name, f"{taken:.2f}", f"{taken / ours:.2f}", f"{n / taken / 1e6:.1f}", f"{memory[name]:.0f}"]
            for name, taken in times.items()
        ],
    )
    path.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e7, help="rows of the file, as 1e8")
    parser.add_argument("--folder", type=Path, default=None, help="where to write the file; 6.7 GB for 1e8 rows")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return
    from report import Report

    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        scale(Report(Path(folder), quick=False), Path(folder), int(options.rows))


if __name__ == "__main__":
    main()
