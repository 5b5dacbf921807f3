"""The command line, as a person would use it."""

import csv
import io
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.progress import Progress
from typer.testing import CliRunner

import dpoutlier
from command_line import run
from dpoutlier import DPGridKNN, load
from dpoutlier.cli.app import app
from dpoutlier.cli.old_names import NEW_NAMES
from dpoutlier.cli.progress import reading
from dpoutlier.tables.files import file_table

FEATURES = "[features]\nage = [0, 120]\nbmi = {lower = 10, upper = 80}\n"
rng = np.random.default_rng(0)
ROWS = np.stack([rng.normal(50, 10, 1000), rng.normal(27, 4, 1000)], axis=1)
POINTS = np.array([[50, 27], [118, 78], [49, 26], [300, 20]])


def write_csv(path, rows, header=("id", "age", "bmi"), extra=True):
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows([[f"p{i}", *row] for i, row in enumerate(rows)] if extra else rows)
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "features.toml").write_text(FEATURES)
    write_csv(tmp_path / "reference.csv", ROWS)
    write_csv(tmp_path / "points.csv", POINTS)
    return tmp_path


FIT = ("fit", "reference.csv", "--features", "features.toml", "--epsilon", "0.5", "-o", "model")
GRID = (*FIT, "--detector", "grid")
TWO = ("--detector", "grid", "--bins", "2")
ALL_NOISE = ("--epsilon", "0.0001")  # so that a statement has nothing to say of where rows lie
PLAN = ("plan", "--features", "features.toml")
KINDS = {
    "grid": (*GRID, "--bins", "4"),
    "forest": (*FIT, "--detector", "forest", "--n-trees", "3", "--depth", "4"),
    "marginals": (*FIT, "--detector", "marginals", "--bins", "10"),
}


def test_fit_score_inspect_as_the_readme_says(folder):
    output = run(*GRID)
    assert "Privacy statement" in output
    assert "number of rows" in output  # estimated with epsilon
    assert "Wrote model.dpo" in output
    output = run("score", "model.dpo", "points.csv", "-o", "scores.csv", "--threshold", "0.3")
    assert "4 most outlying of 4 points" in output
    rows = list(csv.DictReader((folder / "scores.csv").read_text().splitlines()))
    assert [row["id"] for row in rows] == ["p0", "p1", "p2", "p3"]
    assert [row["age"] for row in rows] == ["50", "118", "49", "300"]  # as they were written
    expected = load("model.dpo").outlier_scores(POINTS)
    assert [float(row["outlier_score"]) for row in rows] == expected.tolist()
    assert [row["outside_bounds"] for row in rows] == ["false", "false", "false", "true"]
    assert [int(row["prediction"]) for row in rows] == np.where(expected > 0.3, -1, 1).tolist()
    output = run("inspect", "model.dpo")
    assert "0.5" in output
    assert "k 10" in output


def test_inspect_as_json(folder):
    run(*FIT, "--target-fpr", "0.1")
    result = CliRunner().invoke(app, ["inspect", "model.dpo", "--json"])
    content = json.loads(result.output)
    assert content["statement"]["epsilon"] == "0.5"
    assert content["scoring"]["threshold"] is not None


def test_every_option_of_fit_arrives(folder):
    run(
        *GRID, "--bins", "4,5", "--k", "7", "--weighted", "--distance", "point", "--max-depth", "-1", "--max-cells", "99",
        "--exhausted", "as-printed", "--neighbours", "replace-one", "--rows-per-person", "2", "--target-fpr", "0.2",
        "--threshold-share", "0.1", "--counts", "keyed",
    )  # fmt: skip
    found = load("model.secret.dpo", secret=True).estimator()
    arguments = {
        "bins": [4, 5], "k": 7, "weighted": True, "distance": "point", "max_depth": None, "max_cells": 99,
        "exhausted": "as-printed", "neighbours": "replace-one", "rows_per_person": 2, "target_fpr": 0.2, "counts": "keyed",
        "threshold_share": 0.1,
    }  # fmt: skip
    assert {name: found.get_params()[name] for name in arguments} == arguments
    assert stat.S_IMODE(Path("model.secret.dpo").stat().st_mode) == 0o600
    assert "secret" in run("score", "model.secret.dpo", "points.csv")


