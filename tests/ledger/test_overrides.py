"""Whoever gives another anchor than the ledger names leaves an entry that says so."""

import json
import shutil
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

from dpoutlier import DPMarginals, Ledger
from dpoutlier.cli.app import app
from dpoutlier.exceptions import LedgerError
from ledger_budgets import ONE, of


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "budget.ledger", anchor=tmp_path / "true.anchor")
    made.open_budget("patients", 3)
    return made


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(one) for one in arguments], env={"COLUMNS": "400"})
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def put_back(ledger, tmp_path):
    """An old copy with an anchor that knows no more than it does, and what shows the truth."""
    shutil.copy(ledger.path, tmp_path / "old")
    shutil.copy(tmp_path / "true.anchor", tmp_path / "forged.anchor")
    detector = DPMarginals(1, features={"a": (0, 1)}, bins=2, ledger=ledger, dataset="patients")
    model = detector.fit(np.full((9, 1), 0.5)).save(tmp_path / "model")
    head = ledger.verify().hash
    shutil.copy(tmp_path / "old", ledger.path)
    return {"model": [model], "head": ["--head", head], "old anchor": ["--anchor", tmp_path / "taken away"]}


def test_an_old_copy_under_another_anchor_is_recorded_and_still_detected(ledger, tmp_path, put_back):
    with pytest.raises(LedgerError, match="old copy"):
        ledger.reserve("patients", ONE, "DPForest")
    given = Ledger(ledger.path, anchor=tmp_path / "forged.anchor")
    for use in (given.entries, lambda: given.reserve("patients", ONE, "DPForest")):
        with pytest.raises(LedgerError, match="old copy"):  # the true anchor is still there, and knows better
            use()
    with pytest.raises(LedgerError, match="old copy"):
        ledger.move_anchor(tmp_path / "new.anchor", lost=True)  # nor is it lost
    (tmp_path / "true.anchor").rename(tmp_path / "taken away")
    given.reserve("patients", ONE, "DPForest")  # this cannot be refused: an anchor that was moved looks the same
    record = given.entries()[2].content
    assert (record["kind"], record.get("override")) == ("anchor", True)
    assert (record["old"], record["anchor"]) == (str(tmp_path / "true.anchor"), str(tmp_path / "forged.anchor"))
    assert record["time"]
    line = f"{tmp_path / 'forged.anchor'} was given as the anchor (--anchor, anchor=...) instead of {tmp_path / 'true.anchor'}."
    for command in ("show", "verify"):
        said = run("ledger", command, ledger.path)  # without the option: the given place is the ledger's anchor now
        assert "Entry 3, " in said
        assert line in " ".join(said.split())
        (recorded,) = json.loads(run("ledger", command, ledger.path, "--json"))["anchor_changes"]
        assert (recorded["entry"], recorded["how"], recorded["old"]) == (3, "override", str(tmp_path / "true.anchor"))
    for known in put_back.values():
        run("ledger", "verify", ledger.path, *known, code=2)


