"""Whatever fails, and whenever: what is said of the budget is what the ledger and the disk show."""

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import failing_calls
from dpoutlier import Ledger, load
from dpoutlier.exceptions import LedgerError
from dpoutlier.ledger.anchor import BLOCK, announce, heads_in, write_head
from ledger_budgets import ONE, of
from small_disk import Disks, fill


@pytest.fixture
def disks(tmp_path):
    made = Disks(tmp_path)
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path):
    failing_calls.prepared(tmp_path / "place")
    return tmp_path / "place"


def fit(folder, *more, output=None, ledger=None, to=None):
    """As typed: exit code and all that was printed."""
    output, ledger = output or folder / "out" / "model", ledger or folder / "book" / "b.ledger"
    command = [sys.executable, "-c", "from dpoutlier.cli.app import app; app()", "fit", folder / "rows.csv"]
    command += ["--features", folder / "features.toml", "--epsilon", "1/4", "--detector", "marginals", "-o", output]
    command += ["--ledger", ledger, "--dataset", "patients", *more]
    out = to or subprocess.PIPE
    done = subprocess.run([*map(str, command)], stdout=out, stderr=subprocess.PIPE, text=True, check=False, timeout=300)
    return done.returncode, " ".join(((done.stdout or "") + done.stderr).split())


# Each call in turn --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    built = failing_calls.library(tmp_path_factory.mktemp("shim"))
    if built is None:
        pytest.skip("there is no C compiler, or no LD_PRELOAD, so calls cannot be made to fail one by one")
    return built


WAYS = pytest.mark.parametrize("way", ["full", "once", "kill"])


def runs(shim, tmp_path, command, way, least):
    """All runs of a command, the last of them without a failure."""
    found = failing_calls.runs(shim, tmp_path, command, way)
    assert len(found) > least  # else nothing was tried
    assert [one["reached"] for one in found] == [True] * (len(found) - 1) + [False]
    assert found[-1]["code"] == 0
    for one in found:
        # The ledger can still be used, or says how: a new one that is killed before its first name is gone has two.
        assert one["problem"] is None or (command == "create" and "Remove one of the names" in one["problem"]), one
        assert "Traceback" not in one["printed"], one
        assert one["code"] in ({-9} if way == "kill" and one["reached"] else {0, 1, 2}), one
        if way == "full":
            assert one["left_behind"] == [], one
    return found


@pytest.mark.slow
@WAYS
def test_a_fit_says_what_is_true_whichever_call_fails(shim, tmp_path, way):
    found = runs(shim, tmp_path, "fit", way, 40)
    for one in found:
        charged, models, said = bool(one["charges"]), one["models"], " ".join(one["printed"].split())
        releases = [release for _, release in one["charges"] if release is not None]
        assert len(one["charges"]) <= 1, one
        # A release that the ledger names is in its file, and what is in a file was charged.
        assert all([3, release] in models for release in releases), one
        assert not models or charged, one
        if one["code"] == -9:
            continue
        unknown = "It is not known whether entry 3 was charged" in said
        assert unknown or ("Nothing was charged." in said) is not charged, one
        assert unknown or ("Charged 0.25 to 'patients'" in said) is charged, one
        assert unknown or ("The ledger names its release." in said) is bool(releases), one
        assert unknown or ("The ledger names no release" in said) is (charged and not releases), one
        assert ("Its model is in" in said or "Wrote" in said) is bool(models), one
        assert "No model was written." not in said or not models, one
        assert (one["code"] == 0) is ("Wrote" in said), one
        assert one["code"] != 0 or (models and releases), one
    states = {(bool(one["charges"]), bool(one["models"]), any(r for _, r in one["charges"])) for one in found}
    assert states == {(False, False, False), (True, False, False), (True, True, False), (True, True, True)}


