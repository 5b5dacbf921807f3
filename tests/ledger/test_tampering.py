"""What of a changed file is noticed."""

import json
import os
import shutil
import sqlite3
from fractions import Fraction

import pytest

from dpoutlier import Ledger
from dpoutlier.exceptions import LedgerError
from dpoutlier.ledger.budgets import number_text
from dpoutlier.ledger.entries import sealed
from ledger_budgets import ONE, of


def changed(ledger, *statements):
    """The file as somebody leaves it who can write to it and knows SQLite."""
    connection = sqlite3.connect(ledger.path)
    kept = [text for (text,) in connection.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger'")]
    for name in ("no_update", "no_delete"):
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    for text in kept:
        connection.execute(text)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET body = replace(body, '1/2', '1/9') WHERE number = 3",
        "UPDATE entries SET body = replace(body, '1/2', '1/9')",
        "UPDATE entries SET hash = previous WHERE number = 5",
        "UPDATE entries SET previous = hash WHERE number = 5",
        "DELETE FROM entries WHERE number = 1",
        "DELETE FROM entries WHERE number = 4",
        "DELETE FROM entries",
        "UPDATE entries SET number = -number WHERE number IN (5, 6)",
        "INSERT INTO entries SELECT 11, previous, body, hash FROM entries WHERE number = 10",
    ],
)
def test_edits_deletions_and_insertions_are_noticed_before_anything_is_charged(spent, statement):
    changed(spent, statement)
    before = spent.path.read_bytes()
    for use in (
        spent.entries,
        spent.verify,
        lambda: spent.balance("patients"),
        lambda: spent.reserve("patients", of("1/8"), "DPForest"),
        lambda: spent.open_budget("others", 1),
    ):
        with pytest.raises(LedgerError, match="damaged"):
            use()
    assert spent.path.read_bytes() == before


def appended(ledger, content):
    """What somebody appends who can write to the file, and knows how hashes are made."""
    last = ledger.entries()[-1]
    entry = sealed(last.number + 1, last.hash, content)
    connection = sqlite3.connect(ledger.path)
    connection.execute(
        "INSERT INTO entries VALUES (?, ?, ?, ?)", (entry.number, entry.previous, entry.body, entry.hash)
    )
    connection.commit()
    connection.close()


RESERVE = {"kind": "reserve", "dataset": "patients", "what": "x", "nonce": "", "time": "", "outside": False}
BUDGET = {"kind": "budget", "neighbours": "add-or-remove-one", "unit": "row", "rows_per_person": None, "person": None}


@pytest.mark.parametrize(
    "content",
    [
        {**RESERVE, "epsilon": "-100"},
        {**RESERVE, "epsilon": "0"},
        {**RESERVE, "epsilon": "1e999"},
        {**RESERVE, "epsilon": "2"},
        {**RESERVE, "epsilon": 1},
        {**RESERVE, "epsilon": "1/2", "dataset": "others"},
        {**BUDGET, "dataset": "patients", "epsilon": "1000", "part_of": None},
        {**BUDGET, "dataset": "more", "epsilon": None, "part_of": None},
        {**BUDGET, "dataset": "more", "epsilon": None, "part_of": "nobody"},
        {**BUDGET, "dataset": "more", "epsilon": "9", "part_of": "patients"},
        {**BUDGET, "dataset": "more", "epsilon": None, "part_of": "patients", "unit": "person"},
        {"kind": "commit", "reservation": 99, "release": "c" * 64},
        {"kind": "commit", "reservation": 3, "release": "c" * 64},
        {"kind": "commit"},
        {"kind": "refund", "reservation": 3},
        [],
    ],
)
def test_an_entry_that_no_ledger_writes_is_refused_although_its_hash_is_right(spent, content):
    """The anchor would not tell: it knows all that was there before."""
    appended(spent, content)
    for use in (
        spent.verify,
        lambda: spent.balance("patients"),
        lambda: spent.reserve("patients", of("1/8"), "DPForest"),
    ):
        with pytest.raises(LedgerError, match=r"damaged: entry 11|entry 11 of the ledger"):
            use()


def test_a_write_ahead_log_and_a_second_name_are_refused(spent, tmp_path):
    os.link(spent.path, tmp_path / "second")
    with pytest.raises(LedgerError, match="second name"):
        spent.reserve("patients", of("1/8"), "DPForest")
    (tmp_path / "second").unlink()
    connection = sqlite3.connect(spent.path)
    connection.execute("PRAGMA journal_mode = wal")
    with pytest.raises(LedgerError, match="journal mode 'wal'"):
        spent.reserve("patients", of("1/8"), "DPForest")
    connection.execute("PRAGMA journal_mode = delete")
    connection.close()
    spent.reserve("patients", of("1/8"), "DPForest")


