"""Rows that an engine holds come batch by batch, whole and in order; functions go to where Spark has its rows."""

import os
import pickle
import sys
import threading

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle

from dpoutlier.engines import base
from dpoutlier.engines.registry import ENGINES, engine_of
from dpoutlier.engines.spark import _each_batch, _Pickled, map_in_arrow
from dpoutlier.exceptions import InvalidParameterError

TABLE = pa.table(
    {
        "a": pa.array(np.arange(5000) / 7, mask=np.arange(5000) % 11 == 0),
        "more": np.arange(5000),
        'b "quoted", too': [str(i) if i % 3 else None for i in range(5000)],
    }
)
NAMES = ['b "quoted", too', "a"]


@pytest.fixture
def files(tmp_path):
    for i in range(2):
        pq.write_table(TABLE.slice(2500 * i, 2500), tmp_path / f"{i}.parquet", row_group_size=700)
    return tmp_path


FRAMES = {
    "Polars": lambda files: pl.scan_parquet(files / "*.parquet"),
    "DuckDB": lambda files: duckdb.connect().read_parquet(f"{files}/*.parquet"),
    "Dask": dd.read_parquet,
    "Arrow": ds.dataset,
}


@pytest.mark.parametrize("engine", FRAMES)
def test_batches_hold_the_rows_once_and_in_order(engine, files, monkeypatch):
    monkeypatch.setattr(base, "BATCH", 600)
    frame = FRAMES[engine](files)
    found = engine_of(frame)
    assert found.name == engine
    batches = list(found.batches(frame, NAMES))
    assert len(batches) > 4
    assert all(isinstance(batch, pa.Table) and batch.column_names == NAMES for batch in batches)
    assert [row for batch in batches for row in batch.to_pylist()] == TABLE.select(NAMES).to_pylist()


DATASETS = {
    "partitioned": lambda folder: ds.dataset(folder / "by", partitioning="hive"),
    "filtered": lambda folder: ds.dataset(folder / "by", partitioning="hive").filter(pc.field("more") > 40),
    "in memory": lambda folder: ds.dataset(TABLE),
    "of two": lambda folder: ds.dataset([ds.dataset(TABLE), ds.dataset(TABLE.slice(7))]),
    "csv": lambda folder: ds.dataset(folder / "csv", format="csv"),
    "with a column that a file lacks": lambda folder: ds.dataset([folder / "0.parquet", folder / "less.parquet"]),
}


@pytest.mark.parametrize("kind", DATASETS)
def test_a_dataset_of_any_kind_is_read_as_it_would_be_whole(kind, files):
    part = TABLE.append_column("part", pc.cast(pc.greater(TABLE["more"], 1234), pa.int64()))
    ds.write_dataset(part, files / "by", format="parquet", partitioning=["part"], partitioning_flavor="hive")
    ds.write_dataset(TABLE, files / "csv", format="csv")
    pq.write_table(TABLE.drop(["a"]), files / "less.parquet")
    dataset = DATASETS[kind](files)
    batches = pa.concat_tables(engine_of(dataset).batches(dataset, dataset.schema.names))
    whole = dataset.to_table()
    assert batches.schema.equals(whole.schema)
    assert batches.to_pylist() == whole.to_pylist()


def test_a_function_travels_without_a_context_too():
    """As on Spark Connect: it is a part of the query."""
    each = pickle.loads(cloudpickle.dumps(_each_batch(_Pickled(lambda tables: tables), sent=False)))
    assert [batch.to_pylist() for batch in each(iter(TABLE.to_batches(2000)))] == [
        b.to_pylist() for b in TABLE.to_batches(2000)
    ]


def test_what_is_in_memory_has_no_engine():
    for table in (TABLE, TABLE.to_pandas(), pl.from_arrow(TABLE), np.eye(2), [[1.0]], None):
        assert engine_of(table) is None


def test_engines_that_hand_rows_over_are_those_of_this_process():
    assert [engine.name for engine in ENGINES if hasattr(engine, "batches")] == list(FRAMES)


def test_objects_of_python_are_refused_before_any_row_is_read():
    frame = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0]}), npartitions=1).map_partitions(
        lambda part: pytest.fail("a row was read"), meta={"a": object}
    )
    with pytest.raises(InvalidParameterError, match="column 'a' holds Python objects"):
        engine_of(frame).batches(frame, ["a"])


def worker(table):
    """Which process saw how many rows."""
    return pa.table({"process": [os.getpid()], "rows": [len(table)]})


class TestSpark:
    def test_a_function_runs_in_the_processes_of_the_executors(self, spark):
        frame = spark.range(0, 10_000, numPartitions=4)
        assert engine_of(frame).name == "Spark"
        found = (
            map_in_arrow(frame, worker, pa.schema([("process", pa.int64()), ("rows", pa.int64())]))
            .toArrow()
            .to_pandas()
        )
        assert found["rows"].sum() == 10_000
        assert found["rows"].max() <= 1000
        assert os.getpid() not in set(found["process"])

    def test_what_cannot_travel_fails_before_the_job(self, spark):
        lock = threading.Lock()
        with pytest.raises(TypeError, match="cannot pickle"):
            map_in_arrow(spark.range(10), lambda table: lock, "id bigint")

    def test_spark_that_is_not_installed_is_named(self, spark, monkeypatch):
        monkeypatch.setitem(sys.modules, "pyspark.cloudpickle", None)
        with pytest.raises(ModuleNotFoundError, match=r"dpoutlier\[spark\]"):
            map_in_arrow(spark.range(10), worker, "id bigint")