@pytest.mark.slow
@WAYS
@pytest.mark.parametrize("command", ["charge", "anchor", "create"])
def test_other_entries_leave_a_ledger_that_can_be_used_whichever_call_fails(shim, tmp_path, command, way):
    for one in runs(shim, tmp_path, command, way, 15):
        said = " ".join(one["printed"].split())
        assert len(one["charges"]) <= 1, one
        if one["code"] == -9:
            continue
        if command == "charge":
            assert (
                one["code"] == 0
                or "not known" in said
                or ("added all the same" in said or "is in the ledger" in said) is bool(one["charges"])
            ), one
        if one["code"] != 0 and not one["ledger"] and way == "full":
            assert one["anchors"] == [], one  # nor is an anchor left of a ledger that was not made


# Disks that are full ------------------------------------------------------------------------------------------------------


def padded(anchor, before):
    """Make the anchor so long that this number of bytes is left in its last block. A number alone is a line without a hash."""
    more = BLOCK - before - anchor.stat().st_size
    with anchor.open("a") as stream:
        stream.write("2\n" * ((more - 3) // 2) + ("22\n" if more % 2 else "2\n2\n"[: 2 + 2 * ((more - 3) % 2)]))
    assert anchor.stat().st_size == BLOCK - before


@pytest.mark.parametrize("before", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 40, 80, 200))])
def test_a_full_disk_of_the_anchor_is_noticed_before_the_charge(disks, folder, tmp_path, before):
    disk = disks.make("16k")
    ledger = Ledger.create(tmp_path / "x.ledger", anchor=disk / "x.anchor")
    ledger.open_budget("patients", 1)
    padded(disk / "x.anchor", before)
    fill(disk)
    code, said = fit(folder, ledger=ledger.path)
    charged = ledger.spendings() != []
    assert ("Nothing was charged." in said) is not charged
    assert charged is (before == 200)  # there is room for the heads of two entries and no more
    assert (code == 0) is charged
    (disk / "filler").unlink()
    assert fit(folder, "--force", ledger=ledger.path)[0] == 0
    assert heads_in(disk / "x.anchor")[-1].number == ledger.verify().number


def test_a_full_disk_of_the_ledger_charges_nothing_and_says_so(disks, folder):
    disk = disks.make("64k")
    ledger = Ledger.create(disk / "x.ledger", anchor=folder / "x.anchor")
    ledger.open_budget("patients", 1)
    fill(disk)
    code, said = fit(folder, ledger=ledger.path)
    assert code == 2
    assert "Nothing was charged." in said
    assert "disk is full" in said
    assert ledger.spendings() == []


def test_a_full_disk_of_the_output_is_noticed_before_the_charge(disks, folder):
    disk = disks.make("64k")
    fill(disk)
    code, said = fit(folder, output=disk / "model")
    assert code == 1
    assert "Nothing was charged." in said
    assert "No space left on device" in said
    assert Ledger(folder / "book" / "b.ledger").spendings() == []
    assert [path.name for path in disk.iterdir()] == ["filler"]


@pytest.mark.slow
def test_an_output_that_cannot_be_written_for_other_reasons_is_noticed_before_the_charge(disks, folder):
    disk = disks.make("64m")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    for output in (disk / "model", folder / "out" / ("x" * 245)):  # the file aside has a longer name
        code, said = fit(folder, output=output)
        assert code != 0
        assert "Charged" not in said
    assert Ledger(folder / "book" / "b.ledger").spendings() == []


def test_a_failed_print_is_reported_on_the_other_stream(folder):
    with Path("/dev/full").open("w") as full:
        code, said = fit(folder, to=full)
    assert code == 1
    assert "Charged 0.25" in said
    assert "The ledger names its release. Its model is in" in said
    assert load(folder / "out" / "model.dpo").model_.receipt.entry == 3


