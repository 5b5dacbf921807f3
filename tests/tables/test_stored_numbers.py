"""A stored number becomes the nearest float64, once and in the same way for every way in: types of every engine, at ties too."""

import itertools
import random
from decimal import Decimal

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from dpoutlier import Category, DPForest, DPGridKNN, DPMarginals, Ledger, PrivateBounds
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.model.file.manifest import arrays_of
from dpoutlier.trusted.on_cluster import ClusterReference
from dpoutlier.trusted.open import open_reference
from dpoutlier.trusted.reference import Reference
from stored_types import LAZY, REFUSED, STORED, TYPES, Stored, table_of

SEED = 7
SOME_ON_SPARK = ("int64", "decimal(38, 15)")
"""A query takes long there: of whole fits two types must do, and the others are seen value by value."""
pytestmark = pytest.mark.filterwarnings("ignore::dpoutlier.exceptions.UnsafeWarning")


SCORED = ("pandas", "polars", "arrow", "dataset", "polars lazy", "duckdb", "dask", "spark")


def is_fitted(stored):
    return stored.inexact and (stored.way != "spark" or stored.name in SOME_ON_SPARK)


def fast_some(chosen, some=("int64", "Int64", "BIGINT", "HUGEINT", "Int128", "decimal(38, 15)")):
    """Some types of each way; all others are marked slow."""
    return [pytest.param(one, id=str(one), marks=[] if one.base in some else pytest.mark.slow) for one in chosen]


def nearest(stored):
    """Its numbers as floats, as Python rounds them."""
    values = [own for own in stored.values() if own is not None or stored.way != "numpy"]
    if stored.name == "longdouble":
        return np.array([float(np.longdouble(own)) for own in values])
    return np.array([np.nan if own is None else float(own) for own in values])


def opened(detector, rows):
    """What a fit would read of the rows."""
    declared = detector._declared()
    table = detector._table(rows, declared)
    return open_reference(table, detector._plan(detector._declared_domain(table, declared), declared._share()))


def values_seen(readings):
    """All values that a fit sees, sorted: engines may give rows in any order."""
    reference = readings._reference if hasattr(readings, "_reference") else None
    if reference is None and isinstance(readings, ClusterReference):
        table = readings._frame.to_native().toArrow()
        return np.sort(table.column("v0").to_numpy())
    reference = readings._streamed()._reference if reference is None else reference
    assert isinstance(reference, Reference)
    return np.sort(np.concatenate([np.asarray(block.columns[0], np.float64) for block in reference]))


@pytest.mark.parametrize("stored", STORED, ids=str)
def test_a_number_of_any_type_is_the_nearest_float(stored, tmp_path, request):
    rows = table_of(stored, stored.values(), folder=tmp_path, request=request)
    seen = values_seen(opened(DPGridKNN(1, features=(0, 16), bins=16, k=1), rows))
    assert np.array_equal(seen, np.sort(nearest(stored)), equal_nan=True)


def fits(rows, low, high, **more):
    """All that seeded fits of three detectors hold, with bounds and thresholds that are estimated."""
    common = {"unsafe_seed": SEED, "n_jobs": 1, **more}
    wide = PrivateBounds(0.2, (low, high))
    found = []
    for detector in (
        DPGridKNN(1, features=(low, high), bins=64, k=2, target_fpr=0.2, **common),
        DPForest(1, features=wide, n_rows_hint=100, target_fpr=0.2, **common),
        DPMarginals(1, features=(low, high), bins=64, **common),
    ):
        model = detector.fit(rows).model_
        bounds = model.domain.lower, model.domain.upper
        found.append((bounds, {name: array.tolist() for name, array in arrays_of(model).items()}))
    return found


def finite_range(floats):
    finite = floats[np.isfinite(floats)]
    low, high = float(finite.min()), float(finite.max())
    return (low, high) if np.isfinite(high - low) and high - low < 1e300 else (-10.0, 10.0)


