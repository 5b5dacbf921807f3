"""A ledger: what fits cost together, what is refused, and what of a changed file is noticed."""

import copy
import csv
import hashlib
import io
import json
import os
import shutil
import sqlite3
import sys
import tempfile
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpoutlier import Guarantee, Ledger
from dpoutlier.exceptions import BudgetExceededError, InvalidParameterError, LedgerError, OutputExistsError
from dpoutlier.guarantee import Neighbours
from dpoutlier.ledger.anchor import heads_in
from dpoutlier.ledger.budgets import Budget, Unit, cost_of, number_text, rounded_up
from dpoutlier.ledger.entries import sealed
from dpoutlier.ledger.export import as_csv, as_json

ADD, REPLACE = Neighbours
ONE = Guarantee(Fraction(1))


def of(epsilon, **more):
    return Guarantee(Fraction(epsilon), **more)


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "budget.ledger")
    made.open_budget("patients", 3)
    return made


# What a fit costs in the unit of a budget ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("guarantee", "budget", "cost"),
    [
        (of(1), (ADD, Unit.ROW, None), 1),
        (of(1, neighbours=REPLACE), (ADD, Unit.ROW, None), Fraction(1, 2)),
        (of(1), (REPLACE, Unit.ROW, None), 2),
        (of(1, neighbours=REPLACE), (REPLACE, Unit.ROW, None), 1),
        (of(1, rows_per_person=4), (ADD, Unit.ROW, None), Fraction(1, 4)),
        (of(1), (ADD, Unit.PERSON, 4), 4),
        (of(1, rows_per_person=4), (ADD, Unit.PERSON, 4), 1),
        (of(1, rows_per_person=2), (REPLACE, Unit.PERSON, 6), 6),
        (of(1, rows_per_person=4, person="id"), (ADD, Unit.PERSON, 9), 1),
        (of(1, rows_per_person=4, person="id"), (ADD, Unit.PERSON, None), 1),
        (of(1, person="id"), (REPLACE, Unit.PERSON, None), 2),
    ],
)
def test_a_fit_is_charged_in_the_relation_and_unit_of_the_budget(guarantee, budget, cost):
    assert cost_of(guarantee, Budget("x", Fraction(9), *budget)) == cost


@pytest.mark.parametrize(
    ("guarantee", "budget", "message"),
    [
        (of(1, person="id"), (ADD, Unit.ROW, None), "protects rows"),
        (of(1, person="visit"), (ADD, Unit.PERSON, None, "id"), "told apart by the column 'id', .* by 'visit'"),
        (of(1), (ADD, Unit.PERSON, None), "nobody declared"),
        (of(1, voided_by=("a seed",)), (ADD, Unit.ROW, None), "not private"),
        (Guarantee(None), (ADD, Unit.ROW, None), "not private"),
    ],
)
def test_a_fit_without_a_price_in_the_unit_is_refused(guarantee, budget, message):
    with pytest.raises(LedgerError, match=message):
        cost_of(guarantee, Budget("x", Fraction(9), *budget))


@given(st.fractions(min_value=Fraction(1, 10**11), max_value=100, max_denominator=10**18))
def test_a_cost_is_rounded_up_and_by_less_than_a_billionth_of_a_thousandth(epsilon):
    up, unit = rounded_up(epsilon), Fraction(1, 10**12)
    assert epsilon <= up < epsilon + unit
    assert up.denominator <= 10**12
    for told in (up, -up):
        assert Fraction(number_text(told, down=True)) <= told <= Fraction(number_text(told))
        assert Fraction(number_text(told)) - Fraction(number_text(told, down=True)) <= unit


def test_three_thirds_are_a_whole(ledger):
    for _ in range(9):
        ledger.reserve("patients", of("1/3"), "DPForest")
    assert ledger.balance("patients").left == 0


# What fits cost together --------------------------------------------------------------------------------------------------

events = st.lists(
    st.tuples(st.sampled_from(["whole", "a", "b", "c"]), st.integers(1, 40).map(lambda n: Fraction(n, 16))), max_size=12
)


@pytest.fixture(scope="module")
def in_memory(tmp_path_factory):
    """A folder where it costs nothing to see that things are on disk."""
    place = Path("/dev/shm")
    if not os.access(place, os.W_OK):
        yield tmp_path_factory.mktemp("ledgers")
        return
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)


@settings(max_examples=60)
@given(events)
def test_nobody_ever_loses_more_than_the_budget(in_memory, tried):
    """The oracle adds up, person by person, the fits on data that the person is in."""
    ledger = Ledger.create(Path(tempfile.mkdtemp(dir=in_memory)) / "x.ledger")
    ledger.open_budget("whole", 4)
    for part in "abc":
        ledger.open_budget(part, part_of="whole")
    lost = dict.fromkeys("abc", Fraction(0))  # by somebody in this part
    for name, epsilon in tried:
        touched = "abc" if name == "whole" else name
        fits = all(lost[one] + epsilon <= 4 for one in touched)
        assert ledger.balance(name).left == 4 - max(lost[one] for one in touched)
        if fits:
            ledger.reserve(name, Guarantee(epsilon), "DPForest")
            lost |= {one: lost[one] + epsilon for one in touched}
        else:
            with pytest.raises(BudgetExceededError):
                ledger.reserve(name, Guarantee(epsilon), "DPForest")
        assert ledger.balance("whole").spent == max(lost.values())


