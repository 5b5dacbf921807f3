"""The routes do what the OpenAPI page says, for whatever schemathesis thinks of; no answer is a failure of the server."""

import json

import numpy as np
import pyarrow as pa
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import checks as known
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks

from dpoutlier import DPMarginals
from server_process import make_key, running_server

ARROW = "application/vnd.apache.arrow.stream"


def stream(rows):
    table = pa.table({"x": pa.array([row[0] for row in rows], pa.float64()), "y": [row[1] for row in rows]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


rows = st.lists(st.tuples(st.one_of(st.floats(), st.none()), st.text(max_size=3)), min_size=1, max_size=3)
schemathesis.openapi.media_type(ARROW, st.one_of(st.binary(max_size=200), rows.map(stream)))
schemathesis.openapi.media_type(
    "text/csv", st.one_of(st.binary(max_size=200), st.sampled_from([b"x,y\n1,2\n", b"x,y\n.5,a\n", b"y,x,x\n1,2,3\n"]))
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("schema")
    table = pa.table({"x": np.linspace(0, 1, 100), "y": np.linspace(0, 1, 100)})
    model = DPMarginals(1, features={"x": (0, 1), "y": (0, 1)}, bins=3, target_fpr=0.1).fit(table).save(folder / "a")
    key = make_key(folder / "keys.json", "*", "--metrics")
    with running_server(folder, model, "--keys", folder / "keys.json", "--body-seconds", 5) as server:
        server.key = key
        yield server
    assert "failed" not in {one["event"] for one in server.log()}
    assert "Traceback" not in server.log_text()


OPERATIONS = [
    ("POST", "/v1/models/{model}/score"),
    ("POST", "/v1/models/{model}/explain"),
    ("GET", "/v1/models/{model}"),
    ("GET", "/v1/models"),
    ("GET", "/metrics"),
    ("GET", "/readyz"),
    ("GET", "/healthz"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_answers_are_as_described(server, method, path, mode):
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    strategy = schema[path][method].as_strategy(generation_mode=mode)

    @given(strategy)
    @settings(
        max_examples=30 if method == "POST" else 5,
        phases=[Phase.generate],  # a failure tells enough without a smaller one
        suppress_health_check=list(HealthCheck),
    )
    def check(case):
        _check(case, server, schema.raw_schema)

    try:
        check()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE  # a route without parameters cannot be asked wrongly


def _check(case, server, description):
    if "model" in (case.path_parameters or {}) and len(str(case.path_parameters["model"])) % 4:
        case.path_parameters["model"] = "a"
    answer = case.call(headers={"Authorization": f"Bearer {server.key}"}, timeout=20)
    case.validate_response(
        answer,
        checks=[
            known.not_a_server_error,
            checks.status_code_conformance,
            checks.content_type_conformance,
            checks.response_schema_conformance,
        ],
    )
    declared = description["paths"][case.operation.path][case.operation.method]["responses"]
    assert str(answer.status_code) in declared  # by itself, and not only as one of 4XX
    assert "Traceback" not in answer.text
    assert answer.headers["x-request-id"]
    if answer.status_code >= 400:
        error, declared = json.loads(answer.text)["error"], description["components"]["schemas"]["ErrorText"]
        assert set(error) == set(declared["properties" if error["code"] == "missing-value" else "required"])
        assert len(error["message"]) < 2000


def test_the_description_has_all_routes(server):
    found = json.loads(server.request("GET", "/openapi.json").data)
    assert set(found["paths"]) == {
        "/v1/models/{model}/score",
        "/v1/models/{model}/explain",
        "/v1/models/{model}",
        "/v1/models",
        "/healthz",
        "/readyz",
        "/metrics",
    }
    assert set(found["paths"]["/v1/models/{model}/score"]["post"]["requestBody"]["content"]) == {
        "application/json",
        "text/csv",
        ARROW,
    }
    assert "422" not in json.dumps(found)
