"""What is done with reference rows, entry point by entry point: each scenario returns all that its entry points show."""

import io
import itertools
import json
import re
import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from rich.progress import Progress
from typer.testing import CliRunner

import dpoutlier
from dpoutlier import (
    KNN,
    Bounds,
    Client,
    DPForest,
    DPGridKNN,
    DPMarginals,
    Forest,
    GridKNN,
    Ledger,
    Marginals,
    PrivateBounds,
    PyODAdapter,
    load,
    merge,
)
from dpoutlier.cli.app import app as program
from dpoutlier.cli.progress import reading
from dpoutlier.client.connection import Answer, Connection
from dpoutlier.detectors.constant_time import with_constant_time_counts
from dpoutlier.exceptions import ServerError
from dpoutlier.tables.files import file_table
from server_process import call, loaded_app

from .reference_tables import ARRAYS, FEATURES, FRAMES, MOST, PEOPLE, POINTS, TOML, Row, arrow, written
from .walking import walk


@dataclass(frozen=True)
class Place:
    """Where a scenario works, and what is public of its rows."""

    folder: Path
    neighbours: str
    spark: Any = None


@dataclass(frozen=True)
class Scenario:
    """One way that reference rows go."""

    name: str
    covers: tuple[str, ...]
    run: Callable[[list[Row], Place], Any]
    people: bool = True
    """Whether a column tells people apart; else neighbours differ in one row."""
    even: bool = False
    """Whether all that is shown but the released counts is the same on neighbouring rows, also if noise alone is frozen."""
    releases: bool = True
    """Whether anything is released."""
    keeps_rows: bool = False
    """Whether what is returned may hold rows, because it says so: then only what is said besides is looked at."""
    slow: bool = False
    many: bool = True
    """Whether there is time for neighbours of all kinds."""


SCENARIOS: dict[str, Scenario] = {}


def scenario(name: str, *covers: str, **more: Any) -> Callable[[Any], Any]:
    def add(run: Any) -> Any:
        assert name not in SCENARIOS
        SCENARIOS[name] = Scenario(name, covers, run, **more)
        return run

    return add


# Detectors ----------------------------------------------------------------------------------------------------------------

MAKERS: dict[str, Callable[..., Any]] = {
    "DPForest": lambda **more: DPForest(1, n_trees=3, depth=4, **more),
    "DPGridKNN": lambda **more: DPGridKNN(1, bins=3, k=3, **more),
    "DPGridKNN keyed": lambda **more: DPGridKNN(1, bins=3, k=3, counts="keyed", **more),
    "DPGridKNN sparse": lambda **more: DPGridKNN(1, bins=3, k=3, counts="sparse", sparse_size=20, **more),
    "DPMarginals": lambda **more: DPMarginals(1, bins=3, **more),
}
TWINS: dict[str, Callable[..., Any]] = {
    "Forest": lambda **more: Forest(n_trees=3, depth=4, **more),
    "GridKNN": lambda **more: GridKNN(bins=3, k=3, **more),
    "Marginals": lambda **more: Marginals(bins=3, **more),
}
WITHIN = {
    "DPForest": (
        "Explanation",
        "Counterfactual",
        "CountIntervals",
        "Drift",
        "FalseAlarms",
        "PrivacyStatement",
        "Guarantee",
        "Category",
    ),
    "DPGridKNN": ("Explanation",),
    "DPMarginals": ("Explanation",),
}
"""Public classes whose objects a walk reaches from a fitted detector."""
WALKED: dict[str, tuple[str, ...]] = {}
"""By scenario: the public classes all of whose members its walk calls."""


def points() -> pd.DataFrame:
    return pd.DataFrame(POINTS)


def fitted(maker: str, rows: list[Row], place: Place, **more: Any) -> Any:
    """A private detector of people."""
    more = {"target_fpr": 0.1, **PEOPLE, **more}
    return MAKERS[maker](neighbours=place.neighbours, **more).fit(arrow(rows).to_pandas())


