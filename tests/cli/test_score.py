"""``dpoutlier score`` on files of any size: batch by batch, and as if they were one table."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from dpoutlier import DPForest, load
from dpoutlier.cli import files, score
from dpoutlier.cli.app import app
from dpoutlier.tables import batched

NAMES = ["age", "dose", "sex"]
rng = np.random.default_rng(0)
N = 5000


def points(n, seed=1):
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "id": [f"p{i}" for i in range(n)],
            "sex": pa.array(random.choice(["f", "m"], n)).dictionary_encode(),
            "dose": pa.array(random.integers(-2, 12, n), pa.int16()),
            "age": random.normal(50, 30, n),
        }
    )


TABLE = points(N)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(batched, "BATCH", 16 * 700)  # values: 700 rows of 4 columns at once
    monkeypatch.setattr(files, "BATCH", 900)
    monkeypatch.setattr(score, "BATCH", 256)
    detector = DPForest(
        1,
        features={"age": (0, 100), "dose": (0, 10)},
        categories={"sex": ["f", "m"]},
        n_trees=3,
        depth=4,
        n_rows_hint=900,
        target_fpr=0.2,
    )
    detector.fit(points(900, 2).select(NAMES)).save("model.dpo")
    pq.write_table(TABLE, "all.parquet", row_group_size=1300)
    (tmp_path / "parts").mkdir()
    for i in range(4):
        pq.write_table(TABLE.slice(1250 * i, 1250), tmp_path / "parts" / f"{i}.parquet", row_group_size=300)
    write_csv("all.csv", TABLE)
    return tmp_path


def write_csv(path, table):
    with Path(path).open("w", newline="") as stream:
        csv.writer(stream).writerows([table.column_names, *(row.values() for row in table.to_pylist())])


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output
    return re.sub(r"\s+", " ", result.output)


def expected(table=TABLE):
    """The definition: all at once."""
    detector, features = load("model.dpo"), table.select(NAMES)
    return (
        table.append_column("outlier_score", pa.array(detector.outlier_scores(features)))
        .append_column("outside_bounds", pa.array(detector.outside_bounds(features)))
        .append_column("prediction", pa.array(detector.predict(features)))
    )


@pytest.mark.parametrize(
    "given", [["all.parquet"], ["parts"], ["parts/*.parquet"], [f"parts/{i}.parquet" for i in range(4)]]
)
def test_parquet_is_scored_as_one_table(folder, given):
    run("score", "model.dpo", *given, "-o", "out.parquet")
    written = pq.read_table("out.parquet")
    assert written.schema.equals(expected().schema)
    assert written.to_pylist() == expected().to_pylist()
    assert pq.ParquetFile("out.parquet").num_row_groups > 4
    run("score", "model.dpo", *given, "-o", "out.csv")
    rows = list(csv.DictReader(Path("out.csv").read_text().splitlines()))
    assert [float(row["outlier_score"]) for row in rows] == expected()["outlier_score"].to_pylist()
    assert [row["outside_bounds"] for row in rows] == [str(v).lower() for v in expected()["outside_bounds"].to_pylist()]


def test_csv_is_scored_as_one_table(folder):
    run("score", "model.dpo", "all.csv", "-o", "out.parquet")
    written, whole = pq.read_table("out.parquet"), expected()
    assert written.column_names == whole.column_names
    assert written.schema.field("age").type == pa.float64()
    for name in whole.column_names:
        assert written[name].to_pylist() == whole[name].to_pylist()


@pytest.mark.parametrize("given", ["all.parquet", "all.csv"])
def test_the_top_list_is_that_of_the_whole(folder, given):
    table = expected()
    order = np.argsort(-table["outlier_score"].to_numpy(), kind="stable")[:30]  # scores of trees tie often
    shown = CliRunner().invoke(app, ["score", "model.dpo", given, "--top", "30"], env={"COLUMNS": "200"}).output
    assert f"30 most outlying of {N} points" in shown
    assert re.findall(r"\bp\d+\b", shown) == [f"p{i}" for i in order]
    assert [int(row) for row in re.findall(r"^│ +(\d+) │", shown, re.MULTILINE)] == order.tolist()


def test_rows_of_several_files_are_shown_with_their_file(folder):
    best = int(np.argmax(expected()["outlier_score"].to_numpy()))
    shown = run("score", "model.dpo", "parts", "--top", "1")
    assert f"{best // 1250}.parquet" in shown
    assert f" {best % 1250} " in shown


def broken(row):
    return TABLE.set_column(3, "age", pc.if_else(pa.array(np.arange(N) == row), None, TABLE["age"]))


@pytest.mark.parametrize("row", [0, 3777, N - 1])
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_missing_value_is_reported_with_its_row_and_nothing_is_left(folder, row, suffix):
    table = broken(row)
    pq.write_table(table, "bad.parquet")
    write_csv("bad.csv", table)
    before = sorted(folder.iterdir())
    told = run("score", "model.dpo", f"bad.{suffix}", "-o", f"out.{suffix}", code=2)
    assert f"a point has a missing value or a value that is not a number in age, row {row} (counted from 0)" in told
    assert sorted(folder.iterdir()) == before


def test_in_several_files_the_file_is_reported_too(folder):
    pq.write_table(broken(3777).slice(3750), "parts/3.parquet")
    told = run("score", "model.dpo", "parts", "-o", "out.parquet", code=2)
    assert (
        "parts/3.parquet: a point has a missing value or a value that is not a number in age, row 27 (counted from 0)"
        in told
    )


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_points_that_miss_a_value_may_have_no_score(folder, suffix):
    table = broken(3777)
    pq.write_table(table, "bad.parquet")
    write_csv("bad.csv", table)
    assert f"most outlying of {N} points" in run(
        "score", "model.dpo", f"bad.{suffix}", "-o", "out.parquet", "--missing", "null"
    )
    written, whole = pq.read_table("out.parquet"), expected()
    keep = np.arange(N) != 3777
    for name in whole.column_names[-3:]:
        assert written[name].null_count == 1
        assert written[name].filter(keep).to_pylist() == whole[name].filter(keep).to_pylist()
    run("score", "model.dpo", f"bad.{suffix}", "-o", "out.csv", "--missing", "null")
    assert Path("out.csv").read_text().splitlines()[3778].endswith(",,,")


def test_a_record_of_the_wrong_length_is_reported_with_its_line(folder):
    lines = Path("all.csv").read_text().splitlines()
    lines[4000] += ",more"
    Path("all.csv").write_text("\n".join(lines))
    assert "all.csv, line 4001: the record has 5 values, but the header names 4" in run(
        "score", "model.dpo", "all.csv", "-o", "o.csv", code=2
    )
    assert not Path("o.csv").exists()


def test_a_damaged_file_is_named_and_nothing_is_left(folder):
    content = bytearray(Path("all.parquet").read_bytes())
    content[len(content) // 2 : len(content) // 2 + 4000] = b"x" * 4000
    Path("bad.parquet").write_bytes(bytes(content))
    assert "bad.parquet cannot be read" in run("score", "model.dpo", "bad.parquet", "-o", "out.parquet", code=2)
    assert not list(folder.glob("*out*"))


def test_files_that_do_not_fit_together_are_refused(folder):
    pq.write_table(TABLE.drop(["id"]), "parts/other.parquet")
    assert "do not have the same format, columns and types" in run("score", "model.dpo", "parts", code=2)
    assert "do not have the same format, columns and types" in run(
        "score", "model.dpo", "all.parquet", "all.csv", code=2
    )
    assert "no file matches none*.parquet" in run("score", "model.dpo", "none*.parquet", code=2)
    assert "absent.csv does not exist" in run("score", "model.dpo", "absent.csv", code=2)


def test_no_points_are_a_table_without_rows(folder):
    pq.write_table(TABLE.slice(0, 0), "none.parquet")
    assert "0 most outlying of 0 points" in run("score", "model.dpo", "none.parquet", "-o", "out.parquet")
    assert pq.read_table("out.parquet").equals(expected().slice(0, 0))
    write_csv("none.csv", TABLE.slice(0, 0))
    run("score", "model.dpo", "none.csv", "-o", "out.csv")
    assert Path("out.csv").read_text() == "id,sex,dose,age,outlier_score,outside_bounds,prediction\n"


MEASURE = """
import sys
from pathlib import Path
from dpoutlier.cli.app import app
memory = lambda name: int(Path("/proc/self/status").read_text().split(name + ":")[1].split()[0]) * 1024
def score(name):
    try:
        app(["score", "model.dpo", name + sys.argv[1], "-o", name + ".out" + sys.argv[1], "--force"], standalone_mode=False)
    except SystemExit:
        pass
