"""A charge pays for one release that the ledger names, and of people who are the same the epsilons add up."""

import gzip
import hashlib
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dpoutlier import DPMarginals, Ledger, load, merge
from dpoutlier.cli.app import app
from dpoutlier.exceptions import InvalidParameterError, LedgerError, ModelFileError
from dpoutlier.model.file import save_model
from dpoutlier.model.release_id import release_id
from forging import rewritten
from ledger_budgets import ONE, of

ROWS = np.random.default_rng(0).uniform(0, 1, (50, 2))


def plain(epsilon=1, **more):
    return DPMarginals(epsilon, features={"a": (0, 1), "b": (0, 1)}, bins=3, **more)


def charged(ledger, dataset="patients", epsilon=1):
    return plain(epsilon, ledger=ledger, dataset=dataset).fit(ROWS)


def with_receipt(receipt, epsilon=1):
    """What somebody makes who has a receipt, and fits without a ledger."""
    return replace(plain(epsilon).fit(ROWS).model_, receipt=receipt)


def verify(ledger, *files, code):
    result = CliRunner().invoke(app, ["ledger", "verify", *map(str, (ledger.path, *files))], terminal_width=200)
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


# One entry, one release ---------------------------------------------------------------------------------------------------


def test_an_entry_without_a_release_pays_for_no_model(ledger, tmp_path):
    receipt = ledger.reserve("patients", ONE, "DPMarginals")
    files = [save_model(with_receipt(receipt), tmp_path / f"{i}") for i in range(3)]
    for some in (files, files[:1]):
        said = verify(ledger, *some, code=2)
        assert "entry 3 names no release" in said
        assert "Holds" not in said
        assert "Ledger.commit" in said
    assert said.count("different releases") == 0
    model = load(files[0]).model_
    ledger.commit(receipt, release_id(model))  # the remedy
    assert "1 model file" in verify(ledger, files[0], code=0)
    with pytest.raises(LedgerError, match="another release"):
        ledger.check_paid(receipt, release_id(load(files[1]).model_), model.guarantee)


@pytest.mark.parametrize("committed", [False, True])
def test_two_releases_of_one_entry_fail_in_any_order(ledger, tmp_path, committed):
    receipt = ledger.reserve("patients", ONE, "DPMarginals")
    models = [with_receipt(receipt) for _ in range(3)]
    if committed:
        ledger.commit(receipt, release_id(models[1]))
    files = [save_model(model, tmp_path / f"{i}") for i, model in enumerate(models)]
    for order in permutations(files):
        assert "are different releases with the receipt of one entry, 3" in verify(ledger, *order, code=2)


def test_two_files_of_one_release_are_one_release(ledger, tmp_path):
    fitted = charged(ledger)
    one = fitted.save(tmp_path / "one")
    fitted.set_threshold(score=0.5)
    assert "2 model files" in verify(ledger, one, fitted.save(tmp_path / "two"), code=0)


@pytest.mark.parametrize("wrap", [False, True], ids=["alone", "within a merge"])
@pytest.mark.parametrize(
    "state", ["not there", "not committed", "committed", "of a smaller fit", "of another data set"]
)
def test_only_the_release_that_was_committed_at_its_epsilon_passes(ledger, tmp_path, state, wrap):
    """Every state of an entry, and every way in which a release can carry its receipt."""
    ledger.open_budget("others", 3)
    receipt = ledger.reserve("patients", of("1/2" if state == "of a smaller fit" else 1), "DPMarginals")
    if state == "not there":
        receipt = replace(receipt, entry=9)
    if state == "of another data set":
        receipt = replace(receipt, dataset="others")
    model = with_receipt(receipt)
    if state in {"committed", "of a smaller fit", "of another data set"}:
        ledger.commit(receipt, release_id(model))
    path = save_model(model, tmp_path / "single")
    if wrap:
        path = merge([path, plain().fit(ROWS)], people="disjoint").save(tmp_path / "merged")
    said = verify(ledger, path, code=0 if state == "committed" else 2)
    assert ("Agrees with 1 model file" in said) is (state == "committed")


# Merges of what was charged -----------------------------------------------------------------------------------------------


def test_releases_of_one_data_set_are_not_disjoint_however_they_are_grouped(ledger, tmp_path):
    ledger.open_budget("others", 3)
    one, two = charged(ledger), charged(ledger)
    other, free = charged(ledger, "others"), plain().fit(ROWS)
    saved = two.save(tmp_path / "two")
    message = (
        r"model 1 and .* were charged to the same data set, 'patients', of the same ledger.*'overlapping'.*--part-of"
    )
    for models in (
        [one, two],
        [one, free, saved],
        [merge([one, other], people="disjoint"), two],
        [merge([one, free], people="disjoint"), merge([other, two], people="disjoint")],
        [merge([one, free], people="disjoint").save(tmp_path / "merged"), load(saved)],
    ):
        with pytest.raises(InvalidParameterError, match=message if models[0] is one else "the same data set"):
            merge(models, people="disjoint")
    assert merge([one, two, other], people="overlapping").guarantee_.epsilon == 3
    assert merge([one, other, free], people="disjoint").guarantee_.epsilon == 1


def test_the_command_line_names_both_files_and_the_remedy(ledger, tmp_path):
    files = [str(charged(ledger).save(tmp_path / name)) for name in ("one", "two")]
    result = CliRunner().invoke(app, ["merge", *files, "--people", "disjoint", "-o", str(tmp_path / "all")])
    assert result.exit_code == 2
    assert f"{files[0]} and {files[1]} were charged to the same data set, 'patients'" in result.output
    assert not (tmp_path / "all.dpo").exists()


