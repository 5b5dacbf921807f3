"""Score tables: what DuckDB makes of them equals what the library says, to the bit."""

import json
import math
import stat
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from dpoutlier import Category, DPForest, DPGridKNN, DPMarginals, Forest, GridKNN, Marginals, load
from dpoutlier.cli.app import app
from dpoutlier.exceptions import InvalidParameterError, OutputExistsError, PointsError, SecretError
from dpoutlier.features.category import NUMBER, text_of
from dpoutlier.model.release_id import release_id
from dpoutlier.partitions.members import CutAxis, EvenAxis
from dpoutlier.tables.rows import Rows

BOUNDS = {"a": (-1.5, 2.25), "b": (0.1, 0.7), "c": (-1e300, 1e300), "d": (1e-290, 3e-290)}
LEVELS = ["true", "1", "2.5", "it's", "a\\b", "1e+20", "nan", "é"]
KINDS = {
    "text": LEVELS,
    "number": [0, 1, 2.5, -3, 1e20],
    "ordered": Category(["low", "mid", "high"], ordered=True),
    "closed": Category(["x", "y", "1"], other=False),
}
SPECIAL = [0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, 1.7976931348623157e308, math.inf, -math.inf, 1.0, -1.0]
BLANK = "".join(c for c in map(chr, range(0x3001)) if c.isspace())


def fitted(make, missing, kinds=False):
    bounds = {"a": (-1.5, 2.25), "b": (0.1, 0.7)} if kinds else BOUNDS
    random = np.random.default_rng(4)
    columns = {name: random.uniform(low, high, 400) for name, (low, high) in bounds.items()}
    if kinds:
        columns["text"] = random.choice([*LEVELS, "else", ""], 400)
        columns["number"] = random.choice([0.0, 1.0, 2.5, -3.0, 1e20, 7.0], 400)
        columns["ordered"] = random.choice(["low", "mid", "high", "?"], 400)
        columns["closed"] = random.choice(["x", "y", "1", "?"], 400)
    table = pa.table(columns)
    return make(features=bounds, categories=KINDS if kinds else None, missing=missing).fit(table)


