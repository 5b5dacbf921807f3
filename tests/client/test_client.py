"""A client of a real server against the same model loaded here: the same scores to the bit, the same frames, the same errors."""

import io
import json
import math
import re
import shutil
import ssl
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

from dpoutlier import Category, Client, DPForest, DPGridKNN, DPMarginals, explanation_figure, load, merge
from dpoutlier.cli.app import app
from dpoutlier.exceptions import DpoutlierError, InvalidParameterError, ServerError, ThresholdNotSetError
from dpoutlier.model.statement import PrivacyStatement
from server_process import make_key, running_server
from tls import BehindTLS, certificate

BOUNDS = {"age": (0, 100), "dose": (-1.5, 10.25)}
LEVELS = {"sex": ["f", "m"], "stage": Category([1, 2.5, 4], ordered=True), "ward": Category(["a", "other"], other=True)}
NAMES = [*BOUNDS, *LEVELS]
MODELS = ("forest", "grid", "marginals", "nameless", "people", "merged", "keyed")


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "age": rng.normal(50, 20, n),
            "dose": rng.uniform(-3, 12, n),
            "sex": rng.choice(["f", "m", "x"], n),
            "stage": rng.choice(["1", "2.50", "4.0"], n),
            "ward": rng.choice(["a", "b"], n),
        }
    )


