"""A server of several workers under load and under fire: every answer is right, or there is none. Small runs of bench/server.py."""

import pytest

import server as bench

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return bench.made_models(tmp_path_factory.mktemp("models"))


def test_mixed_requests_from_several_processes_are_all_answered_right(models, tmp_path):
    with bench.served(tmp_path, models, workers=2) as running:
        counts, _ = bench.mixed(running, bench.cases_of(models, variants=1), 1000)
    assert counts == {"right": 1000}


def test_a_wrong_answer_would_be_noticed(models):
    for case in bench.cases_of(models, sizes=(10,), variants=1):
        other = {
            "json": b'{"outlier_score": [1.0], "outside_bounds": [false], "prediction": null}',
            "csv": b"outlier_score,outside_bounds,prediction\n1.0,false,1\n",
            "arrow": bench.body_of("arrow", bench.pa.table({"outlier_score": [1.0], "outside_bounds": [False]})),
        }
        assert not case.agrees(other[case.kind])


def test_clients_get_right_answers_while_workers_and_the_server_are_killed(models, tmp_path):
    fire = bench.under_fire(tmp_path, models, seconds=3, kills_of_all=1, workers=2)
    assert set(fire.answers) == {"right"}
    assert fire.answers["right"] >= 3
    assert fire.killed >= 2
    assert len(fire.restarts) == 1
