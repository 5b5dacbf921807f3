"""The server's scores are those of the library, to the bit, whatever the body."""

import csv
import io
import json
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpoutlier import Category, DPForest, DPGridKNN, DPMarginals, load, merge
from dpoutlier.detectors.scores import labels_of
from dpoutlier.exceptions import PointsError
from server_process import call, called, loaded_app

ARROW = "application/vnd.apache.arrow.stream"
NAMES = ["age", "bmi", "sex", "stage"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Detectors by id, all on the same four columns or on the first two."""
    folder, rng = tmp_path_factory.mktemp("models"), np.random.default_rng(0)
    rows = pa.table(
        {
            "age": rng.uniform(18, 90, 400),
            "bmi": rng.normal(27, 4, 400),
            "sex": rng.choice(["f", "m"], 400),
            "stage": rng.choice(["1", "2", "3"], 400),
        }
    )
    bounds = {"age": (18, 100), "bmi": (10, 60)}
    mixed = {
        "features": bounds,
        "categories": {"sex": Category(["f", "m"]), "stage": Category([1, 2, 3], ordered=True)},
    }
    two = rows.select(["age", "bmi"])
    made = {
        "mixed": DPMarginals(1, **mixed, target_fpr=0.1).fit(rows),
        "cells": DPMarginals(1, **mixed, missing="cell").fit(rows),
        "forest": DPForest(1, features=bounds, n_rows_hint=400, target_fpr=0.05).fit(two),
        "grid": DPGridKNN(1, features=bounds, bins=5, k=3).fit(two),
        "nameless": DPMarginals(1, features=(0, 100), bins=4).fit(np.column_stack([two["age"], two["bmi"]])),
    }
    made["merged"] = merge([made["grid"], DPGridKNN(1, features=bounds, bins=5, k=3).fit(two)], people="disjoint")
    return {name: (detector.save(folder / name), detector) for name, detector in made.items()}


@pytest.fixture(scope="module")
def app(models):
    return loaded_app(models=tuple((name, str(path)) for name, (path, _) in models.items()))


numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(0, 120),
    st.integers(-(2**70), 2**70),
    st.sampled_from(["27.5", " 30 ", "1e2", "-inf", 0, -0.0, 18, 100, 1e308, True]),
)
levels = st.sampled_from(["f", "m", " f ", "x", "1", "2.0", 1, 2.0, 3, True, "other"])
nothing = st.sampled_from([None, "", "abc", "nan"])


def points_of(width, missing):
    kinds = [numbers, numbers, levels, levels][:width]
    return st.lists(
        st.tuples(*(st.one_of(kind, nothing) if missing else kind for kind in kinds)), min_size=1, max_size=6
    )


def expected(detector, rows):
    """Scores and outside by the library, or None where it refuses."""
    table = np.empty((len(rows), len(rows[0])), object)
    for i, row in enumerate(rows):
        table[i] = row
    try:
        scores = detector.outlier_scores(table)
    except PointsError:
        return None
    return scores.tolist(), detector.outside_bounds(table).tolist()


def bits(values):
    return np.array(values, np.float64).tobytes()


@pytest.mark.parametrize("name", ["mixed", "cells", "forest", "grid", "nameless", "merged"])
def test_json_scores_are_those_of_the_library(app, models, name):
    detector = models[name][1]
    width = detector.n_features_in_

    @given(points_of(width, missing=True), st.booleans())
    def check(rows, by_name):
        names = list(detector.model_.domain.labels)
        points = [dict(zip([*names, "id"], [*row, "z"])) for row in rows] if by_name else [list(row) for row in rows]
        body = json.dumps({"points": points}).encode()
        status, headers, answer = call(
            app, "POST", f"/v1/models/{name}/score", headers={"Content-Type": "application/json"}, body=body
        )
        found, wanted = json.loads(answer), expected(detector, rows)
        if wanted is None:
            assert (status, found["error"]["code"]) == (400, "missing-value")
            return
        assert status == 200, found
        assert bits(found["outlier_score"]) == bits(wanted[0])
        assert found["outside_bounds"] == wanted[1]
        assert found["n"] == len(rows)
        assert found["release"] == headers["x-model-release"]
        if detector._threshold() is not None:
            assert found["prediction"] == labels_of(np.array(wanted[0]), detector.offset_).tolist()
        else:
            assert found["prediction"] is None

    check()


@pytest.mark.parametrize("name", ["mixed", "cells", "grid"])
def test_csv_and_arrow_scores_are_those_of_the_library(app, models, name):
    detector = models[name][1]
    width, names = detector.n_features_in_, NAMES[: detector.n_features_in_]
    floats = st.one_of(st.floats(allow_nan=False), st.floats(0, 120), st.none())
    texts = st.sampled_from(["f", "m", "x", "1", "2", "3", "", None])

    @given(st.lists(st.tuples(*[floats, floats, texts, texts][:width]), min_size=1, max_size=6))
    def check(rows):
        wanted = [expected(detector, [row]) for row in rows]
        table = pa.table(
            {n: pa.array([row[j] for row in rows], pa.float64() if j < 2 else pa.string()) for j, n in enumerate(names)}
        ).append_column("id", [["z"] * len(rows)])
        text = io.StringIO()
        records = csv.writer(text)
        records.writerow(["id", *names])
        records.writerows(
            [["z", *("" if v is None else repr(v) if isinstance(v, float) else v for v in row)] for row in rows]
        )
        alone = table.select(names)
        streams = [stream(table), stream(alone), stream(alone, 1), stream(table.select(["id", *names[::-1]]), 2)]
        for kind, body in [(ARROW, one) for one in streams] + [("text/csv", text.getvalue().encode())]:
            status, headers, answer = call(
                app,
                "POST",
                f"/v1/models/{name}/score",
                headers={"Content-Type": kind},
                body=body,
                query="missing=null&threshold=0.5",
            )
            assert status == 200, answer
            assert headers["content-type"].startswith(kind)
            found = _read(kind, answer)
            assert len(found) == len(rows)
            for one, own in zip(found, wanted):
                if own is None:
                    assert one == (None, None, None)
                else:
                    assert bits(one[0]) == bits(own[0][0])
                    assert one[1:] == (own[1][0], 1 if own[0][0] <= 0.5 else -1)

    check()


def stream(table, rows=None):
    """An Arrow stream, in batches of a given number of rows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, rows)
    return sink.getvalue().to_pybytes()