def walking(name: str, *classes: str, **more: Any) -> Callable[[Any], Any]:
    """A scenario that walks over what a function makes; it covers all members of these public classes."""

    def add(make: Any) -> Any:
        WALKED[name] = classes
        covers = tuple(f"dpoutlier.{one}" for one in classes)
        scenario(name, *covers, **more)(lambda rows, place: walk(make(rows, place)))
        return make

    return add


for _maker in MAKERS:
    _class = _maker.partition(" ")[0]
    walking(f"walk over {_maker}", _class, *WITHIN[_class], slow=_maker != "DPMarginals")(
        lambda rows, place, maker=_maker: fitted(maker, rows, place)
    )


@walking("walk over what was loaded", "FittedDetector", "Bounds", "Category", slow=True)
def loaded(rows, place):
    (place.folder / "features.toml").write_text(TOML)
    return load(fitted("DPMarginals", rows, place).save("model"))


@walking("walk over a merge", "FittedDetector", slow=True)
def merged(rows, place):
    other = fitted("DPGridKNN", [Row("public", 1.0, "low", 1.0)], place, target_fpr=None)
    both = merge([other, fitted("DPGridKNN", rows, place, target_fpr=None)], people="overlapping")
    return both.set_threshold(score=1.0)


@walking("walk over PyOD's polarity", "PyODAdapter", slow=True)
def adapted(rows, place):
    unfitted = MAKERS["DPForest"](neighbours=place.neighbours, target_fpr=0.1, **PEOPLE)
    return PyODAdapter(unfitted).fit(arrow(rows).to_pandas())


@walking("walk over private bounds", "DPForest", "PrivateBounds", slow=True)
def with_private_bounds(rows, place):
    return fitted(
        "DPForest", rows, place, n_rows_hint="estimate", features={"a": PrivateBounds(share=0.2, outer=(-1000, 1000))}
    )


@walking("walk over found ranges", "DPMarginals", slow=True)
def with_found_ranges(rows, place):
    return with_loose_ranges(rows, place, 200)


def with_loose_ranges(rows: list[Row], place: Place, n_rows_hint: Any) -> Any:
    """A fit that looks where the rows lie: first whether the ranges are too wide, or with many rows at each feature at once."""
    more = {"n_rows_hint": n_rows_hint, "tight_ranges": False, "features": {"a": (-1000, 1000)}}
    return fitted("DPMarginals", rows, place, **more)


@scenario("fits that find ranges", "DPMarginals.fit", "DPForest.fit")
def finding_ranges(rows, place):
    estimated = {"n_rows_hint": "estimate", "tight_ranges": False, "features": {"a": (-1000, 1000)}}
    found = [with_loose_ranges(rows, place, n_rows_hint) for n_rows_hint in (200, 1000)]
    found.append(fitted("DPForest", rows, place, **estimated))
    assert [charge.purpose for one in found for charge in one.model_.charges].count("ranges") >= 2
    return [shown(one) for one in found]


for _twin in TWINS:
    walking(f"walk over {_twin}", _twin, slow=True, people=False)(
        lambda rows, place, twin=_twin: (
            TWINS[twin](target_fpr=None, **FEATURES)
            .fit(arrow(rows).drop_columns("who").to_pandas())
            .set_threshold(score=1.0)
        )
    )


@scenario(
    "a fit of KNN is silent", "dpoutlier.KNN", "KNN.fit", people=False, releases=False, keeps_rows=True, even=True
)
def knn(rows, place):
    for form in ("pandas objects", "polars", "csv file"):
        table = FRAMES[form](rows, place.folder)
        if isinstance(table, str):
            KNN(k=2, target_fpr=0.5, outlier_share=0.1, **FEATURES).fit(table)
        else:
            KNN(k=2, **FEATURES).fit(dropped(table))


