"""P-values and alarms in answers: those of the library, in each kind of answer, and none unless they are asked for."""

import csv
import io
import json
import math

import numpy as np
import pyarrow as pa
import pytest

from dpoutlier import DPForest, DPGridKNN, DPMarginals
from dpoutlier.server.schemas import ModelDetail, Scores
from server_process import call, loaded_app

ARROW = "application/vnd.apache.arrow.stream"
N = 20_000
rng = np.random.default_rng(0)
NORMAL = rng.normal(size=(N, 2))
POINTS = np.concatenate([rng.normal(size=(300, 2)), rng.uniform(5, 6, size=(30, 2))])
BOUNDS = {"x": (-6, 6), "y": (-6, 6)}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alarms")
    rows = pa.table({"x": NORMAL[:, 0], "y": NORMAL[:, 1]})
    few = rows.slice(0, 60)
    made = {
        "forest": DPForest(2, features=BOUNDS, n_rows_hint=N, target_fpr=0.05).fit(rows),
        "marginals": DPMarginals(2, features=BOUNDS, n_rows_hint=N, target_fpr=0.05).fit(rows),
        "grid": DPGridKNN(2, features=BOUNDS, bins=12, target_fpr=0.05).fit(rows),
        "few": DPForest(0.2, features=BOUNDS, n_rows_hint=60, target_fpr=0.05).fit(few),
        "weighted": DPGridKNN(1, features=BOUNDS, bins=5, weighted=True, target_fpr=0.05).fit(rows),
        "plain": DPMarginals(1, features=BOUNDS).fit(rows),
    }
    return {name: (detector.save(folder / name), detector) for name, detector in made.items()}


@pytest.fixture(scope="module")
def app(models):
    return loaded_app(models=tuple((name, str(path)) for name, (path, _) in models.items()))


def asked(app, name, points, query="", accept="application/json"):
    body = json.dumps({"points": [[None if math.isnan(v) else v for v in row] for row in points.tolist()]}).encode()
    headers = {"Content-Type": "application/json", "Accept": accept}
    status, _, answer = call(app, "POST", f"/v1/models/{name}/score", headers=headers, body=body, query=query)
    return status, answer


@pytest.mark.parametrize("name", ["forest", "marginals", "few"])
@pytest.mark.parametrize("fdr", [0.002, 0.1, 0.5, 0.9999])
def test_alarms_are_those_of_the_library(app, models, name, fdr):
    detector = models[name][1]
    p_values, alarms = detector.p_values(POINTS).tolist(), detector.alarms(POINTS, fdr=fdr).tolist()
    if fdr == 0.5 and name != "few":
        assert 30 <= sum(alarms) < 200
    status, answer = asked(app, name, POINTS, f"fdr={fdr}")
    found = json.loads(answer)
    assert status == 200, found
    assert list(found)[-2:] == ["p_value", "alarm"]
    assert (found["p_value"], found["alarm"]) == (p_values, alarms)
    Scores.model_validate(found)
    table = pa.ipc.open_stream(asked(app, name, POINTS, f"fdr={fdr}", ARROW)[1]).read_all()
    assert table.column_names == ["outlier_score", "outside_bounds", "prediction", "p_value", "alarm"]
    assert (table["p_value"].to_pylist(), table["alarm"].to_pylist()) == (p_values, alarms)
    records = list(csv.DictReader(io.StringIO(asked(app, name, POINTS, f"fdr={fdr}", "text/csv")[1].decode())))
    assert [float(one["p_value"]) for one in records] == p_values
    assert [one["alarm"] for one in records] == [str(one).lower() for one in alarms]


@pytest.mark.parametrize("accept", ["application/json", "text/csv", ARROW])
def test_points_without_a_score_have_no_alarm_and_do_not_count(app, models, accept):
    detector, points = models["forest"][1], POINTS.copy()
    points[[0, 7, 310], [0, 1, 1]] = math.nan
    whole = ~np.isnan(points).any(axis=1)
    status, answer = asked(app, "forest", points, "fdr=0.3&missing=null", accept)
    assert status == 200
    if accept == ARROW:
        found = pa.ipc.open_stream(answer).read_all().to_pydict()
    elif accept == "text/csv":
        records = list(csv.DictReader(io.StringIO(answer.decode())))
        words = {"": None, "true": True, "false": False}
        found = {
            "p_value": [float(one["p_value"]) if one["p_value"] else None for one in records],
            "alarm": [words[one["alarm"]] for one in records],
        }
    else:
        found = json.loads(answer)
    assert [value is not None for value in found["p_value"]] == whole.tolist()
    assert [value for value in found["p_value"] if value is not None] == detector.p_values(points[whole]).tolist()
    assert [value for value in found["alarm"] if value is not None] == detector.alarms(points[whole], fdr=0.3).tolist()
    assert [value is not None for value in found["alarm"]] == whole.tolist()