def test_a_sparse_grid_is_fitted_and_published(folder):
    printed = run(*GRID, "--bins", "2000", "--counts", "sparse", "--sparse-size", "70")
    assert "whose noisy count is" in printed
    fitted = load("model.dpo")
    assert fitted.model_.counts.kind == "sparse"
    assert fitted.estimator().sparse_size <= 70
    assert run("score", "model.dpo", "points.csv")


def test_every_option_of_a_forest_arrives(folder):
    run(
        *FIT,
        "--detector",
        "forest",
        "--n-trees",
        "5",
        "--depth",
        "6",
        "--subspace",
        "1,2",
        "--tree-seed",
        "9",
        "--target-fpr",
        "0.2",
    )
    found = load("model.dpo").estimator().get_params()
    assert (found["n_trees"], found["depth"], found["subspace"], found["tree_seed"]) == (5, 6, (1, 2), 9)
    output = run("inspect", "model.dpo")
    assert "5 random trees of depth 6, grown from the public seed 9" in output
    assert "log-counts" in output


def test_marginals_and_a_forest_with_estimated_rows(folder):
    run(*FIT, "--detector", "marginals", "--bins", "4,7")
    assert load("model.dpo").model_.partition.bins == (4, 7)
    assert "number of rows 0.025" in run(*FIT, "--detector", "forest", "--force")  # 5 % of epsilon


def test_without_a_detector_the_default_is_fitted(folder):
    run(*FIT, "--n-rows-hint", "1000")
    assert load("model.dpo").model_.detector == type(dpoutlier.detector(epsilon=0.5, features="features.toml")).__name__


def test_a_plan_reads_no_data(folder, monkeypatch):
    monkeypatch.setattr("dpoutlier.tables.files.file_table", pytest.fail)
    (folder / "reference.csv").unlink()
    output = run(*PLAN, "--n-rows", "5000", "--epsilon", "0.5")
    for text in ("forest", "marginals", "grid", "k-NN", "`dpoutlier fit` would use DP", "at epsilon", "control"):
        assert text in output
    assert sorted(path.name for path in folder.iterdir()) == ["features.toml", "points.csv"]


def test_every_option_of_plan_arrives(folder):
    plain = run(*PLAN, "--n-rows", "5000", "--epsilon", "0.5")
    assert "10 bins each │ 4.1 " in plain
    assert "Ranges 100 times too wide: AUROC" in plain
    assert "10 bins each │ 8.2 " in run(*PLAN, "--n-rows", "5000", "--epsilon", "0.5", "--neighbours", "replace-one")
    assert "10 bins each │ 12 " in run(*PLAN, "--n-rows", "5000", "--epsilon", "0.5", "--rows-per-person", "3")
    assert "`dpoutlier fit` would use DPMarginals" in run(
        *PLAN, "--n-rows", "5000", "--epsilon", "0.5", "--detector", "marginals"
    )
    narrow = CliRunner().invoke(app, [*PLAN, "--n-rows", "10000000", "--epsilon", "0.5"], env={"COLUMNS": "80"})
    assert "…" not in narrow.output


def test_a_plan_for_a_hopeless_grid_says_so(folder):
    names = "".join(f"x{j} = [0, 1]\n" for j in range(30))
    (folder / "features.toml").write_text(f"[features]\n{names}")
    output = run(*PLAN, "--n-rows", "300", "--epsilon", "0.02", "--detector", "grid")
    assert "This grid would be all noise" in output
    assert "the model would be secret" in output
    narrow = CliRunner().invoke(app, [*PLAN, "--n-rows", "300", "--epsilon", "0.02"], env={"COLUMNS": "80"})
    assert "all noise" in narrow.output


