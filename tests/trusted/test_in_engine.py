"""A fit on a lazy frame of any engine is the fit on the same rows in memory."""

import traceback
import warnings

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpoutlier import Category, DPForest, DPGridKNN, DPMarginals, GridKNN, PrivateBounds
from dpoutlier.detectors.registry import DETECTOR_NAMES, detector_class
from dpoutlier.engines.expressions.values import value_frame
from dpoutlier.engines.registry import ENGINES as REGISTERED
from dpoutlier.engines.registry import query_engine_of
from dpoutlier.engines.spark import SparkEngine
from dpoutlier.exceptions import InvalidParameterError, PointsError, ReferenceDataError, UnsafeWarning
from dpoutlier.features.domain import Domain
from dpoutlier.model.file.manifest import arrays_of
from dpoutlier.model.file.version_1 import content_of
from dpoutlier.tables.identity import NO_ID
from dpoutlier.trusted import in_engine
from dpoutlier.trusted.engine_people import kept_frame
from dpoutlier.trusted.reference import UNREADABLE, in_silence, read_reference
from lazy_frames import EMBEDDED, ENGINES, SPECIAL, lazy

FEATURES = {
    "age": (0, 100),
    "dose.mg": (0, 5),
    "ward": Category(["a", "b", "c"]),
    "stage": Category([1, 2, 3], ordered=True),
}
DETECTORS = {
    "grid": (DPGridKNN, {"bins": [5, 4, 1, 1]}),
    "keyed grid": (DPGridKNN, {"bins": 2**20, "counts": "keyed"}),
    "sparse grid": (DPGridKNN, {"bins": [100, 100, 1, 1], "counts": "sparse"}),
    "grid by rule": (DPGridKNN, {"n_rows_hint": "estimate"}),
    "forest": (DPForest, {"n_rows_hint": 500}),
    "marginals": (DPMarginals, {"bins": [6, 3, 1, 1]}),
}


def test_every_detector_is_here():
    assert {kind for kind, _ in DETECTORS.values()} == set(map(detector_class, DETECTOR_NAMES))


