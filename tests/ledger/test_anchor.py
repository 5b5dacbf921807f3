"""An anchor elsewhere makes an old copy useless, and can be replaced if it is lost."""

import os
import shutil
import sqlite3
import sys

import pytest

from dpoutlier import Ledger
from dpoutlier.exceptions import LedgerError
from dpoutlier.ledger.anchor import heads_in
from ledger_budgets import ONE, of


def test_an_entry_is_on_disk_before_the_anchor_knows_it(tmp_path, monkeypatch):
    ledger, order = anchored(tmp_path), []
    synced = os.fsync

    def sync(handle):
        connection = sqlite3.connect(ledger.path)
        ((number,),) = connection.execute("SELECT count(*) FROM entries")
        connection.close()
        order.append(number)
        synced(handle)

    monkeypatch.setattr(os, "fsync", sync)
    ledger.reserve("patients", ONE, "DPForest")
    assert order == [2, 3]  # the anchor was tried before the third entry was there, and changed afterwards
    assert [head.number for head in heads_in(tmp_path / "elsewhere")] == [1, 2, 3]
    assert (tmp_path / "elsewhere").stat().st_mode & 0o077 == 0


def test_what_is_not_committed_is_unknown_to_the_anchor(tmp_path, monkeypatch):
    ledger = anchored(tmp_path)
    before = heads_in(tmp_path / "elsewhere")

    def fail(*_):
        raise LedgerError("not kept")

    monkeypatch.setattr("dpoutlier.ledger.store._check_kept", fail)
    with pytest.raises(LedgerError, match="not kept"):
        ledger.reserve("patients", ONE, "DPForest")
    monkeypatch.undo()
    assert heads_in(tmp_path / "elsewhere") == before
    assert ledger.verify().number == 2


def test_an_anchor_that_fails_after_the_charge_says_that_it_counts(tmp_path, monkeypatch):
    ledger = anchored(tmp_path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dpoutlier.ledger.anchoring.write_head", full)
    with pytest.raises(LedgerError, match="Entry 3 is in the ledger all the same, and counts"):
        ledger.reserve("patients", ONE, "DPForest")
    assert ledger.balance("patients").spent == 1
    assert ledger.receipt is None
    assert "Charged 1 to 'patients'" in ledger.outcome(ledger.tried)


def test_whoever_reads_while_another_writes_sees_no_old_copy(tmp_path):
    """The anchor is read first: what is written between the two reads is then in the entries."""
    ledger, reading = anchored(tmp_path), heads_in
    writer = Ledger(ledger.path)

    def meanwhile(place):
        found = reading(place)
        module.heads_in = reading
        writer.reserve("patients", of("1/8"), "DPForest")
        return found

    module = sys.modules["dpoutlier.ledger.ledger"]
    module.heads_in = meanwhile
    try:
        assert len(ledger.entries()) == 3
    finally:
        module.heads_in = reading


def anchored(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.ledger", anchor=tmp_path / "elsewhere")
    ledger.open_budget("patients", 3)
    return ledger


def test_an_anchor_makes_an_old_copy_useless(tmp_path):
    ledger = anchored(tmp_path)
    old = tmp_path / "copy.ledger"
    shutil.copy(ledger.path, old)
    ledger.reserve("patients", ONE, "DPForest")
    shutil.copy(old, ledger.path)
    for use in (ledger.verify, lambda: ledger.reserve("patients", ONE, "DPForest"), lambda: ledger.balance("patients")):
        with pytest.raises(LedgerError, match=r"old copy: it ends at entry 2, but the anchor .* recorded entry 3"):
            use()


def test_an_anchor_that_lags_after_a_crash_is_no_false_alarm(tmp_path):
    ledger = anchored(tmp_path)
    ledger.reserve("patients", ONE, "DPForest")
    lines = (tmp_path / "elsewhere").read_text().splitlines(keepends=True)
    (tmp_path / "elsewhere").write_text("".join(lines[:-1]) + lines[-1][:20])  # the last line was cut short
    assert ledger.balance("patients").spent == 1
    (tmp_path / "elsewhere").write_text("".join(lines[:-1]))
    ledger.reserve("patients", ONE, "DPForest")
    assert ledger.verify().number == 4


def test_after_a_line_that_was_cut_short_the_anchor_is_whole_again(tmp_path):
    ledger = anchored(tmp_path)
    lines = (tmp_path / "elsewhere").read_text()
    (tmp_path / "elsewhere").write_text(lines[:-30])
    ledger.reserve("patients", ONE, "DPForest")
    assert ledger.verify().number == 3
    shutil.copy(ledger.path, tmp_path / "old")
    ledger.reserve("patients", ONE, "DPForest")
    shutil.copy(tmp_path / "old", ledger.path)
    with pytest.raises(LedgerError, match="old copy"):
        ledger.verify()


def test_a_missing_or_damaged_anchor_stops_everything_and_a_moved_one_can_be_named(tmp_path):
    ledger = anchored(tmp_path)
    moved = (tmp_path / "elsewhere").rename(tmp_path / "moved")
    with pytest.raises(LedgerError, match="cannot be read"):
        ledger.reserve("patients", ONE, "DPForest")
    again = Ledger(ledger.path, anchor=moved)
    again.reserve("patients", ONE, "DPForest")
    assert heads_in(moved)[-1].number == again.verify().number
    moved.write_text("nonsense\n")
    with pytest.raises(LedgerError, match="damaged: line 1"):
        again.verify()


def test_an_anchor_that_was_emptied_stops_everything(tmp_path):
    ledger = anchored(tmp_path)
    (tmp_path / "elsewhere").write_text("")
    with pytest.raises(LedgerError, match="is empty"):
        ledger.reserve("patients", ONE, "DPForest")


def test_an_anchor_of_another_ledger_is_noticed(tmp_path):
    ledger = anchored(tmp_path)
    other = Ledger.create(tmp_path / "other.ledger")
    with pytest.raises(LedgerError, match="not the one that the anchor"):
        Ledger(other.path, anchor=tmp_path / "elsewhere").verify()
    with pytest.raises(LedgerError, match="exists: each ledger needs one of its own"):
        Ledger.create(tmp_path / "third.ledger", anchor=tmp_path / "elsewhere")
    assert not (tmp_path / "third.ledger").exists()
    assert ledger.verify().number == 2
