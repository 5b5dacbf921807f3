"""The shortcut for scores answers as the route does when FastAPI calls it."""

import json
import random

import pytest

from dpoutlier.server.audit_log import verify
from dpoutlier.server.direct import DirectScores
from dpoutlier.server.keys import create_key
from dpoutlier.server.logs import flush
from server_process import call, fitted, loaded_app

JSON, POINTS = {"Content-Type": "application/json"}, b'{"points":[[0.5,0.5],[7,0.5]]}'
QUERIES = [
    "",
    "missing=null",
    "threshold=1.5",
    "threshold=1e999",
    "target_fpr=0.1",
    "target_fpr=.2&missing=error",
    "fdr=0.2",
    "fdr=.1&missing=null&threshold=1",
    "fdr=0",
    "fdr=1",
    "fdr=x",
    "missing=x",
    "missing=",
    "threshold=",
    "threshold=1_0",
    "threshold=nan",
    "threshold=1" + "0" * 500,
    "target_fpr=0",
    "target_fpr=1",
    "target_fpr=2&threshold=x",
    "target_fpr=0.1&threshold=1",
    "missing=null&missing=null",
    "unknown=1",
    "unknown=1&unknown=2",
    "threshold=1%2e5&other=%ff",
]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """An application with the shortcut, one without, and a key; each has an audit log."""
    folder = tmp_path_factory.mktemp("direct")
    path, key = fitted(folder, "a.dpo", target_fpr=0.05), create_key(folder / "keys.json", ["a"])
    made = []
    for name in ("direct", "declared"):
        app = loaded_app(
            models=(("a", str(path)),), keys=str(folder / "keys.json"), audit=str(folder / f"{name}.jsonl"), max_rows=5
        )
        made.append(app)
    made[1].user_middleware = [one for one in made[1].user_middleware if one.cls is not DirectScores]
    assert len(made[1].user_middleware) == len(made[0].user_middleware) - 1
    return *made, key, folder


def answered(app, key, *, method="POST", path="/v1/models/a/score", headers=JSON, body=POINTS, query=""):
    """Everything but the id of the request."""
    bearer = {} if key is None else {"Authorization": f"Bearer {key}"}
    status, found, content = call(app, method, path, headers={**headers, **bearer}, body=body, query=query)
    del found["x-request-id"]
    return status, found, content


@pytest.mark.parametrize("query", QUERIES)
def test_parameters_mean_the_same(both, query):
    direct, declared, key, _ = both
    found = answered(direct, key, query=query)
    assert found == answered(declared, key, query=query)
    if found[0] == 400:
        error = json.loads(found[2])["error"]
        assert error["code"] == "bad-parameter"
        assert any(
            name in error["message"] for name in ("missing", "threshold", "target_fpr", "fdr", "unknown", "other")
        )
    assert found[0] == (200 if query in QUERIES[:8] else 400)


@pytest.mark.parametrize(
    "asked",
    [
        {"key": None},
        {"key": "dpo_aaaaaaaaaa_x"},
        {"path": "/v1/models/b/score"},
        {"path": "/v1/models/%ff/score"},
        {"path": "/v1/models/a/b/score"},
        {"path": "/v1/models//score"},
        {"path": "/v1/models/a/score/"},
        {"path": "/v1/models/a\n/score"},
        {"method": "GET"},
        {"method": "HEAD"},
        {"headers": {}},
        {"headers": {**JSON, "Accept": "image/png"}},
        {"headers": {**JSON, "Accept": "text/csv"}},
        {"body": b"x"},
        {"body": b'{"points":[' + b",".join([b"[1,1]"] * 6) + b"]}"},
    ],
    ids=repr,
)
def test_requests_are_answered_the_same(both, asked):
    direct, declared, key, _ = both
    assert answered(direct, **{"key": key, **asked}) == answered(declared, **{"key": key, **asked})


def test_logs_and_metrics_are_the_same(both, capfd):
    direct, declared, key, folder = both
    chosen = random.Random(0).choices(QUERIES, k=20)
    seen = []
    for app in (direct, declared):
        flush()
        capfd.readouterr()
        for query in chosen:
            answered(app, key, query=query)
        flush()
        lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
        seen.append([{name: line[name] for name in ("route", "status", "rows", "key", "model")} for line in lines])
    assert len(seen[0]) == 20
    assert seen[0] == seen[1]
    entries = []
    for name in ("direct", "declared"):
        verify(folder / f"{name}.jsonl")
        lines = map(json.loads, (folder / f"{name}.jsonl").read_text().splitlines())
        kept = ("event", "key", "model", "release", "route", "rows", "status")
        entries.append([{part: line[part] for part in kept} for line in lines])
    assert entries[0] == entries[1]
    assert {one["route"] for one in entries[0]} == {"/v1/models/{model}/score"}
