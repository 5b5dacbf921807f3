"""``dpoutlier audit`` as people use it."""

import base64
import csv
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpoutlier import DPForest, DPGridKNN, DPMarginals, PrivateBounds
from dpoutlier.audit.cases import Case, standard_cases
from dpoutlier.audit.configuration import configuration_of_file
from dpoutlier.audit.findings import Finding, table_of
from dpoutlier.audit.report import sharpest_lines, verdict, write_audit
from dpoutlier.audit.run import Effort, run_audit
from dpoutlier.cli.app import app
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.noise.laplace import DiscreteLaplace

GRID = 'detector = "grid"\nepsilon = [0.5, 2]\nbins = 200\nk = 1\n'


def run(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text(GRID)
    return path


@pytest.mark.slow
def test_a_configuration_is_audited_and_reported(config, tmp_path):
    result = run(config, "--out", tmp_path / "out", "--runs", 300, "--quick", "--n-jobs", 1, "--seed", 5)
    assert result.exit_code == 0, result.output
    assert "No claim is refuted by any of 12 audits" in result.output
    with (tmp_path / "out" / "audit.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert {(row["claimed"], row["method"], row["channel"]) for row in rows} == {
        (epsilon, method, channel)
        for epsilon in ("0.5", "2")
        for method in ("many runs", "one run")
        for channel in ("counts", "scores", "file")
    }
    assert all(0 < float(row["bound"]) < float(row["claimed"]) for row in rows if row["method"] == "one run")
    page = (tmp_path / "out" / "audit.html").read_text()
    assert "No claim is refuted" in page
    shell, picture = page.split("data:image/svg+xml;base64,")
    picture, rest = picture.split('"', 1)
    assert "http" not in shell + rest  # needs no network
    assert "<image" not in base64.b64decode(picture).decode()
    assert (tmp_path / "out" / "audit.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_seed_repeats_an_audit_and_processes_do_not_matter(config, tmp_path):
    outputs = []
    config.write_text(GRID.replace("[0.5, 2]", "2"))
    for jobs in (1, 2):  # enough runs to be divided into several parts
        result = run(config, "--out", tmp_path / str(jobs), "--runs", 2500, "--quick", "--n-jobs", jobs, "--seed", 6)
        assert result.exit_code == 0, result.output
        outputs.append((tmp_path / str(jobs) / "audit.csv").read_text())
    assert outputs[0] == outputs[1]


@pytest.mark.slow
def test_a_broken_mechanism_is_refuted_and_reported(config, tmp_path, monkeypatch):
    def half(law, n, source, draw=DiscreteLaplace.draw):
        return draw(DiscreteLaplace(2 * law.rate), n, source)

    monkeypatch.setattr(DiscreteLaplace, "draw", half)
    result = run(config, "--out", tmp_path / "out", "--runs", 100, "--quick", "--n-jobs", 1, "--seed", 5)
    assert result.exit_code == 3
    assert "REFUTED" in result.output
    assert "refute the claim" in (tmp_path / "out" / "audit.html").read_text()


MODELS = {
    "grid": lambda: DPGridKNN(1.0, features=(0, 1), bins=50, k=3, counts="sparse", sparse_size=5, target_fpr=0.2),
    "forest": lambda: DPForest(0.7, features=(0, 1), n_trees=5, depth=3, neighbours="replace-one", rows_per_person=2),
    "marginals": lambda: DPMarginals(1.0, features=PrivateBounds(outer=(0, 9), share=0.2), bins=7),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_file_says_what_to_audit(name, tmp_path):
    """Without its rows: of the same partition, noise and shares, and at no cost to any budget."""
    fitted = MODELS[name]().fit([[0.2, 0.3, 0.1], [0.5, 0.5, 0.9]])
    path = fitted.save(tmp_path / "model")
    configuration, epsilons = configuration_of_file(path)
    assert configuration.n_features == 3
    assert epsilons == [fitted.guarantee_.epsilon]
    again = configuration.model()
    for attribute in ("partition", "charges", "detector"):
        assert getattr(again, attribute) == getattr(fitted.model_, attribute)
    assert again.guarantee.neighbours == fitted.guarantee_.neighbours
    assert again.counts.kind == fitted.model_.counts.kind


def test_a_model_that_promises_nothing_is_refused(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = DPGridKNN(float("inf"), features=(0, 1), bins=2).fit([[0.1]]).save(tmp_path / "model")
    result = run(path)
    assert result.exit_code != 0
    assert "promises nothing" in result.output


def test_features_come_from_a_features_file(tmp_path):
    (tmp_path / "features.toml").write_text("[features]\nage = [0, 120]\ndose = [0, 9]\n")
    (tmp_path / "a.toml").write_text('detector = "marginals"\nepsilon = "1/3"\nbins = 4\nfeatures = "features.toml"\n')
    configuration, epsilons = configuration_of_file(tmp_path / "a.toml")
    assert configuration.n_features == 2
    assert configuration.domain().names == ("age", "dose")
    assert epsilons == ["1/3"]


BAD = {
    "no TOML": ("= 3", "TOML"),
    "no detector": ("epsilon = 1", "detector"),
    "unknown detector": ('detector = "knn"\nepsilon = 1', "'knn'"),
    "no epsilon": ('detector = "grid"\nbins = 2', "epsilon"),
    "no epsilons": ('detector = "grid"\nbins = 2\nepsilon = []', "epsilon"),
    "infinite": ('detector = "grid"\nbins = 2\nepsilon = inf', "finite"),
    "negative": ('detector = "grid"\nbins = 2\nepsilon = [1, -1]', "-1"),
    "unknown argument": ('detector = "forest"\nepsilon = 1\nbins = 3', "unknown bins"),
    "a ledger": ('detector = "grid"\nepsilon = 1\nbins = 2\nledger = "a.db"', "ledger cannot be given"),
    "a seed": ('detector = "grid"\nepsilon = 1\nbins = 2\nunsafe_seed = 1', "unsafe_seed cannot be given"),
    "features and their number": (
        'detector = "grid"\nepsilon = 1\nbins = 2\nn_features = 1\nfeatures = "a.toml"',
        "not both",
    ),
    "features that are no path": ('detector = "grid"\nepsilon = 1\nbins = 2\nfeatures = 3', "features file"),
    "another engine": ('detector = "grid"\nepsilon = 1\nbins = 2\nengine = "spark"', "engine"),
    "stored nowhere": ('detector = "grid"\nepsilon = 1\nbins = 2\nstored = "int64"', "left out without an engine"),
    "no numbers": ('detector = "grid"\nepsilon = 1\nbins = 2\nengine = "duckdb"\nstored = "text"', "a type of numbers"),
    "wrong value": ('detector = "grid"\nepsilon = 1\nbins = 0', "bins"),
    "no number of features": ('detector = "grid"\nepsilon = 1\nbins = 2\nn_features = 0', "n_features"),
}


@pytest.mark.parametrize(("text", "reason"), BAD.values(), ids=BAD)
def test_a_bad_configuration_is_refused_with_a_reason(text, reason, tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(text)
    with pytest.raises(InvalidParameterError, match=reason):
        configuration_of_file(path)
    result = run(path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert reason in " ".join(result.output.split())
    assert not (tmp_path / "out").exists()


def test_a_worst_case_of_too_many_rows_is_refused(tmp_path):
    (tmp_path / "a.toml").write_text('detector = "grid"\nepsilon = 1\nbins = 2\nk = 100000000\n')
    result = run(tmp_path / "a.toml", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "smaller k" in result.output
    assert not (tmp_path / "out").exists()


def test_an_audit_that_saw_nothing_says_so(tmp_path):
    findings = [finding(bound=0.0, certain=0.0, expects_power=False), finding(claimed=2.0, expects_power=False)]
    assert "At epsilon 1 the audit has no statistical power" in verdict(findings)
    assert "no statistical power" not in verdict(findings[1:])
    page = write_audit(findings, tmp_path, "Noise made up", 60, {"a": "a grid"}).read_text()
    assert "At epsilon 1 the audit has no statistical power" in page
    assert "a grid" in page


@pytest.mark.slow
@pytest.mark.parametrize("name", ["audit.toml", "audit-engine.toml"])
def test_the_examples_of_the_docs_can_be_audited(name):
    path = Path(__file__).parents[2] / "docs" / "examples" / name
    configuration, epsilons = configuration_of_file(path)
    for epsilon in epsilons:
        case = Case(
            "example", configuration.with_epsilon(epsilon), configuration.with_epsilon(epsilon), has_power=False
        )
        found = run_audit([case], Effort(most_runs=20, most_elsewhere=20, most_coins=10), seed=1)
        assert {one.channel for one in found} == {"counts", "scores", "file"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["bins = 1\nneighbours = 'replace-one'", "bins = 2\nperson = 'feature 0'", "bins = 20\nn_features = 9"]
)
def test_odd_configurations_are_audited_all_the_same(text, tmp_path):
    """One cell, which no row can leave; a column of people by a usual name; more cells than a dense model may have."""
    (tmp_path / "a.toml").write_text(f'detector = "grid"\nepsilon = 1\nk = 1\n{text}\n')
    result = run(tmp_path / "a.toml", "--out", tmp_path / "out", "--runs", 100, "--quick", "--n-jobs", 1, "--seed", 1)
    assert result.exit_code == 0, result.output
    assert "No claim is refuted" in " ".join(result.output.split())
    assert "0.000" in result.output or "bins = 1\n" not in text
    assert ("keyed" in result.output) is ("n_features" in text)


def test_bad_options_are_refused(config, tmp_path):
    assert "--n-jobs must" in run(config, "--n-jobs", 0).output
    for out in (config, config / "below"):
        result = run(config, "--out", out)
        assert "--out" in result.output
        assert result.exit_code == 2
    assert (
        "does not exist" in run(tmp_path / "none.toml").output or "cannot be read" in run(tmp_path / "none.toml").output
    )
    assert "Example: dpoutlier audit" in run("--help").output


def finding(**changed):
    first = {
        "case": "a",
        "detector": "grid",
        "neighbours": "replace-one",
        "counts": "dense",
        "method": "one run",
        "channel": "counts",
        "claimed": 1.0,
        "bound": 0.9,
        "certain": 0.8,
        "trials": 10,
        "expects_power": True,
        "event": "",
    }
    return Finding(**{**first, **changed})


def test_power_is_expected_of_sharp_audits_of_some_cases_between_two_epsilons():
    for label, epsilon, sharp, expected in (
        ("grid", 1.0, True, True),
        ("grid", 1.0, False, False),
        ("grid", 0.25, True, False),
        ("grid", 4.0, True, False),
        ("forest of 32", 1.0, True, False),
    ):
        case = next(case for case in standard_cases((epsilon,)) if case.label == label)
        found = Finding.of(case, "one run", "counts", (0.5, 0.4), 70, "an event", sharp=sharp)
        assert found.expects_power is expected
        assert (found.bound, found.certain, found.trials, found.claimed) == (0.5, 0.4, 70, epsilon)


def test_the_table_tells_what_is_refuted():
    table = table_of([finding(certain=1.1), finding()]).to_pylist()
    assert [row["refuted"] for row in table] == [True, False]


def test_a_claim_is_refuted_by_the_certain_bound_only():
    assert not finding(bound=1.2, certain=0.99).refuted
    assert finding(bound=1.2, certain=1.01).refuted
    assert finding(bound=0.49).without_power
    assert not finding(bound=0.5).without_power
    assert not finding(bound=0.1, expects_power=False).without_power


def test_the_report_shows_the_sharpest_bound_of_each_case_and_marks_what_is_refuted(tmp_path):
    findings = [
        finding(bound=0.3),
        finding(bound=0.7, channel="file"),
        finding(case="<b>", claimed=2.0, bound=2.5, certain=2.1),
        finding(counts="keyed", bound=0.0, certain=0.0),
    ]
    lines = {(line.case, line.counts): line.by_epsilon for line in sharpest_lines(findings)}
    assert lines["a", "dense"][1.0].bound == 0.7
    assert set(lines) == {("a", "dense"), ("<b>", "dense"), ("a", "keyed")}
    page = write_audit(findings, tmp_path / "new", "Noise made up", 60, {}).read_text()
    assert "1 of 4 audits refute the claim" in page
    assert "3 of the 4 audits" not in page
    assert "1.0 minutes" in page
    assert "&lt;b&gt;" in page
    assert page.count("refuted</span>") == 1