score("small")
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
before = memory("VmHWM")
score("large")
print("\\n", memory("VmHWM") - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="peak memory is read in /proc")
@pytest.mark.parametrize(("suffix", "n"), [(".parquet", 6_000_000), (".csv", 1_000_000)])
def test_a_large_file_takes_no_more_memory_than_batches(tmp_path, monkeypatch, suffix, n):
    """The points are 400 MB of floats as Parquet, or 140 MB of text."""
    monkeypatch.chdir(tmp_path)
    names = [f"f{j}" for j in range(8)]
    DPForest(1, features=(0, 1), n_rows_hint=1000, n_trees=5, depth=4).fit(
        pa.table(dict(zip(names, rng.random((8, 1000)), strict=True)))
    ).save("model.dpo")
    for name, size in (("small", 300_000), ("large", n)):
        columns = dict(zip(names, np.random.default_rng(0).random((8, size)).round(12), strict=True))
        if suffix == ".csv":
            pa.csv.write_csv(pa.table(columns), name + suffix)
        else:
            pq.write_table(pa.table(columns), name + suffix, use_dictionary=False)
    found = subprocess.run([sys.executable, "-c", MEASURE, suffix], capture_output=True, text=True, check=True).stdout
    assert int(found.split()[-1]) < 150 * 2**20
    assert (tmp_path / f"large.out{suffix}").stat().st_size > (tmp_path / f"large{suffix}").stat().st_size
