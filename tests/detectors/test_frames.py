"""Rows have the same scores wherever they are: in memory, in an engine, on a cluster."""

import datetime as dt
import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

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
from hypothesis import given, settings
from hypothesis import strategies as st

import dpoutlier
from dpoutlier import DPForest, DPGridKNN, DPMarginals, FittedDetector, load, secrets_may_travel
from dpoutlier.engines import base
from dpoutlier.engines import duckdb as duckdb_engine
from dpoutlier.engines.spark import map_in_arrow
from dpoutlier.exceptions import InvalidParameterError, PointsError, SecretError
from spark_session import executors

BOUNDS = {"a": (-1, 2), "b": (0, 1), "n": (0, 50)}
LEVELS = {"c": ["low", "mid", "high"]}
NAMES = ["a", "b", "n", "c"]
ADDED = ["outlier_score", "outside_bounds", "prediction"]
rng = np.random.default_rng(0)


def at_edges(lower, upper, bins):
    """Edges of bins, one float beside them, and numbers that are hard on whoever parses, clips or flushes them."""
    edges = np.linspace(lower, upper, bins + 1)
    hard = [-0.0, 0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e308, -1e308, np.inf, -np.inf, 1 / 3]
    return np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf), hard])


HARD = np.concatenate([at_edges(-1, 2, 4), at_edges(0, 1, 4)])
N = 3000


def table_of(n=N, seed=1):
    """Points with extra columns of types that are easily lost, in another order than the features."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "when": pa.array([dt.datetime(2020, 1, 1) + dt.timedelta(hours=i) for i in range(n)], pa.timestamp("us")),
            "c": pa.array(random.choice(["low", " mid", "high", "unheard"], n)),
            "b": np.where(random.random(n) < 0.5, random.choice(HARD, n), random.random(n)),
            "tags": pa.array([[str(i), None] for i in range(n)], pa.list_(pa.string())),
            "n": pa.array(random.integers(-5, 60, n), pa.int32()),
            "a": np.where(random.random(n) < 0.5, random.choice(HARD, n), random.normal(size=n)),
            "row": np.arange(n),
        }
    )


ROWS = table_of(seed=2).select(NAMES)
TABLE = table_of()
common = {"features": BOUNDS, "categories": LEVELS}
DETECTORS = {
    "basic": DPGridKNN(1, **common, k=20, bins=4, target_fpr=0.1),
    "weighted": DPGridKNN(1, **common, k=20, bins=4, weighted=True),
    "point": DPGridKNN(1, **common, k=20, bins=4, distance="point"),
    "keyed": DPGridKNN(1, **common, k=20, bins=4, counts="keyed"),
    "forest": DPForest(1, **common, n_rows_hint=3000, n_trees=5, depth=4, target_fpr=0.1),
    "marginals": DPMarginals(1, **common),
}


@pytest.fixture(scope="module")
def fitted():
    return {name: detector.fit(ROWS) for name, detector in DETECTORS.items()}


@pytest.fixture(scope="module")
def cells():
    """A model with cells for missing values."""
    return DPForest(1, **common, missing="cell", n_rows_hint=3000, n_trees=4, depth=4, target_fpr=0.2).fit(ROWS)


def dataset_of(table, folder):
    for i in range(3):
        pq.write_table(table.slice(i * 1000, 1000), folder / f"{i}.parquet", row_group_size=300)
    return ds.dataset(folder)


def duckdb_of(table, _):
    return duckdb.connect().from_arrow(table)


# From an Arrow table to a frame, and from a scored frame back to an Arrow table.
MEMORY = {
    "pandas": (
        lambda t, _: t.to_pandas(types_mapper=pd.ArrowDtype),
        lambda f: pa.Table.from_pandas(f, preserve_index=False),
    ),
    "polars": (lambda t, _: pl.from_arrow(t), lambda f: f.to_arrow()),
    "arrow": (lambda t, _: t, lambda f: f),
}
ENGINES = {
    "lazy": (lambda t, _: pl.from_arrow(t).lazy(), lambda f: f.collect(engine="streaming").to_arrow()),
    "scan": (lambda t, to: dataset_of(t, to) and pl.scan_parquet(to / "*.parquet"), lambda f: f.collect().to_arrow()),
    "duckdb": (duckdb_of, lambda f: f.to_arrow_table()),
    "dask": (
        lambda t, _: dd.from_pandas(t.to_pandas(types_mapper=pd.ArrowDtype), npartitions=3),
        lambda f: pa.Table.from_pandas(f.compute(), preserve_index=False),
    ),
    "dataset": (dataset_of, lambda f: f.read_all()),
}
KINDS = MEMORY | ENGINES


def same(result, table, detector):
    """The table's own columns, and scores that are equal to the bit."""
    features = table.select(NAMES)
    expected = detector.outlier_scores(features)
    names = ADDED if detector._threshold() is not None else ADDED[:2]
    assert result.column_names == [*table.column_names, *names]
    order = result.column("row").to_numpy().argsort(kind="stable")
    result = result.take(order)
    for name in table.column_names:
        assert result.column(name).to_pylist() == table.column(name).to_pylist(), name
    found = result.column("outlier_score").combine_chunks().to_numpy()
    assert (found.view(np.int64) == expected.view(np.int64)).all()
    assert result.column("outside_bounds").to_pylist() == detector.outside_bounds(features).tolist()
    if detector._threshold() is not None:
        assert result.column("prediction").to_pylist() == detector.predict(features).tolist()


