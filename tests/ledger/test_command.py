"""``dpoutlier ledger`` and ``dpoutlier fit --ledger``, as a custodian types them."""

import json
import shutil
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dpoutlier import Ledger, load
from dpoutlier.cli.app import app


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(one) for one in arguments], terminal_width=200)
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "features.toml").write_text("[features]\na = [0, 1]\nb = [0, 1]\n")
    pd.DataFrame(np.random.default_rng(0).uniform(0, 1, (300, 2)), columns=["a", "b"]).to_csv("rows.csv", index=False)
    return tmp_path


def fit(epsilon, output, *more, code=0, dataset="patients"):
    return run(
        *("fit", "rows.csv", "--features", "features.toml", "--epsilon", epsilon, "--n-rows-hint", 300, "-o", output),
        *("--ledger", "b.ledger", "--dataset", dataset, *more),
        code=code,
    )


def create(*more, code=0):
    return run("ledger", "create", "b.ledger", *more, code=code)


def test_from_the_first_budget_to_the_last_fit(folder):
    said = create("--dataset", "patients", "--epsilon", "1", "--anchor", "b.anchor")
    assert "patients" in said
    assert "no anchor" not in said
    said = fit("0.6", "one")
    assert "charged to patients, entry 3" in said
    assert "Charged 0.6 to 'patients' in b.ledger, entry 3; 0.4 is left." in said
    assert "has 0.4 left of 1" in fit("0.6", "two", code=2)
    assert not (folder / "two.dpo").exists()
    fit("0.4", "two")
    said = run("ledger", "show", "b.ledger", "--plan", "0.25")
    assert "0.25 left" in said
    assert "DPForest, epsilon 0.6" in said
    shown = json.loads(CliRunner().invoke(app, ["ledger", "show", "b.ledger", "--json", "--plan", "0.25"]).output)
    assert shown["budgets"] == [
        {
            "dataset": "patients",
            "part_of": None,
            "epsilon": "1",
            "spent": "1",
            "left": "0",
            "neighbours": "add-or-remove-one",
            "protects": "one row",
            "fits": 2,
            "unfinished": 0,
            "fits_left": 0,
        }
    ]
    assert [one["epsilon"] for one in shown["charges"]] == ["0.6", "0.4"]
    said = run("ledger", "verify", "b.ledger", "one.dpo", "two.dpo")
    assert "6 entries" in said
    assert "2 model files, the anchor" in said
    head = said.split("Head: ")[1]
    assert len(head) == 64
    assert "the head given" in run("ledger", "verify", "b.ledger", "--head", head)


def test_an_old_copy_put_back_is_noticed_by_the_model_alone(folder):
    assert "no anchor" in create("--dataset", "patients", "--epsilon", "1")
    shutil.copy("b.ledger", "old")
    fit("0.6", "one")
    shutil.copy("old", "b.ledger")
    assert "Give models, --head or --anchor" in run("ledger", "verify", "b.ledger")
    assert "one.dpo: the ledger is an old copy" in run("ledger", "verify", "b.ledger", "one.dpo", code=2)


def test_parts_and_charges_by_hand(folder):
    create("--dataset", "patients", "--epsilon", "1")
    for month in ("january", "february"):
        create("--dataset", month, "--part-of", "patients")
    fit("0.7", "one", dataset="january")
    fit("0.8", "two", dataset="february")
    assert Ledger("b.ledger").balance("patients").spent == Fraction(4, 5)
    run("ledger", "charge", "b.ledger", "--dataset", "patients", "--epsilon", "0.1", "--note", "a table")
    assert "has 0.1 left" in fit("0.2", "three", dataset="february", code=2)
    said = run("ledger", "show", "b.ledger")
    assert "outside of d" in said
    assert "of patients" in said


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_export(folder, kind):
    create("--dataset", "patients", "--epsilon", "1")
    run("ledger", "export", "b.ledger", "-o", f"out.{kind}")
    text = (folder / f"out.{kind}").read_text()
    assert Ledger("b.ledger").verify().hash in text
    assert "exists" in run("ledger", "export", "b.ledger", "-o", f"out.{kind}", code=2)
    assert (folder / f"out.{kind}").read_text() == text
    run("ledger", "export", "b.ledger", "-o", f"out.{kind}", "--force")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--dataset", "x"), "give --epsilon"),
        (("--dataset", "x", "--epsilon", "-1"), "--epsilon must be"),
        (("--dataset", "x", "--epsilon", "1", "--part-of", "y"), "exclude each other"),
        (("--dataset", "x", "--part-of", "y"), "does not exist yet"),
        (("--dataset", "x", "--epsilon", "1", "--rows-per-person", "3"), "--rows-per-person must be left out"),
        (("--dataset", "x", "--epsilon", "1", "--rows-per-person", "3"), "--unit person"),
        (("--dataset", "x", "--epsilon", "1", "--anchor", "b.ledger"), "another file"),
        (("--dataset", "x", "--epsilon", "1", "--anchor", "no/where"), "there is no folder"),
    ],
)
def test_a_budget_that_cannot_be_opened_leaves_no_file(folder, arguments, message):
    before = sorted(folder.iterdir())
    assert message in create(*arguments, code=2)
    assert sorted(folder.iterdir()) == before