def dropped(table: Any) -> Any:
    return table.drop(columns="who") if isinstance(table, pd.DataFrame) else table.drop("who")


@walking("walk over a ledger", "Ledger", slow=True)
def ledger(rows, place):
    book = Ledger.create("budget.ledger", anchor="budget.anchor")
    book.open_budget("patients", 9, unit="person", person="who", neighbours=place.neighbours)
    fitted("DPMarginals", rows, place, ledger=book, dataset="patients")
    return book


# Rows in every form -------------------------------------------------------------------------------------------------------


def shown(detector: Any) -> list[Any]:
    """What a fit shows by itself."""
    path = detector.save("model", overwrite=True)
    return [detector, repr(detector), str(detector.privacy_statement()), path]


FORMS = {
    "pandas": ["rows in a frame of pandas"],
    "pandas objects": ["rows in a frame of pandas"],
    "polars": ["rows in a frame of polars"],
    "pyarrow": ["rows in a frame of pyarrow"],
    "polars lazy": ["rows in POLARS", "rows in StreamedTable"],
    "duckdb": ["rows in DUCKDB"],
    "dask": ["rows in DASK"],
    "dataset": ["rows in ARROW", "rows in DatasetTable"],
    "csv file": ["rows in .csv files", "rows in CsvTable"],
    "csv files": ["rows in .csv files"],
    "parquet folder": ["rows in .parquet files", "rows in ParquetTable"],
    "parquet pattern": ["rows in .parquet files"],
}
assert FORMS.keys() == FRAMES.keys()
QUICK = {"pandas objects", "polars", "csv file", "dataset"}

for _number, _form in enumerate(FRAMES):
    _turn = list(MAKERS)[_number % len(MAKERS)]
    _even = "sparse" not in _turn and "keyed" not in _turn
    _covers = (*FORMS[_form], f"{_turn.partition(' ')[0]}.fit")
    scenario(f"fit of {_turn} from {_form}", *_covers, even=_even, slow=_form not in QUICK)(
        lambda rows, place, form=_form, turn=_turn: shown(
            MAKERS[turn](neighbours=place.neighbours, **PEOPLE).fit(FRAMES[form](rows, place.folder))
        )
    )

for _form in ARRAYS:
    scenario(
        f"fit from {_form}", f"rows in {_form.partition(' ')[0]}", people=False, even=True, slow=_form != "ndarray"
    )(
        lambda rows, place, form=_form: [
            shown(MAKERS[maker](neighbours=place.neighbours, features=([0, 0], [10, 4])).fit(ARRAYS[form](rows)))
            for maker in ("DPForest", "DPGridKNN", "DPMarginals")
        ]
    )


@scenario("fit from spark", "rows in SPARK", slow=True, many=False)
def on_spark(rows, place):
    frame = place.spark.createDataFrame(arrow(rows))
    return shown(MAKERS["DPGridKNN"](neighbours=place.neighbours, **PEOPLE).fit(frame))


@scenario("fits of twins", "Forest.fit", "GridKNN.fit", "Marginals.fit", people=False, slow=True)
def twins(rows, place):
    table = arrow(rows).drop_columns("who")
    return [shown(make(target_fpr=None, **FEATURES).fit(table)) for make in TWINS.values()]


@scenario(
    "a declared share of outliers", "DPMarginals.fit", "DPMarginals.false_alarms", "DPMarginals.alarms", even=True
)
def with_outliers(rows, place):
    """The argument ``outlier_share``, and what is said of the threshold then."""
    found = fitted("DPMarginals", rows, place, outlier_share=0.05)
    return [shown(found), found.false_alarms(), found.p_values(points()), found.alarms(points(), fdr=0.5)]