def test_explain_shows_features_and_draws_them(folder):
    run(*FIT, "--detector", "forest", "--n-rows-hint", "1000")
    output = run("explain", "model.dpo", "points.csv", "-o", "why.svg")
    expected = load("model.dpo").outlier_scores(POINTS).argmax()
    assert f"row {expected}: outlier score" in output
    assert "Wrote why.svg" in output
    assert b"<svg" in (folder / "why.svg").read_bytes()
    first = load("model.dpo").explain(POINTS[1:2]).ranking()[0]
    output = run("explain", "model.dpo", "points.csv", "--row", "1", "--top", "1")
    assert f"{first[0]} {POINTS[1][0] if first[0] == 'age' else POINTS[1][1]} {first[1]:+.3f}" in re.sub(
        "[^ .+\\w-]", "", output
    ).replace("  ", " ")
    rest = load("model.dpo").explain(POINTS[1:2]).ranking()[1][1]
    assert f"(1 other features: {rest:+.3f})" in output
    assert "--row must be a row number of points.csv, from 0 to 3, or -1 for the most outlying row, got 4" in run(
        "explain", "model.dpo", "points.csv", "--row", "4", code=2
    )


def test_explain_says_what_would_be_usual_instead(folder):
    run(*GRID, "--bins", "10", "--max-depth", "9", "--epsilon", "5")
    output = run("explain", "model.dpo", "points.csv", "--row", "3", "-o", "why.png")
    assert "300 (outside 0 to 120)" in output
    found = load("model.dpo").explain(POINTS[3:4])
    region = found.region()
    assert region[0].differs
    assert f"{found.contributions[0, 0]:+.3f} │ {region[0]} │" in output
    assert "where the nearest region that gathers 10 rows by itself differs from the point" in output
    assert "Wrote why.png" in output
    run(*GRID, "--bins", "10", "--max-depth", "0", "--force")
    output = run("explain", "model.dpo", "points.csv", "--row", "1", "-o", "why.png", "--force")
    assert "No region within reach is more usual." in output


def test_explain_knows_levels_and_missing_values(folder):
    (folder / "features.toml").write_text(
        "[features]\nage = {lower = 0, upper = 120, missing = 'cell'}\nsex = {levels = ['f', 'm']}\n"
    )
    rows = [[row[0], "fm"[i % 2]] for i, row in enumerate(ROWS)]
    write_csv(folder / "reference.csv", rows, header=("id", "age", "sex"))
    write_csv(folder / "points.csv", [[50, "f"], ["", "divers"], [50, "[x]"]], header=("id", "age", "sex"))
    for kind in KINDS:
        run(*KINDS[kind], "--epsilon", "5", "--force")
        output = run("explain", "model.dpo", "points.csv", "--row", "1", "-o", "why.svg", "--force")
        assert "│ missing │" in output
        assert "│ divers (other) │" in output
        output = run("explain", "model.dpo", "points.csv", "--row", "2")
        assert "│ [x] (other) │" in output
        if kind != "forest":  # three trees may look elsewhere
            assert re.search(r"│ sex │ \[x\] \(other\) │ [+.\d]+ │ [fm] │", output), output


def test_parquet_in_and_out(folder):
    pq.write_table(pa.table({"bmi": ROWS[:, 1], "note": ["x"] * 1000, "age": ROWS[:, 0]}), "reference.parquet")
    pq.write_table(pa.table({"bmi": POINTS[:, 1], "age": POINTS[:, 0]}), "points.parquet")
    run("fit", "reference.parquet", "--features", "features.toml", "--epsilon", "1", "--detector", "grid", "-o", "m")
    run("score", "m.dpo", "points.parquet", "-o", "scores.parquet")
    scores = pq.read_table("scores.parquet")
    assert scores.column_names == ["bmi", "age", "outlier_score", "outside_bounds"]
    assert scores.column("outlier_score").to_pylist() == load("m.dpo").outlier_scores(POINTS).tolist()