def patients(n=600, seed=1, people=False):
    rng = np.random.default_rng(seed)
    columns = {
        "age": pa.array(rng.normal(60, 20, n), mask=rng.random(n) < 0.05),
        "dose.mg": pa.array(np.where(rng.random(n) < 0.1, rng.choice(SPECIAL, n), rng.gamma(2, 1, n))),
        "ward": pa.array([*rng.choice(["a", "b ", " c", "d", ""], n - 1), None]) if n else pa.array([], pa.string()),
        "stage": pa.array(rng.integers(1, 5, n), mask=rng.random(n) < 0.05),
    }
    if people:
        columns["id"] = pa.array(rng.integers(0, n // 3, n), mask=rng.random(n) < 0.05)
    return pa.table(columns)


def fitted(detector, rows, **more):
    kind, own = DETECTORS[detector]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsafeWarning)
        common = {"epsilon": 2, "features": FEATURES, "missing": ["age", "ward"], "unsafe_seed": 7}
        return kind(**{**common, **own, **more}).fit(rows)


def released(detector):
    """All that a model file would hold."""
    return content_of(detector.model_), {name: array.tolist() for name, array in arrays_of(detector.model_).items()}


@pytest.mark.parametrize("detector", DETECTORS)
@pytest.mark.parametrize("engine", ENGINES)
def test_the_model_is_that_of_the_same_rows_in_memory(engine, detector, request):
    table = patients()
    assert released(fitted(detector, lazy(engine, table, request))) == released(fitted(detector, table))


@pytest.mark.parametrize("detector", ["grid", "forest", "marginals"])
@pytest.mark.parametrize("engine", ENGINES)
def test_private_bounds_and_thresholds_are_those_of_the_same_rows_in_memory(engine, detector, request):
    table = patients().drop_columns(["ward", "stage"])
    bounds = {"age": PrivateBounds(0.2, (-1e6, 1e6)), "dose.mg": (0, 5)}
    more = {"features": bounds, "missing": ["age"], "target_fpr": 0.1, "tight_ranges": True}
    more |= {"bins": 6} if detector != "forest" else {}
    here, there = fitted(detector, table, **more), fitted(detector, lazy(engine, table, request), **more)
    assert released(there) == released(here)
    assert there.offset_ == here.offset_
    assert {charge.purpose for charge in there.model_.charges} == {"bounds", "counts", "threshold"}


@pytest.mark.parametrize("detector", ["grid", "forest"])
@pytest.mark.parametrize("engine", ENGINES)
def test_people_keep_the_same_rows_as_in_memory(engine, detector, request):
    table = patients(people=True)
    more = {"person": "id", "rows_per_person": 2, "target_fpr": 0.2}
    assert released(fitted(detector, lazy(engine, table, request), **more)) == released(fitted(detector, table, **more))


@pytest.mark.parametrize("engine", ENGINES)
def test_people_with_private_bounds_keep_the_same_rows_as_in_memory(engine, request):
    table = patients(people=True).select(["age", "dose.mg", "id"])
    bounds = {"age": PrivateBounds(0.2, (-1e6, 1e6)), "dose.mg": PrivateBounds(0.2, (-1e6, 1e6))}
    more = {"features": bounds, "missing": ["age"], "person": "id", "rows_per_person": 2, "bins": 6}
    assert released(fitted("grid", lazy(engine, table, request), **more)) == released(fitted("grid", table, **more))


@pytest.mark.parametrize("detector", ["grid", "grid by rule", "forest", "marginals"])
@pytest.mark.parametrize("engine", ENGINES)
def test_no_rows_is_a_normal_fit(engine, detector, request):
    empty = patients(people=True).slice(0, 0)
    more = {"target_fpr": 0.1, "person": "id"}
    assert released(fitted(detector, lazy(engine, empty, request), **more)) == released(fitted(detector, empty, **more))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_secret_model_estimates_its_threshold_where_the_rows_are(engine, request):
    table = patients()
    here, there = (fitted("keyed grid", rows, target_fpr=0.2) for rows in (table, lazy(engine, table, request)))
    assert released(there) == released(here)


# What is counted where ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_of_a_grid_only_counts_of_occupied_cells_come_back(engine, request, monkeypatch):
    """The engine hands over one row for each occupied cell, and no reference row."""
    came = []

    def watched(run):
        def of_query(self, query):
            came.append(run(self, query))
            return came[-1]

        return of_query

    for kind in {type(one) for one in REGISTERED if hasattr(one, "run")}:
        monkeypatch.setattr(kind, "run", watched(kind.run))
    monkeypatch.setattr(in_engine.EngineReference, "_streamed", pytest.fail)
    table = patients()
    detector = fitted("grid", lazy(engine, table, request))
    (answer,) = came
    exact = fitted("grid", table, epsilon=float("inf"))
    assert answer.num_rows == len(exact.model_.counts.ids) < len(table)
    assert answer.column_names == ["w0", "n"]
    assert sum(answer.column("n").to_pylist()) == len(table)
    assert detector.model_.counts.kind == "dense"


# People -------------------------------------------------------------------------------------------------------------------

LINES = Domain((0.0, 0.0), (1.0, 1.0), ("x", "y"), missing=(True, False))
WIDE = Domain((-1e6, 0.0), (1e6, 1.0), ("x", "y"), outer=((-1e6, 1e6), None))


def kept_in_memory(table, domain, most):
    rows = read_reference(table, domain, "who", most)
    return sorted(
        tuple(np.nan_to_num(row, nan=7e77)) for block in rows for row in np.column_stack(block.columns).tolist()
    )


def kept_in_engine(engine, table, domain, most, request=None):
    native = lazy(engine, table, request)
    found = query_engine_of(native)
    plain, types = found.plain(native, found.schema(native))
    frame = value_frame(plain, types, domain, "x2")
    kept = found.run(kept_frame(frame, domain, "x2", types["x2"], most))
    found = np.column_stack([np.asarray(kept.column(name).to_numpy(), np.float64) for name in ("v0", "v1")])
    return sorted(tuple(row) for row in np.nan_to_num(found, nan=7e77).tolist())


values = st.one_of(
    st.none(), st.sampled_from([0.0, -0.0, 0.25, 0.5, 2.0, np.nan, np.inf, -np.inf, 1e300]), st.floats(-2, 2)
)
names = st.one_of(
    st.none(),
    st.sampled_from(["p", "P", " p", "p\u3000", "q", "\x1cq\n", "Q q", *NO_ID, *map(str.upper, NO_ID), " NaN\t"]),
)
numbers = st.one_of(st.none(), st.integers(-2, 3), st.sampled_from([2**53, 2**53 + 1, -(2**63)]))
floats = st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.0, 0.1, np.nan, np.inf, -np.inf, 1e300]))
truths = st.one_of(st.none(), st.booleans())


