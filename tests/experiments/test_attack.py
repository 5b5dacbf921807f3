"""The averaging attack: it succeeds on fresh noise, and not on noise that is drawn once."""

import math
from itertools import pairwise

import numpy as np
import pytest

from experiments.measure import attack
from experiments.measure.attack import run_attack
from experiments.measure.protocol import split_rows
from experiments.measure.study import Task
from made_data import made

pytestmark = pytest.mark.slow
TASK = Task("attack", "base", "heart", 0, (5,), 3, (0.5,), answers=4_000)


@pytest.fixture(scope="module")
def records():
    return run_attack(TASK, made("heart")).to_pylist()


def test_repeating_a_query_removes_fresh_noise(records):
    """From near chance to near certainty, and past what epsilon permits; noise and seeds are fixed."""
    success = [record["success_fresh"] for record in records]
    assert [record["queries"] for record in records] == [1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000]
    assert success[0] < 0.7
    assert success[-1] > 0.99
    assert all(later > earlier - 0.05 for earlier, later in pairwise(success))
    assert records[-1]["sd_present"] < records[0]["sd_present"] / 50


def test_noise_drawn_once_stays_within_the_promise(records):
    """One answer, however often it is asked for: at most e^eps / (1 + e^eps), give or take the estimate's own error."""
    promised = math.exp(0.5) / (1 + math.exp(0.5))
    error = 5 * 0.5 / math.sqrt(TASK.answers)
    for record in records:
        assert record["promised_most"] == pytest.approx(promised)
        assert record["success_kept"] == records[0]["success_kept"]
        assert 0.5 < record["success_kept"] < promised + error


def test_the_two_worlds_differ_by_the_one_row_that_is_asked_for(monkeypatch):
    """And each answer comes from a fit of its own."""
    seen = []

    class Spy:
        def __init__(self, seed):
            self.seed = seed

        def fit(self, rows):
            self.rows = rows
            return self

        def outlier_scores(self, query):
            seen.append((self.seed, self.rows, query))
            return np.zeros(1)

    monkeypatch.setattr(attack.variant_named("base").__class__, "private", lambda *_, seed, **__: Spy(seed))
    run_attack(Task("attack", "base", "heart", 0, (5,), 3, (0.5,), answers=3), made("heart"))
    reference = split_rows(made("heart"), 0).reference
    assert len({seed for seed, _, _ in seen}) == len(seen) == 6
    with_row, without = seen[0][1], seen[-1][1]
    assert np.array_equal(with_row, reference)
    (query,) = seen[0][2]
    assert len(without) == len(reference) - 1
    assert (reference == query).all(axis=1).sum() - (without == query).all(axis=1).sum() == 1


def test_the_nearer_expected_value_is_guessed():
    expected = {True: 1.0, False: 2.0}
    right, wrong, tie = {True: [1.1], False: [1.9]}, {True: [1.9], False: [1.1]}, {True: [1.5], False: [1.5]}
    guesses = [{world: np.array(values) for world, values in means.items()} for means in (right, wrong, tie)]
    assert [attack._success(means, expected) for means in guesses] == [1, 0, 0.5]