def _read(kind, answer):
    """Rows of (score, outside, prediction)."""
    if kind == ARROW:
        table = pa.ipc.open_stream(answer).read_all()
        assert table.schema.metadata[b"threshold"] == b"0.5"
        return [tuple(row.values()) for row in table.to_pylist()]
    header, *records = csv.reader(io.StringIO(answer.decode()))
    assert header == ["outlier_score", "outside_bounds", "prediction"]
    words = {"true": True, "false": False, "": None}
    return [
        (float(score) if score else None, words[outside], int(prediction) if prediction else None)
        for score, outside, prediction in records
    ]


def test_the_answer_is_of_the_kind_that_is_accepted(app):
    for accept, kind in (
        ("text/csv", "text/csv; charset=utf-8"),
        ("application/json;q=0.2, " + ARROW, ARROW),
        ("*/*", "application/json"),
        ("text/*", "text/csv; charset=utf-8"),
    ):
        headers = {"Content-Type": "application/json", "Accept": accept}
        status, found, _ = call(app, "POST", "/v1/models/grid/score", headers=headers, body=b'{"points":[[50,22]]}')
        assert (status, found["content-type"]) == (200, kind)
    headers = {"Content-Type": "application/json", "Accept": "image/png"}
    assert call(app, "POST", "/v1/models/grid/score", headers=headers, body=b'{"points":[[50,22]]}')[0] == 406


def test_a_threshold_holds_for_one_answer(app, models):
    detector = load(models["mixed"][0])
    ask = {"headers": {"Content-Type": "application/json"}, "body": b'{"points":[[50,22,"f",1],[99,59,"x",3]]}'}
    own = json.loads(call(app, "POST", "/v1/models/mixed/score", **ask)[2])
    moved = json.loads(call(app, "POST", "/v1/models/mixed/score", query="target_fpr=0.4", **ask)[2])
    endless = json.loads(call(app, "POST", "/v1/models/mixed/score", query="threshold=-inf", **ask)[2])
    again = json.loads(call(app, "POST", "/v1/models/mixed/score", **ask)[2])
    assert own == again
    assert own["threshold"] == 0.0 - detector.offset_
    assert moved["threshold"] == 0.0 - detector.set_threshold(target_fpr=0.4).offset_
    assert (endless["threshold"], endless["prediction"]) == ("-inf", [-1, -1])
    for query in (
        "target_fpr=2",
        "threshold=x",
        "threshold=1&target_fpr=.1",
        "threshold=nan",
        "missing=no",
        "treshold=1",
    ):
        status, _, answer = call(app, "POST", "/v1/models/mixed/score", query=query, **ask)
        assert (status, json.loads(answer)["error"]["code"]) == (400, "bad-parameter")
    status, _, answer = call(app, "POST", "/v1/models/merged/score", query="target_fpr=.1", **{**ask, "body": b"{}"})
    assert (status, json.loads(answer)["error"]["code"]) == (400, "bad-parameter")