def test_no_points_have_no_alarms(app):
    found = json.loads(asked(app, "forest", POINTS[:0], "fdr=0.1")[1])
    assert (found["n"], found["p_value"], found["alarm"]) == (0, [], [])


def test_answers_without_the_parameter_are_as_before(app, models):
    """Byte by byte what an answer has been since the first version."""
    detector = models["forest"][1]
    scores, outside = detector.outlier_scores(POINTS), detector.outside_bounds(POINTS)
    labels = detector.predict(POINTS)
    answer = asked(app, "forest", POINTS)[1]
    release = json.loads(answer)["release"]
    content = {
        "model": "forest",
        "release": release,
        "n": len(POINTS),
        "threshold": detector.model_.threshold,
        "outlier_score": scores.tolist(),
        "outside_bounds": outside.tolist(),
        "prediction": labels.tolist(),
    }
    assert answer.decode() == json.dumps(content, separators=(",", ":"))
    lines = [f"{s!r},{str(o).lower()},{p}" for s, o, p in zip(scores.tolist(), outside.tolist(), labels.tolist())]
    csv_answer = asked(app, "forest", POINTS, accept="text/csv")[1]
    assert csv_answer.decode() == "\n".join(["outlier_score,outside_bounds,prediction", *lines]) + "\n"
    schema = pa.ipc.open_stream(asked(app, "forest", POINTS, accept=ARROW)[1]).schema
    assert schema.names == ["outlier_score", "outside_bounds", "prediction"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("plain", "the model gives no p-values: the fit spent no epsilon on a histogram of scores."),
        ("weighted", "can rise when a row is added"),
    ],
)
def test_a_model_without_p_values_says_why(app, name, said):
    status, answer = asked(app, name, POINTS, "fdr=0.1")
    error = json.loads(answer)["error"]
    assert (status, error["code"]) == (400, "bad-parameter")
    assert said in error["message"]
    assert error["message"].endswith("Leave out fdr.")
    assert asked(app, name, POINTS)[0] == 200
    assert json.loads(call(app, "GET", f"/v1/models/{name}")[2])["p_values"] is None


@pytest.mark.parametrize("value", ["0", "1", "-0.1", "nan", "inf", "x", "", "1_0"])
def test_what_fdr_must_be(app, value):
    status, answer = asked(app, "forest", POINTS, f"fdr={value}")
    error = json.loads(answer)["error"]
    assert (status, error["code"]) == (400, "bad-parameter")
    assert error["message"].startswith("fdr must be ")


def test_a_parameter_beside_the_points_is_put_where_it_belongs(app):
    headers = {"Content-Type": "application/json"}
    body = b'{"points": [[1, 2]], "fdr": 0.25}'
    _, _, answer = call(app, "POST", "/v1/models/forest/score", headers=headers, body=body)
    assert json.loads(answer)["error"]["message"].endswith("?fdr=0.25.")


def test_a_model_is_described_with_its_false_alarms_and_p_values(app, models):
    for name, (_, detector) in models.items():
        found = json.loads(call(app, "GET", f"/v1/models/{name}")[2])
        ModelDetail.model_validate(found)
        if name == "plain":
            assert found["false_alarms"] is None
            continue
        wanted = detector.false_alarms()
        assert found["false_alarms"] == {
            part: getattr(wanted, part) for part in ("expected", "lower", "upper", "level", "trusted")
        }
        if found["p_values"] is not None:
            assert found["p_values"]["values"] == detector.model_.p_values().values.tolist()
            assert found["p_values"]["levels"] == detector.model_.p_values().levels.tolist()


def test_the_description_says_what_fdr_is(app):
    found = json.loads(call(app, "GET", "/openapi.json")[2])
    parameters = {one["name"]: one for one in found["paths"]["/v1/models/{model}/score"]["post"]["parameters"]}
    assert "false-discovery rate" in parameters["fdr"]["description"]
    number = next(one for one in parameters["fdr"]["schema"]["anyOf"] if one["type"] == "number")
    assert (number["exclusiveMinimum"], number["exclusiveMaximum"]) == (0, 1)
    scores = found["components"]["schemas"]["Scores"]
    assert {"p_value", "alarm"} <= set(scores["properties"])
    assert not {"p_value", "alarm"} & set(scores["required"])
