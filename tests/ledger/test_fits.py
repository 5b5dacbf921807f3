"""A fit is charged before it reads a row, once, and whatever happens after that."""

import json
import sqlite3
import subprocess
import sys
import warnings
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

from dpoutlier import DPForest, DPGridKNN, DPMarginals, Ledger, PrivateBounds, detector, load, merge
from dpoutlier.exceptions import (
    BudgetExceededError,
    InvalidParameterError,
    LedgerError,
    LedgerWarning,
    ModelFileError,
    ReferenceDataError,
)
from dpoutlier.model.file.archive import read_archive
from dpoutlier.model.release_id import release_id
from dpoutlier.privacy.guarantee import Purpose
from dpoutlier.trusted import engine_people, in_engine, on_cluster
from dpoutlier.trusted import open as trusted_open
from dpoutlier.trusted import reference as reading
from dpoutlier.trusted.reference import in_silence

ROWS = np.random.default_rng(0).uniform(0, 1, (200, 2))
FRAME = pd.DataFrame(ROWS, columns=["a", "b"])
RANGES = {"a": (0, 1), "b": (0, 1)}
KINDS = {
    "forest": lambda **more: DPForest(1, features=RANGES, n_trees=2, depth=3, **more),
    "marginals": lambda **more: DPMarginals(1, features=RANGES, bins=3, **more),
    "grid": lambda **more: DPGridKNN(1, features=RANGES, bins=3, k=3, **more),
    "keyed grid": lambda **more: DPGridKNN(1, features=RANGES, bins=3, k=3, counts="keyed", **more),
}


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "budget.ledger", anchor=tmp_path / "anchor")
    made.open_budget("patients", 3)
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_every_private_detector_is_charged_and_its_model_tells_where(ledger, tmp_path, kind):
    fitted = KINDS[kind](ledger=ledger, dataset="patients").fit(FRAME)
    (one,) = ledger.spendings()
    assert one.epsilon == 1
    assert one.release == release_id(fitted.model_)
    receipt = fitted.model_.receipt
    assert (receipt.dataset, receipt.entry) == ("patients", one.number)
    again = load(fitted.save(tmp_path / "model"), secret=True)
    assert again.model_.receipt == receipt
    ledger.verify(receipts=[receipt])
    assert fitted.privacy_statement().to_dict()["ledger"]["entry"] == one.number
    assert f"patients, entry {one.number} of the ledger {receipt.ledger}" in " ".join(
        str(again.privacy_statement()).split()
    )


def test_everything_a_fit_releases_is_charged(ledger):
    """Bounds, the number of rows and a threshold are parts of epsilon, and the ledger is charged the whole."""
    everything = {
        "n_rows_hint": "estimate",
        "target_fpr": 0.1,
        "features": {"a": (0, 1), "b": PrivateBounds(outer=(-9, 9))},
    }
    fitted = DPForest("3/4", ledger=ledger, dataset="patients", **everything).fit(FRAME)
    assert {charge.purpose for charge in fitted.model_.charges} == set(Purpose)
    assert ledger.balance("patients").spent == sum(charge.epsilon for charge in fitted.model_.charges) == Fraction(3, 4)


def test_without_a_ledger_there_is_no_receipt():
    fitted = KINDS["forest"]().fit(FRAME)
    assert fitted.model_.receipt is None
    assert "ledger" not in fitted.privacy_statement().to_dict()


def test_the_path_of_a_ledger_will_do(ledger):
    for path in (ledger.path, str(ledger.path)):
        KINDS["marginals"](ledger=path, dataset="patients").fit(FRAME)
    assert ledger.balance("patients").spent == 2


def test_a_clone_charges_the_same_ledger(ledger):
    clone(KINDS["marginals"](ledger=ledger, dataset="patients")).fit(FRAME)
    chosen = detector(epsilon=1, features=RANGES, n_rows_hint=100, ledger=ledger, dataset="patients")
    chosen.fit(FRAME)
    assert ledger.balance("patients").spent == 2


# Before any row -----------------------------------------------------------------------------------------------------------


def sources(tmp_path):
    """The same rows, in every way that a fit takes them."""
    table = pa.Table.from_pandas(FRAME)
    pq.write_table(table, tmp_path / "rows.parquet")
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    return {
        "array": (ROWS, {}),
        "pandas": (FRAME, {}),
        "arrow": (table, {}),
        "parquet": (tmp_path / "rows.parquet", {}),
        "csv": (tmp_path / "rows.csv", {}),
        "dataset": (pa.dataset.dataset(tmp_path / "rows.parquet"), {}),
        "polars": (pl.LazyFrame(FRAME), {}),
        "duckdb": (duckdb.connect().from_df(FRAME), {}),
        "people": (FRAME.assign(id=range(len(FRAME))), {"person": "id"}),
        "people in a file": (tmp_path / "people.csv", {"person": "id"}),
        "people in polars": (pl.LazyFrame(FRAME.assign(id=range(len(FRAME)))), {"person": "id"}),
        "bounds": (FRAME, {"features": PrivateBounds()}),
        "threshold": (FRAME, {"target_fpr": 0.1}),
    }