@pytest.mark.parametrize("stored", fast_some(one for one in STORED if is_fitted(one)))
def test_a_fit_is_the_one_on_the_nearest_floats(stored, tmp_path, request):
    """All types whose numbers a float64 cannot hold: the same models, to the bit, with ids and without."""
    floats = nearest(stored)
    low, high = finite_range(floats)
    oracle = floats.reshape(-1, 1)
    rows = table_of(stored, stored.values(), folder=tmp_path, request=request)
    assert fits(rows, low, high) == fits(oracle, low, high)
    if stored.way in {"list", "numpy"}:
        return
    ids = [i // 3 for i in range(len(floats))]
    rows = table_of(stored, stored.values(), ids, tmp_path, request)
    people = {"person": "id", "rows_per_person": 2}
    bounds = {"x": (low, high)}
    here = [
        kind(1, features=bounds, unsafe_seed=SEED, **own, **people).fit(table)
        for table in (rows, pa.table({"x": floats, "id": ids}))
        for kind, own in ((DPMarginals, {"bins": 64}), (DPGridKNN, {"bins": 64}))
    ]
    assert all(
        arrays_of(a.model_)["counts"].tolist() == arrays_of(b.model_)["counts"].tolist()
        for a, b in zip(here[:2], here[2:], strict=True)
    )


# Neighbours ---------------------------------------------------------------------------------------------------------------


def tied(stored):
    """Pairs of numbers of this type that are next to each other, at the edge of a cell of (0, 16) or of integers past 2**53.

    (values of everyone, value of one person more, bounds)
    """
    precision, scale = stored.decimal or (0, 0)
    if scale >= 2 and precision > scale:
        unit = Decimal(1).scaleb(-scale)
        return [9 - 2 * unit, 9 - unit, 9 + unit], 1, (0.0, 16.0)
    if scale:
        unit = Decimal(1).scaleb(-scale)
        return [Decimal("0.5") - 2 * unit, Decimal("0.5") - unit], Decimal("0.1"), (0.0, 1.0)
    if precision == 38 or "64" in stored.name or "BIGINT" in stored.name:
        top = 2**53 if precision < 38 else 2**70 + 2**17
        step = 1 if precision < 38 else 2**16
        return (
            [top + step, top + 2 * step, top + 3 * step, top + 3 * step + 1],
            top,
            (float(top), float(top + 64 * step)),
        )
    return None


TIED = [one for one in STORED if is_fitted(one) and one.way not in {"list", "numpy"} and tied(one) is not None]


def l1(one, other):
    """Change of all counts together."""
    cells = [{tuple(cell): int(n) for cell, n in zip(own.ids.tolist(), own.counts)} for own in (one, other)]
    return sum(abs(cells[0].get(cell, 0) - cells[1].get(cell, 0)) for cell in {*cells[0], *cells[1]})


def shuffled_people(values, n_people, seed):
    rows = [(value, person) for person in range(n_people) for value in values]
    random.Random(seed).shuffle(rows)
    return rows


@pytest.mark.parametrize("stored", fast_some(TIED, ("HUGEINT", "Int128", "decimal(38, 15)")))
def test_one_person_more_changes_no_others_counts_at_ties(stored, tmp_path, request):
    """Everyone has rows that are next to each other; one row of each stays. Counts change by one row, whoever else comes."""
    near, own, (low, high) = tied(stored)
    people = {"person": "id", "rows_per_person": 1, "n_jobs": 1, "unsafe_seed": SEED}
    base = shuffled_people(near, 200, 1)
    for arrival in range(1 if stored.way == "spark" else 2):  # where the new row stands must not matter either
        more = [*base]
        more.insert(arrival * len(base) // 2, (own, 10_000))
        worlds = [
            table_of(stored, [v for v, _ in rows], [i for _, i in rows], _sub(tmp_path, name), request)
            for name, rows in (("here", base), ("there", more))
        ]
        for kind, arguments in (
            (DPGridKNN, {"bins": 16, "k": 1}),
            (DPForest, {"n_rows_hint": 500, "n_trees": 4, "depth": 3}),
            (DPMarginals, {"bins": 16}),
        ):
            detector = kind(1, features={"x": (low, high)}, **arguments, **people)
            model = detector.fit(worlds[0]).model_
            one, other = (opened(detector, rows) for rows in worlds)
            assert l1(one.counts(model.partition, 1), other.counts(model.partition, 1)) <= model.partition.cells_per_row
            levels = model.scorer.levels(model.partition, model.counts, 20, 0.02)
            scores = [own.score_counts(model, levels, 1) for own in (one, other)]
            assert np.abs(scores[0] - scores[1]).sum() <= 1
        wide = DPMarginals(1, features={"x": PrivateBounds(0.2, (low, high))}, bins=16, **people)
        edges = [opened(wide, rows).edge_counts({0: (low, high)}).between(0) for rows in worlds]
        assert np.abs(edges[0] - edges[1]).sum() <= 1


def _sub(folder, name):
    (folder / name).mkdir(exist_ok=True)
    return folder / name


def test_people_with_decimals_that_differ_in_the_last_digit(tmp_path):
    """The attack that broke the promise: 1,000 people with two values each, and one person more, who lies far away.

    Before, the engine put a person's rows in order by its own cast, and Arrow's cast put tied rows into different cells: the counts
    of others changed by up to 13 rows.
    """
    values = [Decimal("8.999999999999999"), Decimal("8.999999999999998")]
    rows = shuffled_people(values, 1000, 3)
    stored = Stored("duckdb", "decimal(38, 15)", "DECIMAL(38,15)")
    detector = DPMarginals(1, features={"x": (0, 16)}, bins=16, person="id", rows_per_person=1)
    for own in (1000, -1, 500_000):
        counts = []
        for table in (rows, [*rows, (1, own)]):
            relation = table_of(stored, [v for v, _ in table], [i for _, i in table])
            model = DPMarginals(1, features={"x": (0, 16)}, bins=16).fit(relation.project("x")).model_
            counts.append(opened(detector, relation).counts(model.partition, 1))
        assert l1(*counts) <= 1


# Scores -------------------------------------------------------------------------------------------------------------------


def scores_of(frame):
    """Scores by id, from whatever kind of frame ``score_frame`` gives."""
    if hasattr(frame, "read_all"):
        frame = frame.read_all()
    for collect in ("toArrow", "collect", "compute", "to_arrow_table"):
        if hasattr(frame, collect) and not isinstance(frame, pa.Table):
            frame = getattr(frame, collect)()
            break
    order = np.argsort(np.asarray(frame["id"]))
    return np.asarray(frame["outlier_score"])[order]


@pytest.mark.parametrize("stored", fast_some(one for one in STORED if is_fitted(one) and one.way in SCORED))
def test_a_score_is_that_of_the_nearest_float(stored, tmp_path, request):
    values = [own for own in stored.values() if own is not None]
    floats = np.array([float(own) for own in values])
    low, high = finite_range(floats)
    detector = DPMarginals(1, features={"x": (low, high)}, bins=2**16).fit(pa.table({"x": floats}))
    rows = table_of(stored, values, list(range(len(values))), tmp_path, request)
    assert np.array_equal(scores_of(detector.score_frame(rows)), detector.outlier_scores(pa.table({"x": floats})))
    if stored.way == "duckdb":
        query = detector.export_scores(tmp_path / "terms.parquet", table="rows")
        kept = rows.query("rows", query).order("id").to_arrow_table()
        assert kept.column("outlier_score").to_pylist() == detector.outlier_scores(pa.table({"x": floats})).tolist()


# Levels, and what is accepted ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", LAZY)
def test_numbers_that_are_levels_are_found_by_the_same_float(way, request):
    """0.1 as a decimal is the level 0.1, and so is it in text."""
    kind = (
        "DECIMAL(38,15)" if way == "duckdb" else pl.Decimal(38, 15) if way == "polars lazy" else pa.decimal128(38, 15)
    )
    kind = TYPES["dask"]["pyarrow decimal(38, 15)"] if way == "dask" else kind
    values = [Decimal("0.1"), Decimal("0.100000000000001"), Decimal(3), Decimal("8.999999999999999"), None]
    rows = table_of(Stored(way, "decimal(38, 15)", kind), values, request=request)
    for category in (Category([0.1, 3, 8.999999999999998]), Category(["0.1", "3"])):
        seen = values_seen(opened(DPMarginals(1, features={"x": category}, bins=1), rows))
        wanted = [category.code(own) for own in values]
        assert np.array_equal(
            seen, np.sort([np.nan if code is None else code + 0.5 for code in wanted]), equal_nan=True
        )


@pytest.mark.parametrize("stored", REFUSED, ids=str)
def test_what_an_engine_cannot_convert_is_refused_by_its_type_and_costs_nothing(stored, tmp_path):
    ledger = Ledger.create(tmp_path / "budget.ledger")
    ledger.open_budget("rows", epsilon=1)
    with pytest.raises(InvalidParameterError, match=r"Convert (it|them) in the query"):
        DPMarginals(1, features=(0, 1), bins=4, ledger=ledger, dataset="rows").fit(table_of(stored, [None]))
    assert ledger.balance("rows").spent == 0


def test_every_numeric_type_of_every_engine_is_in_the_table():
    """A type that a newer engine has must find its place here, or be refused."""
    known = duckdb.sql("SELECT DISTINCT type_name FROM duckdb_types() WHERE type_category = 'NUMERIC'").fetchall()
    logical = {str(duckdb.type(name)) for (name,) in known if not name.startswith(("decimal", "dec", "numeric"))}
    ours = {str(duckdb.type(name)) for name in TYPES["duckdb"] if not name.startswith("decimal")}
    assert logical - ours <= {"BIGNUM", "VARINT"}  # of any size: not a number to narwhals, and refused
    whole = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    floats = {"halffloat", "float", "double"}
    assert whole | floats <= set(TYPES["arrow"])
    made = {name for name in dir(pa) if name.startswith("decimal") and name[7:].isdigit()}
    assert made == {"decimal32", "decimal64", "decimal128", "decimal256"}
    assert {str(kind) for kind in pl.datatypes.group.NUMERIC_DTYPES} - {"Decimal"} <= set(TYPES["polars"])


def test_the_numeric_types_of_spark_are_in_the_table(spark):
    from pyspark.sql import types

    found = {
        kind.__name__
        for kind in itertools.chain(types.IntegralType.__subclasses__(), types.FractionalType.__subclasses__())
    }
    assert found == {"ByteType", "ShortType", "IntegerType", "LongType", "FloatType", "DoubleType", "DecimalType"}
    kinds = [one.kind for one in STORED if one.way == "spark"]
    made = spark.createDataFrame(pa.table({f"x{j}": pa.array([], kind) for j, kind in enumerate(kinds)}))
    assert {type(field.dataType).__name__ for field in made.schema.fields} == {*found, "BooleanType"}