def test_a_ledger_and_a_data_set_go_together(folder):
    arguments = ("fit", "rows.csv", "--features", "features.toml", "--epsilon", "1", "-o", "m")
    assert "ledger is given without dataset" in run(*arguments, "--ledger", "b.ledger", code=2)
    assert "dataset is given without ledger" in run(*arguments, "--dataset", "x", code=2)
    assert "there is no ledger b.ledger" in run(*arguments, "--ledger", "b.ledger", "--dataset", "x", code=2)


def test_an_output_that_exists_costs_nothing(folder):
    create("--dataset", "patients", "--epsilon", "1")
    fit("0.1", "one")
    assert "one.dpo exists" in fit("0.1", "one", code=2)
    assert Ledger("b.ledger").balance("patients").spent == Fraction(1, 10)


def test_a_model_without_a_receipt_says_so(folder):
    create("--dataset", "patients", "--epsilon", "1")
    run("fit", "rows.csv", "--features", "features.toml", "--epsilon", "1", "-o", "free", "--n-rows-hint", 300)
    assert load("free.dpo").model_.receipt is None
    assert "was fitted without a ledger" in run("ledger", "verify", "b.ledger", "free.dpo")


def test_nothing_of_the_rows_is_in_the_ledger_or_the_anchor(folder):
    rows = pd.DataFrame({"a": [0.123456789] * 1357, "b": [0.987654321] * 1357})
    rows.to_csv("rows.csv", index=False)
    create("--dataset", "patients", "--epsilon", "1", "--anchor", "b.anchor")
    fit("0.5", "one")
    content = (folder / "b.ledger").read_bytes() + (folder / "b.anchor").read_bytes()
    for shown in (b"0.1234", b"0.9876", b"1357"):
        assert shown not in content


def test_a_stopped_fit_says_whether_it_was_charged(folder, monkeypatch):
    create("--dataset", "patients", "--epsilon", "1")

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dpoutlier.trusted.fit.open_reference", stop)
        assert "Nothing was charged." in fit("0.1", "one", code=130)
    with monkeypatch.context() as patch:
        patch.setattr("dpoutlier.trusted.fit._release_counts", stop)
        assert "Charged 0.1 to 'patients' in b.ledger, entry 3; 0.9 is left. It counts as spent." in fit(
            "0.1", "one", code=130
        )
    assert Ledger("b.ledger").balance("patients").unfinished == 1


def test_an_anchor_beside_the_ledger_is_advised_against(folder):
    (folder / "elsewhere").mkdir()
    (folder / "link").symlink_to(folder)
    assert "in the same folder as the ledger" in create("--dataset", "a", "--epsilon", "1", "--anchor", "link/b.anchor")
    assert "in the folder" not in create("--dataset", "b", "--epsilon", "1")  # not new, and nothing was asked
    assert "in the folder" not in run("ledger", "anchor", "b.ledger", "elsewhere/b.anchor")
    assert "in the same folder as the ledger" in run("ledger", "anchor", "b.ledger", "back.anchor")


def test_an_anchor_that_was_moved_or_lost_can_be_replaced(folder):
    create("--dataset", "patients", "--epsilon", "1", "--anchor", "first")
    (folder / "first").rename("second")
    assert "--anchor" in fit("0.1", "one", code=2)
    assert "cannot be read" in run("ledger", "anchor", "b.ledger", "third", code=2)
    assert not (folder / "third").exists()
    fit("0.1", "one", "--anchor", "second")
    create("--dataset", "others", "--epsilon", "1")
    run("ledger", "anchor", "b.ledger", "third", "--anchor", "second")
    fit("0.1", "two")
    assert "the anchor" in run("ledger", "verify", "b.ledger", "one.dpo", "two.dpo")
    shutil.copy("b.ledger", "old")
    fit("0.1", "three")
    shutil.copy("old", "b.ledger")
    assert "old copy" in fit("0.1", "four", code=2)
    (folder / "third").unlink()
    run("ledger", "anchor", "b.ledger", "fourth", "--lost")
    assert Ledger("b.ledger").entries()[-1].content["lost"] is True
    fit("0.1", "four")