def test_what_is_reserved_is_spent_whether_it_is_released_or_not(ledger):
    ledger.reserve("patients", of(1), "DPForest")
    balance = ledger.balance("patients")
    assert (balance.spent, balance.left, balance.fits, balance.unfinished) == (1, 2, 1, 1)
    receipt = ledger.reserve("patients", of("1/2"), "DPForest")
    ledger.commit(receipt, "a" * 64)
    balance = ledger.balance("patients")
    assert (balance.spent, balance.left, balance.fits, balance.unfinished) == (Fraction(3, 2), Fraction(3, 2), 2, 1)
    assert [one.release for one in ledger.spendings()] == [None, "a" * 64]


def test_a_refusal_names_the_numbers_and_charges_nothing(ledger):
    ledger.reserve("patients", of("2.75"), "DPForest")
    before = ledger.entries()
    with pytest.raises(
        BudgetExceededError, match=r"'patients' has 0\.25 left of 3.* would cost 0\.3 .*No row was read"
    ):
        ledger.reserve("patients", of("3/10"), "DPForest")
    assert ledger.entries() == before
    ledger.reserve("patients", of("1/4"), "DPForest")
    assert ledger.balance("patients").left == 0


def test_check_tells_the_cost_and_charges_nothing(ledger):
    assert ledger.check("patients", of(2, neighbours=REPLACE)) == 1
    with pytest.raises(BudgetExceededError):
        ledger.check("patients", of(4))
    assert ledger.balance("patients").spent == 0


def test_what_was_released_elsewhere_is_charged_even_past_the_budget(ledger):
    ledger.charge("patients", 5, "a table of 2024")
    assert ledger.balance("patients").left == -2
    with pytest.raises(BudgetExceededError, match="-2 left"):
        ledger.reserve("patients", of("1/1000"), "DPForest")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dataset": "patients", "epsilon": 9}, "has a budget already"),
        ({"dataset": "x"}, "epsilon must be"),
        ({"dataset": "x", "epsilon": float("inf")}, "epsilon must be finite"),
        ({"dataset": "x", "epsilon": 1, "part_of": "patients"}, "no epsilon"),
        ({"dataset": "x", "part_of": "nobody"}, "a budget for"),
        ({"dataset": "x", "part_of": "january"}, "parts have no parts"),
        ({"dataset": "x", "epsilon": 1, "rows_per_person": 3}, "left out for the unit row"),
        ({"dataset": "x", "epsilon": 1, "unit": "house"}, "unit must be one of"),
        ({"dataset": "x", "epsilon": 1, "neighbours": "all"}, "neighbours must be one of"),
        ({"dataset": " x", "epsilon": 1}, "dataset must be a name"),
        ({"dataset": "x\n", "epsilon": 1}, "dataset must be a name"),
        ({"dataset": "", "epsilon": 1}, "dataset must be a name"),
    ],
)
def test_budgets_that_cannot_be_are_refused_and_nothing_is_written(ledger, arguments, message):
    ledger.open_budget("january", part_of="patients")
    before = ledger.entries()
    with pytest.raises((LedgerError, InvalidParameterError), match=message):
        ledger.open_budget(**arguments)
    assert ledger.entries() == before


def test_a_part_under_replace_one_takes_no_charge_by_hand(tmp_path):
    """That one person more or less costs half of one replaced holds of our noise, and not of all that was ever published."""
    ledger = Ledger.create(tmp_path / "x.ledger")
    ledger.open_budget("all", 3, neighbours="replace-one")
    ledger.open_budget("january", part_of="all")
    with pytest.raises(LedgerError, match="Charge the whole: 'all'"):
        ledger.charge("january", 1, "a table")
    ledger.charge("all", 1, "a table")
    assert ledger.balance("january").left == 2


@pytest.mark.parametrize("name", ["cafe\u0301", "a" * 201, "tab\t", " x"])
def test_names_that_look_like_others_are_refused(ledger, name):
    with pytest.raises(InvalidParameterError, match="dataset must be a name"):
        ledger.open_budget(name, 1)


# What of a changed file is noticed ----------------------------------------------------------------------------------------


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


@pytest.fixture
def spent(ledger):
    for _ in range(4):
        ledger.commit(ledger.reserve("patients", of("1/2"), "DPForest"), "b" * 64)
    return ledger


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
        with pytest.raises(LedgerError, match="differs"):
            ledger.commit(forged, "a" * 64)
    ledger.commit(receipt, "a" * 64)
    with pytest.raises(LedgerError, match="committed before"):
        ledger.commit(receipt, "b" * 64)
    budget = type(receipt)(receipt.ledger, "patients", 2, ledger.entries()[1].hash)
    with pytest.raises(LedgerError, match="is no charge"):
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
    assert order == [3]  # the anchor's, once, when the third entry was there
    assert len((tmp_path / "elsewhere").read_text().splitlines()) == 3
    assert (tmp_path / "elsewhere").stat().st_mode & 0o077 == 0