WRITERS = {
    "open_budget": lambda ledger, _: ledger.open_budget("others", 1),
    "reserve": lambda ledger, _: ledger.reserve("patients", of("1/8"), "DPForest"),
    "commit": lambda ledger, receipt: ledger.commit(receipt, "a" * 64),
    "charge": lambda ledger, _: ledger.charge("patients", Fraction(1, 8), "by hand"),
    "move_anchor": lambda ledger, _: ledger.move_anchor(ledger.path.with_name("third.anchor")),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_whatever_writes_first_under_another_anchor_records_it_once(ledger, tmp_path, write):
    receipt = ledger.reserve("patients", ONE, "DPForest")
    known = len(ledger.entries())
    moved = (tmp_path / "true.anchor").rename(tmp_path / "moved.anchor")
    given = Ledger(ledger.path, anchor=moved)
    write(given, receipt)
    kinds = [entry.content.get("override", False) for entry in Ledger(ledger.path).entries()]
    assert kinds[known] is True
    assert sum(kinds) == 1
    Ledger(ledger.path).reserve("patients", of("1/8"), "DPForest")  # without the option
    if write is not WRITERS["move_anchor"]:
        given.reserve("patients", of("1/8"), "DPForest")  # and with it
    assert sum(entry.content.get("override", False) for entry in Ledger(ledger.path).entries()) == 1


def test_every_method_that_writes_is_among_those_that_are_tried(ledger):
    """So that a new one is tried too: by the entries that it adds, whatever it is called."""
    import inspect

    writing = {
        name
        for name, method in inspect.getmembers(Ledger, inspect.isfunction)
        if not name.startswith("_") and "_appending(" in inspect.getsource(method)
    }
    assert writing == set(WRITERS)


def test_reading_under_another_anchor_records_nothing_and_says_that(ledger, tmp_path):
    ledger.reserve("patients", ONE, "DPForest")
    shutil.copy(tmp_path / "true.anchor", tmp_path / "other.anchor")
    before = ledger.path.read_bytes()
    for command in ("show", "verify"):
        said = run("ledger", command, ledger.path, "--anchor", tmp_path / "other.anchor")
        assert "Not recorded yet; the next entry will record it: " in said
        (recorded,) = json.loads(run("ledger", command, ledger.path, "--anchor", tmp_path / "other.anchor", "--json"))[
            "anchor_changes"
        ]
        assert (recorded["entry"], recorded["how"]) == (None, "override")
        assert "anchor was" not in run("ledger", command, ledger.path)
    assert ledger.path.read_bytes() == before


def test_the_same_anchor_given_again_is_not_an_override(ledger, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place in ("true.anchor", tmp_path / "true.anchor"):
        given = Ledger(ledger.path, anchor=place)
        given.reserve("patients", of("1/8"), "DPForest")
        assert given.anchor_changes() == []


def test_a_ledger_without_an_anchor_records_the_first_one_that_is_given(tmp_path):
    bare = Ledger.create(tmp_path / "bare.ledger")
    head = bare.entries()[0]
    (tmp_path / "x.anchor").write_text(f"{head.number} {head.hash}\n")
    Ledger(bare.path, anchor=tmp_path / "x.anchor").open_budget("patients", 3)
    (change,) = bare.anchor_changes()
    assert (change.how, change.old, change.new) == ("override", None, str(tmp_path / "x.anchor"))
    assert bare.has_anchor()


def test_moves_and_losses_of_the_anchor_are_shown(ledger, tmp_path):
    run("ledger", "anchor", ledger.path, tmp_path / "second.anchor")
    (tmp_path / "second.anchor").unlink()
    run("ledger", "anchor", ledger.path, tmp_path / "third.anchor", "--lost")
    assert [change.how for change in ledger.anchor_changes()] == ["moved", "lost"]
    for command in ("show", "verify"):
        said = " ".join(run("ledger", command, ledger.path).split())
        assert f"the anchor was moved from {tmp_path / 'true.anchor'} to {tmp_path / 'second.anchor'}." in said
        assert (
            f"the anchor {tmp_path / 'second.anchor'} was declared lost, and {tmp_path / 'third.anchor'} is used"
            in said
        )
        recorded = json.loads(run("ledger", command, ledger.path, "--json"))["anchor_changes"]
        assert [(one["entry"], one["how"]) for one in recorded] == [(3, "moved"), (4, "lost")]


def test_a_move_that_is_refused_leaves_no_anchor_behind(ledger, tmp_path):
    (tmp_path / "true.anchor").rename(tmp_path / "away")
    with pytest.raises(LedgerError, match="cannot be read"):
        ledger.move_anchor(tmp_path / "new.anchor")
    assert not (tmp_path / "new.anchor").exists()
    (tmp_path / "taken").write_text("of somebody else")
    with pytest.raises(LedgerError, match="exists"):
        ledger.move_anchor(tmp_path / "taken", lost=True)
    assert (tmp_path / "taken").read_text() == "of somebody else"