@scenario("a fit by name, through PyOD's polarity", "dpoutlier.detector", "PyODAdapter.fit")
def by_name(rows, place):
    declared = Bounds.of(FEATURES["features"], FEATURES["categories"], FEATURES["missing"])
    more = {"n_rows_hint": 100, "neighbours": place.neighbours, "person": "who", "rows_per_person": MOST}
    unfitted = dpoutlier.detector("marginals", epsilon=1, features=declared, bins=3, **more)
    adapter = PyODAdapter(unfitted).fit(arrow(rows))
    return [adapter, adapter.detector_, repr(adapter)]


class Evil:
    """An object in a table whose conversion fails with an error that quotes its value."""

    def __init__(self, value):
        self.value = value

    def __float__(self):
        raise ValueError(f"it is {self.value}")

    def __str__(self):
        raise ValueError(f"it is {self.value}")


@scenario("rows that cannot be read", "rows in DUCKDB", "rows in POLARS", people=False, even=True)
def unreadable(rows, place):
    """Whatever is wrong, the text is fixed. There is always a row at which it goes wrong."""
    import duckdb
    import polars as pl

    bad = [*rows, Row("x", 1.5, "odd", 2.0)]
    texts = pa.table({"a": [f"{row.b} {row.a}" for row in bad]})
    lists = [[row.a] * (1 + (i > 0)) for i, row in enumerate([*bad, bad[-1]])]
    levels = [f"level {row.b} {row.a}" for row in bad]
    enum = pl.Enum(list(dict.fromkeys(levels)))
    evil = np.empty((len(bad), 1), object)
    evil[:, 0] = [Evil(row.a) for row in bad]
    cases = {
        "a cast in DuckDB": duckdb.connect().from_arrow(texts).project("CAST(a AS DOUBLE) AS a"),
        "a cast in Polars": pl.from_arrow(texts).lazy().select(pl.col("a").cast(pl.Float64)),
        "levels in Polars": pl.LazyFrame({"a": levels}, schema={"a": enum}),
        "uneven lists": lists,
        "a list of numbers": [row.a for row in bad],
        "a list of texts": levels,
        "a text": "\n".join(levels),
        "a long text": "".join(levels) * 100,
        "dicts": [row._asdict() for row in bad],
        "a dict": {"a": levels},
        "complex numbers": np.array([[complex(row.a or 0)] for row in bad]),
        "a generator": (row for row in bad),
        "a number": bad[-1].a,
        "objects": Evil(bad[-1].a),
    }
    found = {name: _error_of(table) for name, table in cases.items()}
    assert all(found.values()), found
    return [found, _error_of(evil)]


def _error_of(table: Any) -> Any:
    from .frozen_world import texts_of

    try:
        MAKERS["DPMarginals"](features={"a": (0, 10)}).fit(table)
    except Exception as error:  # noqa: BLE001 - they are what is looked at
        return texts_of(error)
    return None


# From a model on ----------------------------------------------------------------------------------------------------------


@scenario(
    "from a model on",
    "dpoutlier.load",
    "dpoutlier.merge",
    "dpoutlier.explanation_figure",
    "dpoutlier.secrets_may_travel",
    "dpoutlier.detectors.constant_time.with_constant_time_counts",
)
def from_a_model(rows, place):
    dense, keyed = fitted("DPMarginals", rows, place), fitted("DPGridKNN keyed", rows, place)
    path = keyed.save("keyed")
    explained = dense.explain(points().iloc[:1])
    figure = dpoutlier.explanation_figure("why.png", explained)
    constant_time = with_constant_time_counts(load(path, secret=True))
    return [
        load(dense.save("dense")).outlier_scores(points()),
        figure,
        constant_time.outlier_scores(points()),
        constant_time.explain(points()).contributions,
        str(merge([dense, fitted("DPMarginals", [], place)], people="disjoint").privacy_statement()),
    ]


# Commands -----------------------------------------------------------------------------------------------------------------

