"""Alarms at a false-discovery rate on the command line, and whether a threshold can be trusted."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from dpoutlier import DPForest, DPGridKNN, DPMarginals, FalseAlarms, load, merge
from dpoutlier.cli import files, score, threshold
from dpoutlier.cli.app import app
from dpoutlier.tables import batched

N = 20_000
BOUNDS = {"x": (-6, 6), "y": (-6, 6)}
rng = np.random.default_rng(0)
NORMAL = pa.table({"x": rng.normal(size=N), "y": rng.normal(size=N)})


def made_points(n=3000, seed=1, every=10):
    random = np.random.default_rng(seed)
    x, y = random.normal(size=(2, n))
    x[::every], y[::every] = random.uniform(5, 6, size=(2, len(x[::every])))
    return pa.table({"id": [f"p{i}" for i in range(n)], "y": y, "x": x})


POINTS = made_points()


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    rows = NORMAL
    DPForest(2, features=BOUNDS, n_rows_hint=N, target_fpr=0.05).fit(rows).save(folder / "good")
    forest = DPForest(0.3, features=BOUNDS, n_rows_hint=300, target_fpr=0.05).fit(rows.slice(0, 300))
    forest.save(folder / "few")
    DPMarginals(1, features=BOUNDS).fit(rows).save(folder / "plain")
    DPGridKNN(1, features=BOUNDS, bins=5, weighted=True, target_fpr=0.1).fit(rows).save(folder / "weighted")
    parts = [DPMarginals(1, features=BOUNDS, bins=4).fit(rows) for _ in range(2)]
    merge(parts, people="disjoint").save(folder / "merged")
    return folder


@pytest.fixture
def folder(tmp_path, monkeypatch, models):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(batched, "BATCH", 12 * 700)  # values: 700 rows of 3 columns at once
    monkeypatch.setattr(files, "BATCH", 900)
    monkeypatch.setattr(score, "BATCH", 256)
    for path in models.iterdir():
        (tmp_path / path.name).symlink_to(path)
    pq.write_table(POINTS, "points.parquet")
    POINTS.to_pandas().to_csv("points.csv", index=False)
    Path("parts").mkdir()
    for i in range(3):
        pq.write_table(POINTS.slice(1000 * i, 1000), f"parts/{i}.parquet", row_group_size=300)
    return tmp_path


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(one) for one in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output
    return result


def features(table=POINTS):
    return table.select(["x", "y"])


# Alarms -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [["points.parquet"], ["parts"], ["points.csv"]], ids=" ".join)
@pytest.mark.parametrize("fdr", [0.001, 0.05, 0.3, 0.99])
def test_alarms_are_those_of_all_points_at_once(folder, given, fdr):
    detector = load("good.dpo")
    p_values, alarms = detector.p_values(features()), detector.alarms(features(), fdr=fdr)
    told = run("score", "good.dpo", *given, "-o", "out.parquet", "--fdr", fdr).stdout
    written = pq.read_table("out.parquet")
    assert written.column_names[-5:] == ["outlier_score", "outside_bounds", "prediction", "p_value", "alarm"]
    assert (written.schema.field("p_value").type, written.schema.field("alarm").type) == (pa.float64(), pa.bool_())
    assert written["p_value"].to_pylist() == p_values.tolist()
    assert written["alarm"].to_pylist() == alarms.tolist()
    assert f"Flagged {alarms.sum():,} of 3,000 points at a false-discovery rate of {fdr:g}." in told
    run("score", "good.dpo", *given, "-o", "out.csv", "--fdr", fdr)
    records = list(csv.DictReader(Path("out.csv").read_text().splitlines()))
    assert [float(one["p_value"]) for one in records] == p_values.tolist()
    assert [one["alarm"] for one in records] == [str(one).lower() for one in alarms]
    if fdr == 0.3:
        assert 300 <= alarms.sum() < 1000


def test_the_printed_table_has_both_with_and_without_an_output(folder):
    alarms = load("good.dpo").alarms(features(), fdr=0.1)
    assert 300 <= alarms.sum() < len(alarms)
    shown = run("score", "good.dpo", "points.csv", "--fdr", "0.1", "--top", "900").stdout
    written = run("score", "good.dpo", "points.csv", "--fdr", "0.1", "--top", "900", "-o", "out.csv").stdout
    assert written.replace("Wrote out.csv\n", "") == shown
    header = next(line for line in shown.splitlines() if "p_value" in line)
    at = [name.strip() for name in header.split("┃")].index("alarm")
    rows = [[cell.strip() for cell in line.split("│")] for line in shown.splitlines() if line.startswith("│")]
    assert {int(row[1]): row[at] == "yes" for row in rows} == {int(row[1]): bool(alarms[int(row[1])]) for row in rows}
    assert len({row[at] for row in rows}) == 2
    assert "p_value" not in run("score", "good.dpo", "points.csv").stdout
    narrow = CliRunner().invoke(app, ["score", "good.dpo", "points.csv", "--fdr", "0.1"], env={"COLUMNS": "80"}).stdout
    assert max(map(len, narrow.splitlines())) <= 80
    assert all(name in narrow for name in ("outlier_score", "prediction", "p_value", "alarm"))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_points_without_a_score_do_not_count(folder, suffix):
    absent = np.isin(np.arange(len(POINTS)), [0, 5, 10, 2999])
    x = pa.array(np.where(absent, None, POINTS["x"].to_numpy()).tolist(), pa.float64())
    table = POINTS.set_column(2, "x", x)
    pq.write_table(table, "holes.parquet")
    table.to_pandas().to_csv("holes.csv", index=False)
    alarms = load("good.dpo").alarms(features().filter(~absent), fdr=0.2)
    told = run("score", "good.dpo", f"holes.{suffix}", "-o", "out.parquet", "--fdr", "0.2", "--missing", "null").stdout
    assert f"Flagged {alarms.sum():,} of 2,996 points" in told
    written = pq.read_table("out.parquet")
    for name in ("p_value", "alarm"):
        assert [value is None for value in written[name].to_pylist()] == absent.tolist()
    assert [value for value in written["alarm"].to_pylist() if value is not None] == alarms.tolist()
    run("score", "good.dpo", f"holes.{suffix}", "-o", "out.csv", "--fdr", "0.2", "--missing", "null")
    assert Path("out.csv").read_text().splitlines()[1].endswith(",,,,,")


def test_without_the_option_the_output_is_as_before(folder):
    detector = load("good.dpo")
    run("score", "good.dpo", "points.csv", "-o", "out.csv")
    scores, labels = detector.outlier_scores(features()).tolist(), detector.predict(features()).tolist()
    outside = detector.outside_bounds(features()).tolist()
    given = Path("points.csv").read_text().splitlines()
    lines = [
        f"{line},{own!r},{str(out).lower()},{label}"
        for line, own, out, label in zip(given[1:], scores, outside, labels, strict=True)
    ]
    names = f"{given[0]},outlier_score,outside_bounds,prediction"
    assert Path("out.csv").read_text() == "\n".join([names, *lines]) + "\n"


def test_that_nothing_can_be_flagged_is_said_with_the_remedy(folder):
    smallest = load("few.dpo").model_.p_values().values.min()
    told = run("score", "few.dpo", "points.csv", "--fdr", f"{smallest / 2:.9f}").stdout
    assert "Flagged 0 of 3,000 points" in told
    assert f"None can ever be, since the smallest p-value that this model gives is {smallest:.3g}." in told
    assert "more epsilon" in told
    smallest = load("good.dpo").model_.p_values().values.min()
    pq.write_table(made_points(3000, 2, every=3000), "one.parquet")
    told = run("score", "good.dpo", "one.parquet", "--fdr", "0.05").stdout
    fewest = int(re.search(r"At least ([\d,]+) of 3,000 points must have", told)[1].replace(",", ""))
    assert fewest - 1 < smallest * 3000 / 0.05 <= fewest
    assert "more epsilon" in told
    assert "never" not in run("score", "good.dpo", "points.parquet", "--fdr", "0.05").stdout


def test_no_points_have_no_alarms(folder):
    pq.write_table(POINTS.slice(0, 0), "none.parquet")
    told = run("score", "good.dpo", "none.parquet", "-o", "out.parquet", "--fdr", "0.1").stdout
    assert "Flagged 0 of 0 points" in told
    assert pq.read_table("out.parquet").column_names[-2:] == ["p_value", "alarm"]


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (
            "plain",
            "the model gives no p-values: the fit spent no epsilon on a histogram of scores. Fit with --target-fpr",
        ),
        ("merged", "the model gives no p-values: a merge has no histogram of its own scores."),
        ("weighted", "can rise when a row is added"),
    ],
)
def test_a_model_without_p_values_is_refused_before_anything_is_written(folder, model, said):
    before = sorted(folder.iterdir())
    told = run("score", f"{model}.dpo", "points.csv", "-o", "out.csv", "--fdr", "0.1", code=2)
    assert said in told.stderr
    assert "--threshold SCORE" not in told.stderr.splitlines()[-1]
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("value", ["0", "1", "-0.1", "nan", "7"])
def test_what_fdr_must_be(folder, value):
    told = run("score", "good.dpo", "points.csv", "--fdr", value, code=2).stderr
    assert "--fdr must be a number between 0 and 1, both excluded" in told


def test_a_column_that_would_be_added_twice_is_refused(folder):
    pq.write_table(POINTS.append_column("alarm", [["x"] * len(POINTS)]), "twice.parquet")
    told = run("score", "good.dpo", "twice.parquet", "-o", "out.csv", "--fdr", "0.1", code=2).stderr
    assert "has a column 'alarm', which scoring would add" in told
    run("score", "good.dpo", "twice.parquet", "-o", "out.csv")


# Thresholds that cannot be trusted ----------------------------------------------------------------------------------------

HEADLINE, WARNED = "The threshold cannot be trusted: ", "THE THRESHOLD CANNOT BE TRUSTED"


def test_score_says_first_that_a_threshold_cannot_be_trusted(folder):
    assert not load("few.dpo").false_alarms().trusted
    told = run("score", "few.dpo", "points.csv")
    assert told.stderr.startswith(HEADLINE)
    assert "--threshold SCORE" in told.stderr
    assert HEADLINE not in told.stdout
    assert told.output.startswith(HEADLINE)
    assert HEADLINE not in run("score", "good.dpo", "points.csv").output
    moved = load("good.dpo").set_threshold(target_fpr=0.00002).false_alarms()
    assert not moved.trusted
    assert HEADLINE in run("score", "good.dpo", "points.csv", "--target-fpr", "0.00002").stderr
    assert HEADLINE in run("score", "good.dpo", "points.csv", "--threshold", "99").stderr
    assert HEADLINE not in run("score", "plain.dpo", "points.csv", "--threshold", "2").output


FIT = ("fit", "rows.csv", "--features", "features.toml")


def test_fit_and_inspect_say_what_the_threshold_does(folder):
    Path("features.toml").write_text("[features]\nx = [-6, 6]\ny = [-6, 6]\n")
    NORMAL.slice(0, 5000).to_pandas().to_csv("rows.csv", index=False)
    told = run(*FIT, "--epsilon", "2", "--n-rows-hint", "5000", "--target-fpr", "0.05", "-o", "sure").stdout
    found = load("sure.dpo").false_alarms()
    assert found.trusted
    for page in (told, run("inspect", "sure.dpo").stdout):
        assert WARNED not in page
        assert f"false alarms              {str(found).split(';')[0]}" in page
    said = json.loads(run("inspect", "sure.dpo", "--json").stdout)["statement"]["false_alarms"]
    assert said == found.to_dict() | {"target_fpr": 0.05, "outlier_share": 0.0}
    NORMAL.slice(0, 100).to_pandas().to_csv("rows.csv", index=False)
    told = run(*FIT, "--epsilon", "0.2", "--n-rows-hint", "100", "--target-fpr", "0.05", "-o", "unsure").stdout
    assert not load("unsure.dpo").false_alarms().trusted
    for page in (told, run("inspect", "unsure.dpo").stdout):
        assert page.splitlines()[3].startswith(WARNED)  # after the title
    assert json.loads(run("inspect", "unsure.dpo", "--json").stdout)["statement"]["false_alarms"]["trusted"] is False
    told = run(*FIT, "--epsilon", "1", "--n-rows-hint", "100", "-o", "without").stdout
    assert "false alarms" not in told
    assert "false_alarms" not in json.loads(run("inspect", "without.dpo", "--json").stdout)["statement"]


def test_what_the_headline_says():
    found = FalseAlarms(0.05, 0.0, 0.31, 0.9, 1.0)
    assert threshold.doubt(found) == "it may flag 0 % to 31 % of normal points (90 % confidence)"
    never = FalseAlarms(0.0, 0.0, 0.0, 0.9, 1.0)
    assert threshold.doubt(never) == "it lies above every score, so no point is ever flagged"


# Planning -----------------------------------------------------------------------------------------------------------------

PLAN = ("plan", "--features", "features.toml")


@pytest.fixture
def declared(folder):
    Path("features.toml").write_text("[features]\nx = [0, 1]\ny = [0, 1]\n")


def test_a_plan_says_what_a_threshold_would_do(declared):
    told = run(*PLAN, "--n-rows", "5000", "--epsilon", "2", "--target-fpr", "0.05").stdout
    found = re.search(
        r"With --target-fpr 0.05 about ([\d.]+) % of normal points would be flagged; expect between ([\d.]+) % and ([\d.]+) % "
        r"\(90 % confidence\)\.",
        told,
    )
    about, lower, upper = map(float, found.groups())
    assert 2 < lower < about < upper < 9
    assert "at most" not in told
    assert "false" not in run(*PLAN, "--n-rows", "5000", "--epsilon", "2").stdout


def test_a_plan_for_too_few_rows_says_first_that_the_threshold_could_not_be_trusted(declared):
    told = run(*PLAN, "--n-rows", "100", "--epsilon", "0.2", "--target-fpr", "0.05", "--detector", "marginals").stdout
    assert told.startswith("The threshold could not be trusted: with --target-fpr 0.05 it ")


def test_fewer_rows_than_meant_are_said_to_make_the_interval_wider(declared):
    options = ("--n-rows", "2000000", "--epsilon", "1", "--detector", "forest")
    told = run(*PLAN, *options, "--target-fpr", "0.05").stdout
    assert "% at most (90 % confidence; fewer rows than yours were simulated, which makes it wider)." in told
    told = run(*PLAN, *options, "--target-fpr", "0.00005").stdout
    assert told.startswith(
        "The threshold could not be trusted on the 20,000 rows that were simulated; with all of yours"
    )
    told = run(*PLAN, *options, "--target-fpr", "1", code=2).stderr
    assert "--target-fpr must be a number between 0 and 1" in told