@pytest.mark.parametrize("kind", ["marginals", "grid", "forest"])
def test_the_charge_is_on_disk_before_the_first_read_of_rows(tmp_path, monkeypatch, kind):
    """Every read of rows goes through ``in_silence``; at each of them the charge must be there."""  # (P10)
    FRAME.assign(id=range(len(FRAME))).to_csv(tmp_path / "people.csv", index=False)
    seen = Counter()

    def watched(read):
        connection = sqlite3.connect(path)  # not by our own code: what an outsider would find
        ((number,),) = connection.execute('SELECT count(*) FROM entries WHERE body LIKE \'%"kind":"reserve"%\'')
        connection.close()
        seen[number] += 1
        return in_silence(read)

    for module in (reading, trusted_open, in_engine, engine_people, on_cluster):
        monkeypatch.setattr(module, "in_silence", watched, raising=module in {reading, trusted_open, in_engine})
    for name, (rows, more) in sources(tmp_path).items():
        path = tmp_path / f"{name}.ledger"
        made = Ledger.create(path)
        made.open_budget("patients", 3, unit="person" if "person" in more else "row")
        seen.clear()
        own = KINDS[kind](ledger=made, dataset="patients")
        own.set_params(**more).fit(rows)
        assert seen.total() >= 1, name
        assert set(seen) == {1}, name
        (spent,) = made.spendings()
        assert spent.release is not None


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"features": None}, InvalidParameterError),
        ({"features": {"a": (0, 1), "c": (0, 1)}}, (InvalidParameterError, ValueError)),
        ({"bins": 0}, InvalidParameterError),
        ({"epsilon": -1}, InvalidParameterError),
        ({"person": "nobody"}, InvalidParameterError),
        ({"dataset": "others"}, LedgerError),
        ({"dataset": None}, InvalidParameterError),
        ({"ledger": None}, InvalidParameterError),
        ({"ledger": 7}, InvalidParameterError),
        ({"ledger": "nowhere.ledger"}, LedgerError),
        ({"epsilon": 4}, BudgetExceededError),
        ({"rows_per_person": 0}, InvalidParameterError),
    ],
)
def test_what_is_refused_for_public_reasons_costs_nothing_and_reads_nothing(ledger, monkeypatch, more, error):
    def refuse(read):
        pytest.fail("a row was read")

    monkeypatch.setattr("dpoutlier.trusted.reference.in_silence", refuse)
    before = ledger.entries()
    with pytest.raises(error):
        KINDS["marginals"](ledger=ledger, dataset="patients").set_params(**more).fit(FRAME)
    assert ledger.entries() == before


def test_a_wrong_type_in_a_lazy_frame_costs_nothing(ledger):
    frame = pl.LazyFrame({"a": [[1]], "b": [1.0]})
    with pytest.raises(Exception, match="a"):
        KINDS["marginals"](ledger=ledger, dataset="patients").fit(frame)
    assert ledger.balance("patients").spent == 0