@pytest.mark.parametrize("detector", DETECTORS)
@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_the_table_to_the_bit(kind, detector, fitted, tmp_path, monkeypatch):
    monkeypatch.setattr(base, "BATCH", 4000)
    make, back = KINDS[kind]
    frame = make(TABLE, tmp_path)
    scored = fitted[detector].score_frame(frame)
    assert isinstance(scored, pa.RecordBatchReader if kind == "dataset" else type(frame))
    same(back(scored), TABLE, fitted[detector])


def test_what_was_loaded_scores_frames_too(fitted, tmp_path):
    loaded = load(fitted["forest"].save(tmp_path / "model.dpo"))
    assert isinstance(loaded, FittedDetector)
    same(loaded.score_frame(TABLE), TABLE, fitted["forest"])
    same(loaded.score_frame(pl.from_arrow(TABLE).lazy()).collect().to_arrow(), TABLE, fitted["forest"])


def holes(table):
    for j, name in enumerate(NAMES):
        mask = np.random.default_rng(j).random(len(table)) < 0.1
        masked = pc.if_else(pa.array(mask), None, table.column(name))
        table = table.set_column(table.column_names.index(name), name, masked)
    return table


HOLED = holes(TABLE)


@pytest.mark.parametrize("kind", KINDS)
def test_missing_values_have_their_cells(kind, cells, tmp_path):
    make, back = KINDS[kind]
    same(back(cells.score_frame(make(HOLED, tmp_path))), HOLED, cells)