def fitted():
    """Detectors of all kinds."""
    mixed = {"features": BOUNDS, "categories": LEVELS, "target_fpr": 0.1}
    plain = np.random.default_rng(1).uniform(size=(300, 3))
    people = rows(300).append_column("who", pa.array([f"p{i % 90}" for i in range(300)]))
    return {
        "forest": DPForest(3, n_trees=8, depth=4, n_rows_hint=300, missing=["age", "sex"], **mixed).fit(rows(300)),
        "grid": DPGridKNN(3, bins=4, k=5, missing=["dose", "stage"], **mixed).fit(rows(300)),
        "marginals": DPMarginals(2, features=BOUNDS, categories=LEVELS).fit(rows(300)),
        "nameless": DPForest(2, features=(0, 1), n_trees=4, depth=4, n_rows_hint=300, target_fpr=0.2).fit(plain),
        "people": DPMarginals(2, person="who", rows_per_person=2, **mixed).fit(people),
        "merged": merge(
            [DPMarginals(1, features=(0, 1)).fit(plain), DPMarginals(1, features=(0, 1)).fit(plain)], people="disjoint"
        ),
        "keyed": DPGridKNN(2, features=(0, 1), bins=5, k=3, counts="keyed").fit(plain),
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    paths = {name: detector.save(folder / name) for name, detector in fitted().items()}
    arguments = ["--keys", folder / "keys.json", "--secret-models", "--max-rows", "700", "--explain-rows", "4"]
    key = make_key(folder / "keys.json")
    with running_server(folder, *paths.values(), *arguments) as running:
        running.key, running.paths = key, paths
        running.pairs = {
            name: (Client(running.url, name, key=key), load(path, secret=True)) for name, path in paths.items()
        }
        yield running


@pytest.fixture(params=MODELS)
def pair(request, server):
    """A client, and the model here."""
    return server.pairs[request.param]


def outcome(function):
    """What a call gives, or type and text of its error, with its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = function()
        except Exception as error:  # noqa: BLE001 - whatever it is, it must be the same
            return type(error), str(error), [str(one.message) for one in caught]
    return found, None, [str(one.message) for one in caught]


def agree(client, local, call):
    there, here = outcome(lambda: call(client)), outcome(lambda: call(local))
    if isinstance(here[0], np.ndarray):
        assert there[0].dtype == here[0].dtype
        np.testing.assert_array_equal(there[0], here[0], strict=True)
        assert there[1:] == here[1:]
    else:
        assert there == here


def good_points(local, n, seed=3):
    if local._fitted_domain().names is None:
        return np.random.default_rng(seed).uniform(-0.2, 1.2, (n, 3))
    return rows(n, seed)


CALLS = {
    "outlier_scores": lambda model, X: model.outlier_scores(X),
    "score_samples": lambda model, X: model.score_samples(X),
    "decision_function": lambda model, X: model.decision_function(X),
    "predict": lambda model, X: model.predict(X),
    "outside_bounds": lambda model, X: model.outside_bounds(X),
}


@pytest.mark.parametrize("call", CALLS)
def test_every_method_answers_as_the_model_does(pair, call):
    client, local = pair
    for n in (0, 1, 5, 1501):  # of which 1501 takes three requests
        X = good_points(local, n)
        agree(client, local, lambda model, X=X: CALLS[call](model, X))


@pytest.mark.parametrize("fdr", [0.05, 0.3, 0.9])
def test_p_values_and_alarms_are_those_of_the_model(pair, fdr):
    client, local = pair
    X = good_points(local, 1501)
    if any(outcome(lambda: local.p_values(X))[0] is kind for kind in (ThresholdNotSetError, InvalidParameterError)):
        with pytest.raises(ThresholdNotSetError, match="the server has no p-values for this model"):
            client.p_values(X)
        with pytest.raises(ThresholdNotSetError, match="the server has no p-values for this model"):
            client.alarms(X, fdr=fdr)
        return
    for points in (X, X[:0], X[:1]):
        agree(client, local, lambda model, points=points: model.p_values(points))
        agree(client, local, lambda model, points=points: model.alarms(points, fdr=fdr))
    agree(client, local, lambda model: model.alarms(X, fdr=2))


def test_the_models_of_the_tests_have_p_values_and_lack_them(server):
    found = {name: client._served.description.p_values is not None for name, (client, _) in server.pairs.items()}
    assert found == {name: name in {"forest", "nameless", "people"} for name in MODELS}


def test_what_the_server_says_of_a_threshold_holds_until_it_moves(pair, server):
    client, local = pair
    assert client._false_alarms() == local.model_.false_alarms()
    there = Client(server.url, client._served.description.name, key=server.key)
    if client._threshold() is not None:
        assert there.set_threshold(score=0.25)._false_alarms() is None
    with pytest.raises(AttributeError, match="false_alarms needs the model itself"):
        there.false_alarms()


def test_what_is_known_of_the_model_is_the_same(pair, server):
    client, local = pair
    assert client.n_features_in_ == local.n_features_in_
    names = [getattr(model, "feature_names_in_", np.array([])).tolist() for model in pair]
    assert names[0] == names[1]
    assert client._threshold() == local._threshold()
    assert outcome(lambda: client.offset_) == outcome(lambda: local.offset_)
    assert client.publishable == local.publishable
    there, here = client._fitted_domain(), local._fitted_domain()
    for part in ("lower", "upper", "names", "categories", "missing", "labels", "axes"):
        assert getattr(there, part) == getattr(here, part)
    statement = client.privacy_statement()
    assert type(statement) is PrivacyStatement
    assert statement == local.privacy_statement()
    assert str(statement) == str(local.privacy_statement())
    assert statement.to_dict() == local.privacy_statement().to_dict()
    assert len(client.release) == 64
    assert sorted(one["id"] for one in client.models()) == sorted(MODELS)


values = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True, width=64),
    st.sampled_from([0.0, -0.0, 100.0, 1e-320, 1e308, math.inf, math.nan]),
    st.integers(-(2**70), 2**70),
    st.sampled_from(
        ["f", "m", "x", " f ", "1", "1.0", "2.5", "4e0", "", "nan", "other", "(other)", "a", "inf", "0x1", "missing"]
    ),
    st.sampled_from([None, True, False, b"f", b"\xff", np.float32(0.1), np.int8(3)]),
)


@settings(max_examples=60)
@given(st.sampled_from(["forest", "grid", "marginals", "people"]), st.data())
def test_whatever_the_values_scores_or_errors_are_those_of_the_model(server, name, data):
    client, local = server.pairs[name]
    table = data.draw(st.lists(st.lists(values, min_size=5, max_size=5), min_size=1, max_size=4))
    as_frame = data.draw(st.booleans())
    X = pd.DataFrame(table, columns=NAMES, dtype=object) if as_frame else table
    agree(client, local, lambda model: model.outlier_scores(X))
    agree(client, local, lambda model: model.score_one(dict(zip(NAMES, table[0], strict=True))))


numbers = st.lists(st.floats(-2, 3, width=32), min_size=3, max_size=3)


@settings(max_examples=30)
@given(
    st.lists(numbers, min_size=1, max_size=5), st.sampled_from(["float32", "float64", ">f8", "float16", "list", "F"])
)
def test_arrays_of_any_layout_score_the_same(server, table, layout):
    X = (
        table
        if layout == "list"
        else np.array(table, "f8" if layout == "F" else layout, order="F" if layout == "F" else "C")
    )
    for name in ("nameless", "merged", "keyed"):
        agree(*server.pairs[name], lambda model: model.outlier_scores(X))


MISTAKES = {
    "a number": 3,
    "nothing": None,
    "one point": [1.0, 2.0, 3.0],
    "ragged": [[1.0], [1.0, 2.0]],
    "empty list": [],
    "text": "points.csv",
    "no columns": np.empty((3, 0)),
    "two columns": np.ones((3, 2)),
    "six columns": np.ones((3, 6)),
    "complex": np.ones((2, 3), complex),
    "cube": np.ones((2, 3, 5)),
    "a value missing": [[1.0, None, 2.0, 1.0, 1.0]],
    "dates": pd.DataFrame({name: pd.to_datetime(["2020-01-01"]) for name in NAMES}),
    "other names": pd.DataFrame({f"{name}_": [1.0] for name in NAMES}),
    "other order": rows(3).select(NAMES[::-1]),
    "one more": rows(3).append_column("more", [[1, 2, 3]]),
    "one less": rows(3).select(NAMES[:-1]),
    "numbers for names": pd.DataFrame(np.ones((2, 5))),
    "names of two kinds": pd.DataFrame(np.ones((2, 5)), columns=[0, "a", "b", "c", "d"]),
    "the id column": rows(3).append_column("who", [["p", "q", None]]),
    "a lazy frame": pl.LazyFrame({name: [1.0] for name in NAMES}),
    "nested": pl.DataFrame({name: [[1.0]] for name in NAMES}),
    "empty frame": rows(0),
    "masked": np.ma.masked_array(np.ones((2, 5)), [[0, 1, 0, 0, 0]] * 2),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_reported_in_the_same_words(pair, mistake):
    if mistake in TOO_MANY and pair[1]._fitted_domain().names is not None:
        return  # a client says more, see below
    for call in ("outlier_scores", "predict", "outside_bounds"):
        agree(*pair, lambda model, call=call: CALLS[call](model, MISTAKES[mistake]))


TOO_MANY = ("one more", "the id column")


@pytest.mark.parametrize("mistake", TOO_MANY)
@pytest.mark.parametrize("name", ["forest", "grid", "marginals", "people"])
def test_too_many_columns_give_a_remedy(server, name, mistake):
    client, local = server.pairs[name]
    for call in (*CALLS.values(), lambda model, X: model.explain(X)):
        here, there = (
            outcome(lambda model=model, call=call: call(model, MISTAKES[mistake])) for model in (local, client)
        )
        if not isinstance(here[0], type):
            continue  # the column that tells people apart is no mistake there, and a threshold may be lacking
        assert there == here
    if (name, mistake) != ("people", "the id column"):
        with pytest.raises(ValueError, match="seen at fit time") as refused:
            client.predict(MISTAKES[mistake])
        hint = "Pass the model's columns only ('age', 'dose', 'sex', 'stage', 'ward'), or use score_frame"
        assert refused.value.__notes__[0].startswith(hint)


POINTS = [
    {},
    {"age": 1},
    3,
    dict.fromkeys(NAMES, 1),
    {**dict.fromkeys(NAMES, 1), "more": 2},
    {0: 0.5, 1: 0.5, 2: 7},
]


@pytest.mark.parametrize("point", POINTS)
def test_one_point_scores_or_fails_as_the_model_does(pair, point):
    agree(*pair, lambda model: model.score_one(point))


FRAMES = {
    "pandas": pa.Table.to_pandas,
    "pandas with an index": lambda table: table.to_pandas().set_index(pd.Index(range(5, 5 + len(table)), name="i")),
    "polars": pl.from_arrow,
    "arrow": lambda table: table,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("missing", ["error", "null"])
def test_frames_come_back_as_from_the_model(pair, kind, missing):
    client, local = pair
    for n, holes in ((0, False), (3, False), (3, True), (1501, True)):
        table = rows(n, 4).append_column("id", pa.array(range(n), pa.int64()))
        if holes:
            table = table.set_column(2, "sex", pa.array([None, *table["sex"].to_pylist()[1:]]))
            table = table.set_column(0, "age", pa.array([*table["age"].to_pylist()[1:], None]))
        if local._fitted_domain().names is None:
            table = table.select(["age", "dose", "id"])
        frame = FRAMES[kind](table)
        for names in (
            {},
            {"column": "s", "outside": None},
            {"prediction": "p", "outside": "o"},
            {"column": "age"},
            {"column": 3},
        ):
            here, there = (
                outcome(partial(model.score_frame, frame, missing=missing, **names)) for model in (local, client)
            )
            assert there[1:] == here[1:]
            if here[1] is not None:
                assert there == here
            elif kind.startswith("pandas"):
                pd.testing.assert_frame_equal(there[0], here[0], check_exact=True)
            elif kind == "polars":
                assert there[0].equals(here[0], null_equal=True)
                assert there[0].schema == here[0].schema
            else:
                assert there[0].equals(here[0])
                assert there[0].schema == here[0].schema


def test_frames_that_are_not_in_memory_are_refused(server):
    client = server.pairs["marginals"][0]
    with pytest.raises(TypeError, match="frames in memory"):
        client.score_frame(pl.LazyFrame({name: [1.0] for name in NAMES}))
    with pytest.raises(TypeError, match="takes a frame"):
        client.score_frame([[1.0]])


@pytest.mark.parametrize("name", MODELS)
def test_thresholds_move_as_those_of_the_model(server, name):
    client, local = Client(server.url, name, key=server.key), load(server.paths[name], secret=True)
    X = good_points(local, 50)
    for moved in (
        {"target_fpr": 0.3},
        {"target_fpr": 0.01},
        {"target_fpr": 7},
        {"target_fpr": "a"},
        {"target_fpr": math.nan},
        {"score": 1.5},
        {"score": math.inf},
        {"score": -math.inf},
        {"score": math.nan},
        {"score": "a"},
        {},
        {"score": 1, "target_fpr": 0.1},
    ):
        agree(client, local, lambda model, moved=moved: model.set_threshold(**moved) is model)
        agree(client, local, lambda model: (model._threshold(), model.offset_))
        agree(client, local, lambda model: model.predict(X))


def printed(table):
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


def test_explanations_say_what_the_model_says(pair):
    client, local = pair
    for n in (0, 1, 9):  # three requests
        X = good_points(local, n)
        there, here = client.explain(X), local.explain(X)
        assert there.features == here.features
        assert len(there) == len(here) == n
        for part in ("contributions", "empty", "scores"):
            np.testing.assert_array_equal(getattr(there, part), getattr(here, part), strict=True)
        assert there.typical_score == here.typical_score
        for i in range(n):
            assert str(there.counterfactual(i)) == str(here.counterfactual(i))
            for top in (None, 1, 2, 10):
                assert there.note(i, top) == here.note(i, top)
            ranked = [(feature, adds) for feature, adds, _ in here.ranking(i)]
            assert [(feature, adds) for feature, adds, _ in there.ranking(i)] == ranked
            for feature in here.features:
                assert there.instead(feature, i) == here.instead(feature, i)
                assert there.value(feature, i) == here.value(feature, i)
                assert there.value(feature, i, "x") == here.value(feature, i, "x")
            assert printed(there.to_table(i, top=2)) == printed(here.to_table(i, top=2))
        assert outcome(lambda there=there: there.ranking(99)) == outcome(lambda here=here: here.ranking(99))
    agree(client, local, lambda model: model.explain([[None] * local.n_features_in_]))


def test_an_explanation_says_what_it_did_not_get(server, tmp_path):
    grid, forest = (server.pairs[name][0].explain(good_points(server.pairs[name][1], 2)) for name in ("grid", "forest"))
    for name in ("k", "found", "regions"):
        with pytest.raises(AttributeError, match="load the model file"):
            getattr(grid, name)
        assert getattr(forest, name) is None
    with pytest.raises(AttributeError, match="load the model file"):
        grid.region()
    with pytest.raises(AttributeError, match="load the model file"):
        grid.counterfactual(0, "age")
    assert forest.counterfactual(0, forest.ranking()[0][0]) == forest.counterfactual()
    assert explanation_figure(tmp_path / "why.png", forest).exists()


def test_the_servers_refusals_are_raised(server):
    with pytest.raises(ServerError, match="no model with that id") as caught:
        Client(server.url, "absent", key=server.key)
    assert (caught.value.status, caught.value.code) == (404, "unknown-model")
    with pytest.raises(ServerError) as caught:
        Client(server.url, "forest", key=server.key[:-1] + "?")
    assert (caught.value.status, caught.value.code) == (401, "unauthorized")
    assert server.key[:-1] not in str(caught.value)
    assert "Give it as key=..., or in the variable DPOUTLIER_KEY" in str(caught.value)
    with pytest.raises(DpoutlierError, match="exactly one"):
        Client(server.url, key=server.key)


def test_the_key_may_come_from_the_environment(server, monkeypatch):
    monkeypatch.setenv("DPOUTLIER_KEY", server.key)
    assert (
        Client(server.url, "forest").score_one({**dict.fromkeys(BOUNDS, 1), "sex": "f", "stage": 1, "ward": "a"}) > -1e9
    )


def test_the_model_of_the_client_is_the_only_one_if_there_is_but_one(server, tmp_path):
    key = make_key(server.folder / "keys.json", "merged")
    until = time.monotonic() + 10
    while time.monotonic() < until:  # the server looks at the file again and again
        try:
            client = Client(server.url, key=key)
            break
        except ServerError:
            time.sleep(0.2)
    assert "'merged'" in repr(client)
    with pytest.raises(ThresholdNotSetError, match="merged model"):
        client.set_threshold(target_fpr=0.1)


@pytest.mark.slow
def test_a_file_that_is_replaced_is_another_release_and_thresholds_stay(server):
    path = server.paths["nameless"]
    client = Client(server.url, "nameless", key=server.key, timeout=20).set_threshold(target_fpr=0.4)
    before, release = load(path), client.release
    X = good_points(before, 1501)
    other = DPForest(2, features=(0, 1), n_trees=3, depth=3, n_rows_hint=300, target_fpr=0.2)
    other.fit(np.random.default_rng(9).uniform(size=(300, 3)))
    kept = Path(shutil.copy(path, server.folder / "kept"))
    try:
        other.save(server.folder / "other.dpo").replace(path)
        until = time.monotonic() + 20
        while client.release == release and time.monotonic() < until:
            scores = client.outlier_scores(X)
            source = before if client.release == release else other
            assert (scores == source.outlier_scores(X)).all()
        assert client.release != release
        assert client.offset_ == other.set_threshold(target_fpr=0.4).offset_
    finally:
        kept.replace(path)
        until = time.monotonic() + 20
        while client.release != release and time.monotonic() < until:
            client.outlier_scores(X)
        assert client.release == release


# The command line ---------------------------------------------------------------------------------------------------------


def run(*arguments, **named):
    return CliRunner().invoke(app, [str(one) for one in arguments], **named)


@pytest.fixture
def files(tmp_path, monkeypatch, server):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPOUTLIER_KEY", raising=False)
    (tmp_path / "key.txt").write_text(server.key + "\n")
    table = rows(5000, 5).append_column("id", pa.array([f"é,{i}" for i in range(5000)]))
    table.to_pandas().to_csv("points.csv", index=False)
    pq.write_table(table, "points.parquet")
    holes = table.set_column(1, "dose", pa.array([None, *table["dose"].to_pylist()[1:]]))
    holes.to_pandas().to_csv("holes.csv", index=False)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("name", ["forest", "grid", "marginals", "people"])
def test_score_with_a_url_writes_the_same_file(server, files, name):
    there = ["--url", server.url, "--key-file", "key.txt"]
    for points, out, more in (
        ("points.csv", "csv", []),
        ("points.parquet", "parquet", ["--threshold", "2.5"]),
        ("points.csv", "parquet", ["--top", "3"]),
        ("holes.csv", "csv", ["--missing", "null"]),
        ("points.parquet", "csv", ["--target-fpr", "0.2"]),
        ("points.csv", "csv", ["--fdr", "0.3"]),
        ("holes.csv", "parquet", ["--fdr", "0.9", "--missing", "null"]),
    ):
        if (name == "marginals" and {"--target-fpr", "--fdr"} & {*more}) or (name == "grid" and "--fdr" in more):
            continue
        here = run("score", server.paths[name], points, "-o", f"here.{out}", "--force", *more)
        told = run("score", name, points, "-o", f"there.{out}", "--force", *more, *there)
        assert (here.exit_code, told.exit_code) == (0, 0), (here.output, told.output)
        assert told.stdout.replace("there", "here") == here.stdout
        assert (files / f"there.{out}").read_bytes() == (files / f"here.{out}").read_bytes()


def test_score_with_a_url_says_first_that_a_threshold_cannot_be_trusted(server, files):
    there = ["--url", server.url, "--key-file", "key.txt"]
    headline = "The threshold cannot be trusted: it "
    found = {name: local.model_.false_alarms() for name, (_, local) in server.pairs.items()}
    doubtful = {name for name, own in found.items() if own is not None and not own.trusted}
    for name in sorted({"forest", "grid", "people", *doubtful} - {"nameless"}):
        told = run("score", name, "points.csv", *there)
        assert told.stderr.startswith(headline) == (name in doubtful)
        assert headline not in told.stdout
    assert doubtful


def test_score_with_a_url_fails_in_the_same_words(server, files):
    there = ["--url", server.url, "--key-file", "key.txt"]
    (files / "less.csv").write_text("age,dose\n1,2\n")
    for points, more in (
        ("holes.csv", []),
        ("less.csv", []),
        ("absent.csv", []),
        ("points.csv", ["--target-fpr", "3"]),
        ("points.csv", ["--target-fpr", "0.1", "--threshold", "3"]),
        ("points.csv", ["--threshold", "nan"]),
        ("points.csv", ["--fdr", "1"]),
    ):
        here = run("score", server.paths["forest"], points, "-o", "out.csv", *more)
        told = run("score", "forest", points, "-o", "out.csv", *more, *there)
        assert (here.exit_code, told.exit_code) == (2, 2)
        assert told.stderr == here.stderr
        assert not (files / "out.csv").exists()
        assert "set_threshold" not in told.stderr
        assert all(option in told.stderr for option in more if option.startswith("--"))
        assert ("--missing null" in told.stderr) == (points == "holes.csv")
    for model, more in ((server.paths["marginals"], []), ("marginals", there)):
        told = run("score", model, "points.csv", "--target-fpr", "0.1", *more)
        assert told.exit_code == 2
        assert "score yourself: --threshold SCORE." in told.stderr


def test_an_unknown_certificate_is_reported_with_the_option(files):
    key, cert = certificate(files)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with BehindTLS(9, context) as url:
        told = run("score", "forest", "points.csv", "--url", url, "--key-file", "key.txt")
    assert told.exit_code == 1
    assert "certificate as --ca FILE, and" in told.stderr


def test_a_key_for_the_command_line_comes_from_a_file_or_the_environment(server, files):
    arguments = ["score", "forest", "points.csv", "--top", "1", "--url", server.url]
    assert run(*arguments, env={"DPOUTLIER_KEY": server.key}).exit_code == 0
    told = run(*arguments)
    assert told.exit_code == 2
    assert server.key not in told.output
    assert "Give it as --key-file FILE, or in the variable DPOUTLIER_KEY" in told.stderr
    assert "Authorization" not in told.stderr
    told = run(*arguments, env={"DPOUTLIER_KEY": "two\nlines"})
    assert told.exit_code == 2
    assert "Give it as --key-file FILE, or in the variable DPOUTLIER_KEY" in told.stderr
    (files / "two.txt").write_text(f"{server.key}\n{server.key}\n")
    told = run(*arguments, "--key-file", "two.txt")
    assert "must hold one line" in told.stderr
    assert server.key not in told.output
    told = run(*arguments, "--key-file", "absent")
    assert told.exit_code == 2
    assert "--key-file absent cannot be read" in told.stderr
    told = run(*arguments[:-1], "https://127.0.0.1:9", "--ca", "absent")
    assert told.exit_code == 2
    assert "--ca must be the file" in told.stderr
    assert (
        "give its address as --url"
        in run("score", server.paths["forest"], "points.csv", "--key-file", "key.txt").stderr
    )
    gone = run("score", "forest", "points.csv", "--url", "http://127.0.0.1:9")
    assert gone.exit_code == 1
    assert "cannot be reached" in gone.stderr


@pytest.mark.parametrize("name", ["forest", "grid"])
def test_explain_with_a_url_prints_the_same(server, files, name):
    there = ["--url", server.url, "--key-file", "key.txt"]
    for more in ([], ["--row", "3"], ["--row", "4", "--top", "2"], ["--row", "9999"]):
        here = run("explain", server.paths[name], "points.csv", *more)
        told = run("explain", name, "points.csv", *more, *there)
        assert (told.exit_code, told.output) == (here.exit_code, here.output)
    assert "needs the model file" in run("explain", name, "points.csv", "-o", "a.png", *there).stderr


def test_what_a_client_sends_is_in_no_log(server):
    """The server's log has no score, no point and no key."""
    text = server.log_text()
    assert server.key not in text
    assert "Traceback" not in text
    for line in text.splitlines():
        if line.startswith("{"):
            assert isinstance(json.loads(line), dict)


@pytest.mark.slow
def test_the_page_on_clients_runs(server, tmp_path, monkeypatch, capsys):
    """Its Python, with the address of this server, and the model of the page."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    reference = pd.DataFrame(
        {"age": rng.normal(50, 9, 500), "bmi": rng.normal(25, 4, 500), "sex": rng.choice(["f", "m"], 500)}
    )
    bounds = {"age": (0, 100), "bmi": (10, 80)}
    detector = DPForest(2, features=bounds, categories={"sex": ["f", "m"]}, n_rows_hint=500, target_fpr=0.05).fit(
        reference
    )
    keys = tmp_path / "keys.json"
    (tmp_path / "key.txt").write_text(make_key(keys, "patients") + "\n")
    page = (Path(__file__).parents[2] / "docs" / "client.md").read_text()
    (block,) = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    tls_key, cert = certificate(tmp_path)
    tls = ["--tls-cert", cert, "--tls-key", tls_key]
    with running_server(tmp_path, detector.save("patients"), "--keys", keys, *tls, ca=cert) as running:
        names = {}
        block = block.replace("https://host:8765", running.url).replace(
            'open("key.txt").read()', repr((tmp_path / "key.txt").read_text())
        )
        exec(compile(block, "client.md", "exec"), names)
        names["client"].close()
        running.pool.clear()  # a stop waits for whoever keeps a connection open
    assert (names["scores"] == detector.outlier_scores(names["points"])).all()
    assert (names["flags"] == detector.alarms(names["points"], fdr=0.1)).all()
    assert (names["labels"] == detector.set_threshold(target_fpr=0.1).predict(names["points"])).all()
    pd.testing.assert_frame_equal(names["table"], detector.score_frame(names["points"]))
    assert "Privacy statement of a DPForest model" in capsys.readouterr().out
