"""Files that 0.1.0 wrote before its modules moved: models score to the bit, and the ledger knows its release."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpoutlier import Ledger, load

BEFORE = Path(__file__).parent / "data" / "before"
KNOWN = json.loads((BEFORE / "scores.json").read_text())


@pytest.mark.parametrize("name", KNOWN["models"])
def test_a_model_written_before_scores_to_the_bit(name):
    known = KNOWN["models"][name]
    points = pd.DataFrame(KNOWN["points"])[known["features"]]
    model = load(BEFORE / name, secret=".secret." in name)
    assert model.outlier_scores(points).tolist() == known["scores"]
    assert model.estimator().outlier_scores(points).tolist() == known["scores"]
    if known["labels"] is not None:
        assert model.predict(points).tolist() == known["labels"]


def test_every_file_is_known_and_scores_differ():
    assert {path.name for path in BEFORE.glob("*.dpo")} == set(KNOWN["models"])
    assert all(len(np.unique(known["scores"])) > 2 for known in KNOWN["models"].values())


def test_a_ledger_written_before_knows_its_release(tmp_path):
    ledger = tmp_path / "budget.ledger"
    ledger.write_bytes((BEFORE / "budget.ledger").read_bytes())
    model = load(BEFORE / "forest.dpo")
    Ledger(ledger).verify(receipts=[model.model_.receipt])
    balance = Ledger(ledger).balance("clinic")
    assert (balance.spent, balance.left, balance.fits) == (Fraction(1, 3), Fraction(5, 3), 1)