@pytest.mark.parametrize("kind", KINDS)
def test_points_that_miss_a_value_have_no_score_if_so_wanted(kind, fitted, tmp_path):
    make, back = KINDS[kind]
    result = back(fitted["basic"].score_frame(make(HOLED, tmp_path), missing="null"))
    result = result.take(result.column("row").to_numpy().argsort())
    whole = ~np.any([HOLED.column(name).is_null().to_numpy() for name in NAMES[:3]], axis=0)
    whole &= HOLED.column("c").is_valid().to_numpy()
    assert 0 < whole.sum() < len(whole)
    complete = HOLED.filter(whole)
    assert (
        result.filter(whole).column("outlier_score").to_pylist()
        == fitted["basic"].outlier_scores(complete.select(NAMES)).tolist()
    )
    for name in ADDED:
        column = result.filter(~whole).column(name)
        assert all(value is None or value != value for value in column.to_pylist()), name
    assert (
        result.filter(whole).column("prediction").to_pylist()
        == fitted["basic"].predict(complete.select(NAMES)).tolist()
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_value_is_an_error_that_says_what_to_do(kind, fitted, tmp_path):
    make, back = KINDS[kind]
    row = ", row" if kind in MEMORY else ""
    with pytest.raises(
        Exception, match=rf"a point has a missing value or a value that is not a number in a{row}.*missing='cell'"
    ) as caught:
        back(fitted["basic"].score_frame(make(HOLED, tmp_path)))
    if kind in MEMORY:
        assert isinstance(caught.value, PointsError)


def test_columns_that_are_no_features_may_have_any_type(fitted):
    """Narwhals does not know decimals of a negative scale, nor need it."""
    odd = TABLE.append_column("odd", pa.array([Decimal(100)] * len(TABLE), pa.decimal128(5, -2)))
    for frame in (odd, ds.dataset(odd)):
        result = fitted["basic"].score_frame(frame)
        result = result.read_all() if isinstance(result, pa.RecordBatchReader) else result
        assert (
            result["outlier_score"].to_numpy().tolist() == fitted["basic"].outlier_scores(TABLE.select(NAMES)).tolist()
        )


@pytest.mark.parametrize("kind", KINDS)
def test_no_rows_are_no_scores(kind, fitted, tmp_path):
    make, back = KINDS[kind]
    if kind in {"dataset", "scan"}:
        pq.write_table(TABLE.slice(0, 0), tmp_path / "0.parquet")
        frame = ds.dataset(tmp_path) if kind == "dataset" else pl.scan_parquet(tmp_path / "0.parquet")
    elif kind == "dask":
        frame = dd.from_pandas(TABLE.slice(0, 0).to_pandas(types_mapper=pd.ArrowDtype), npartitions=1)
    else:
        frame = make(TABLE.slice(0, 0), tmp_path)
    result = back(fitted["basic"].score_frame(frame))
    assert (len(result), result.column_names) == (0, [*TABLE.column_names, *ADDED])


BAD = [
    (lambda t: t.drop(["b", "c"]), PointsError, "has no column 'b', 'c'"),
    (
        lambda t: t.rename_columns([{"tags": "outlier_score"}.get(n, n) for n in t.column_names]),
        PointsError,
        "a column 'outlier_score', which scoring would add",
    ),
    (
        lambda t: t.drop(["a"]).rename_columns([{"when": "a"}.get(n, n) for n in t.drop(["a"]).column_names]),
        InvalidParameterError,
        "column 'a' has type",
    ),
]


@pytest.mark.parametrize(("change", "error", "message"), BAD)
@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_schema_is_refused_at_once(kind, change, error, message, fitted, tmp_path):
    with pytest.raises(error, match=message):
        fitted["basic"].score_frame(KINDS[kind][0](change(TABLE), tmp_path))


def test_bad_arguments_are_named(fitted):
    detector = fitted["basic"]
    for arguments, message in [
        ({"missing": "cell"}, "missing must be one of 'error', 'null'"),
        ({"column": None}, "column must be the name of a column"),
        ({"prediction": 3}, "prediction must be the name of a column, or None"),
        ({"column": "prediction"}, "must be different names"),
    ]:
        with pytest.raises(InvalidParameterError, match=message):
            detector.score_frame(TABLE, **arguments)
    with pytest.raises(TypeError, match="outlier_scores takes arrays"):
        detector.score_frame(np.eye(4))
    doubled = pd.DataFrame(np.eye(5), columns=[*NAMES, "a"])
    with pytest.raises(PointsError, match="more than one column named 'a'"):
        detector.score_frame(doubled)


def test_names_differ_by_more_than_case_where_an_engine_wants_it(fitted):
    frame = duckdb.connect().from_arrow(
        TABLE.rename_columns([{"row": "Outlier_Score"}.get(n, n) for n in TABLE.column_names])
    )
    with pytest.raises(PointsError, match="a column 'Outlier_Score', which scoring would add"):
        fitted["basic"].score_frame(frame)


def test_columns_may_have_other_names_or_be_left_out(fitted):
    twice = fitted["basic"].score_frame(TABLE, column="first", outside=None, prediction=None)
    twice = fitted["forest"].score_frame(twice, column="second", outside="out", prediction="is 'it\"")
    assert twice.column_names == [*TABLE.column_names, "first", "second", "out", "is 'it\""]
    frame = fitted["forest"].score_frame(duckdb_of(TABLE, None), column="se'co\"nd", outside="o", prediction="told")
    assert frame.columns == [*TABLE.column_names, "se'co\"nd", "o", "told"]
    assert frame.to_arrow_table().column("se'co\"nd").to_pylist() == twice.column("second").to_pylist()


def test_a_model_without_names_takes_all_columns_in_their_order():
    detector = DPGridKNN(1, features=(0, 1), bins=4).fit(rng.random((500, 2)))
    points = rng.random((50, 2))
    expected = detector.outlier_scores(points).tolist()
    assert detector.score_frame(pd.DataFrame(points))["outlier_score"].tolist() == expected
    assert (
        detector.score_frame(pl.DataFrame(points, ["x", "y"]).lazy()).collect()["outlier_score"].to_list() == expected
    )
    with pytest.raises(PointsError, match="has 3 columns, but the model has 2 features without names"):
        detector.score_frame(pd.DataFrame(np.eye(3)))


def test_pandas_keeps_its_index_and_is_not_changed(fitted):
    frame = TABLE.select(NAMES).to_pandas()
    frame.index = pd.Index([f"row {i // 2}" for i in range(len(frame))], name="who")  # doubled labels
    before = frame.copy()
    result = fitted["basic"].score_frame(frame)
    assert result.index.equals(before.index)
    assert result.index.name == "who"
    pd.testing.assert_frame_equal(frame, before)
    assert result["outlier_score"].tolist() == fitted["basic"].outlier_scores(frame).tolist()


def test_polars_reads_only_what_is_asked_for(fitted, tmp_path, monkeypatch):
    """No column that nobody wants, and no score of a row that is left out."""
    dataset_of(TABLE, tmp_path)
    seen, scores_of = [], FittedDetector._outlier_scores
    monkeypatch.setattr(
        FittedDetector, "_outlier_scores", lambda self, rows: seen.append(len(rows)) or scores_of(self, rows)
    )
    scored = fitted["basic"].score_frame(pl.scan_parquet(tmp_path / "*.parquet"))
    plan = scored.filter(pl.col("n") > 40).select("outlier_score", "row")
    assert "PROJECT 5/7 COLUMNS" in plan.explain()
    found = plan.collect()["outlier_score"].to_list()
    kept = TABLE.filter(pc.greater(TABLE["n"], 40)).select(NAMES)
    assert sum(seen) == len(kept) < len(TABLE)
    assert found == fitted["basic"].outlier_scores(kept).tolist()


def test_a_relation_keeps_its_types_and_calls_the_kernel_once_for_each_row(fitted, monkeypatch):
    connection = duckdb.connect()
    relation = (
        connection.sql(
            "SELECT *, row::HUGEINT AS huge, 'x'::ENUM('x', 'y') AS kind, INTERVAL 1 DAY AS long, uuid() AS id FROM t",
        )
        if connection.register("t", TABLE)
        else None
    )
    seen = []
    scores_of = FittedDetector._outlier_scores
    monkeypatch.setattr(
        FittedDetector, "_outlier_scores", lambda self, rows: seen.append(len(rows)) or scores_of(self, rows)
    )
    scored = fitted["basic"].score_frame(relation)
    assert not seen
    assert [str(t) for t in scored.types] == [*map(str, relation.types), "DOUBLE", "BOOLEAN", "BIGINT"]
    found = scored.filter("outlier_score >= 0").order("row").project("outlier_score").fetchall()
    assert [score for (score,) in found] == fitted["basic"].outlier_scores(TABLE.select(NAMES)).tolist()
    assert sum(seen) == len(TABLE)


def test_a_relation_of_the_default_connection_scores_too(fitted):
    scored = fitted["basic"].score_frame(duckdb.from_arrow(TABLE))
    same(scored.to_arrow_table(), TABLE, fitted["basic"])


def test_a_relation_of_an_unknown_connection_is_refused_at_once(fitted, monkeypatch):
    monkeypatch.setattr(duckdb_engine, "_connection", lambda _: duckdb.default_connection())
    with pytest.raises(TypeError, match="does not say to which connection"):
        fitted["basic"].score_frame(duckdb_of(TABLE, None))


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            *[st.floats(allow_nan=False), st.floats(-3, 3), st.integers(-9, 90), st.text(max_size=5).filter(str.strip)]
        ),
        min_size=1,
        max_size=20,
    )
)
def test_any_numbers_score_alike(fitted, rows):
    table = pa.table(dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True)))
    expected = fitted["forest"].outlier_scores(table)
    for frame in (table, table.to_pandas(), pl.from_arrow(table)):
        found = fitted["forest"].score_frame(frame)["outlier_score"]
        assert (np.asarray(found, np.float64).view(np.int64) == expected.view(np.int64)).all()
    lazy = fitted["forest"].score_frame(pl.from_arrow(table).lazy()).collect()["outlier_score"].to_numpy()
    assert (lazy.view(np.int64) == expected.view(np.int64)).all()