CSV, PARQUET = "given/rows-csv-1/0.csv", "given/rows-parquet-2/*.parquet"
FIT = "--features features.toml --epsilon 1 --person who --rows-per-person 2 --neighbours NEIGHBOURS"
GRID = "--detector grid --bins 3 --k 3"
TREES = "--n-trees 3 --depth 4 --subspace 2,3 --tree-seed 5"
CHARGED = "--ledger budget.ledger --dataset all --anchor an.anchor"
SERVER = "--url http://127.0.0.1:9 --key-file key.txt"
THRESHOLD = "--target-fpr 0.1 --threshold-share 0.1 --outlier-share 0.01"
BUDGET = "budget.ledger --anchor an.anchor"
ARGUMENTS: dict[str, list[str]] = {
    "ledger create": [
        f"{BUDGET} --dataset all --epsilon 9 --unit person --person who --neighbours NEIGHBOURS",
        "budget.ledger --dataset patients --part-of all",
        "budget.ledger --dataset few --epsilon 1 --unit person --rows-per-person 2",
    ],
    "fit": [
        f"{CSV} {FIT} --output plain --detector marginals --bins 3 --tight-ranges --force",
        f"{CSV} {FIT} --output forest --detector forest {TREES} --n-rows-hint 100 {CHARGED} {THRESHOLD}",
        f"{PARQUET} {FIT} {GRID} --output grid --weighted --distance point --max-depth 3 --max-cells 50 --exhausted as-printed",
        f"{CSV} {FIT} {GRID} --output sparse --counts sparse --sparse-size 20",
        f"{CSV} {FIT} {GRID} --output keyed --counts keyed",
        f"{PARQUET} {FIT} --output estimated --detector forest",
        f"{CSV} {FIT} --output loose --detector forest {TREES} --n-rows-hint 1000 --loose-ranges",
        f"{CSV} --features features.toml --epsilon 1 --output none --person unknown",
        f"given/none.csv {FIT} --output none",
        f"{CSV} {FIT} --output none --ledger budget.ledger --dataset unheard-of",
    ],
    "watch": ["forest.dpo points.csv --checks-per-month 4", "forest.dpo points.csv --json"],
    "score": [
        "forest.dpo points.csv --output scores.csv --top 2 --target-fpr 0.3 --force --n-jobs 1",
        "forest.dpo points.csv --output alarms.csv --fdr 0.5",
        f"forest points.csv --fdr 0.5 {SERVER}",
        "keyed.secret.dpo points.csv --threshold 1.5 --missing null --output scores.parquet",
        f"forest points.csv {SERVER}",
    ],
    "explain": [
        "forest.dpo points.csv --row 1 --top 2 --output why.png --force",
        "grid.dpo points.csv",
        f"forest points.csv {SERVER}",
    ],
    "export": ["forest.dpo --output terms.parquet --sql score.sql --table t --force"],
    "merge": ["plain.dpo other.dpo --people overlapping --output both --force"],
    "inspect": ["forest.dpo", "keyed.secret.dpo --json"],
    "features": [
        f"{CSV} --schema --output drafted.toml --missing all --force",
        "given/rows-parquet-2/0.parquet --schema --output drafted-too.toml",
        f"{CSV} --output not-said.toml",
    ],
    "ledger show": [f"{BUDGET} --plan 0.25", "budget.ledger --json"],
    "ledger charge": [f"{BUDGET} --dataset all --epsilon 1/2 --note by-hand"],
    "ledger verify": [f"{BUDGET} forest.dpo", "budget.ledger --json", f"budget.ledger --head {'0' * 64}"],
    "ledger export": [f"{BUDGET} --output entries.csv --force", "budget.ledger --output entries.json"],
    "ledger anchor": [f"{BUDGET} new.anchor --lost"],
}
"""By command: with what it is called, in this order."""
REFUSED = ("--output none", "--output not-said", "--head 0")
"""Marks of those that end with an error."""