def test_a_ledger_of_another_version_is_refused(ledger):
    connection = sqlite3.connect(ledger.path)
    connection.execute("PRAGMA user_version = 2")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError, match="version 2"):
        ledger.verify()


def test_a_charge_is_committed_once_and_by_its_own_receipt(ledger):
    receipt = ledger.reserve("patients", ONE, "DPForest")
    forged = type(receipt)(receipt.ledger, "patients", receipt.entry, receipt.head[:-1] + "x".translate({120: "0"}))
    if forged != receipt:
        with pytest.raises(LedgerError, match="is not the one that"):
            ledger.commit(forged, "a" * 64)
    ledger.commit(receipt, "a" * 64)
    with pytest.raises(LedgerError, match="committed before"):
        ledger.commit(receipt, "b" * 64)
    budget = type(receipt)(receipt.ledger, "patients", 2, ledger.entries()[1].hash)
    with pytest.raises(LedgerError, match="is not a charge"):
        ledger.commit(budget, "a" * 64)


def test_two_ledgers_with_the_same_entries_have_other_hashes(tmp_path):
    heads = set()
    for name in "ab":
        made = Ledger.create(tmp_path / name)
        made.open_budget("patients", 3)
        heads |= {made.reserve("patients", ONE, "DPForest").head for _ in range(2)}
    nonces = [json.loads(e.body)["nonce"] for e in made.entries() if e.content["kind"] == "reserve"]
    assert len(heads) == 4
    assert len(set(nonces)) == 2
    assert all(len(nonce) == 32 for nonce in nonces)


def test_a_head_is_compared_whole(ledger):
    head = ledger.verify().hash
    ledger.verify(head=f" {head.upper()} ")
    for other in (head[:8], head[:-1] + ("0" if head[-1] != "0" else "1"), ""):
        with pytest.raises(LedgerError, match="no entry with the hash"):
            ledger.verify(head=other)


def test_what_is_left_is_shown_rounded_down():
    assert number_text(Fraction(1, 3), down=True) == "0.333333333333"
    assert number_text(Fraction(1, 3)) == "0.333333333334"


def test_sqlite_itself_refuses_to_edit(ledger):
    connection = sqlite3.connect(ledger.path)
    for statement in ("UPDATE entries SET body = ''", "DELETE FROM entries"):
        with pytest.raises(sqlite3.IntegrityError, match="never edited"):
            connection.execute(statement)
    connection.close()


def test_a_trigger_that_undoes_what_is_written_is_noticed(ledger):
    connection = sqlite3.connect(ledger.path)
    connection.execute("CREATE TRIGGER undo AFTER INSERT ON entries BEGIN SELECT RAISE(IGNORE); END")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError, match="tables are not those"):
        ledger.reserve("patients", ONE, "DPForest")


def test_an_old_copy_is_detected_only_with_a_head_or_a_receipt(ledger, tmp_path):
    old = tmp_path / "copy.ledger"
    shutil.copy(ledger.path, old)
    receipt = ledger.reserve("patients", ONE, "DPForest")
    head = ledger.verify().hash
    shutil.copy(old, ledger.path)
    ledger.verify()  # the file alone cannot tell
    for known in ({"head": head}, {"receipts": [receipt]}):
        with pytest.raises(LedgerError, match="old copy"):
            ledger.verify(**known)


def test_a_chain_that_was_hashed_again_is_detected_with_a_receipt(ledger, tmp_path):
    receipt = ledger.reserve("patients", ONE, "DPForest")
    forged = Ledger.create(tmp_path / "forged.ledger")
    forged.open_budget("patients", 30)
    forged.reserve("patients", of("1/100"), "DPForest")
    connection = sqlite3.connect(forged.path)
    (body,) = connection.execute("SELECT body FROM entries WHERE number = 1").fetchone()
    connection.close()
    own = Ledger(forged.path)
    own_id = json.loads(body)["id"]
    with pytest.raises(LedgerError, match="another ledger"):
        own.verify(receipts=[receipt])
    with pytest.raises(LedgerError, match="is not the one that"):
        own.verify(receipts=[type(receipt)(own_id, "patients", receipt.entry, receipt.head)])
