"""What a server must not get wrong in small ways: whose threshold, which headers, what an error shows, what is left behind."""

import io
import json
import os
import socket
import tempfile

import numpy as np
import pyarrow as pa
import pytest

from dpoutlier import DPGridKNN, DPMarginals, load
from dpoutlier.server import run
from dpoutlier.server.audit_log import AuditError, AuditLog, _hash, verify
from dpoutlier.server.error_responses import Refusal
from dpoutlier.server.keys import create_key
from dpoutlier.server.rate_limits import RateLimit
from server_process import call, loaded_app, running_server

JSON = {"Content-Type": "application/json"}
ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}
ROWS = 500
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rows = pa.table({"x": np.random.default_rng(0).beta(2, 5, 900), "y": np.linspace(0, 1, 900)})
    detector = DPMarginals(1, features={"x": (0, 1), "y": (0, 1)}, bins=6, target_fpr=0.1).fit(rows)
    return detector.save(tmp_path_factory.mktemp("details") / "a")


@pytest.fixture
def app(path):
    return loaded_app(models=(("a", str(path)),), max_rows=ROWS)


def score(app, points, query="", **more):
    status, _, answer = call(
        app,
        "POST",
        "/v1/models/a/score",
        headers=JSON,
        query=query,
        body=json.dumps({"points": points}).encode(),
        **more,
    )
    assert status == 200, answer
    return json.loads(answer)


def test_the_threshold_of_one_answer_is_not_that_of_another(app, path):
    points = [[0.2, 0.5], [0.95, 0.5], [0.5, 0.5]]
    scores = load(path).outlier_scores(points)
    low, high = np.sort(scores)[[0, 2]].tolist()
    own = score(app, points)["prediction"]
    assert own == load(path).predict(points).tolist()
    for query, threshold in ((f"threshold={(low + high) / 2!r}", (low + high) / 2), ("threshold=1e9", 1e9)):
        assert score(app, points, query)["prediction"] == np.where(scores > threshold, -1, 1).tolist()
        assert score(app, points)["prediction"] == own
    assert score(app, points, "threshold=1e9")["prediction"] != score(app, points, "threshold=-1e9")["prediction"]


def test_an_explanation_tells_what_the_library_tells(app, path):
    detector, points = load(path), [[0.2, 0.5], [7.0, 0.5], [0.97, -3.0]]
    status, _, answer = call(
        app, "POST", "/v1/models/a/explain", headers=JSON, body=json.dumps({"points": points}).encode()
    )
    found, wanted = json.loads(answer)["explanations"], detector.explain(points)
    assert status == 200
    assert [one["outside_bounds"] for one in found] == detector.outside_bounds(points).tolist() == [False, True, True]
    assert [one["prediction"] for one in found] == detector.predict(points).tolist()
    for i, one in enumerate(found):
        for row in one["rows"]:
            instead, then = wanted.instead(row["feature"], i)
            assert (row["instead"], row["then"] or "") == (instead, then)
            assert row["adds"] == wanted.contributions[i, wanted.features.index(row["feature"])]


def test_an_internal_error_shows_only_its_kind_and_place(app, monkeypatch, capfd):
    def fail(*_args, **_named):
        raise RuntimeError("sentinel-30492-of-a-point")

    monkeypatch.setattr(app.state.worker.models.served["a"], "scorer", fail)
    status, headers, answer = call(app, "POST", "/v1/models/a/score", headers=JSON, body=b'{"points":[[1,1]]}')
    said = capfd.readouterr().err
    assert (status, json.loads(answer)["error"]["code"]) == (500, "failed")
    assert headers["x-request-id"] in said
    assert "RuntimeError" in said
    assert "sentinel" not in said + answer.decode()


def test_every_answer_has_the_whole_policy(app):
    for method, where in (("GET", "/"), ("GET", "/static/page.css"), ("POST", "/v1/models/a/score"), ("PUT", "/x")):
        headers = call(app, method, where)[1]
        assert headers["content-security-policy"] == CSP
        assert headers["referrer-policy"] == "no-referrer"