def test_explanations_are_those_of_the_library(app, models):
    for name, rows in (("mixed", [[50, 22, "f", 1], [99, "59", "q", 3]]), ("grid", [[50, 22], [101, 59]])):
        detector = models[name][1]
        body = json.dumps({"points": rows}).encode()
        status, _, answer = call(
            app, "POST", f"/v1/models/{name}/explain", headers={"Content-Type": "application/json"}, body=body
        )
        found = json.loads(answer)
        table = np.array(rows, object)
        wanted = detector.explain(table)
        assert status == 200, found
        assert found["features"] == list(wanted.features)
        assert found["typical_score"] == wanted.typical_score
        for i, one in enumerate(found["explanations"]):
            assert one["outlier_score"] == wanted.scores[i]
            assert bits(one["contributions"]) == wanted.contributions[i].tobytes()
            assert one["note"] == wanted.note(i)
            assert one["region_note"] == (wanted._region_note(i) if name == "grid" else None)
            assert one["counterfactual"] == str(wanted.counterfactual(i))
            assert one["reached"] == wanted.counterfactual(i).reached
            assert [row["feature"] for row in one["rows"]] == [rank[0] for rank in wanted.ranking(i)]
            for row in one["rows"]:
                j = wanted.features.index(row["feature"])
                assert row["value"] == wanted.value(row["feature"], i, rows[i][j])
                assert row["instead"] == wanted.instead(row["feature"], i)[0]
                assert row["empty"] == (None if math.isnan(wanted.empty[i, j]) else wanted.empty[i, j])
    status, _, answer = call(
        app,
        "POST",
        "/v1/models/grid/explain",
        headers={"Content-Type": "application/json"},
        body=json.dumps({"points": [[1, 2]] * 51}).encode(),
    )
    assert (status, json.loads(answer)["error"]["code"]) == (413, "too-many-rows")


def test_models_are_listed_and_described(app, models):
    status, _, answer = call(app, "GET", "/v1/models")
    listed = json.loads(answer)["models"]
    assert status == 200
    assert [one["id"] for one in listed] == list(models)
    assert len({one["release"] for one in listed}) == len(listed)
    for name, (_, detector) in models.items():
        found = json.loads(call(app, "GET", f"/v1/models/{name}")[2])
        assert found["statement_text"] == str(detector.privacy_statement())
        assert found["statement"]["epsilon"] == detector.privacy_statement().epsilon == found["epsilon"]
        assert [one["name"] for one in found["features"]] == list(detector.model_.domain.labels)
        assert found["named"] == (name != "nameless")
        assert found["limits"] == {"rows": 100_000, "bytes": 16 << 20, "explain_rows": 50}
    assert json.loads(call(app, "GET", "/v1/models/mixed")[2])["features"][2]["levels"] == ["f", "m", "other"]


def test_a_head_request_has_no_body_and_other_methods_are_refused(app):
    status, headers, answer = call(app, "HEAD", "/v1/models")
    assert (status, answer) == (200, b"")
    assert int(headers["content-length"]) > 0
    status, headers, answer = call(app, "DELETE", "/v1/models")
    assert (status, json.loads(answer)["error"]["code"]) == (405, "method-not-allowed")
    assert headers["allow"] == "GET"
    assert call(app, "OPTIONS", "/v1/models/grid/score")[0] == 405
    for headers in (call(app, "GET", path)[1] for path in ("/", "/nothing", "/healthz", "/v1/models/none")):
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


def test_fast_bodies_do_not_make_slow_ones_short_work(tmp_path):
    import threading

    app = loaded_app(
        models=(("a", str(DPMarginals(1, features=(0, 1), bins=3).fit(np.zeros((50, 1))).save(tmp_path / "a"))),)
    )
    served, seen = app.state.worker.models.served["a"], []
    of_columns = type(served.scorer()).of_columns

    class Watched:
        def of_columns(self, columns):
            seen.append(threading.current_thread() is threading.main_thread())
            return of_columns(served.scorer_(), columns)

    served.scorer_, served.scorer = served.scorer, lambda **_: Watched()
    ask = {"headers": {"Content-Type": "application/json"}}

    def inline(body):
        seen.clear()
        assert call(app, "POST", "/v1/models/a/score", body=body, **ask)[0] == 200
        return seen == [True]

    slow = served.seconds_per_byte["json"] = 1e-5
    padded = b'{"points":[]}' + b" " * 3_000
    small, large = (b'{"points":[' + b",".join([b"[0.5]"] * n) + b"]}" for n in (100, 2_000))
    for _ in range(100):
        assert not inline(padded)
    assert served.seconds_per_byte["json"] == slow
    for _ in range(300):  # bodies like others, and fast: these tell something
        inline(small)
    assert inline(small)
    assert served.seconds_per_byte["json"] >= 5e-8
    served.seconds_per_byte["json"] = 0.0
    assert not inline(large)