def test_a_fit_survives_a_pickle_and_a_secret_one_needs_secrets_may_travel(fitted):
    from pyspark import cloudpickle

    for name, detector in fitted.items():
        part = detector._only_scoring()
        if name == "keyed":
            with pytest.raises(SecretError):
                cloudpickle.dumps(part)
        with secrets_may_travel():
            again = pickle.loads(cloudpickle.dumps(part))
        assert isinstance(again, FittedDetector)
        assert (again.outlier_scores(ROWS) == detector.outlier_scores(ROWS)).all()


def test_the_twin_that_keeps_its_rows_scores_frames_too():
    detector = dpoutlier.KNN(BOUNDS, categories=LEVELS, k=3).fit(ROWS)
    same(detector.score_frame(TABLE), TABLE, detector)


@pytest.fixture(scope="module")
def frame(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("points")
    dataset_of(TABLE, folder)
    return spark.read.parquet(str(folder))


MEASURE = """
from pathlib import Path
import numpy as np, pyarrow as pa, pyarrow.dataset as ds, pyarrow.parquet as pq
from dpoutlier import load
memory = lambda name: int(Path("/proc/self/status").read_text().split(name + ":")[1].split()[0]) * 1024
detector = load("model.dpo")
detector.score_frame(pa.table({f"f{j}": [0.5] for j in range(8)}))
before = memory("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
rows = sum(len(batch) for batch in detector.score_frame(ds.dataset("points.parquet")))
print(rows, memory("VmHWM") - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="peak memory is read in /proc")
def test_a_dataset_is_never_in_memory_whole(tmp_path):
    names = [f"f{j}" for j in range(8)]
    rows = pa.table(list(rng.random((8, 10**6))), names)
    detector = DPForest(1, features=dict.fromkeys(names, (0, 1)), n_rows_hint=1000, n_trees=20, depth=6).fit(
        rows.slice(0, 1000)
    )
    detector.save(tmp_path / "model.dpo")
    with pq.ParquetWriter(tmp_path / "points.parquet", rows.schema) as writer:
        for _ in range(10):
            writer.write_table(rows, row_group_size=10**6)
    found = subprocess.run(
        [sys.executable, "-c", MEASURE], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    (tmp_path / "points.parquet").unlink()
    n, more = map(int, found.split())
    assert n == 10**7  # 640 MB
    assert more < 350 * 2**20


class TestSpark:
    @pytest.mark.parametrize("detector", DETECTORS)
    def test_scores_are_those_of_one_machine(self, frame, fitted, detector):
        with secrets_may_travel():
            scored = fitted[detector].score_frame(frame)
        same(scored.toArrow(), TABLE, fitted[detector])

    def test_missing_values(self, spark, fitted, cells, tmp_path):
        dataset_of(HOLED, tmp_path)
        frame = spark.read.parquet(str(tmp_path))
        same(cells.score_frame(frame).toArrow(), HOLED, cells)
        absent = fitted["basic"].score_frame(frame, missing="null").filter("outlier_score IS NULL").count()
        assert absent == len(HOLED) - len(HOLED.select(NAMES).drop_null())
        failing = fitted["basic"].score_frame(frame)
        with pytest.raises(Exception, match="a point has a missing value or a value that is not a number in a"):
            failing.toArrow()

    @pytest.mark.parametrize(("change", "error", "message"), BAD)
    def test_a_wrong_schema_is_refused_at_once(self, spark, change, error, message, fitted, tmp_path):
        dataset_of(change(TABLE), tmp_path)
        with pytest.raises(error, match=message):
            fitted["basic"].score_frame(spark.read.parquet(str(tmp_path)))

    def test_names_with_dots_are_names(self, spark, tmp_path):
        names = ["a.x", "`b`"]
        detector = DPGridKNN(1, features=dict.fromkeys(names, (0, 1)), bins=4).fit(
            pl.DataFrame(rng.random((500, 2)), names)
        )
        points = pl.DataFrame(rng.random((50, 2)), names)
        points.write_parquet(tmp_path / "points.parquet")
        scored = detector.score_frame(spark.read.parquet(str(tmp_path))).toArrow()
        assert scored.column("outlier_score").to_pylist() == detector.outlier_scores(points).tolist()

    def test_a_secret_model_does_not_travel_by_itself(self, frame, fitted):
        with pytest.raises(SecretError):
            fitted["keyed"].score_frame(frame)

    @pytest.mark.slow
    def test_the_result_is_whole_although_an_executor_is_killed(self, spark, frame, fitted):
        """A process that runs tasks of the job dies without a word, when some are done and most are not."""
        slow = map_in_arrow(frame.repartition(24), slowly, frame.schema)
        scored = fitted["basic"].score_frame(slow)
        before, tracker = executors(spark), spark.sparkContext.statusTracker()
        assert len(before) == 2
        with ThreadPoolExecutor(1) as pool:
            result = pool.submit(scored.toArrow)
            while not (done := tasks_done(tracker)):
                assert not result.done()
                time.sleep(0.02)
            os.kill(before[0], signal.SIGKILL)
            assert max(done) < 20
            same(result.result(timeout=120), TABLE, fitted["basic"])
        assert before[0] not in executors(spark)


def slowly(table):
    time.sleep(0.2)
    return table


def tasks_done(tracker):
    """How many tasks each running stage with many tasks has done, if it has done two."""
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return [
        stage.numCompletedTasks for stage in stages if stage and stage.numTasks == 24 and stage.numCompletedTasks > 1
    ]
