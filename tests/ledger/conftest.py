"""A ledger with a budget, and one that has spent some of it."""

import pytest

from dpoutlier import Ledger
from ledger_budgets import of


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "budget.ledger")
    made.open_budget("patients", 3)
    return made


@pytest.fixture
def spent(ledger):
    for _ in range(4):
        ledger.commit(ledger.reserve("patients", of("1/2"), "DPForest"), "b" * 64)
    return ledger