@st.composite
def rows_of_people(draw):
    who, kind = draw(
        st.sampled_from([(names, pa.string()), (numbers, pa.int64()), (floats, pa.float64()), (truths, pa.bool_())])
    )
    rows = draw(st.lists(st.tuples(who, values, values), max_size=25))
    ids, x, y = list(zip(*rows)) or [(), (), ()]
    table = pa.table({"x": pa.array(x, pa.float64()), "y": pa.array(y, pa.float64()), "who": pa.array(ids, kind)})
    return table, draw(st.sampled_from([LINES, WIDE])), draw(st.integers(1, 3))


@settings(max_examples=50)
@given(rows_of_people())
def test_an_engine_keeps_the_rows_that_memory_keeps(case):
    table, domain, most = case
    wanted = kept_in_memory(table, domain, most)
    for engine in ("polars", "duckdb"):
        assert kept_in_engine(engine, table, domain, most) == wanted, engine


def test_spark_keeps_the_rows_that_memory_keeps(spark, request):
    @settings(max_examples=6)
    @given(rows_of_people())
    def check(case):
        table, domain, most = case
        assert kept_in_engine("spark", table, domain, most, request) == kept_in_memory(table, domain, most)

    check()


@pytest.mark.parametrize("engine", ["polars", "duckdb", "spark"])
def test_columns_that_are_called_like_ours_are_no_trouble(engine, request):
    table = patients(people=True).rename_columns(["age", "dpoutlier_p0", "w0", "n", "dpoutlier_who"])
    renamed = dict(zip(["age", "dpoutlier_p0", "w0", "n"], FEATURES.values(), strict=True))
    more = {"features": renamed, "missing": ["age", "w0"], "person": "dpoutlier_who", "rows_per_person": 2}
    assert released(fitted("grid", lazy(engine, table, request), **more)) == released(fitted("grid", table, **more))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_name_that_is_a_pattern_to_an_engine_is_a_name(engine, request):
    """Else the person would be another column, and nobody would be capped."""
    rng = np.random.default_rng(4)
    table = pa.table({"^x$": ["one"] * 200, "x": rng.random(200), "*": rng.random(200), "^.*$": rng.random(200)})
    more = {"features": {"x": (0, 1), "*": (0, 1), "^.*$": (0, 1)}, "missing": "error", "person": "^x$", "bins": 3}
    found = fitted("grid", lazy(engine, table, request), epsilon=float("inf"), **more)
    assert released(found) == released(fitted("grid", table, epsilon=float("inf"), **more))
    assert arrays_of(found.model_)["exact"].tolist() == [1]


def test_a_dask_frame_whose_rows_come_in_another_order_each_time_keeps_one_row_of_each():
    n = 4000
    frame = pd.DataFrame({"x": (np.arange(n) % 500 + 0.5) / 500, "id": np.arange(n) % 500})
    shuffled = dd.from_pandas(frame, npartitions=16).shuffle("id")
    more = {"features": {"x": (0, 1)}, "missing": "error", "person": "id", "bins": 500, "epsilon": float("inf")}
    assert set(arrays_of(fitted("grid", shuffled, **more).model_)["exact"].tolist()) == {1}


def test_a_collation_of_duckdb_makes_no_two_people_one(request):
    """Nor two levels one, be it that of a column or that of all text."""
    rows = [(0.1, "p", "a"), (0.2, "P", "A"), (0.3, "e", "a"), (0.4, "é", "b"), (0.4, "é", "b")]
    table = pa.table({name: list(column) for name, column in zip(("x", "who", "s"), zip(*rows), strict=True)})
    more = {"features": {"x": (0, 1), "s": Category(["a", "é"])}, "missing": "error", "person": "who", "bins": 10}
    wanted = released(fitted("grid", table, **more))
    for collation, column in (
        ("NOCASE", "VARCHAR"),
        ("C", "VARCHAR COLLATE NOCASE"),
        ("C", "VARCHAR COLLATE NOACCENT"),
    ):
        connection = duckdb.connect()
        connection.execute(
            f"SET default_collation = '{collation}'; CREATE TABLE t (x DOUBLE, who {column}, s {column})"
        )
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        assert released(fitted("grid", connection.table("t"), **more)) == wanted, column


def test_a_collation_of_spark_makes_no_two_people_one(spark):
    rows = "(0.1D, 'p', 'a'), (0.2D, 'P', 'A'), (0.3D, 'p', 'b')"
    frame = spark.sql(
        f"SELECT x, who COLLATE UTF8_LCASE AS who, s COLLATE UTF8_LCASE AS s FROM VALUES {rows} AS t(x, who, s)"
    )
    table = pa.table({"x": [0.1, 0.2, 0.3], "who": ["p", "P", "p"], "s": ["a", "A", "b"]})
    more = {"features": {"x": (0, 1), "s": Category(["a", "b"])}, "missing": "error", "person": "who", "bins": 10}
    assert released(fitted("grid", frame, **more)) == released(fitted("grid", table, **more))


