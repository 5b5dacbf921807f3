"""``dpoutlier audit`` as people use it."""

import csv
import warnings

import pytest
from typer.testing import CliRunner

from dpoutlier import DPForest, DPGridKNN, DPMarginals, PrivateBounds
from dpoutlier.audit.configuration import configuration_of_file
from dpoutlier.audit.findings import Finding
from dpoutlier.audit.report import sharpest_lines, write_audit
from dpoutlier.cli.app import app
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.noise.law import DiscreteLaplace
from dpoutlier.trusted import release

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
    result = run(config, "--out", tmp_path / "out", "--runs", 300, "--quick", "--jobs", 1, "--seed", 5)
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
    assert "http" not in page.replace("http://www.w3.org", "")  # needs no network
    assert (tmp_path / "out" / "audit.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_seed_repeats_an_audit_and_processes_do_not_matter(config, tmp_path):
    outputs = []
    for jobs in (1, 2):
        result = run(config, "--out", tmp_path / str(jobs), "--runs", 150, "--quick", "--jobs", jobs, "--seed", 6)
        assert result.exit_code == 0, result.output
        outputs.append((tmp_path / str(jobs) / "audit.csv").read_text())
    assert outputs[0] == outputs[1]


@pytest.mark.slow
def test_a_broken_mechanism_is_refuted_and_told(config, tmp_path, monkeypatch):
    def half(law, n, source, draw=release.draw_noise):
        return draw(DiscreteLaplace(2 * law.rate), n, source)

    monkeypatch.setattr(release, "draw_noise", half)
    result = run(config, "--out", tmp_path / "out", "--runs", 100, "--quick", "--jobs", 1, "--seed", 5)
    assert result.exit_code == 1
    assert "REFUTED" in result.output
    assert "refute the claim" in (tmp_path / "out" / "audit.html").read_text()


MODELS = {
    "grid": lambda: DPGridKNN(1.0, bounds=(0, 1), bins=50, k=3, holder="sparse", sparse_size=5, target_fpr=0.2),
    "forest": lambda: DPForest(0.7, bounds=(0, 1), n_trees=5, depth=3, neighbours="replace-one", rows_per_person=2),
    "marginals": lambda: DPMarginals(1.0, bounds=PrivateBounds(outer=(0, 9), share=0.2), bins=7),
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


def test_a_model_without_noise_is_refused(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = DPGridKNN(float("inf"), bounds=(0, 1), bins=2).fit([[0.1]]).save(tmp_path / "model")
    result = run(path)
    assert result.exit_code != 0
    assert "without noise" in result.output


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
    "wrong value": ('detector = "grid"\nepsilon = 1\nbins = 0', "bins"),
    "no number of features": ('detector = "grid"\nepsilon = 1\nbins = 2\nn_features = 0', "n_features"),
}


@pytest.mark.parametrize(("text", "told"), BAD.values(), ids=BAD)
def test_a_bad_configuration_is_refused_with_a_reason(text, told, tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(text)
    with pytest.raises(InvalidParameterError, match=told):
        configuration_of_file(path)
    result = run(path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert told in " ".join(result.output.split())
    assert not (tmp_path / "out").exists()


def test_bad_options_are_refused(config, tmp_path):
    assert "--jobs" in run(config, "--jobs", 0).output
    assert "--out" in run(config, "--out", config).output
    assert (
        "does not exist" in run(tmp_path / "none.toml").output or "cannot be read" in run(tmp_path / "none.toml").output
    )
    assert "Example: dpoutlier audit" in run("--help").output


def finding(**changed):
    first = {
        "case": "a",
        "detector": "grid",
        "neighbours": "replace-one",
        "holder": "dense",
        "method": "one run",
        "channel": "counts",
        "claimed": 1.0,
        "bound": 0.9,
        "certain": 0.8,
        "trials": 10,
        "expects_teeth": True,
        "event": "",
    }
    return Finding(**{**first, **changed})


def test_a_claim_is_refuted_by_the_certain_bound_only():
    assert not finding(bound=1.2, certain=0.99).refuted
    assert finding(bound=1.2, certain=1.01).refuted
    assert finding(bound=0.49).toothless
    assert not finding(bound=0.5).toothless
    assert not finding(bound=0.1, expects_teeth=False).toothless


def test_the_report_shows_the_sharpest_bound_of_each_case_and_marks_what_is_refuted(tmp_path):
    findings = [
        finding(bound=0.3),
        finding(bound=0.7, channel="file"),
        finding(case="<b>", claimed=2.0, bound=2.5, certain=2.1),
        finding(holder="keyed", bound=0.0, certain=0.0),
    ]
    lines = {(line.case, line.holder): line.by_epsilon for line in sharpest_lines(findings)}
    assert lines["a", "dense"][1.0].bound == 0.7
    assert set(lines) == {("a", "dense"), ("<b>", "dense"), ("a", "keyed")}
    page = write_audit(findings, tmp_path / "new", "Noise made up", 60).read_text()
    assert "1 of 4 audits refute the claim" in page
    assert "&lt;b&gt;" in page
    assert page.count("refuted</span>") == 1
