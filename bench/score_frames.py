"""Scoring where the rows are: frames of every kind beside an array, the same rows and the same scores."""

import shutil
from dataclasses import replace

import dask
import dask.dataframe as dd
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from data import queries, reference
from dpoutlier import DPForest, DPGridKNN, FittedDetector
from measure import interleaved

FEATURES = 8
NAMES = [f"f{j}" for j in range(FEATURES)]


def scoring_frames(report, folder):
    """Points per second, with reading and with the other columns, in one thread."""
    n = 10**5 if report.quick else 10**6
    rows = reference(10**5, FEATURES)
    named = pa.table(list(np.ascontiguousarray(rows.T)), NAMES)
    bounds = dict.fromkeys(NAMES, (0, 1))
    detectors = {
        "forest": DPForest(1, features=bounds, n_rows_hint=10**5).fit(named),
        "grid, 4 bins": DPGridKNN(1, features=bounds, bins=4).fit(named),
    }
    points = queries(n, FEATURES)
    table = pa.table(list(np.ascontiguousarray(points.T)), NAMES).append_column("row", pa.array(np.arange(n)))
    pq.write_table(table, folder / "points.parquet", row_group_size=n // 8)
    times = {
        name: interleaved(_ways(detector, points, table, folder), rounds=3) for name, detector in detectors.items()
    }
    spark = _spark_times(detectors, folder)
    kinds = [*next(iter(times.values())), *next(iter(spark.values()), {})]
    report.section(
        "Scoring frames where they are",
        f"{n:,} points of {FEATURES} features, and another column; points per second. The array has the features alone and "
        "gives scores alone; all others give a frame with all columns, and outside_bounds too. Spark has two executors of one core "
        "each, and writes nowhere; all others take one thread.",
        ["", *detectors],
        [[kind, *(f"{n / (times[name] | spark.get(name, {}))[kind]:,.0f}" for name in detectors)] for kind in kinds],
    )


def _ways(detector, points, table, folder):
    """Each way to score the points, all from memory but those that say so."""
    pandas, polars, dataset = table.to_pandas(), pl.from_arrow(table), ds.dataset(folder / "points.parquet")
    connection = duckdb.connect(config={"threads": 1})
    partitions = dd.from_pandas(pandas, npartitions=8)
    score = detector.score_frame

    def of_dask():
        with dask.config.set(scheduler="synchronous"):
            return score(partitions).compute()

    columns, rows = table.drop(["row"]), _nameless(detector)
    return {
        "array": lambda: rows.outlier_scores(points),
        "Arrow, scores alone": lambda: detector.outlier_scores(columns),
        "Arrow": lambda: score(table),
        "pandas": lambda: score(pandas),
        "Polars": lambda: score(polars),
        "Polars, lazy, from Parquet": lambda: score(pl.scan_parquet(folder / "points.parquet")).collect(
            engine="streaming"
        ),
        "DuckDB, from Parquet": lambda: score(connection.read_parquet(str(folder / "points.parquet"))).to_arrow_table(),
        "Dask, 8 partitions": of_dask,
        "Arrow dataset, from Parquet": lambda: score(dataset).read_all(),
    }


def _nameless(detector):
    """The same model for arrays: scikit-learn warns where points have no names and the fit had."""
    model = detector.model_
    return FittedDetector(replace(model, domain=replace(model.domain, names=None)))


def _spark_times(detectors, folder):
    """The same on a cluster of two processes, where there is Java."""
    if shutil.which("java") is None:
        return {}
    from spark_session import running  # of the tests

    with running(folder / "spark", **{"spark.sql.execution.arrow.maxRecordsPerBatch": "10000"}) as session:
        frame = session.read.parquet(str(folder / "points.parquet")).repartition(8).cache()
        frame.count()

        def of_spark(detector):
            detector.score_frame(frame).write.format("noop").mode("overwrite").save()

        return {
            name: interleaved({"Spark, 8 partitions": lambda d=detector: of_spark(d)}, rounds=3)
            for name, detector in detectors.items()
        }