def as_child(work):
    """Do it in a fork, whose limits and user may change. Gives what it returned, as text."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            outcome = str(work())
        except BaseException as error:  # noqa: BLE001 - passed to the parent
            outcome = f"{type(error).__name__}: {error}"
        os.write(writing, outcome.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    with os.fdopen(reading) as stream:
        return stream.read()


@pytest.mark.parametrize("taken", [1, 30, 60])
def test_a_disk_that_takes_a_part_of_a_line_is_noticed(folder, taken):
    """A limit on the size of files does what a disk does that is nearly full: the first write is cut short."""
    anchor, ledger = folder / "elsewhere" / "b.anchor", Ledger(folder / "book" / "b.ledger")
    size = anchor.stat().st_size

    def write():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + taken, size + taken))
        write_head(anchor, ledger.entries()[-1])

    assert "OSError" in as_child(write)
    assert anchor.stat().st_size == size + taken
    ledger.reserve("patients", of("1/4"), "DPForest")  # what was cut short is mended
    assert heads_in(anchor)[-1].number == ledger.verify().number


def test_who_may_not_write_the_anchor_is_refused_before_the_charge(folder):
    if os.getuid() != 0:
        pytest.skip("only root can become somebody who may not write")
    ledger = Ledger(folder / "book" / "b.ledger")
    for path in (folder, *folder.parents):
        if path.stat().st_uid == 0 and path != path.parent:
            path.chmod(path.stat().st_mode | 0o011)
    for path in (folder / "book", ledger.path, folder / "elsewhere" / "b.anchor"):
        path.chmod(0o777)

    def reserve():
        os.setuid(65534)
        return ledger.reserve("patients", ONE, "DPForest")

    (folder / "elsewhere" / "b.anchor").chmod(0o444)
    assert "cannot be written (Permission denied), so nothing was added to the ledger" in as_child(reserve)
    assert ledger.spendings() == []


def test_an_anchor_that_can_only_grow_is_tried_and_written_like_any_other(folder):
    anchor, ledger = folder / "elsewhere" / "b.anchor", Ledger(folder / "book" / "b.ledger")
    if (
        shutil.which("chattr") is None
        or subprocess.run(["chattr", "+a", anchor], capture_output=True, check=False).returncode
    ):
        pytest.skip("chattr +a does not work here (it takes root, and a file system that has it)")
    try:
        with pytest.raises(PermissionError):
            anchor.write_text("")
        ledger.commit(ledger.reserve("patients", of("1/4"), "DPForest"), "a" * 64)
        assert heads_in(anchor)[-1].number == ledger.verify().number == 4
    finally:
        subprocess.run(["chattr", "-a", anchor], check=True)


def test_a_head_lies_in_a_block_that_the_disk_gave_before(tmp_path):
    """At every length of the file: once an entry is announced, its head begins no new block."""
    anchor, entry = tmp_path / "anchor", Ledger.create(tmp_path / "x.ledger").entries()[0]
    for size in range(BLOCK - 300, BLOCK + 10):
        anchor.write_text("1\n" * (size // 2) + "1" * (size % 2))
        announce(anchor, 123456789)
        announced = anchor.stat().st_size
        write_head(anchor, entry)
        assert (announced - 1) // BLOCK == (anchor.stat().st_size - 1) // BLOCK
        assert heads_in(anchor) == [(entry.number, entry.hash)]


def test_what_is_not_known_is_called_not_known(folder):
    ledger = Ledger(folder / "book" / "b.ledger")
    assert ledger.outcome(None) == "Nothing was charged."
    receipt = ledger.reserve("patients", of("1/4"), "DPForest")
    assert "names no release" in ledger.outcome(receipt)
    ledger.commit(receipt, "a" * 64)
    assert ledger.outcome(receipt).endswith("The ledger names its release.")
    whole = ledger.path.read_bytes()
    ledger.path.write_bytes(whole[: len(whole) // 2])
    assert "It is not known whether entry 3 was charged to 'patients'" in ledger.outcome(receipt)
    ledger.path.unlink()
    assert "It is not known" in ledger.outcome(receipt)
    with pytest.raises(LedgerError):
        ledger.entries()