def test_what_is_not_committed_is_unknown_to_the_anchor(tmp_path, monkeypatch):
    ledger = anchored(tmp_path)
    before = (tmp_path / "elsewhere").read_text()

    def fail(*_):
        raise LedgerError("not kept")

    monkeypatch.setattr("dpoutlier.ledger.store._check_kept", fail)
    with pytest.raises(LedgerError, match="not kept"):
        ledger.reserve("patients", ONE, "DPForest")
    monkeypatch.undo()
    assert (tmp_path / "elsewhere").read_text() == before
    assert ledger.verify().number == 2


def test_an_anchor_that_cannot_be_written_stops_a_charge_before_it_is_made(tmp_path, monkeypatch):
    ledger = anchored(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("elsewhere"))
    with pytest.raises(LedgerError, match="nothing was charged"):
        ledger.reserve("patients", ONE, "DPForest")
    assert ledger.verify().number == 2


def test_an_anchor_that_fails_after_the_charge_says_that_it_counts(tmp_path, monkeypatch):
    ledger = anchored(tmp_path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dpoutlier.ledger.ledger.write_head", full)
    with pytest.raises(LedgerError, match="counts as spent"):
        ledger.reserve("patients", ONE, "DPForest")
    assert ledger.balance("patients").spent == 1


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


def test_what_is_left_is_told_rounded_down():
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


def test_an_old_copy_is_told_by_a_head_and_by_a_receipt_and_not_without(ledger, tmp_path):
    old = tmp_path / "copy.ledger"
    shutil.copy(ledger.path, old)
    receipt = ledger.reserve("patients", ONE, "DPForest")
    head = ledger.verify().hash
    shutil.copy(old, ledger.path)
    ledger.verify()  # the file alone cannot tell
    for known in ({"head": head}, {"receipts": [receipt]}):
        with pytest.raises(LedgerError, match="old copy"):
            ledger.verify(**known)


def test_a_chain_that_was_hashed_anew_is_told_by_a_receipt(ledger, tmp_path):
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
    with pytest.raises(LedgerError, match="differs"):
        own.verify(receipts=[type(receipt)(own_id, "patients", receipt.entry, receipt.head)])


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
        with pytest.raises(LedgerError, match=r"old copy: it ends at entry 2, and the anchor .* knows entry 3"):
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
    assert len(moved.read_text().splitlines()) == 3
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


# Files --------------------------------------------------------------------------------------------------------------------


def test_a_ledger_is_never_replaced(ledger):
    before = ledger.path.read_bytes()
    with pytest.raises(OutputExistsError):
        Ledger.create(ledger.path)
    assert ledger.path.read_bytes() == before


def test_a_failed_creation_leaves_nothing_behind(tmp_path):
    (tmp_path / "there").write_text("")
    with pytest.raises(OutputExistsError):
        Ledger.create(tmp_path / "there", anchor=tmp_path / "anchor")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["there"]


@pytest.mark.parametrize("content", [b"", b"not a data base, but long enough to be looked at as one" * 40])
def test_what_is_no_ledger_is_refused(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(LedgerError, match=r"no ledger|cannot be used as a ledger"):
        Ledger(tmp_path / "x").entries()
    assert (tmp_path / "x").read_bytes() == content


def test_a_missing_ledger_is_not_made_by_looking(tmp_path):
    with pytest.raises(LedgerError, match="there is no ledger"):
        Ledger(tmp_path / "x").reserve("patients", ONE, "DPForest")
    assert not list(tmp_path.iterdir())


def test_a_ledger_that_only_may_be_read_can_be_read(spent):
    spent.path.chmod(0o400)
    assert spent.verify().number == 10


def test_the_file_is_for_its_owner_alone(ledger):
    assert ledger.path.stat().st_mode & 0o077 == 0


def test_a_copy_of_the_object_is_the_same_ledger(ledger):
    copy.deepcopy(ledger).reserve("patients", ONE, "DPForest")
    assert ledger.balance("patients").spent == 1


def test_an_exported_ledger_can_be_checked_without_this_program(spent):
    rows = list(csv.DictReader(io.StringIO(as_csv(spent.entries()).decode())))
    for row, following in pairwise([*rows, None]):
        text = f"dpoutlier ledger 1\n{row['number']}\n{row['previous']}\n{row['body']}"
        assert hashlib.sha256(text.encode()).hexdigest() == row["hash"]
        assert following is None or following["previous"] == row["hash"]
    assert [entry["hash"] for entry in json.loads(as_json(spent.entries()))["entries"]] == [row["hash"] for row in rows]


def test_when_a_fit_ended_is_not_written_down(spent):
    """How long a fit takes depends on the number of rows."""
    commits = [entry.content for entry in spent.entries() if entry.content["kind"] == "commit"]
    assert len(commits) == 4
    assert all(set(one) == {"kind", "reservation", "release"} for one in commits)