# Refusals -----------------------------------------------------------------------------------------------------------------


def _refuse(_rows):
    raise ValueError("a row was read")


def never_read(engine, types, request):
    """A lazy frame of these types that fails as soon as a row is read."""
    match engine:
        case "polars":
            schema = pl.from_arrow(pa.table({name: pa.array([], kind) for name, kind in types.items()})).schema
            return pl.LazyFrame(schema=schema).map_batches(_refuse, schema=schema)
        case "duckdb":
            kinds = {
                pa.float64(): "DOUBLE",
                pa.string(): "VARCHAR",
                pa.timestamp("us"): "TIMESTAMP",
                pa.binary(): "BLOB",
            }
            columns = ", ".join(f"error('a row was read')::{kinds[kind]} AS \"{name}\"" for name, kind in types.items())
            return duckdb.connect().sql(f"SELECT {columns} FROM range(3)")
        case "dask":
            meta = pa.table({name: pa.array([], kind) for name, kind in types.items()}).to_pandas()
            return dd.from_pandas(pd.DataFrame({"a": [1.0]}), npartitions=1).map_partitions(_refuse, meta=meta)
        case "spark":
            kinds = {
                pa.float64(): "double",
                pa.string(): "string",
                pa.timestamp("us"): "timestamp",
                pa.binary(): "binary",
            }
            columns = ", ".join(
                f"cast(raise_error('a row was read') as {kinds[kind]}) as `{name}`" for name, kind in types.items()
            )
            return request.getfixturevalue("spark").sql(f"SELECT {columns} FROM range(3)")
    raise AssertionError(engine)


NUMBER, TEXT, TIME, BYTES = pa.float64(), pa.string(), pa.timestamp("us"), pa.binary()