@pytest.mark.parametrize("more", [{"unsafe_seed": 1}, {"epsilon": float("inf")}])
def test_what_is_not_private_cannot_be_charged(ledger, more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(LedgerError, match="not private"):
            KINDS["forest"](ledger=ledger, dataset="patients").set_params(**more).fit(FRAME)
    assert ledger.balance("patients").spent == 0


# After it -----------------------------------------------------------------------------------------------------------------


def test_a_fit_that_fails_on_its_rows_is_charged(ledger, tmp_path):
    pq.write_table(pa.table({"a": np.zeros(10**5), "b": np.zeros(10**5)}), tmp_path / "x.parquet")
    whole = bytearray((tmp_path / "x.parquet").read_bytes())
    whole[4:200] = bytes(196)  # the pages, not the schema
    (tmp_path / "x.parquet").write_bytes(whole)
    with pytest.raises(ReferenceDataError):
        KINDS["marginals"](ledger=ledger, dataset="patients").fit(tmp_path / "x.parquet")
    balance = ledger.balance("patients")
    assert (balance.spent, balance.unfinished) == (1, 1)


def test_a_ledger_that_goes_away_during_the_fit_does_not_cost_the_model(ledger, monkeypatch):
    def gone(self, *_):
        raise LedgerError("there is no ledger")

    monkeypatch.setattr(Ledger, "commit", gone)
    own = KINDS["marginals"](ledger=ledger, dataset="patients")
    with pytest.warns(LedgerWarning, match=r"the fit is complete, but .* failed.*Charged 1 .* names no release"):
        own.fit(FRAME)
    assert own.model_.receipt is not None
    assert ledger.balance("patients").spent == 1


def test_what_a_fit_costs_more_than_its_share_is_counted_in_the_budget_s_unit(tmp_path):
    made = Ledger.create(tmp_path / "x.ledger")
    made.open_budget("visits", 12, neighbours="replace-one", unit="person", rows_per_person=3)
    KINDS["marginals"](ledger=made, dataset="visits").fit(FRAME)
    assert made.balance("visits").spent == 6


def test_a_model_that_was_charged_is_not_fitted_again_for_nothing(ledger, tmp_path):
    path = KINDS["marginals"](ledger=ledger, dataset="patients").fit(FRAME).save(tmp_path / "model")
    again = load(path).estimator()
    with pytest.raises(InvalidParameterError, match="dataset is given without ledger"):
        again.fit(FRAME)
    again.set_params(ledger=ledger).fit(FRAME)
    assert ledger.balance("patients").spent == 2


@pytest.mark.parametrize("rows", [ROWS.tolist(), [], memoryview(ROWS)])
def test_tables_without_known_columns_are_refused_before_reading(ledger, rows):
    with pytest.raises(InvalidParameterError, match="not known before rows are read"):
        KINDS["marginals"](ledger=ledger, dataset="patients").fit(rows)
    assert ledger.balance("patients").spent == 0


def test_a_receipt_pays_for_its_own_release_only(ledger):
    small = KINDS["marginals"](ledger=ledger, dataset="patients").set_params(epsilon=0.5).fit(FRAME).model_
    large = KINDS["marginals"]().fit(FRAME).model_
    ledger.check_paid(small.receipt, release_id(small), small.guarantee)
    with pytest.raises(LedgerError, match="another release"):
        ledger.check_paid(small.receipt, release_id(large), large.guarantee)
    with pytest.raises(LedgerError, match="smaller epsilon"):
        ledger.check_paid(small.receipt, release_id(small), large.guarantee)
    with pytest.raises(LedgerError, match="forged"):
        ledger.check_paid(replace(small.receipt, dataset="others"), release_id(small), small.guarantee)


def test_a_merge_has_no_receipt_of_its_own(ledger):
    models = [KINDS["marginals"](ledger=ledger, dataset="patients").fit(FRAME) for _ in range(2)]
    assert merge(models, people="overlapping").model_.receipt is None


@pytest.mark.parametrize(
    "change",
    [
        {"entry": 0},
        {"entry": "3"},
        {"head": "ab"},
        {"ledger": "x" * 32},
        {"dataset": "two\nlines"},
        {"more": 1},
    ],
)
def test_a_forged_receipt_in_a_model_file_is_refused(ledger, tmp_path, change):
    import zipfile

    from dpoutlier.model.file.archive import SEAL, sealed, write_archive
    from dpoutlier.model.file.store import load_model

    path = KINDS["marginals"](ledger=ledger, dataset="patients").fit(FRAME).save(tmp_path / "model")
    with zipfile.ZipFile(path) as archive:
        manifest, arrays = read_archive(archive, path.stat().st_size)
    content = {key: value for key, value in manifest.items() if key not in SEAL}
    content["receipt"] = {**content["receipt"], **change}
    with (tmp_path / "forged.dpo").open("wb") as stream:
        write_archive(stream, sealed(content, arrays, manifest["format_version"]), arrays, True)
    with pytest.raises(ModelFileError):
        load_model(tmp_path / "forged.dpo")


# Processes ----------------------------------------------------------------------------------------------------------------


def children(*arguments):
    run = subprocess.run(
        [sys.executable, str(Path(__file__).parents[1] / "helpers" / "ledger_children.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


def released(folder):
    """How many models are there, whole."""
    return sum(load(path).model_.receipt is not None for path in folder.glob("model-*.dpo"))


@pytest.mark.slow
def test_a_fit_killed_at_any_moment_never_releases_more_than_is_spent(tmp_path):
    (tmp_path / "features.toml").write_text("[features]\na = [0, 1]\nb = [0, 1]\n")
    pd.DataFrame(np.random.default_rng(0).uniform(0, 1, (200_000, 2)), columns=["a", "b"]).to_csv(
        tmp_path / "rows.csv", index=False
    )
    ledger = Ledger.create(tmp_path / "budget.ledger", anchor=tmp_path / "anchor")
    ledger.open_budget("patients", 100)
    rounds = children("kill", tmp_path, 1, 50)
    assert len(rounds) == 50
    spendings = ledger.spendings()
    models = released(tmp_path)
    assert sum(one.epsilon for one in spendings) == Fraction(len(spendings), 100)
    assert len(spendings) >= models >= sum(one.release is not None for one in spendings)  # noted when the file is there
    receipts = [load(path).model_.receipt for path in tmp_path.glob("model-*.dpo")]
    ledger.verify(receipts=receipts)
    assert len({receipt.entry for receipt in receipts}) == len(receipts)  # no two on one charge
    killed = sum(one["killed"] for one in rounds)
    unfinished = sum(one.release is None for one in spendings)
    assert killed >= 25, rounds
    assert unfinished >= 5, (rounds, unfinished)  # many died between charge and release, or this test shows nothing
    assert len(spendings) < 51  # and some before the charge


@pytest.mark.slow
def test_of_two_that_race_for_the_last_budget_exactly_one_wins(tmp_path):
    rounds = children("race", tmp_path, 100)
    assert Counter(map(str, (one["codes"] for one in rounds))) == {"[0, 3]": 100}
    assert {one["spent"] for one in rounds} == {"1"}