@pytest.mark.parametrize("reference", ["rows", "rows/*.parquet", "texts/*.csv"])
def test_folders_and_patterns_are_references_too(folder, reference):
    """Three files with the rows of the one: at this epsilon the counts have no noise to speak of."""
    fit = (*FIT[2:4], "--epsilon", "1000", *TWO)
    run("fit", "reference.csv", *fit, "-o", "whole")
    for name in ("rows", "texts"):
        (folder / name).mkdir()
    for i, part in enumerate(np.array_split(ROWS, 3)):
        pq.write_table(pa.table({"age": part[:, 0], "bmi": part[:, 1]}), folder / "rows" / f"{i}.parquet")
        write_csv(folder / "texts" / f"{i}.csv", part)
    run("fit", reference, *fit, "-o", "parts")
    whole, parts = (load(f"{name}.dpo").model_.counts.counts.tolist() for name in ("whole", "parts"))
    assert whole == parts
    assert sum(parts) == len(ROWS)
    assert "no file matches none*.parquet" in run("fit", "none*.parquet", *fit, "-o", "none", code=2)


class Screen(io.StringIO):
    """A terminal that keeps what is shown."""

    def isatty(self):
        return True


def test_a_terminal_shows_the_share_of_bytes_read_in_each_pass(folder, monkeypatch):
    """And never rows, their number, or the size of the file."""
    monkeypatch.setattr("dpoutlier.tables.csv.RECORDS", 100)
    monkeypatch.setattr("rich.progress.Progress.update", refreshing(Progress.update))
    monkeypatch.setattr(sys, "stderr", Screen())
    with reading("reading and counting") as watch:
        table = file_table(folder / "reference.csv", ("age", "bmi"))
        table.watch = watch
        DPGridKNN(1, features={"age": (0, 120), "bmi": (10, 80)}, n_rows_hint="estimate").fit(table)
    shown = sys.stderr.getvalue()
    shares = [int(share) for share in re.findall(r"(\d+)%", shown)]
    ends = [i for i, share in enumerate(shares) if share == 100]
    assert any(0 < share < 100 for share in shares[: ends[0]])
    assert any(
        0 < share < 100 for share in shares[ends[0] :]
    )  # the second pass, after the number of rows was estimated
    assert "reading and counting" in shown
    numbers = {int(number) for number in re.findall(r"\d+", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown))}
    assert max(numbers) <= 100


def refreshing(update):
    def shown(self, *arguments, **named):
        update(self, *arguments, refresh=True, **named)

    return shown


def test_without_a_terminal_nothing_is_shown(folder, capfd):
    with reading("reading and counting") as watch:
        watch(1, 2)
    assert capfd.readouterr() == ("", "")


def test_a_threshold_estimated_at_the_fit_can_be_moved(folder):
    run(*FIT, "--target-fpr", "0.1")
    assert "prediction" in run("score", "model.dpo", "points.csv")
    run("score", "model.dpo", "points.csv", "--target-fpr", "0.3")


# What must not be an error ----------------------------------------------------------------------------------------------

BROKEN_ROWS = {
    "no rows": "",
    "a long field": "p," + "9" * 3_000_000 + ",3\n",
    "a long field that is no feature": "p" * 3_000_000 + ",2,3\n",
    "too many fields in an unknown encoding": "p,3,4,\xe9\n",
    "a byte of zero": "p,\x00,3\n",
    "an open quotation mark": 'p,"3,4\n',
    "an empty line": "\n",
    "a carriage return": "p,3\r,4\n",
    "missing": "p,,\n",
    "text": "p,old,heavy\n",
    "other encoding": "p,\xff\xfe,3\n",
    "too few fields": "p,3\n",
    "too many fields": "p,3,4,5,6\n",
    "infinite": "p,inf,-inf\n",
    "huge": "p,1e999,-1e999\n",
}