@pytest.mark.parametrize(
    ("types", "more", "text"),
    [
        ({"x": NUMBER}, {}, "bounds without a column: \\['s'\\]"),
        ({"x": NUMBER, "s": TEXT, "z": NUMBER}, {}, "columns without bounds: \\['z'\\]"),
        ({"x": TEXT, "s": TEXT}, {}, "column 'x' has type String; a feature must be a number"),
        ({"x": TIME, "s": TEXT}, {}, "column 'x' has type Datetime.*; a feature must be a number"),
        ({"x": NUMBER, "s": TIME}, {}, "column 's' has type Datetime.*; levels must be text or numbers"),
        (
            {"x": NUMBER, "s": TEXT},
            {"features": {"x": (0, 1), "s": Category([1, 2])}},
            "column 's' has type String; its levels are numbers",
        ),
        (
            {"x": NUMBER, "s": TEXT, "who": TIME},
            {"person": "who"},
            "column 'who', which identifies people, has type Datetime",
        ),
        ({"x": NUMBER, "s": TEXT}, {"person": "who"}, "person must be the name of a column"),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_column_that_is_missing_or_of_a_wrong_type_is_refused_before_any_row_is_read(
    engine, types, more, text, request
):
    frame = never_read(engine, types, request)
    detector = DPGridKNN(epsilon=1, **{"features": {"x": (0, 1), "s": Category(["a"])}, "bins": 3, **more})
    with pytest.raises(InvalidParameterError, match=text):
        detector.fit(frame)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("detector", [DPGridKNN, DPMarginals])
def test_what_an_engine_says_of_a_row_is_withheld(engine, detector, request):
    frame = never_read(engine, {"x": NUMBER}, request)
    with pytest.raises(ReferenceDataError) as caught:
        detector(epsilon=1, features=(0, 1), bins=3).fit(frame)
    assert str(caught.value) == UNREADABLE
    assert caught.value.__context__ is None
    assert (
        "a row was read"
        not in "".join(traceback.format_exception(caught.value, chain=True)).split("ReferenceDataError", 1)[1]
    )


def test_a_lazy_frame_of_an_unknown_engine_is_refused(monkeypatch):
    monkeypatch.setattr("dpoutlier.engines.registry.engine_of", lambda _: None)
    with pytest.raises(InvalidParameterError, match="a lazy frame of polars is not supported"):
        DPGridKNN(epsilon=1, features=(0, 1), bins=3).fit(pl.LazyFrame({"x": [0.5]}))


@pytest.mark.parametrize("engine", EMBEDDED)
def test_points_in_a_lazy_frame_are_refused_with_a_remedy(engine):
    table = pa.table({"x": [0.5]})
    detector = GridKNN(features=(0, 1)).fit(table)
    with pytest.raises(TypeError, match="Use score_frame"):
        detector.outlier_scores(lazy(engine, table))


def test_columns_whose_names_differ_in_case_only_are_refused_where_they_are_one():
    frame = duckdb.connect().sql("SELECT 0.1 AS x, 0.9 AS y").select("x, y AS X")
    detector = DPGridKNN(epsilon=1, features={"x": (0, 1), "X": (0, 1)}, bins=3)
    if sorted(frame.columns) == ["X", "x"]:
        with pytest.raises(InvalidParameterError, match="differ only in upper and lower case"):
            detector.fit(frame)
        with pytest.raises(PointsError, match="more than one column named"):
            detector.fit(frame.to_arrow_table()).score_frame(frame)


@pytest.mark.parametrize("kind", ["category of numbers", "unknown categories"])
def test_categories_of_dask_that_are_no_text_are_refused_before_any_row_is_read(kind):
    values = [1.0, 2.0, None] if kind == "category of numbers" else ["1", "2", None]
    frame = dd.from_pandas(pd.DataFrame({"s": pd.Categorical(values)}), npartitions=1)
    frame = frame if kind == "category of numbers" else frame.assign(s=frame["s"].cat.as_unknown())
    with pytest.raises(InvalidParameterError, match="column 's' holds categories that are not known to be text"):
        DPGridKNN(epsilon=1, features={"s": Category(["1", "2"])}, bins=2).fit(frame)


def test_a_schema_that_cannot_be_had_says_nothing_of_a_row(tmp_path):
    (tmp_path / "rows.ndjson").write_text('{"x":0.1}\n{"x":secret9}\n')
    with pytest.raises(InvalidParameterError, match="could not be determined") as caught:
        DPGridKNN(epsilon=1, features={"x": (0, 1)}, bins=3).fit(pl.scan_ndjson(tmp_path / "rows.ndjson"))
    assert "secret9" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None


def test_a_stream_of_spark_is_refused(spark):
    stream = spark.readStream.format("rate").load().selectExpr("CAST(value AS DOUBLE) AS x")
    with pytest.raises(InvalidParameterError, match="a Spark stream was passed"):
        DPMarginals(epsilon=1, features=(0, 9), bins=3).fit(stream)


def test_an_interrupted_query_is_an_interrupt():
    def interrupted():
        raise RuntimeError("Query interrupted")

    with pytest.raises(KeyboardInterrupt):
        in_silence(interrupted)


@pytest.mark.parametrize("detector", ["grid", "forest", "marginals"])
def test_spark_without_dpoutlier_on_the_executors_counts_by_expressions(spark, detector, monkeypatch):
    monkeypatch.setattr(SparkEngine, "workers_have", lambda *given: False)
    monkeypatch.setattr(SparkEngine, "map_tables", pytest.fail)
    table = patients(300)
    assert released(fitted(detector, spark.createDataFrame(table))) == released(fitted(detector, table))


@pytest.mark.parametrize("more", [{"features": PrivateBounds(0.1, (0, 9))}, {"target_fpr": 0.1}])
def test_what_needs_dpoutlier_on_the_executors_of_spark_is_refused_before_any_row_is_read(
    spark, more, monkeypatch, request
):
    monkeypatch.setattr(SparkEngine, "workers_have", lambda *given: False)
    with pytest.raises(InvalidParameterError, match="on Spark needs dpoutlier on the workers"):
        DPMarginals(epsilon=1, **{"features": (0, 9), "bins": 3, **more}).fit(
            never_read("spark", {"x": NUMBER}, request)
        )


def test_the_probe_of_spark_tells_what_is_there_from_what_is_not(spark):
    frame = spark.range(1)
    assert SparkEngine().workers_have(frame, "dpoutlier")
    assert not SparkEngine().workers_have(frame, "no_such_module")


def test_objects_of_dask_are_refused_before_any_row_is_read():
    frame = dd.from_pandas(pd.DataFrame({"a": [1.0]}), npartitions=1).map_partitions(_refuse, meta={"s": object})
    with pytest.raises(InvalidParameterError, match="column 's'"):
        DPGridKNN(epsilon=1, features={"s": Category(["a"])}, bins=2).fit(frame)