def test_pages_come_whole_whatever_range_is_asked_for(app):
    whole = call(app, "GET", "/static/page.css")[2]
    for given in ("bytes=0-3", "bytes=9999999-", "nonsense"):
        status, headers, answer = call(app, "GET", "/static/page.css", headers={"Range": given})
        assert (status, answer) == (200, whole)
        assert "accept-ranges" not in headers
    assert json.loads(call(app, "GET", "/static/none.css")[2])["error"]["code"] == "not-found"


def test_a_refused_head_request_has_no_body(app):
    status, headers, answer = call(app, "HEAD", "/v1/models/none")
    assert (status, answer) == (404, b"")
    assert int(headers["content-length"]) > 0


def test_rows_of_all_batches_count(app):
    table = pa.table({"x": np.zeros(ROWS), "y": np.zeros(ROWS)})
    for batches, wanted in ((1, 200), (2, 413)):
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            for _ in range(batches):
                writer.write_table(table)
        assert call(app, "POST", "/v1/models/a/score", headers=ARROW, body=sink.getvalue())[0] == wanted


def test_arrow_answers_tell_the_threshold_to_the_bit(app, path):
    sink = io.BytesIO()
    table = pa.table({"x": [0.5], "y": [0.5]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    answer = call(app, "POST", "/v1/models/a/score", headers=ARROW, body=sink.getvalue())[2]
    found = pa.ipc.open_stream(answer).read_all()
    assert float(found.schema.metadata[b"threshold"]) == 0.0 - load(path).offset_


def test_many_points_are_outside_where_few_would_be(path):
    app = loaded_app(models=(("a", str(path)),), max_rows=10**6)
    values = np.random.default_rng(0).uniform(-1, 2, (70_000, 2))
    scorer = app.state.worker.models.served["a"].scorer()
    batch = scorer.of_columns([np.ascontiguousarray(values[:, j]) for j in range(2)])
    assert (batch.columns["outside_bounds"] == load(path).outside_bounds(values)).all()
    assert (batch.columns["outlier_score"] == load(path).outlier_scores(values)).all()


def test_the_number_of_missing_values_is_stated(app):
    body = b'{"points":[[1,1],[null,1],["",1],[1,null]]}'
    status, _, answer = call(app, "POST", "/v1/models/a/score", headers=JSON, body=body)
    said = json.loads(answer)["error"]["message"]
    assert status == 400
    assert "point 1 (counted from 0)" in said
    assert "(2 in this column)" in said


# Keys and rates -----------------------------------------------------------------------------------------------------------


def test_only_one_authorization_of_usable_length_counts(path, tmp_path):
    key = create_key(tmp_path / "keys.json", ["a"])
    app = loaded_app(models=(("a", str(path)),), keys=str(tmp_path / "keys.json"))
    guard, bearer = app.state.worker.guard, f"Bearer {key}".encode()
    assert guard.key_of([(b"authorization", bearer)]).models == ("a",)
    for headers in (
        [(b"authorization", bearer)] * 2,
        [(b"authorization", bearer), (b"authorization", b"")],
        [(b"authorization", b"Bearer " + b" " * 300 + key.encode())],
        [(b"authorization", key.encode())],
        [(b"authorization", b"Basic " + key.encode())],
    ):
        with pytest.raises(Refusal):
            guard.key_of(headers)


@pytest.mark.parametrize("route", ["score", "explain"])
def test_the_rate_is_for_scores_and_explanations_too(path, route):
    app = loaded_app(models=(("a", str(path)),), rate=1.0)
    ask = {"headers": JSON, "body": b'{"points":[[0.5,0.5]]}'}
    assert [call(app, "POST", f"/v1/models/a/{route}", **ask)[0] for _ in range(2)] == [200, 429]


def test_who_was_idle_for_long_may_not_ask_all_at_once(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("dpoutlier.server.rate_limits.time.monotonic", lambda: now[0])
    rate = RateLimit(5.0, None)
    rate.take("k")
    now[0] += 3600
    for _ in range(5):
        rate.take("k")
    with pytest.raises(Refusal):
        rate.take("k")


# What is written ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def lines(tmp_path):
    log = AuditLog(tmp_path / "audit.jsonl")
    for i in range(5):
        log.append("query", request_id=f"{i:x}", rows=i, status=401)
    log.close()
    return (tmp_path / "audit.jsonl").read_text().splitlines()


def check(lines, tmp_path):
    (tmp_path / "changed.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(AuditError) as caught:
        verify(tmp_path / "changed.jsonl")
    return caught.value.line


def test_a_line_is_what_was_written_letter_by_letter(lines, tmp_path):
    for old, new in (('"status":401', '"status":200,"status":401'), (',"rows"', ', "rows"'), ("{", "{ ")):
        assert old in lines[2]
        assert check([*lines[:2], lines[2].replace(old, new, 1), *lines[3:]], tmp_path) == 3


def test_the_link_to_the_line_before_is_hashed_too(lines, tmp_path):
    forged = json.loads(lines[2]) | {"rows": 99}
    forged["hash"] = _hash(forged)
    after = json.loads(lines[3]) | {"previous": forged["hash"]}
    texts = [json.dumps(one, separators=(",", ":")) for one in (forged, after)]
    assert check([*lines[:2], *texts, *lines[4:]], tmp_path) == 4


def test_folders_of_killed_servers_are_swept_and_those_of_living_ones_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    dead, alive, foreign = (tmp_path / f"{run.FOLDER}{name}" for name in ("dead", "alive", "foreign"))
    for folder in (dead, alive, foreign):
        folder.mkdir()
    (dead / "lock").touch()
    (dead / "rates").touch()
    held = run._lock(alive)
    try:
        run._sweep()
        assert sorted(one.name for one in tmp_path.iterdir()) == sorted([alive.name, foreign.name])
    finally:
        os.close(held)


# On the wire --------------------------------------------------------------------------------------------------------------


def test_a_head_after_a_large_body_in_the_same_piece_is_not_counted_with_it(path, tmp_path):
    with running_server(tmp_path, path, "--open") as server:
        body = b'{"points":[[0.5,0.5]]' + b" " * 60_000 + b"}"
        head = (
            f"POST /v1/models/a/score HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n"
        )
        one = head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
            connection.sendall(one + one[:40])
            connection.sendall(one[40:])
            answers = b""
            while answers.count(b"HTTP/1.1 200") < 2:
                piece = connection.recv(1 << 16)
                assert piece, answers
                answers += piece
        assert answers.count(b'"outlier_score"') == 2


# What is stated ------------------------------------------------------------------------------------------------------------


def _statements_of(path, secret):
    """All texts that state the privacy of a model, by where they stand."""
    from typer.testing import CliRunner

    from dpoutlier.cli.app import app as program
    from dpoutlier.client.description import Description

    app = loaded_app(models=(("m", str(path)),), secret_models=True)
    detail = json.loads(call(app, "GET", "/v1/models/m")[2])
    client = Description.from_json(detail).statement
    statement = load(path, secret=secret).privacy_statement()
    return {
        "the statement": str(statement),
        "its data": " ".join(statement.to_dict()["remarks"]),
        "a server's page": detail["statement_text"],
        "a server's data": " ".join(detail["statement"]["remarks"]),
        "a client's page": str(client),
        "a client's data": " ".join(client.to_dict()["remarks"]),
        "dpoutlier inspect": CliRunner().invoke(program, ["inspect", str(path)], env={"COLUMNS": "200"}).stdout,
    }, detail


@pytest.mark.parametrize("kind", ["keyed", "dense", "sparse"])
def test_a_keyed_model_states_its_delta_for_whoever_can_time_answers(tmp_path, kind):
    made = DPGridKNN(1, features={"x": (0, 1), "y": (0, 1)}, bins=4, counts=kind)
    made.fit(pa.table({"x": np.linspace(0, 1, 50), "y": np.linspace(0, 1, 50)}))
    texts, detail = _statements_of(made.save(tmp_path / "m"), secret=kind == "keyed")
    for where, page in texts.items():
        text = " ".join(page.split())
        assert ("N 2^-60" in text) is (kind == "keyed"), where
        assert ("For clients that time the answers of a server" in text) is (kind == "keyed"), where
    assert detail["statement"]["delta"] == "0"  # of the answers themselves
