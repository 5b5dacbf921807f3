"""The file of a ledger, its copies and its export."""

import copy
import csv
import hashlib
import io
import json
from itertools import pairwise

import pytest

from dpoutlier import Ledger
from dpoutlier.exceptions import LedgerError, OutputExistsError
from dpoutlier.ledger.export import as_csv, as_json
from dpoutlier.ledger.store import append
from ledger_budgets import ONE


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
    with pytest.raises(LedgerError, match=r"not a ledger|cannot be used as a ledger"):
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


def test_a_charge_is_written_with_the_strictest_setting_of_sqlite(ledger):
    """With less than EXTRA, which is 3, a charge might be gone after a power failure, and what it paid for released."""
    with append(ledger.path) as appending:
        ((setting,),) = appending._connection.execute("PRAGMA synchronous")
    assert setting == 3


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