@pytest.mark.parametrize("fit", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("rows", BROKEN_ROWS.values(), ids=BROKEN_ROWS)
def test_what_stands_in_reference_rows_is_never_an_error(folder, rows, fit):
    plain = run(*fit, *ALL_NOISE, "--force")
    (folder / "reference.csv").write_bytes(b"id,age,bmi\n" + rows.encode("latin-1"))
    assert run(*fit, *ALL_NOISE, "--force") == plain  # the same output, to the letter


def test_a_header_without_a_line_end_is_a_file_of_no_rows(folder):
    plain = run(*KINDS["grid"], *ALL_NOISE, "--force")
    (folder / "reference.csv").write_bytes(b"id,age,bmi")
    assert run(*KINDS["grid"], *ALL_NOISE, "--force") == plain


def test_a_file_without_a_header_shows_no_value(folder):
    (folder / "reference.csv").write_text("p,54.123,27.9\n")
    output = run(*FIT, code=2)
    assert "first line name the columns" in output
    assert "54.123" not in output


def test_in_a_file_of_one_column_an_empty_line_is_a_missing_value(folder):
    (folder / "features.toml").write_text("[features]\nage = [0, 120]\n")
    (folder / "reference.csv").write_text("age\n70\n\n80\n")
    run("fit", "reference.csv", "--features", "features.toml", "--epsilon", "1000", *TWO, "-o", "m")
    assert load("m.dpo").model_.counts.counts.tolist() == [1, 2]


def test_one_record_is_one_row_wherever_it_stands(folder):
    """Also a quoted value over several lines, around the sizes at which readers cut files into blocks."""
    record = '"7\n8,5\n9",100,70\n'
    for size in range(2**20 - 30, 2**20 + 4, 3):
        filler = "p" * (size - len("id,age,bmi\n") - 4) + ",1\n"  # too few fields: no row
        (folder / "reference.csv").write_text("id,age,bmi\n" + filler + record)
        (table,) = file_table(folder / "reference.csv", ("age", "bmi")).batches()
        assert table.to_pydict() == {"age": ["100"], "bmi": ["70"]}


def test_values_that_do_not_parse_count_in_the_first_bin(folder):
    (folder / "reference.csv").write_bytes(b"id,age,bmi\n" + b"p,x,\xff\n" * 500 + b"q,119,79\n" * 200)
    run("fit", "reference.csv", "--features", "features.toml", "--epsilon", "1000", *TWO, "-o", "m")
    assert load("m.dpo").model_.counts.counts.tolist() == [500, 0, 0, 200]


# Errors for people ------------------------------------------------------------------------------------------------------


def change(**files):
    def apply():
        for name, content in files.items():
            path = Path(name.replace("_", "."))
            path.unlink() if content is None else path.write_text(content)

    return apply


@pytest.mark.parametrize(
    ("prepare", "arguments", "message"),
    [
        (change(reference_csv=None), FIT, "reference.csv does not exist"),
        (change(features_toml=None), FIT, "features.toml does not exist"),
        (change(features_toml="[features]\nage = [3, 1]\n"), FIT, "lower < upper, got (3.0, 1.0)"),
        (change(features_toml="[features]\nweight = [3, 4]\n"), FIT, "no column 'weight'"),
        (change(reference_csv=""), FIT, "needs a header line"),
        (change(), (*FIT[:5], "0", *FIT[6:]), "--epsilon must be a positive number, got '0'"),
        (change(), (*FIT[:5], "nan", *FIT[6:]), "--epsilon must be a positive number"),
        (change(), (*GRID, "--bins", "x"), "--bins must be 'auto'"),
        (change(), (*GRID, "--bins", "0"), "--bins must be a whole number of at least 1"),
        (change(), (*GRID, "--k", "0"), "--k must be a whole number of at least 1"),
        (change(), (*FIT, "--n-rows-hint", "lots"), "--n-rows-hint must be a public guess"),
        (change(), (*KINDS["forest"], "--bins", "4"), "--bins is not an option of DPForest"),
        (change(), (*KINDS["marginals"], "--n-trees", "4"), "--n-trees is not an option of DPMarginals"),
        (change(), (*KINDS["grid"], "--tree-seed", "4"), "--tree-seed is not an option of DPGridKNN"),
        (change(), (*KINDS["forest"], "--depth", "deep"), "--depth must be 'auto' or a whole number, got 'deep'"),
        (change(), (*KINDS["forest"], "--subspace", "2,x"), "--subspace must be a number, or numbers"),
        (change(), (*KINDS["forest"], "--n-trees", "0"), "--n-trees must be a whole number of at least 1"),
        (change(), (*PLAN, "--n-rows", "100", "--epsilon", "inf"), "--epsilon must be finite"),
        (change(), (*PLAN, "--n-rows", "100", "--epsilon", "x"), "--epsilon must be a positive number"),
        (change(features_toml=None), (*PLAN, "--n-rows", "100", "--epsilon", "1"), "features.toml does not exist"),
        (change(model_dpo="x"), ("explain", "model.dpo", "points.csv"), "not a model file"),
        (change(), ("explain", "model.dpo", "points.csv", "-o", "why.gif"), "--output must be a .png or .svg file"),
        (change(why_png="x"), ("explain", "model.dpo", "points.csv", "-o", "why.png"), "why.png exists"),
        (change(model_dpo="x"), FIT, "model.dpo exists"),
        (change(), (*FIT[:-1], "model.secret.dpo"), "is publishable"),
        (change(), ("fit", "features.toml", *FIT[2:]), "must be a .csv or .parquet file"),
        (change(), ("score", "model.dpo", "points.csv"), "model.dpo does not exist"),
        (change(model_dpo="x"), ("score", "model.dpo", "points.csv"), "not a model file"),
        (change(model_dpo="x"), ("inspect", "model.dpo"), "not a model file"),
    ],
)
def test_errors_name_the_cause_and_exit_with_2(folder, prepare, arguments, message):
    prepare()
    before = sorted(folder.iterdir())
    output = run(*arguments, code=2)
    assert "Error:" in output
    assert message in output
    assert "Traceback" not in output
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ("id,age,bmi\np,old,30\n", "not a number in age, row 0 (counted from 0): 'old'"),
        ("id,age,bmi\np,40,\n", "not a number in bmi, row 0 (counted from 0): ''"),
        ("id,age\np,40\n", "no column 'bmi'"),
        ("id,age,bmi,age\np,40,30,40\n", "more than one column named 'age'"),
        ("id,age,bmi\np,40\n", "points.csv, line 2: the record has 2 values, but the header names 3 columns"),
        ("id,age,bmi,x,x\np,40,30,1,2\n", "more than one column named 'x'"),
        ("id,age,bmi,outlier_score\np,40,30,1\n", "a column 'outlier_score', which scoring would add"),
        ("id;age;bmi\np;40;30\n", "separated by commas"),
    ],
)
def test_bad_points_are_shown_and_nothing_is_written(folder, points, message):
    run(*FIT)
    (folder / "points.csv").write_text(points)
    assert message in run("score", "model.dpo", "points.csv", "-o", "out.csv", code=2)
    assert not (folder / "out.csv").exists()


