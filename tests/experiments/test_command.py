"""``python -m experiments`` as a user runs it."""

import json
import sys

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from experiments.__main__ import app
from experiments.measure import workers
from experiments.report.progress import progress
from shared_data import needs_data


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.mark.slow
@needs_data
def test_one_set_quickly_and_again_at_once(data, tmp_path, monkeypatch):
    """Everything is written; a second run finds all of it done and writes the same tables."""
    arguments = ("--quick", "--sets", "heart", "--data", data, "--out", tmp_path / "out", "--n-jobs", 1)
    first = run(*arguments)
    assert first.exit_code == 0, first.output
    quick = "This is the quick run: 2 of 5 splits, 2 of 10 noise seeds, 3 of 9 values of b. The full run, without --quick, may"
    assert quick in first.output
    assert "Of 5 claims of the paper " in first.output
    assert "Heart at" in first.output
    assert "report.html" in first.output
    table = (tmp_path / "out" / "results.parquet").read_bytes()
    assert set(pq.read_table(tmp_path / "out" / "results.parquet")["split"].to_pylist()) == {0, 1}
    assert "Run on heart alone" in " ".join((tmp_path / "out" / "report.html").read_text().split())
    monkeypatch.setattr(workers, "_finish", lambda *_: pytest.fail("this was done before"))
    again = run(*arguments)
    assert again.exit_code == 0, again.output
    assert (tmp_path / "out" / "results.parquet").read_bytes() == table


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sets", "iris"], "there is no data set 'iris'; the sets are lymphography, pima, wdbc, heart, adult"),
        (["--data", "nowhere"], "there is no folder nowhere (--data)"),
        (["--data", ".", "--sets", "wdbc,heart"], "the data set wdbc is missing: there is no file wdbc.csv"),
        (["--only", "figure3"], "--only must be one of 'table1', 'illustration', 'figure1', 'figure2', got 'figure3'"),
        (["--sets", "wdbc", "--n-jobs", "0"], "--n-jobs must be a number of processes"),
        (["--sets", "wdbc", "--out", "taken"], "taken"),
    ],
)
def test_errors_name_the_cause_before_anything_is_run(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPOUTLIER_DATA", raising=False)
    (tmp_path / "taken").write_text("a file")
    found = run(*arguments)
    assert found.exit_code in {1, 2}
    assert message in found.output
    assert found.output.startswith("Error: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["taken"]


def test_without_a_terminal_each_phase_is_a_line(capsys):
    with progress() as watch:
        for phase, done in (("without noise", 0.0), ("without noise", 1.0), ("over all b", 1.2)):
            watch(phase, done, 4.0)
    assert capsys.readouterr() == ("", "without noise: 0 % done so far\nover all b: 30 % done so far\n")


@pytest.mark.parametrize("absent", ["jinja2", "matplotlib"])
def test_without_an_extra_one_line_names_it(absent, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("experiments.report")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, absent, None)
    found = run("--only", "illustration", "--out", tmp_path / "out")
    assert found.exit_code == 2
    said = f"the report needs {absent}, which comes with the extra dpoutlier[plots]. pip install '.[plots]'"
    assert found.stderr == f"Error: {said}\n"


def test_no_privacy_is_claimed():
    """What is seeded or leaks says so: a saved model of any run would be secret."""
    from dpoutlier.exceptions import UnsafeWarning
    from experiments.measure.variants import VARIANTS
    from made_data import made

    for variant in VARIANTS:
        detector = variant.private(1, (0, 1), 3, 2, weighted=False, n=10, seed=1)
        with pytest.warns(UnsafeWarning, match="NOT PRIVATE"):
            detector.fit(made("heart").rows)
        assert not detector.model_.publishable
        assert json.dumps(detector.privacy_statement().to_dict())
        assert detector.guarantee_.voided_by


def test_the_illustration_alone_needs_no_data(tmp_path):
    found = run("--only", "illustration", "--out", tmp_path / "out")
    assert found.exit_code == 0, found.output
    assert sorted(path.name for path in (tmp_path / "out" / "figures").iterdir()) == [
        "illustration.png",
        "illustration.svg",
    ]


@needs_data
def test_table_1_alone_is_printed_and_is_the_paper_s(data, tmp_path):
    found = run("--only", "table1", "--data", data, "--out", tmp_path / "out")
    assert found.exit_code == 0, found.output
    lines = (tmp_path / "out" / "table1.csv").read_text().replace('"', "").splitlines()
    assert lines[1:] == [
        "Lymph,3,113,35,6",
        "Diabetes,8,400,140,40",
        "Wdbc,30,285,82,10",
        "Heart,13,110,38,10",
        "Adult,7,19776,5044,100",
    ]
    assert all(number in found.output for number in ("19776", "5044", "285"))
    assert not (tmp_path / "out" / "parts").exists()


@pytest.mark.slow
@needs_data
def test_figure_1_alone(data, tmp_path):
    arguments = ("--quick", "--sets", "heart", "--data", data, "--out", tmp_path / "out", "--n-jobs", 1)
    found = run("--only", "figure1", *arguments)
    assert found.exit_code == 0, found.output
    assert "This is the quick run" in found.output
    assert {path.name for path in (tmp_path / "out").iterdir()} == {".lock", "parts", "figures", "figure1.csv"}
    assert (tmp_path / "out" / "figures" / "figure1.png").read_bytes()[1:4] == b"PNG"
