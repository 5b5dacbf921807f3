"""The metric of drift: the points of a day, compared when the day is over."""

import json
from datetime import date, timedelta

import numpy as np
import pytest

from dpoutlier import DPForest, DPGridKNN
from dpoutlier.server.drift import MOST_POINTS, DriftWatch
from dpoutlier.server.metrics import tally
from dpoutlier.server.models import LoadedModel
from dpoutlier.server.settings import Settings
from server_process import call, loaded_app

ROWS = np.random.default_rng(0).normal(size=(20_000, 3))
SETTINGS = Settings(models=())


@pytest.fixture(scope="module")
def served():
    fitted = DPForest(1, features=(-6, 6), n_rows_hint=20_000, target_fpr=0.05).fit(ROWS)
    return LoadedModel("watched", fitted.model_, SETTINGS)


class Clock:
    def __init__(self):
        self.day = date(2026, 1, 1)

    def __call__(self):
        return self.day


def added(watch, served, points):
    watch.add(served, list(points.T), served.scorer(nulls=True).of_columns(list(points.T)))


def test_a_day_is_compared_when_it_is_over(served):
    clock, rng = Clock(), np.random.default_rng(1)
    watch = DriftWatch(2, clock)
    tally.drifted.clear()
    watch.refresh()
    assert tally.drifted == {}
    for shift, expected in ((0, False), (2, True), (0, False)):
        for _ in range(20):
            added(watch, served, rng.normal(shift, 1, (100, 3)))
        watch.refresh()
        before = dict(tally.drifted)
        clock.day += timedelta(days=1)
        watch.refresh()
        assert tally.drifted == {"watched": expected}
        assert before == {} or before != tally.drifted
    clock.day += timedelta(days=1)
    watch.refresh()  # no point on that day
    assert tally.drifted == {"watched": False}
    tally.drifted.clear()


def test_points_without_a_score_and_those_past_the_limit_are_left_out(served):
    watch = DriftWatch(1, Clock())
    added(watch, served, np.where(np.arange(30).reshape(10, 3) < 12, ROWS[:10], np.nan))
    assert watch._seen["watched"][1].n == 4
    for _ in range(3):
        added(watch, served, ROWS[:10_000])
    assert watch._seen["watched"][1].n == MOST_POINTS


def test_models_without_counts_of_all_cells_are_left_out(served):
    plain = LoadedModel("plain", DPGridKNN(1, features=(-6, 6), bins=30, counts="sparse").fit(ROWS).model_, SETTINGS)
    clock = Clock()
    watch = DriftWatch(1, clock)
    added(watch, plain, ROWS[:10])
    clock.day += timedelta(days=1)
    watch.refresh()
    assert "plain" not in tally.drifted


def test_a_server_counts_what_it_scores(tmp_path):
    fitted = DPForest(1, features=(-6, 6), n_rows_hint=20_000, target_fpr=0.05).fit(ROWS)
    app = loaded_app(models=(("watched", str(fitted.save(tmp_path / "watched"))),))
    watch, clock = app.state.worker.drift, Clock()
    watch._today, watch._day = clock, clock.day
    body = json.dumps({"points": np.random.default_rng(2).normal(3, 1, (500, 3)).tolist()}).encode()
    status, _, _ = call(
        app, "POST", "/v1/models/watched/score", headers={"Content-Type": "application/json"}, body=body
    )
    assert status == 200
    clock.day += timedelta(days=1)
    watch.refresh()
    assert tally.drifted == {"watched": True}
    tally.drifted.clear()