MAKERS = {
    "DPForest": lambda **kw: DPForest(1, n_trees=6, depth=9, subspace=(4, 2, 1), target_fpr=0.1, **kw),
    "Forest": lambda **kw: Forest(n_trees=5, depth=12, target_fpr=0.1, **kw),
    "DPMarginals": lambda **kw: DPMarginals(1, bins=7, target_fpr=0.1, **kw),
    "Marginals": lambda **kw: Marginals(bins=65536 // 8, target_fpr=0.1, **kw),
}
MISSING = {"none": "error", "all": "cell", "some": ["a"]}


def in_sql(detector, points, folder, table="points"):
    """The rows that the SQL gives, as dicts."""
    query = detector.export_scores(folder / "terms.parquet", table=table, overwrite=True, secret=True)
    with duckdb.connect() as connection:
        connection.register("given", points)
        quoted = table.replace('"', '""')
        connection.execute(f'CREATE TABLE "{quoted}" AS SELECT * FROM given')
        result = connection.execute(query)
        names = [column[0] for column in result.description]
        rows = [dict(zip(names, row, strict=True)) for row in result.fetchall()]
        assert connection.execute(f'SELECT count(*) FROM "{quoted}"').fetchone() == (len(points),)
    return rows


def assert_equal(detector, points, folder, table="points"):
    """All that the SQL adds, beside the library, row by row. Rows that the library refuses have no score."""
    rows = in_sql(detector, points, folder, table)
    assert [row["dpoutlier_row"] for row in rows] == list(range(1, len(points) + 1))
    scored = np.array([row["outlier_score"] is not None for row in rows], bool)
    for i in np.flatnonzero(~scored).tolist():
        assert rows[i]["prediction"] is rows[i]["score_samples"] is None
        with pytest.raises(PointsError, match="missing value or"):
            detector.outlier_scores(points.slice(i, 1))
    known = points.filter(pa.array(scored))
    kept = [row for row, whole in zip(rows, scored) if whole]
    expected = {
        "outlier_score": detector.outlier_scores(known),
        "score_samples": detector.score_samples(known),
        "prediction": detector.predict(known),
        "outside_bounds": detector.outside_bounds(known),
    }
    for name, values in expected.items():
        assert [row[name] for row in kept] == values.tolist(), name
    return scored


def edges(detector, feature):
    """Values of a feature on both sides of every edge of every member, by bisection of the floats."""
    model = detector.model_
    found = {model.domain.lower[feature], model.domain.upper[feature]}
    at = set()
    for member in model.partition.members:
        for axis in member.axes:
            if axis.feature == feature and isinstance(axis, CutAxis):
                at.update(axis.cuts)
            if axis.feature == feature and isinstance(axis, EvenAxis):
                at.update(-(-(i << 32) // axis.bins) for i in range(1, min(axis.bins, 40)))
    for cut in at:
        found.add(model.domain.lower[feature] + cut / model.domain.scales[feature])
    beside = [np.nextafter(value, side) for value in found for side in (-np.inf, np.inf)]
    further = [np.nextafter(value, side) for value in beside for side in (-np.inf, np.inf)]
    return sorted({*found, *map(float, beside), *map(float, further)})


@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("name", MAKERS)
def test_scores_in_sql_are_those_of_the_library_at_every_edge(name, missing, tmp_path):
    detector = fitted(MAKERS[name], MISSING[missing])
    random = np.random.default_rng(1)
    values = [[*edges(detector, j), *SPECIAL, math.nan, None] for j in range(4)]
    longest = max(map(len, values))
    columns = [random.permutation(np.array((own * longest)[:longest], object)) for own in values]
    points = pa.table([pa.array(column.tolist(), pa.float64()) for column in columns], list(BOUNDS))
    scored = assert_equal(detector, points, tmp_path)
    assert scored.sum() > 0
    assert (missing == "all") == scored.all()


def test_the_edges_of_this_test_part_cells():
    detector = fitted(MAKERS["DPForest"], "error")
    values = np.array(edges(detector, 0))
    positions = np.zeros((len(values), 4), np.uint32)
    positions[:, 0] = Rows([values] * 4, detector.model_.domain)[:][:, 0]
    cells = detector.model_.partition.cells(positions)[..., 1]
    cuts = {cut for m in detector.model_.partition.members for p in m.axes if p.feature == 0 for cut in p.cuts}
    assert len(np.unique(cells, axis=0)) == len(cuts) + 1


numbers = st.one_of(
    st.floats(-2, 3), st.floats(allow_nan=True, allow_infinity=True), st.sampled_from(SPECIAL), st.none()
)


@pytest.fixture(scope="module")
def detectors():
    return {
        (name, missing, kinds): fitted(MAKERS[name], MISSING[missing], kinds)
        for name in MAKERS
        for missing in ("all", "some")
        for kinds in (False, True)
    }


@settings(max_examples=40)
@given(data=st.data())
def test_any_numbers_score_in_sql_as_in_the_library(data, detectors, tmp_path_factory):
    detector = detectors[data.draw(st.sampled_from(list(MAKERS))), data.draw(st.sampled_from(["all", "some"])), False]
    rows = data.draw(st.lists(st.tuples(*[numbers] * 4), min_size=1, max_size=20))
    points = pa.table([pa.array(column, pa.float64()) for column in zip(*rows)], list(BOUNDS))
    assert_equal(detector, points, tmp_path_factory.mktemp("sql"))


blanks = st.text(BLANK, max_size=2)
texts = st.builds(
    lambda before, text, after: before + text + after,
    blanks,
    st.one_of(
        st.sampled_from(
            [*LEVELS, "low", "mid", "high", "x", "y", "1", "1.0", "+1", "01", "1e0", "10e-1", "1.", "-0", ".25e1"]
        ),
        st.sampled_from(
            [
                "",
                "1_0",
                "-3",
                "-3.00",
                "1e20",
                "100000000000000000000",
                "inf",
                "-Infinity",
                "NaN",
                "1e999",
                "\uff11",
                "0x1",
                "1 0",
            ]
        ),
        st.from_regex(NUMBER, fullmatch=True),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    ),
    blanks,
)


@pytest.mark.slow
@settings(max_examples=60)
@given(data=st.data())
def test_any_text_is_the_level_in_sql_that_it_is_in_the_library(data, detectors, tmp_path_factory):
    detector = detectors[data.draw(st.sampled_from(list(MAKERS))), data.draw(st.sampled_from(["all", "some"])), True]
    level = st.one_of(texts, st.none())
    rows = data.draw(st.lists(st.tuples(numbers, numbers, level, level, level, level), min_size=1, max_size=20))
    kinds = [pa.float64()] * 2 + [pa.string()] * 4
    points = pa.table([pa.array(c, k) for c, k in zip(zip(*rows), kinds)], list(detector.model_.domain.names))
    assert_equal(detector, points, tmp_path_factory.mktemp("sql"))


TYPED = [
    pa.array([0, 1, 2, -3, None, 100], pa.int8()),
    pa.array([0, 1, 2**53 + 1, 2**62, None, 100], pa.int64()),
    pa.array([0, 1, 2, 3, None, 2**64 - 1], pa.uint64()),
    pa.array([1.0, 2.5, -0.0, math.nan, None, 1e20], pa.float64()),
    pa.array([1.0, 2.5, 0.1, math.nan, None, 1e20], pa.float32()),
    pa.array([True, False, True, None, True, True], pa.bool_()),
    pa.array(
        [Decimal("1.00"), Decimal("2.50"), None, Decimal("-3.00"), Decimal("0.00"), Decimal("9.00")],
        pa.decimal128(9, 2),
    ),
    pa.array(["1", "2.5 ", None, "nan", "", " true"], pa.string()).dictionary_encode(),
    pa.array(["1", "2.5 ", None, "nan", "", " true"], pa.large_string()),
    pa.array([None] * 6, pa.null()),
]


@pytest.mark.parametrize("column", TYPED, ids=lambda column: str(column.type).split("<")[0])
@pytest.mark.parametrize("name", ["DPForest", "DPMarginals"])
def test_columns_of_all_types_have_the_same_levels(name, column, detectors, tmp_path):
    detector = detectors[name, "all", True]
    level = ["low"] * 6
    points = pa.table(
        [pa.array([0.5] * 6)] * 2 + [column, column, pa.array(level), column], list(detector.model_.domain.names)
    )
    assert_equal(detector, points, tmp_path)


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.int64(), pa.uint64(), pa.float32(), pa.bool_(), pa.decimal128(9, 2)], ids=str
)
@pytest.mark.parametrize("name", ["DPForest", "DPMarginals"])
def test_columns_of_all_types_have_the_same_positions(name, kind, detectors, tmp_path):
    detector = detectors[name, "all", False]
    column = pa.array([True, False, None]) if kind == pa.bool_() else pa.array([0, 1, 2, None, 100], kind)
    if pa.types.is_integer(kind) and kind.bit_width == 64:
        column = pa.concat_arrays([column, pa.array([2**53 + 1, 2**63 - 1], kind)])
    assert_equal(detector, pa.table([column] * 4, list(BOUNDS)), tmp_path)


def test_names_and_levels_cannot_leave_their_quotes(tmp_path):
    names = ['a"; DROP TABLE points; --', "x' OR '1'='1", "has space", "ünï ${x} {y} %s", "select"]
    levels = ["'); DROP TABLE points; --", 'say "so"', "a\\'b", "''", "$$", "*/"]
    random = np.random.default_rng(3)
    columns = [random.uniform(0, 1, 60) for _ in names[:-1]] + [random.choice(levels, 60)]
    table = pa.table([pa.array(column) for column in columns], names)
    bounds = dict.fromkeys(names[:-1], (0, 1))
    for make in (
        DPForest(1, n_trees=4, depth=6, features=bounds, categories={"select": levels}, target_fpr=0.1),
        DPMarginals(1, features=bounds, categories={"select": levels}, target_fpr=0.1),
    ):
        detector = make.fit(table)
        scored = assert_equal(detector, table, tmp_path, table="my \"points\"; DROP TABLE 'x'; --")
        assert scored.all()
        assert len({row["outlier_score"] for row in in_sql(detector, table, tmp_path)}) > 5


def test_other_columns_and_the_order_of_rows_stay(tmp_path):
    detector = fitted(MAKERS["DPForest"], "error")
    random = np.random.default_rng(0)
    n = 5000
    columns = {
        "id": [f"r{i}" for i in range(n)],
        **{name: random.uniform(*BOUNDS[name], n) for name in reversed(BOUNDS)},
    }
    rows = in_sql(detector, pa.table(columns), tmp_path)
    assert [row["id"] for row in rows] == columns["id"]
    points = np.stack([columns[name] for name in BOUNDS], axis=1)
    assert [row["outlier_score"] for row in rows] == detector.outlier_scores(points).tolist()
    assert list(rows[0]) == [
        "dpoutlier_row",
        *columns,
        "outside_bounds",
        "outlier_score",
        "score_samples",
        "prediction",
    ]


def test_no_points_give_no_scores(tmp_path):
    assert (
        in_sql(fitted(MAKERS["DPForest"], "error"), pa.table({n: pa.array([], pa.float64()) for n in BOUNDS}), tmp_path)
        == []
    )


@pytest.mark.parametrize("threshold", [math.inf, -math.inf, "a score", None])
def test_predictions_follow_the_threshold_and_ties_are_inliers(threshold, tmp_path):
    detector = DPMarginals(1, bins=4, features={"a": (0, 1)}).fit([[0.1], [0.1], [0.9]] * 20)
    points = pa.table({"a": [0.1, 0.3, 0.6, 0.9]})
    scores = sorted(detector.outlier_scores(points))
    if threshold is None:
        assert all("prediction" not in row for row in in_sql(detector, points, tmp_path))
        return
    detector.set_threshold(score=scores[1] if threshold == "a score" else threshold)
    found = [row["prediction"] for row in in_sql(detector, points, tmp_path)]
    assert found == detector.predict(points).tolist()
    assert sorted(found) == ([-1, -1, 1, 1] if threshold == "a score" else [1 if threshold > 0 else -1] * 4)


def test_features_without_names_are_columns_by_number(tmp_path):
    detector = DPForest(1, n_trees=3, depth=4, features=(0, 1), target_fpr=0.1).fit(
        np.random.default_rng(0).uniform(size=(90, 2))
    )
    points = np.random.default_rng(1).uniform(size=(50, 2))
    rows = in_sql(detector, pa.table({"feature 0": points[:, 0], "feature 1": points[:, 1]}), tmp_path)
    assert [row["outlier_score"] for row in rows] == detector.outlier_scores(points).tolist()


def test_a_feature_of_a_single_level_and_trees_of_nothing_else(tmp_path):
    detector = DPForest(
        1,
        n_trees=3,
        depth=4,
        subspace=1,
        features={"b": (0, 1)},
        categories={"a": Category(["x"], ordered=True)},
        target_fpr=0.1,
    )
    points = pa.table({"b": [0.2, 0.7, 0.9], "a": ["x", "x", None]})
    assert assert_equal(detector.fit(points), points, tmp_path).tolist() == [True, True, False]


# Files ----------------------------------------------------------------------------------------------------------------


def test_the_table_has_a_row_for_each_cell_and_says_which_model_it_is_of(tmp_path):
    detector = fitted(MAKERS["DPForest"], "error")
    saved = detector.save(tmp_path / "model")
    query = load(saved).export_scores(tmp_path / "terms.parquet", tmp_path / "score.sql")
    assert (tmp_path / "score.sql").read_text() == query + ";\n"
    table = pq.read_table(tmp_path / "terms.parquet")
    assert table.schema.names == ["member", "cell", "term"]
    assert table.schema.types == [pa.int32(), pa.int64(), pa.int64()]
    assert table["cell"].to_pylist() == list(range(detector.model_.partition.n_cells))
    sizes = [1 << depth for depth in detector.model_.partition.depths]
    assert table["member"].to_pylist() == [t for t, size in enumerate(sizes) for _ in range(size)]
    about = json.loads(table.schema.metadata[b"dpoutlier"])
    assert about["epsilon"] == "1"
    assert about["publishable"] is True
    assert about["divisor"] == 6 * 2**32
    assert about["statement"] == json.loads(json.dumps(detector.privacy_statement().to_dict()))
    assert about["model"] == release_id(detector.model_)


@pytest.mark.parametrize("make", [DPGridKNN(1, features=(0, 1), bins=4), GridKNN((0, 1), bins=4)])
def test_a_grid_has_no_table_since_the_order_of_cells_depends_on_the_point_inside_its_cell(make, tmp_path):
    detector = make.fit(np.random.default_rng(0).uniform(size=(50, 2)))
    with pytest.raises(InvalidParameterError, match="depends on where the point lies inside its cell"):
        detector.export_scores(tmp_path / "terms.parquet", secret=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore:NOT PRIVATE")
@pytest.mark.parametrize(
    "make",
    [
        Forest((0, 1)),
        Marginals((0, 1)),
        DPForest("inf", features=(0, 1), n_rows_hint=9),
        DPMarginals(1, features=(0, 1), unsafe_seed=0),
    ],
)
def test_a_table_of_a_secret_model_is_secret(make, tmp_path):
    detector = make.fit(np.random.default_rng(0).uniform(size=(50, 2)))
    with pytest.raises(SecretError, match="must not leave the custodian"):
        detector.export_scores(tmp_path / "terms.parquet", tmp_path / "score.sql")
    assert not list(tmp_path.iterdir())
    detector.export_scores(tmp_path / "terms.parquet", tmp_path / "score.sql", secret=True)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    assert json.loads(pq.read_schema(tmp_path / "terms.parquet").metadata[b"dpoutlier"])["publishable"] is False


@pytest.mark.parametrize("names", [("a", "A"), ("ß", "ẞ"), ("Prediction", "b"), ("", "b"), ("dpoutlier_row", "b")])
def test_names_that_sql_cannot_tell_apart_are_refused(names, tmp_path):
    detector = DPMarginals(1, features=dict.fromkeys(names, (0, 1))).fit([[0.1, 0.2]] * 9)
    with pytest.raises(InvalidParameterError, match=r"names? must be"):
        detector.export_scores(tmp_path / "terms.parquet")
    assert not list(tmp_path.iterdir())


def test_files_and_tables_with_impossible_names_are_refused_before_anything_is_written(tmp_path):
    detector = DPMarginals(1, features=(0, 1)).fit([[0.1, 0.2]] * 9)
    for path, sql, table in [
        ("terms.csv", None, "points"),
        ("ter*ms.parquet", None, "points"),
        ("terms.parquet", "score.txt", "points"),
        ("terms.parquet", "no/score.sql", "points"),
        ("terms.parquet", None, ""),
        ("terms.parquet", None, "DPoutlier_points"),
        ("terms.parquet", None, "a\nb"),
        ("terms.parquet", None, 7),
    ]:
        with pytest.raises(InvalidParameterError):
            detector.export_scores(tmp_path / path, None if sql is None else tmp_path / sql, table=table)
    assert not list(tmp_path.iterdir())
    (tmp_path / "score.sql").write_text("mine")
    with pytest.raises(OutputExistsError):
        detector.export_scores(tmp_path / "terms.parquet", tmp_path / "score.sql")
    assert [path.name for path in tmp_path.iterdir()] == ["score.sql"]
    assert (tmp_path / "score.sql").read_text() == "mine"
    detector.export_scores(tmp_path / "terms.parquet", tmp_path / "score.sql", overwrite=True)
    assert (tmp_path / "score.sql").read_text() != "mine"


def test_the_command_writes_both_or_prints_the_sql(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    detector = fitted(MAKERS["DPForest"], "error")
    detector.save("model")
    ran = CliRunner().invoke(
        app, ["export", "model.dpo", "-o", "terms.parquet", "--sql", "score.sql", "--table", "p q"]
    )
    assert ran.exit_code == 0, ran.output
    assert "Wrote terms.parquet and score.sql" in ran.output
    with duckdb.connect() as connection:
        connection.execute('CREATE TABLE "p q" AS SELECT 0.5 AS a, 0.2 AS b, 0 AS c, 2e-290 AS d')
        found = connection.execute((tmp_path / "score.sql").read_text()).fetchall()
    assert found[0][6] == detector.outlier_scores([[0.5, 0.2, 0, 2e-290]])[0]
    again = CliRunner().invoke(app, ["export", "model.dpo", "-o", "terms.parquet"])
    assert again.exit_code == 2
    assert "exists" in again.output
    printed = CliRunner().invoke(app, ["export", "model.dpo", "-o", "terms.parquet", "--force", "--table", "p q"])
    assert printed.output == (tmp_path / "score.sql").read_text()


def test_the_command_refuses_secret_models_and_grids(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).uniform(size=(50, 2))
    Forest((0, 1)).fit(rows).save("twin")
    DPGridKNN(1, features=(0, 1), bins=4).fit(rows).save("grid")
    for name, reason in (("twin.secret.dpo", "secret"), ("grid.dpo", "inside its cell")):
        ran = CliRunner().invoke(app, ["export", name, "-o", "terms.parquet"])
        assert ran.exit_code == 2
        assert reason in ran.output
    assert not (tmp_path / "terms.parquet").exists()


def test_the_texts_that_numbers_are_known_by_are_those_of_the_levels():
    """What the SQL relies on: a number is a level if and only if it equals the number that the level's text writes."""
    for value in (0.0, -0.0, 1.0, 2.5, 1e20, 2.0**53, 1e-7, 123456789.125):
        assert float(text_of(value)) == value
