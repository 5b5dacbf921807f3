"""Planted values: no entry point shows a reference value, a person, or how many there are."""

import gc
import json
import weakref

import pytest

from dpoutlier import Client
from entries.frozen_world import Seen
from entries.reference_tables import FEATURES, PEOPLE, arrow, numbers, planted_rows
from entries.replaying import find_planted, search
from entries.scenarios import MAKERS, REQUESTS, SCENARIOS, points
from server_process import running_server

ALL = [pytest.param(one, id=one.name, marks=[pytest.mark.slow] if one.slow else []) for one in SCENARIOS.values()]


@pytest.mark.parametrize("scenario", ALL)
def test_no_planted_value_is_seen(scenario, tmp_path, request):
    spark = request.getfixturevalue("spark") if "spark" in scenario.name else None
    search(scenario, tmp_path / "run", spark)


@pytest.mark.slow
def test_a_server_of_its_own_shows_no_planted_value(tmp_path):
    """A real process, its answers, its log and its audit log."""
    table, said = arrow(planted_rows()).to_pandas(), {}
    files = {
        name: MAKERS[maker](target_fpr=0.1, **PEOPLE).fit(table).save(tmp_path / name)
        for name, maker in {"forest": "DPForest", "keyed": "DPGridKNN keyed"}.items()
    }
    audit = tmp_path / "audit.jsonl"
    with running_server(tmp_path, *files.values(), "--open", "--secret-models", "--audit", audit) as server:
        for route, each in REQUESTS.items():
            for number, asked in enumerate(each):
                query = f"?{asked['query']}" if "query" in asked else ""
                answer = server.request(
                    route.partition(" ")[0], asked["path"] + query, headers=asked.get("headers"), body=asked.get("body")
                )
                said[f"{route} {number}"] = (answer.status, dict(answer.headers), answer.data)
        with Client(server.url, "keyed") as client:
            said["scores"] = client.outlier_scores(points())
            said["statement"] = str(client.privacy_statement())
            said["explanation"] = client.explain(points()).contributions
    assert {status for status, *_ in list(said.values())[: len(REQUESTS)]} >= {200, 404}
    assert json.loads(audit.read_text().splitlines()[0])
    shown = {"audit": (0, audit.read_bytes()), **{path.name: (0, path.read_bytes()) for path in files.values()}}
    find_planted(Seen(said, [], [], [], server.log_text(), shown), "a server", [])


def test_no_table_is_kept_when_a_fit_is_done():
    """Neither by a detector nor by anything that stays in memory between calls."""
    rows, kept, detectors = planted_rows()[:50], [], []
    for make in MAKERS.values():
        frame, array = arrow(rows).drop_columns("who").to_pandas(), numbers(rows)
        kept += [weakref.ref(frame), weakref.ref(array)]
        detectors.append(make(target_fpr=0.1, **FEATURES).fit(frame))
        detectors.append(make(target_fpr=0.1, features=([0, 0], [10, 4])).fit(array))
        del frame, array
    gc.collect()
    assert {one() for one in kept} == {None}
    assert len(detectors) == 2 * len(MAKERS)