def _covered(command: str) -> list[str]:
    given = {one for own in ARGUMENTS[command] for one in own.split() if one.startswith("--")}
    return [f"cli {command}", *(f"cli {command} {one}" for one in sorted(given))]


@scenario("fit on the command line", *_covered("fit"), even=True)
def commanded(rows, place):
    """One fit, whose whole output is the same."""
    _given(rows, place)
    return run(f"fit {ARGUMENTS['fit'][0]}", place)


@scenario("all commands", *[one for command in ARGUMENTS for one in _covered(command)], slow=True)
def all_commands(rows, place):
    _given(rows, place)
    fitted("DPMarginals", [], place, target_fpr=None).save("other")
    with answered_here(place, lambda: {"forest": "forest.dpo"}):
        found = {
            f"{command} {own}": run(f"{command} {own}", place) for command, each in ARGUMENTS.items() for own in each
        }
    for command, said in found.items():
        assert said["code"] == (2 if any(mark in command for mark in REFUSED) else 0), (command, said)
    return found


class Screen(io.StringIO):
    """A terminal that keeps what is shown."""

    def isatty(self):
        return True


@scenario("progress on a terminal", "cli fit", even=True)
def on_a_terminal(rows, place):
    """What an eye can see while files of one batch each are read, drawn again at every step."""
    screen, update = Screen(), Progress.update
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Progress, "update", lambda self, *given, **named: update(self, *given, refresh=True, **named))
        patch.setattr(sys, "stderr", screen)
        patch.setattr("rich.console.monotonic", lambda: 1.0)
        patch.setattr("rich.live._RefreshThread.run", lambda _: None)  # no drawing in between, at moments of its own
        for suffix in ("csv", "parquet"):
            table = file_table(sorted(written(rows, place.folder, suffix=suffix).iterdir()), ("a", "b", "c"), "who")
            with reading("reading and counting") as table.watch:
                fitted_on = MAKERS["DPMarginals"](neighbours=place.neighbours, target_fpr=0.1, **PEOPLE).fit(table)
    frames = [frame for frame, _ in itertools.groupby(re.split(r"\r\S*", screen.getvalue()))]
    assert "100%" in frames[-2] + frames[-1]
    return {"frames": "\n".join(frames), "statement": str(fitted_on.privacy_statement())}


def _given(rows: list[Row], place: Place) -> None:
    written(rows, place.folder, suffix="csv")
    written(rows, place.folder, suffix="parquet", parts=2)
    Path("features.toml").write_text(TOML)
    Path("key.txt").write_text("dpo_abcdefghij_" + "S" * 43)
    points().to_csv("points.csv", index=False)


def run(arguments: str, place: Place) -> dict[str, Any]:
    """A command, in this process."""
    done = CliRunner().invoke(program, arguments.replace("NEIGHBOURS", place.neighbours).split())
    error = None if isinstance(done.exception, SystemExit) else repr(done.exception)
    return {"code": done.exit_code, "out": done.stdout, "err": done.stderr, "error": error}


# The server and its client ------------------------------------------------------------------------------------------------