def test_one_name_in_two_ledgers_and_the_parts_of_a_whole_may_be_disjoint(ledger, tmp_path):
    second = Ledger.create(tmp_path / "second.ledger")
    second.open_budget("patients", 3)
    for name in ("january", "february"):
        ledger.open_budget(name, part_of="patients")
    models = [charged(second), charged(ledger, "january"), charged(ledger, "february")]
    assert merge(models, people="disjoint").guarantee_.epsilon == 1


def test_a_merge_keeps_the_receipts_of_its_parts(ledger, tmp_path):
    ledger.open_budget("others", 3)
    fits = [charged(ledger), charged(ledger, "others", "1/2"), plain().fit(ROWS)]
    found = merge(fits, people="disjoint")
    path = found.save(tmp_path / "all")
    again = load(path)
    assert again.model_.merged == found.model_.merged
    kept = {part.release: part.receipt for part in again.model_.merged.parts}
    assert kept == {release_id(fit.model_): fit.model_.receipt for fit in fits}
    assert merge([again, plain().fit(ROWS)], people="disjoint").model_.merged.parts != again.model_.merged.parts
    stated = {part["release"]: part.get("ledger") for part in again.privacy_statement().to_dict()["merged"]["parts"]}
    assert stated == {release: None if one is None else one.to_json() for release, one in kept.items()}
    page = " ".join(CliRunner().invoke(app, ["inspect", str(path)]).output.split())
    assert f"charged to others, entry {fits[1].model_.receipt.entry} of the ledger" in page
    said = verify(ledger, path, code=0)
    assert "2 of its 3 parts were charged to this ledger" in said
    assert "cannot show whether its counts are the sum of its parts" in said


def test_parts_of_other_custodians_are_not_known_here_and_a_merge_of_them_alone_fails(ledger, tmp_path):
    second = Ledger.create(tmp_path / "second.ledger")
    second.open_budget("patients", 3)
    third = Ledger.create(tmp_path / "third.ledger")
    both = merge([charged(ledger), charged(second)], people="disjoint").save(tmp_path / "both")
    for book in (ledger, second):
        assert "1 of its 2 parts" in verify(book, both, code=0)
    assert "charged to another ledger" in verify(third, both, code=2)


def test_only_the_ledger_detects_a_whole_and_one_of_its_parts(ledger, tmp_path):
    ledger.open_budget("january", part_of="patients")
    fits = [charged(ledger), charged(ledger, "january")]
    disjoint, overlapping = (merge(fits, people=own).save(tmp_path / own) for own in ("disjoint", "overlapping"))
    assert "'january' is a part of 'patients'" in verify(ledger, disjoint, code=2)
    assert "1 model file" in verify(ledger, overlapping, code=0)


def of_part(number, change):
    def changed(manifest):
        change(manifest["merged"]["parts"][number])

    return changed


RECEIPT = {"ledger": "a" * 32, "dataset": "patients", "entry": 3, "head": "b" * 64}


@pytest.mark.parametrize(
    "receipt",
    [
        None,
        {},
        [],
        "text",
        {**RECEIPT, "entry": 0},
        {**RECEIPT, "entry": "3"},
        {**RECEIPT, "entry": 3.0},
        {**RECEIPT, "entry": True},
        {**RECEIPT, "head": "b" * 63},
        {**RECEIPT, "ledger": "A" * 32},
        {**RECEIPT, "dataset": "two\nlines"},
        {**RECEIPT, "dataset": ""},
        {**RECEIPT, "more": 1},
    ],
)
def test_a_forged_receipt_in_a_part_is_refused(tmp_path, receipt):
    path = merge([plain().fit(ROWS) for _ in range(2)], people="disjoint").save(tmp_path / "all")
    good = rewritten(path, tmp_path / "good.dpo", change=of_part(0, lambda part: part.update(receipt=dict(RECEIPT))))
    assert load(good).model_.merged.parts[0].receipt.entry == 3
    with pytest.raises(ModelFileError):
        load(rewritten(path, tmp_path / "forged.dpo", change=of_part(0, lambda part: part.update(receipt=receipt))))


def test_a_file_that_calls_the_same_people_disjoint_is_refused(tmp_path):
    path = merge([plain().fit(ROWS) for _ in range(2)], people="disjoint").save(tmp_path / "all")

    def change(manifest):
        for entry, part in enumerate(manifest["merged"]["parts"], 3):
            part["receipt"] = {**RECEIPT, "entry": entry}

    with pytest.raises(ModelFileError, match="charged to one data set"):
        load(rewritten(path, tmp_path / "forged.dpo", change=change))


def test_a_merge_of_before_receipts_were_kept_still_loads_and_scores_to_the_bit(tmp_path):
    """Frozen: the file was written, and scored, by a version that kept no receipts of parts."""
    corpus = Path(__file__).parents[1] / "fuzz" / "corpus" / "model_file" / "merged.gz"
    (tmp_path / "old.dpo").write_bytes(gzip.decompress(corpus.read_bytes()))
    old = load(tmp_path / "old.dpo")
    assert all(part.receipt is None for part in old.model_.merged.parts)
    points = np.random.default_rng(5).uniform(size=(200, old.model_.domain.n_features))
    scores = hashlib.sha256(old.outlier_scores(points).tobytes()).hexdigest()
    assert scores == "865bf8458b7434385e0e0b25a778bceefd472a1aa072170612f861598a9990e1"
