"""``dpoutlier reproduce`` as a user runs it."""

import json

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from dpoutlier.cli.app import app
from dpoutlier.experiments.measure import workers
from shared_data import needs_data


def run(*arguments):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)])


@pytest.mark.slow
@needs_data
def test_one_set_quickly_and_again_at_once(data, tmp_path, monkeypatch):
    """Everything is written; a second run finds all of it done and writes the same tables."""
    arguments = ("--quick", "--sets", "heart", "--data", data, "--out", tmp_path / "out", "--jobs", 1)
    first = run(*arguments)
    assert first.exit_code == 0, first.output
    assert "1 claims of the paper hold" in first.output
    assert "Heart at epsilon .3" in first.output
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
        (["--sets", "wdbc", "--jobs", "0"], "--jobs must be a number of processes"),
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


def test_no_privacy_is_claimed():
    """What is seeded or leaks says so: a saved model of any run would be secret."""
    from dpoutlier.exceptions import UnsafeWarning
    from dpoutlier.experiments.measure.variants import VARIANTS
    from made_data import made

    for variant in VARIANTS:
        detector = variant.private(1, (0, 1), 3, 2, weighted=False, n=10, seed=1)
        with pytest.warns(UnsafeWarning, match="NOT PRIVATE"):
            detector.fit(made("heart").rows)
        assert not detector.model_.publishable
        assert json.dumps(detector.privacy_statement().to_dict())
        assert detector.guarantee_.voided_by