JSON, SENT_CSV = {"Content-Type": "application/json"}, {"Content-Type": "text/csv"}
ROWS_JSON = json.dumps({"points": [dict(zip(POINTS, own, strict=True)) for own in zip(*POINTS.values(), strict=True)]})
ROWS_CSV = points().to_csv(index=False)
REQUESTS: dict[str, list[dict[str, Any]]] = {
    "POST /v1/models/{model}/score": [
        {"path": "/v1/models/forest/score", "headers": JSON, "body": ROWS_JSON.encode()},
        {"path": "/v1/models/keyed/score", "headers": SENT_CSV, "body": ROWS_CSV.encode(), "query": "threshold=1"},
        {"path": "/v1/models/forest/score", "headers": JSON, "body": ROWS_JSON.encode(), "query": "target_fpr=0.3"},
        {"path": "/v1/models/forest/score", "headers": JSON, "body": ROWS_JSON.encode(), "query": "fdr=0.5"},
        {"path": "/v1/models/keyed/score", "headers": SENT_CSV, "body": ROWS_CSV.encode(), "query": "fdr=0.5"},
        {"path": "/v1/models/forest/score", "headers": JSON, "body": b'{"points": [[1, "low", null]]}'},
        {"path": "/v1/models/none/score", "headers": JSON, "body": b"{}"},
        {"path": "/v1/models/forest/score", "headers": {"Content-Type": "image/png"}, "body": b""},
    ],
    "POST /v1/models/{model}/explain": [
        {"path": "/v1/models/forest/explain", "headers": JSON, "body": ROWS_JSON.encode()},
        {"path": "/v1/models/keyed/explain", "headers": SENT_CSV, "body": ROWS_CSV.encode()},
    ],
    "GET /v1/models/{model}": [
        {"path": "/v1/models/forest"},
        {"path": "/v1/models/keyed"},
        {"path": "/v1/models/none"},
    ],
    "GET /v1/models": [{"path": "/v1/models"}],
    "GET /healthz": [{"path": "/healthz"}],
    "GET /readyz": [{"path": "/readyz"}],
    "GET /openapi.json": [{"path": "/openapi.json"}],
    "GET /static/{name}": [{"path": "/static/api.js"}, {"path": "/static/none"}],
    "GET /": [{"path": "/"}],
    "GET /metrics": [{"path": "/metrics"}],
}
"""By route: what is asked, in this order."""


@scenario("all routes", *REQUESTS)
def all_routes(rows, place):
    Path("models").mkdir()
    for name, maker in {"forest": "DPMarginals", "keyed": "DPGridKNN keyed"}.items():
        fitted(maker, rows, place).save(f"models/{name}")
    return answers(["models/forest.dpo", "models/keyed.secret.dpo"])


def answers(models: list[str]) -> dict[str, Any]:
    """What a server answers to everything, with what it counts and notes."""
    from prometheus_client import disable_created_metrics, enable_created_metrics

    named = tuple((Path(model).name.partition(".")[0], model) for model in models)
    disable_created_metrics()
    forget_metrics()
    try:
        app = loaded_app(models=named, secret_models=True, audit="audit.jsonl")
        found = {
            f"{route} {number}": call(app, route.partition(" ")[0], **asked)
            for route, each in REQUESTS.items()
            for number, asked in enumerate(each)
        }
        failed = [found[f"{route} 0"] for route in REQUESTS if found[f"{route} 0"][0] != 200]
        assert not failed, failed
        return found
    finally:
        enable_created_metrics()
        forget_metrics()


def forget_metrics() -> None:
    from prometheus_client.metrics import MetricWrapperBase

    from dpoutlier.server import metrics

    for one in vars(metrics).values():
        if isinstance(one, MetricWrapperBase):
            one.clear() if one._labelnames else one.set(0)
    metrics.tally.__init__()


@contextmanager
def answered_here(place: Place, models: Callable[[], dict[str, str]]):
    """Clients ask a server in this process."""
    made: list[Any] = []

    def ask(_, method, path, body, headers, most=None):
        if not made:
            made.append(loaded_app(models=tuple(models().items()), secret_models=True))
        path, _, query = path.partition("?")
        status, got, answer = call(made[0], method, path, headers=headers, body=body or b"", query=query)
        if status != 200:
            error = json.loads(answer)["error"]
            raise ServerError(error["message"], status=status, code=error["code"])
        return Answer(answer, got)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "_ask", ask)
        yield


@scenario("walk over a client", "dpoutlier.Client", slow=True)
def client(rows, place):
    path = fitted("DPForest", rows, place).save("model")
    with answered_here(place, lambda: {"model": str(path)}):
        return walk(Client("http://127.0.0.1:9"))


WALKED["walk over a client"] = ("Client",)