def test_scores_do_not_wait_for_explanations_and_few_of_these_wait(tmp_path, monkeypatch):
    import asyncio
    import threading

    from dpoutlier.server import routes

    app = loaded_app(
        models=(("a", str(DPMarginals(1, features=(0, 1), bins=3).fit(np.zeros((50, 1))).save(tmp_path / "a"))),)
    )
    go_on = threading.Event()
    monkeypatch.setattr(routes, "explanations_body", lambda *_: b"{}" if go_on.wait(20) else b"")
    ask = {"headers": {"Content-Type": "application/json"}, "body": b'{"points":[[0.5]]}'}
    large = {**ask, "body": b'{"points":[' + b",".join([b"[0.5]"] * 5_000) + b"]}"}

    async def all_of_it():
        waiting = [asyncio.create_task(called(app, "POST", "/v1/models/a/explain", **ask)) for _ in range(12)]
        refused, _ = await asyncio.wait(waiting, timeout=1)
        scored = [await asyncio.wait_for(called(app, "POST", "/v1/models/a/score", **large), 5) for _ in range(4)]
        go_on.set()
        return [one.result() for one in refused], [one[0] for one in scored], [(await one)[0] for one in waiting]

    refused, scored, explained = asyncio.run(all_of_it())
    assert [one[0] for one in refused] == [503] * 3
    assert all(one[1]["retry-after"] == "5" for one in refused)
    assert scored == [200] * 4
    assert sorted(explained) == [200] * 9 + [503] * 3
    assert call(app, "POST", "/v1/models/a/explain", **ask)[0] == 200
    assert app.state.worker.bodies.held == 0


def test_files_that_vanish_or_cannot_be_loaded_are_reported_and_the_model_goes_on(tmp_path, monkeypatch, capfd):
    from dpoutlier.server import metrics
    from dpoutlier.server.models import LoadedModel
    from dpoutlier.server.watch import check_models

    path = DPMarginals(1, features=(0, 1), bins=3).fit(np.zeros((50, 1))).save(tmp_path / "a")
    content = path.read_bytes()
    app = loaded_app(models=(("a", str(path)),))
    models = app.state.worker.models

    def look():
        capfd.readouterr()
        for _ in range(3):
            check_models(models)
        events = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
        status = call(app, "POST", "/v1/models/a/score", headers={"Content-Type": "text/csv"}, body=b"x\n1\n")[0]
        assert status == 200
        events = [one for one in events if one["event"] != "request"]
        return events, metrics.tally.current["a"]

    path.unlink()
    (gone,), current = look()
    assert (gone["event"], gone["model"], current) == ("model-file-missing", "a", 0)
    path.write_bytes(content)
    (back,), current = look()
    assert (back["event"], current) == ("model-loaded", 1)
    path.write_bytes(b"no model")
    (broken,), current = look()
    assert (broken["event"], current) == ("model-failed", 0)
    assert str(path) in broken["message"]

    def burst(*_):
        raise ZeroDivisionError("unforeseen")

    monkeypatch.setattr(LoadedModel, "load", burst)
    path.write_bytes(content)
    (odd,), current = look()
    assert (odd["event"], odd["error"], odd["message"], current) == (
        "model-failed",
        "ZeroDivisionError",
        "unforeseen",
        0,
    )


@pytest.mark.parametrize(
    ("body", "content", "value"),
    [
        (b'{"points": [[0.5, 1], [0.5, null]]}', "application/json", None),
        (b'{"points": [[0.5, 1], [0.5, "x y"]]}', "application/json", "'x y'"),
        (b"a,b\n0.5,1\n0.5,\n", "text/csv", None),
        (b"a,b\n0.5,1\n0.5,abc\n", "text/csv", "'abc'"),
    ],
)
def test_the_error_of_a_missing_value_has_fields(body, content, value, tmp_path):
    rows = pd.DataFrame({"a": [0.5] * 9, "b": [0.2] * 9})
    path = DPForest(1, features={"a": (0, 1), "b": (0, 1)}, n_trees=2, depth=2).fit(rows).save(tmp_path / "m")
    status, _, answer = call(
        loaded_app(models=(("m", str(path)),)),
        "POST",
        "/v1/models/m/score",
        headers={"Content-Type": content},
        body=body,
    )
    error = json.loads(answer)["error"]
    assert (status, error.pop("code")) == (400, "missing-value")
    assert "point 1 (counted from 0)" in error.pop("message")
    assert error == {"row": 1, "column": "b", "value": value, "must": "a number"}