def test_existing_scores_are_kept_without_force(folder):
    run(*FIT)
    (folder / "out.csv").write_text("mine")
    assert "--force" in run("score", "model.dpo", "points.csv", "-o", "out.csv", code=2)
    assert (folder / "out.csv").read_text() == "mine"
    run("score", "model.dpo", "points.csv", "-o", "out.csv", "--force")
    assert "outlier_score" in (folder / "out.csv").read_text()


def test_what_looks_like_markup_is_shown_as_it_is(folder):
    run(*FIT)
    write_csv(folder / "points.csv", [["[/red]", 50, 27]], header=("[/b]", "age", "bmi"), extra=False)
    output = run("score", "model.dpo", "points.csv")
    assert "[/red]" in output
    assert "[/b]" in output


def test_a_narrow_terminal_shows_the_result_whole(folder):
    run(*FIT, "--target-fpr", "0.1")
    result = CliRunner().invoke(app, ["score", "model.dpo", "points.csv"], env={"COLUMNS": "80"})
    assert "outlier_score" in result.output
    assert "prediction" in result.output
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_csv_points_become_numbers_in_parquet_and_stay_as_written_in_csv(folder):
    run(*FIT)
    run("score", "model.dpo", "points.csv", "-o", "s.parquet")
    run("score", "model.dpo", "points.csv", "-o", "s.csv")
    assert pq.read_schema("s.parquet").field("age").type == pa.float64()
    assert (folder / "s.csv").read_text().splitlines()[1].startswith("p0,50,27,")


