"""A fit on files gives what a fit on the same rows in a frame gives, whatever the files are."""

import csv
import itertools
import threading
from pathlib import Path

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from dpoutlier import KNN, DPForest, DPGridKNN, DPMarginals, Forest, GridKNN, Marginals, PrivateBounds
from dpoutlier.exceptions import InvalidParameterError, ReferenceDataError
from dpoutlier.model.file.manifest import arrays_of
from dpoutlier.tables import batched
from dpoutlier.tables import csv as csvfile
from dpoutlier.tables.files import file_table
from dpoutlier.tables.parquet import ParquetTable

pytestmark = pytest.mark.filterwarnings("ignore::dpoutlier.exceptions.UnsafeWarning")

N = 3000
LEVELS = ["f", "m", "x"]
BOUNDS = {"a": (0, 1), "b": (0, 9)}
POINTS = pa.table({"a": np.linspace(-0.1, 1.1, 60), "b": np.linspace(9, 0, 60), "sex": (LEVELS * 20)})


def made(n=N):
    """Numbers with nulls, whole numbers, levels of which one is unknown, and people, some of whom have no id."""
    rng = np.random.default_rng(0)
    sex = rng.choice([*LEVELS, "?"], n)
    return pa.table(
        {
            "a": pa.array(rng.uniform(-0.1, 1.1, n), mask=rng.random(n) < 0.1),
            "b": rng.integers(0, 10, n),
            "sex": pa.array(sex.tolist(), mask=rng.random(n) < 0.1),
            "who": pa.array([f"p{i}" if i % 11 else None for i in rng.integers(0, n // 3, n)], pa.string()),
        }
    )


def write_csv(path, table):
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(table.column_names)
        writer.writerows(["" if value is None else value for value in row.values()] for row in table.to_pylist())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same rows as one file, as three of which one has other types, and as CSV; the parts are in another order of columns."""
    top, table = tmp_path_factory.mktemp("files"), made()
    pq.write_table(table, top / "whole.parquet", row_group_size=700)
    write_csv(top / "whole.csv", table)
    for kind in ("rows", "texts"):
        (top / kind).mkdir()
    for i, (first, last) in enumerate([(0, 1000), (1000, 1001), (1001, N)]):
        part = table.slice(first, last - first)
        write_csv(top / "texts" / f"part{i}.csv", part)
        if i == 1:
            part = part.set_column(1, "b", part["b"].cast(pa.float32())).select(["who", "sex", "b", "a"])
        pq.write_table(part, top / "rows" / f"part{i}.parquet", row_group_size=300)
    (top / "rows" / "notes.txt").write_text("no table")
    return top


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(batched, "BATCH", 900)
    monkeypatch.setattr(csvfile, "RECORDS", 211)


SOURCES = {
    "a path": lambda top: top / "whole.parquet",
    "text": lambda top: str(top / "whole.parquet"),
    "a pattern": lambda top: f"{top}/rows/*.parquet",
    "a pattern as a path": lambda top: top / "r*" / "part?.parquet",
    "a folder": lambda top: top / "rows",
    "CSV": lambda top: top / "whole.csv",
    "several CSV": lambda top: top / "texts" / "*.csv",
    "a table": lambda top: ParquetTable(top / "rows", ["a", "b", "sex"]),
}
FITS = {
    "grid": lambda **more: DPGridKNN(2, bins=4, **more),
    "forest": lambda **more: DPForest(2, n_rows_hint=1000, **more),
    "marginals": lambda **more: DPMarginals(2, **more),
    "a estimated number of rows": lambda **more: DPGridKNN(2, bins="auto", n_rows_hint="estimate", **more),
    "threshold": lambda **more: DPForest(2, n_rows_hint="estimate", target_fpr=0.1, **more),
    "keyed": lambda **more: DPGridKNN(2, bins=3000, counts="keyed", n_jobs=2, **more),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_every_kind_of_file_gives_what_the_frame_gives(fit, source, folder):
    arguments = {"features": BOUNDS, "categories": {"sex": LEVELS}, "missing": ["a", "sex"], "unsafe_seed": 3}
    frame = made().select(["a", "b", "sex"])
    from_file, from_frame = fit(**arguments).fit(source(folder)), fit(**arguments).fit(frame)
    assert (from_file.outlier_scores(POINTS) == from_frame.outlier_scores(POINTS)).all()
    assert from_file.feature_names_in_.tolist() == ["a", "b", "sex"]
    assert from_file.model_.n_rows_hint == from_frame.model_.n_rows_hint
    if from_frame.target_fpr is not None:
        assert from_file.offset_ == from_frame.offset_


@pytest.mark.parametrize("source", [SOURCES[name] for name in ("a pattern", "CSV", "several CSV")])
def test_people_and_private_bounds(source, folder):
    """Passes for the people, the bounds, the counts and the threshold: all over the same rows in the same order."""
    bounds = {"a": PrivateBounds(outer=(-10, 10)), "b": (0, 9)}
    frame = made().select(["a", "b", "who"])
    for make in (DPForest, DPMarginals, DPGridKNN):
        detectors = [
            make(
                5, features=bounds, person="who", rows_per_person=2, n_rows_hint=1000, target_fpr=0.1, unsafe_seed=1
            ).fit(X)
            for X in (source(folder), frame)
        ]
        scores = [detector.outlier_scores(POINTS.select(["a", "b"])) for detector in detectors]
        assert (scores[0] == scores[1]).all()
        assert detectors[0].model_.domain == detectors[1].model_.domain
        assert detectors[0].offset_ == detectors[1].offset_


@pytest.mark.parametrize("make", [GridKNN, Forest, Marginals, KNN])
def test_what_is_not_private_reads_files_too(make, folder):
    detectors = [make(BOUNDS, missing="cell").fit(X) for X in (folder / "rows", made().select(["a", "b"]))]
    scores = [detector.outlier_scores(POINTS.select(["a", "b"])) for detector in detectors]
    assert (scores[0] == scores[1]).all()


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_without_names_all_columns_are_features(suffix, tmp_path):
    table = made().select(["b", "a"])
    pq.write_table(table, tmp_path / "t.parquet")
    write_csv(tmp_path / "t.csv", table)
    detectors = [GridKNN((0, 9)).fit(X) for X in (tmp_path / f"t.{suffix}", table)]
    points = POINTS.select(["b", "a"])
    assert (detectors[0].outlier_scores(points) == detectors[1].outlier_scores(points)).all()
    assert detectors[0].feature_names_in_.tolist() == ["b", "a"]
    levels = GridKNN((0, 9), categories={1: ["0", "1"]}).fit(tmp_path / f"t.{suffix}")
    assert levels.model_.domain.category(1) is not None


# Data sets ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def parted(tmp_path):
    """Parquet files in folders that tell a column, one of them without a column and one with another type."""
    table = made()
    for i, sex in enumerate(LEVELS):
        part = table.filter(pa.compute.equal(table["sex"], sex)).select(["a", "b"])
        part = part.select(["b"]) if i == 1 else part
        part = part.set_column(0, "a", part["a"].cast(pa.float32())) if i == 2 else part
        (tmp_path / f"sex={sex}").mkdir()
        pq.write_table(part, tmp_path / f"sex={sex}" / "rows.parquet", row_group_size=100)
    schema = pa.schema([("a", pa.float64()), ("b", pa.int64()), ("sex", pa.string())])
    return ds.dataset(tmp_path, schema=schema, partitioning="hive")


DATASETS = {
    "parted": lambda parted: parted,
    "some row groups": lambda parted: ds.FileSystemDataset(
        [one.subset(row_group_ids=[1, 0]) for one in parted.get_fragments()], parted.schema, parted.format
    ),
    "filtered": lambda parted: parted.filter(ds.field("b") > 4),
    "in memory": lambda parted: ds.dataset(parted.to_table()),
}


@pytest.mark.parametrize("make", DATASETS.values(), ids=DATASETS)
def test_a_data_set_gives_what_its_table_gives(make, parted):
    dataset = make(parted)
    arguments = {"features": BOUNDS, "categories": {"sex": LEVELS}, "missing": "cell", "unsafe_seed": 3}
    detectors = [DPForest(2, n_rows_hint="estimate", **arguments).fit(X) for X in (dataset, dataset.to_table())]
    assert dataset.count_rows() > 300
    assert (detectors[0].outlier_scores(POINTS) == detectors[1].outlier_scores(POINTS)).all()
    assert detectors[0].model_.n_rows_hint == detectors[1].model_.n_rows_hint


def test_a_data_set_of_other_columns_is_refused_as_a_frame_is(parted):
    with pytest.raises(InvalidParameterError, match=r"columns without bounds: \['sex'\]"):
        DPMarginals(1, features=BOUNDS).fit(parted)


def test_a_value_that_the_data_sets_type_cannot_hold_is_not_an_error(tmp_path):
    """Where Arrow would convert, one row could make it fail."""
    pq.write_table(pa.table({"a": [0.25, 0.5], "b": [2**60 + 1, 3]}), tmp_path / "t.parquet")
    dataset = ds.dataset(tmp_path, schema=pa.schema([("a", pa.int64()), ("b", pa.float64())]))
    with pytest.raises(pa.ArrowInvalid):
        dataset.to_table()
    fitted = DPGridKNN(1000, features=BOUNDS, bins=2).fit(dataset)  # no noise to speak of
    assert fitted.model_.counts.counts.tolist() == [0, 1, 1, 0]


WRAPPED = {
    "alone": lambda one: one,
    "among others": lambda one: ds.UnionDataset(one.schema, [one]),
    "filtered": lambda one: one.filter(ds.field("a") > 0),
}


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
def test_data_sets_of_text_are_refused(wrap, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n0.5,1\n")
    with pytest.raises(InvalidParameterError, match=r"data set of csv files.*Pass the path"):
        DPMarginals(1, features=BOUNDS).fit(wrap(ds.dataset(tmp_path, format="csv")))


class Halves(batched.BatchedTable):
    """A table of one's own: names, types, and batches as often as asked."""

    def __init__(self, table):
        self.table, self.names = table, table.column_names

    def types(self):
        return dict(nw.from_native(self.table.select(self.names)).schema)

    def batches(self):
        half = len(self.table) // 2
        yield from (part.select(self.names) for part in (self.table.slice(0, half), self.table.slice(half)))


def test_any_table_in_batches_can_be_fitted():
    arguments = {"features": BOUNDS, "person": "who", "n_rows_hint": "estimate", "unsafe_seed": 3}
    table = made().select(["who", "a", "b"])
    scores = [DPForest(2, **arguments).fit(X).outlier_scores(POINTS.select(["a", "b"])) for X in (Halves(table), table)]
    assert (scores[0] == scores[1]).all()


@pytest.mark.parametrize("make", [Halves, ds.dataset], ids=["batches", "data set"])
def test_no_columns_are_refused(make):
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        DPMarginals(1, features=(0, 1)).fit(make(pa.table({"a": [1.0]}).select([])))


# Order, progress, no rows -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["rows", "texts/*.csv", "whole.parquet", "whole.csv"])
def test_batches_are_the_rows_in_order_as_often_as_asked(source, folder):
    table = file_table(folder / source, ["b", "a"])
    for _ in range(2):
        batches = list(table.batches())
        assert len(batches) > 5
        found = [float(value) for batch in batches for value in batch["b"].to_pylist()]
        assert found == made()["b"].to_pylist()
    assert table.number_of_rows() == len(made())


@pytest.mark.parametrize("source", ["rows", "texts/*.csv"])
def test_whoever_watches_sees_bytes_of_each_pass(source, folder):
    seen = []
    table = file_table(folder / source, ["a", "b"])
    table.watch = lambda *call: seen.append(call)
    size = sum(path.stat().st_size for path in table.paths)
    DPGridKNN(1, features=BOUNDS, bins=4, target_fpr=0.1).fit(table)  # two passes
    done = [call[0] for call in seen]
    assert {call[1] for call in seen} == {size}
    assert done[-1] == size
    assert [earlier for earlier, later in itertools.pairwise(done) if later < earlier] == [size]
    assert len(set(done)) > 6
    seen.clear()
    list(table.without("a").batches())
    assert seen[-1] == (size, size)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("person", [None, "who"])
def test_no_rows_are_a_fit_like_any_other(suffix, person, tmp_path):
    pq.write_table(made().slice(0, 0), tmp_path / "none.parquet")
    write_csv(tmp_path / "none.csv", made().slice(0, 0))
    for make in (DPGridKNN, DPForest, DPMarginals):
        detectors = [
            make(1, features=BOUNDS, person=person, n_rows_hint="estimate", target_fpr=0.1, unsafe_seed=0).fit(X)
            for X in (tmp_path / f"none.{suffix}", made().slice(0, 0).select(["a", "b", *([person] if person else [])]))
        ]
        points = POINTS.select(["a", "b"])
        assert (detectors[0].outlier_scores(points) == detectors[1].outlier_scores(points)).all()


def test_a_reader_that_is_left_leaves_no_thread(folder):
    before = threading.active_count()
    batches = file_table(folder / "whole.parquet", ["a"]).batches()
    next(batches)
    assert threading.active_count() == before + 1
    batches.close()
    assert threading.active_count() == before


# Errors -------------------------------------------------------------------------------------------------------------------


FILES = {
    "good.parquet": pa.table({"a": [0.5], "b": [1]}),
    "times.parquet": pa.table({"a": pa.array([0], pa.timestamp("s")), "b": [1]}),
    "lists.parquet": pa.table({"a": [[0.5]], "b": [1]}),
    "texts.parquet": pa.table({"a": ["0.123"], "b": [1]}),
    "short.parquet": pa.table({"b": [1]}),
    "more.parquet": pa.table({"a": [0.5], "b": [1], "c": [2]}),
    "twice.parquet": pa.Table.from_arrays([pa.array([0.5]), pa.array([0.5]), pa.array([1])], names=["a", "a", "b"]),
    "broken.parquet": "no Parquet",
    "rows.csv": "a,b\n0.123,4\n",
    "wide.csv": "a,b,c\n0.123,4,5\n",
    "line.csv": "0.123,4.5\n",
    "notes.txt": "a,b\n",
}


@pytest.mark.parametrize(
    ("source", "files", "bounds", "message"),
    [
        ("none.parquet", [], BOUNDS, "none.parquet does not exist"),
        (
            "*.parquet",
            ["rows.csv"],
            BOUNDS,
            r"no file matches .*\*.parquet. Give a .csv or .parquet file, a pattern, or a folder",
        ),
        ("", ["rows.csv"], BOUNDS, "is a folder without a .parquet file. Give"),
        ("*", ["notes.txt"], BOUNDS, "notes.txt must be a .csv or .parquet file"),
        (
            "good.parquet",
            ["good.parquet"],
            {"c": (0, 1)},
            "good.parquet has no column 'c', but the features .*Its columns are: 'a', 'b'",
        ),
        ("", ["good.parquet", "short.parquet"], BOUNDS, "short.parquet has no column 'a'"),
        (
            "",
            ["good.parquet", "times.parquet"],
            BOUNDS,
            "column 'a' of .*times.parquet has type Datetime.*Convert or leave it",
        ),
        ("", ["good.parquet", "lists.parquet"], BOUNDS, "column 'a' of .*lists.parquet has type List"),
        (
            "",
            ["good.parquet", "texts.parquet"],
            BOUNDS,
            "'a' has type Float64 in .*good.parquet and String in .*texts.parquet",
        ),
        ("", ["good.parquet", "more.parquet"], (0, 1), "more.parquet has a column 'c' that .*good.parquet lacks"),
        ("twice.parquet", ["twice.parquet"], BOUNDS, "twice.parquet has more than one column named 'a'"),
        ("", ["broken.parquet", "good.parquet"], BOUNDS, "broken.parquet is not a Parquet file, or it is damaged"),
        ("*", ["good.parquet", "rows.csv"], BOUNDS, "good.parquet and .*rows.csv have different formats"),
        ("*.csv", ["rows.csv", "wide.csv"], (0, 1), "wide.csv and .*rows.csv do not have the same columns"),
        ("line.csv", ["line.csv"], (0, 1), "the first line of .*line.csv contains numbers"),
        ("line.csv", ["line.csv"], BOUNDS, "no column 'a', 'b'.*Does its first line name the columns"),
    ],
)
def test_bad_files_are_named_before_a_row_is_read(source, files, bounds, message, tmp_path, monkeypatch):
    for name in files:
        if isinstance(FILES[name], str):
            (tmp_path / name).write_text(FILES[name])
        else:
            pq.write_table(FILES[name], tmp_path / name)
    monkeypatch.setattr("dpoutlier.trusted.fit.open_reference", pytest.fail)
    with pytest.raises(InvalidParameterError, match=message) as caught:
        DPMarginals(1, features=bounds).fit(tmp_path / source)
    assert "0.123" not in str(caught.value)


def test_a_folder_among_the_files_is_not_left_out_in_silence(folder, tmp_path):
    pq.write_table(made(), tmp_path / "rows.parquet")
    (tmp_path / "more.parquet").mkdir()
    with pytest.raises(InvalidParameterError, match=r"more\.parquet is not a regular file"):
        DPMarginals(1, features=BOUNDS).fit(tmp_path)


@pytest.mark.parametrize("make", [lambda path: path, ds.dataset], ids=["file", "data set"])
def test_a_damaged_file_fails_with_a_fixed_text(make, folder, tmp_path):
    content = bytearray((folder / "whole.parquet").read_bytes())
    content[4 : len(content) // 2] = b"x" * (len(content) // 2 - 4)
    (tmp_path / "damaged.parquet").write_bytes(bytes(content))
    with pytest.raises(ReferenceDataError, match="The cause is not shown") as caught:
        DPMarginals(1, features={**BOUNDS, "who": (0, 1), "sex": (0, 1)}).fit(make(tmp_path / "damaged.parquet"))
    assert caught.value.__context__ is None


def test_files_further_down_are_not_left_out_in_silence(tmp_path):
    (tmp_path / "deep").mkdir()
    for path in (tmp_path / "a.parquet", tmp_path / "deep" / "b.PARQUET"):
        pq.write_table(pa.table({"x": [0.5, 0.7]}), path)
    with pytest.raises(InvalidParameterError, match=r"has .parquet files in folders of its own.*Give the pattern"):
        GridKNN({"x": (0, 1)}).fit(tmp_path)


def test_a_list_of_paths_is_files(tmp_path):
    paths = [tmp_path / f"{i}.parquet" for i in range(3)]
    for path in paths:
        pq.write_table(pa.table({"x": [0.1]}), path)
    exact = GridKNN({"x": (0, 1)}).fit([str(paths[0]), paths[2]])
    assert arrays_of(exact.model_)["exact"].tolist() == [2]


def test_remote_tables_are_refused_with_a_remedy(tmp_path):
    for path in ("s3://bucket/x.parquet", Path("s3://bucket/x.parquet")):
        with pytest.raises(InvalidParameterError, match=r"is not a path on this machine. Pass a pyarrow.dataset"):
            GridKNN({"x": (0, 1)}).fit(path)


@pytest.mark.parametrize("filtered", [False, True])
def test_a_data_set_whose_files_would_be_converted_is_refused_before_a_row_is_read(filtered, tmp_path):
    """To convert 2.5 to a whole number fails, and so a row would decide whether there is a model."""
    pq.write_table(pa.table({"x": [2.0, 2.5], "y": [0.1, 0.2]}), tmp_path / "a.parquet")
    schema = pa.schema([("x", pa.int64()), ("y", pa.float64())])
    dataset = ds.dataset(tmp_path / "a.parquet", schema=schema)
    if not filtered:  # columns keep the types of their file
        assert arrays_of(GridKNN((0, 9), bins=3).fit(dataset).model_)["exact"].sum() == 2
        return
    with pytest.raises(InvalidParameterError, match=r"column 'x' has type double in .* and int64 in the data set"):
        GridKNN((0, 9), bins=3).fit(dataset.filter(ds.field("y") > 0))


@pytest.mark.parametrize("how", [ds.dataset, str])
def test_people_whose_ids_have_different_kinds_in_files_are_refused(how, tmp_path):
    """Else one person could be two: true in one file is 1 in another."""
    pq.write_table(pa.table({"x": [0.1], "who": [True]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": [0.1], "who": [1]}), tmp_path / "b.parquet")
    with pytest.raises(InvalidParameterError, match=r"column 'who' has type Boolean in .* and Int64 in"):
        DPGridKNN(1, features={"x": (0, 1)}, bins=2, person="who").fit(how(tmp_path))


def test_a_record_with_too_many_or_too_few_fields_is_no_row(tmp_path):
    (tmp_path / "rows.csv").write_text("x,y\n0.1,0.1\n0.1,0.1,0.1\n0.1\n0.1,0.1\n")
    found = GridKNN({"x": (0, 1), "y": (0, 1)}, bins=2).fit(tmp_path / "rows.csv")
    assert arrays_of(found.model_)["exact"].tolist() == [2]


def test_what_a_table_says_when_it_is_asked_for_batches_is_withheld():
    class Eager(batched.BatchedTable):
        names = ("x",)

        def types(self):
            return {"x": nw.Float64()}

        def batches(self):
            raise ValueError("row 17 holds 42.5")

    with pytest.raises(ReferenceDataError) as caught:
        GridKNN((0, 1)).fit(Eager())
    assert caught.value.__context__ is None