@pytest.mark.parametrize("output", ["nodir/m", ".", "taken"])
def test_outputs_that_cannot_be_written_are_refused_before_rows_are_read(folder, output, monkeypatch):
    monkeypatch.setattr("dpoutlier.trusted.fit.open_reference", pytest.fail)
    (folder / "taken.dpo").mkdir()
    output_of_fit = run(*FIT[:-1], output, code=2)
    assert "cannot be written" in output_of_fit or "needs a name" in output_of_fit
    assert ".part" not in output_of_fit


@pytest.mark.parametrize("command", [(*FIT[:5], "inf", *FIT[6:]), ("demo", "--epsilon", "inf", "--out", "d")])
def test_the_command_line_fits_private_models_only(folder, command):
    assert "--epsilon must be finite" in run(*command, code=2)


def test_a_full_disk_exits_with_1_and_leaves_nothing(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left on device" in run(*FIT, code=1)
    assert not list(folder.glob("*model*"))


def test_merge_adds_models_up(folder):
    for name in ("a", "b"):
        run(*FIT[:-1], name, "--n-rows-hint", "1000", "--target-fpr", "0.1")
    output = run("merge", "a.dpo", "b.dpo", "--people", "disjoint", "-o", "all")
    assert "Privacy statement" in output
    assert "declared disjoint" in output
    assert "Wrote all.dpo" in output
    a, b, both = (load(f"{name}.dpo").model_ for name in ("a", "b", "all"))
    assert (both.counts.counts == a.counts.counts + b.counts.counts).all()
    assert "4 most outlying of 4 points" in run("score", "all.dpo", "points.csv")
    assert "together 0.5" in run("inspect", "all.dpo")
    run("merge", "a.dpo", "b.dpo", "--people", "overlapping", "-o", "all", "--force")
    content = json.loads(CliRunner().invoke(app, ["inspect", "all.dpo", "--json"]).output)
    assert content["statement"]["epsilon"] == "1"
    assert content["statement"]["merged"]["people"] == "overlapping"


def test_what_merge_refuses(folder):
    run(*FIT[:-1], "a", "--n-rows-hint", "1000")
    run(*GRID[:-3], "b", *TWO)
    run(*GRID[:-3], "c", *TWO, "--counts", "keyed")
    before = sorted(folder.iterdir())
    for arguments, message in (
        (("a.dpo", "b.dpo", "--people", "disjoint"), "a.dpo and b.dpo differ in their detector"),
        (("a.dpo", "a.dpo", "--people", "disjoint"), "hold the same release"),
        (("b.dpo", "c.secret.dpo", "--people", "disjoint"), "c.secret.dpo is secret"),
        (("a.dpo", "--people", "disjoint"), "MODELS must be at least two, got 1"),
        (("a.dpo", "b.dpo"), "--people must be 'disjoint' or 'overlapping'"),
        (("a.dpo", "b.dpo", "--people", "all"), "nobody has rows in more than one"),
        (("a.dpo", "none.dpo", "--people", "disjoint"), "none.dpo does not exist"),
    ):
        assert message in run("merge", *arguments, "-o", "all", code=2)
    assert "a.dpo exists" in run("merge", "a.dpo", "b.dpo", "--people", "disjoint", "-o", "a", code=2)
    assert sorted(folder.iterdir()) == before


# Help ---------------------------------------------------------------------------------------------------------------------


COMMANDS = [[one.callback.__name__] for one in app.registered_commands] + [
    [group.name, one.name or one.callback.__name__.replace("_", "-")]
    for group in app.registered_groups
    for one in group.typer_instance.registered_commands
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(words):
    assert f"Example: dpoutlier {' '.join(words)}" in run(*words, "--help")


OLD_NAMES = [(words, *pair) for words, names in NEW_NAMES.items() for pair in names.items()]


@pytest.mark.parametrize(("command", "old", "new"), OLD_NAMES)
def test_an_old_name_of_an_option_is_accepted_and_not_shown(folder, command, old, new):
    plain = {
        "fit": [*FIT, "--force", "--n-rows-hint", "1000"],
        "plan": [*PLAN, "--epsilon", "0.5"],
        "score": ["score", "model.dpo", "points.csv"],
        "audit": ["audit", "--out", "features.toml"],  # refused once all options are understood: it is not a folder
    }
    value = {"trees": "3", "n-hint": "900", "holder": "dense", "rows": "10", "jobs": "1"}[old]
    more = ["--detector", "grid"] if old == "holder" else []
    if command == "score":
        run(*FIT)

    def outcome(option):
        printed = run(*plain[command], *more, f"--{option}", value, code=2 if command == "audit" else 0)
        return str(load("model.dpo").estimator().get_params()) if command == "fit" else printed

    assert outcome(old) == outcome(new)
    printed = run(command, "--help")
    assert f"--{new} " in printed
    assert f"--{old} " not in printed
    assert f"No such option: --{old}x" in run(*plain[command], f"--{old}x", "1", code=2)
    if old == "n-hint":
        run(*plain["fit"], "--n-hint", "buy")  # the old word for "estimate"


def test_the_manual_is_what_help_prints():
    """``make manual`` writes it."""
    folder = Path(__file__).parents[2] / "docs"
    program = [sys.executable, str(folder / "make_manual.py"), "--print"]
    printed = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    assert (folder / "command-line.md").read_text() == printed


def test_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+ ?", run("--version"))


def test_help_does_not_import_what_is_slow():
    """The reason why --help answers in under 0.3 s; bench/machine.py measures start-up."""
    program = (
        "import sys\nfrom dpoutlier.cli.app import app\n"
        "slow = {'numba', 'sklearn', 'scipy', 'pandas', 'pyarrow', 'matplotlib', 'numpy', 'narwhals'} & set(sys.modules)\n"
        "assert not slow, slow"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_names_that_look_like_formulas_are_drawn_as_they_are(folder):
    (folder / "features.toml").write_text("[features]\n'cost $\\frac$' = [0, 120]\nbmi = [10, 80]\n")
    write_csv(folder / "reference.csv", ROWS, header=("id", r"cost $\frac$", "bmi"))
    write_csv(folder / "points.csv", POINTS, header=("id", r"cost $\frac$", "bmi"))
    run(*FIT, "--detector", "forest", "--n-rows-hint", "1000")
    assert "Wrote why.png" in run("explain", "model.dpo", "points.csv", "-o", "why.png")
    write_csv(folder / "points.csv", POINTS[:0], header=("id", r"cost $\frac$", "bmi"))
    assert "points.csv has no rows" in run("explain", "model.dpo", "points.csv", code=2)
