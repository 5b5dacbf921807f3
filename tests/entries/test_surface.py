"""The table of entry points is complete, and the tests that use it are not blind: what is planted is found."""

import logging
import random
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from fastapi import APIRouter
from fastapi.routing import APIRoute, Mount

import dpoutlier
from dpoutlier import DPForest, DPMarginals, PrivateBounds
from dpoutlier.cli.app import app as program
from dpoutlier.detectors.partitioned import PartitionedDetector
from dpoutlier.server.app import create_app
from dpoutlier.server.schemas import Health
from dpoutlier.server.settings import Settings
from dpoutlier.tables.batched import BatchedTable
from dpoutlier.tables.files import file_table
from dpoutlier.tables.rows import Rows
from dpoutlier.trusted import ranges
from dpoutlier.trusted.queries import StreamedReference
from dpoutlier.trusted.reference import Reference
from entries.reference_tables import Pair, Row, made_pair
from entries.registry import EXEMPT, complaints, covered, exempt
from entries.replaying import replay, search
from entries.scenarios import MAKERS, SCENARIOS, Scenario, fitted, shown, with_loose_ranges
from entries.surface import commands, names, public_members, routes, sources, surface


@pytest.fixture
def envelope():
    return create_app(Settings(models=()))


@pytest.fixture
def pair():
    return made_pair("somebody more", random.Random(3))


def test_every_entry_point_is_covered_or_says_why_not(envelope):
    found = surface(envelope)
    wrong = complaints(found)
    assert not wrong, "\n".join(wrong)
    assert len(found) > 400  # a look that finds little finds nothing new either
    assert all(len(reason.split()) > 1 for reason in EXEMPT.values())
    assert sum(exempt(entry) is not None for entry in found) < len(found) / 5


def test_nothing_that_fits_is_exempt(envelope):
    """An exemption is for what sees no reference rows: never for a fit, a route, or a form of rows."""
    fits = [
        entry
        for entry in surface(envelope)
        if entry.endswith(".fit") or entry.startswith(("rows in ", "GET ", "POST ", "cli fit"))
    ]
    assert len(fits) > 50
    assert set(fits) <= covered()


# A new entry point is noticed ---------------------------------------------------------------------------------------------


def test_a_new_method_is_noticed_and_called(monkeypatch, envelope):
    monkeypatch.setattr(PartitionedDetector, "number_of_rows", lambda self: 3, raising=False)
    assert "DPForest.number_of_rows" in public_members()
    assert "DPForest.number_of_rows" in covered()  # by the walk, which needs nothing to call it
    monkeypatch.setattr(DPForest, "rows_like", lambda self, example: example, raising=False)
    (wrong,) = complaints(surface(envelope))
    assert "DPForest.rows_like" in wrong
    assert "it is not known what to pass as example" in wrong


def test_a_method_of_which_nothing_but_an_error_is_seen_is_noticed(monkeypatch, pair, tmp_path):
    monkeypatch.setattr(DPMarginals, "rows_near", lambda self, X: X.no_such_thing, raising=False)
    with pytest.raises(AssertionError, match=r"sees nothing of what raises.*DPMarginals.rows_near"):
        replay(SCENARIOS["walk over DPMarginals"], pair, tmp_path / "run")


def test_a_new_class_is_noticed_with_its_members(monkeypatch, envelope):
    class Reader:
        def read(self):
            """Read."""

        @property
        def size(self):
            return 0

    monkeypatch.setattr(dpoutlier, "Reader", Reader, raising=False)
    monkeypatch.setattr(dpoutlier, "__all__", [*dpoutlier.__all__, "Reader"])
    assert "dpoutlier.Reader" in names()
    wrong = complaints(surface(envelope))
    assert [text.partition(":")[0] for text in wrong] == ["dpoutlier.Reader", "Reader.read", "Reader.size"]
    assert all("scenarios.py" in text for text in wrong)


def test_a_new_command_and_a_new_option_are_noticed():
    app = typer.Typer(add_completion=False)
    app.registered_commands = list(program.registered_commands)
    app.registered_groups = list(program.registered_groups)
    app.registered_callback = program.registered_callback

    @app.command()
    def peek(rows: Path, many: int = 3) -> None:
        """Look."""

    deeper = typer.Typer()

    @deeper.command()
    def inner() -> None:
        """Within."""

    @deeper.callback()
    def group() -> None:
        """Group."""

    app.add_typer(deeper, name="deeper")
    assert set(commands(app)) - set(commands()) == {"cli peek", "cli peek --many", "cli deeper inner"}
    assert set(commands()) <= set(commands(app))
    assert len(complaints(["cli peek", *_usual()])) == 1


def _usual():
    return surface(create_app(Settings(models=())))


def test_a_new_route_is_noticed_also_in_a_router_within(envelope):
    before = set(routes(envelope))

    async def answer():
        """Tell."""

    inner = APIRouter()
    inner.add_api_route("/inner", answer, methods=["GET", "PUT"])
    own = envelope.router.routes
    own.append(APIRoute("/v1/rows", answer, methods=["POST"]))
    own.append(Mount("/below", routes=inner.routes))
    envelope.include_router(inner, prefix="/beside")
    new = set(routes(envelope)) - before
    assert new >= {"POST /v1/rows", "GET /below/inner", "PUT /below/inner", "GET /beside/inner", "PUT /beside/inner"}
    assert len(complaints(surface(envelope))) == len(new)


def test_a_new_form_of_rows_is_noticed():
    class PickledTable(BatchedTable):
        def types(self):
            return {}

        def batches(self):
            return iter([])

    PickledTable.__module__ = "dpoutlier.tables.pickled"
    try:
        (wrong,) = complaints(_usual())
        assert wrong.startswith("rows in PickledTable")
        assert "reference_tables.py" in wrong
    finally:
        PickledTable.__module__ = __name__
    assert "rows in PickledTable" not in sources()


def test_what_is_gone_is_noticed_too(monkeypatch, envelope):
    monkeypatch.setitem(EXEMPT, "cli gone *", "it was never there")
    monkeypatch.setitem(SCENARIOS, "old", Scenario("old", ("cli old",), lambda rows, place: None))
    wrong = complaints(surface(envelope))
    assert [text.partition(":")[0] for text in wrong] == ["cli old", "cli gone *"]
    assert all("no such entry point any more" in text for text in wrong)


# A planted leak is noticed ------------------------------------------------------------------------------------------------


def one_fit(rows, place):
    return shown(fitted("DPMarginals", rows, place, target_fpr=None))


def noticed(scenario, pair, folder, *, by=("replay", "search")):
    """Both tests fail, or those that are named."""
    if "replay" in by:
        with pytest.raises(AssertionError, match="on neighbouring rows"):
            replay(scenario, pair, folder)
    if "search" in by:
        with pytest.raises(AssertionError, match=" is in "):
            search(scenario, folder)


def leaky(run_, **more):
    return Scenario("leaky", (), run_, **more)


def leaking_fit(monkeypatch, leak):
    """Every fit does something with its rows besides."""
    fit = PartitionedDetector.fit

    def fit_and_leak(self, X, y=None):
        fit(self, X, y)
        leak(self, X)
        return self

    monkeypatch.setattr(PartitionedDetector, "fit", fit_and_leak)


def _attribute(detector, X):
    detector.n_rows_ = len(X)


def _hidden(detector, X):
    detector._seen = X


def _in_the_model(detector, X):
    object.__setattr__(detector.model_.domain, "seen", (len(X),))


def _in_a_closure(detector, X):
    mean = np.float64(X["a"].iloc[0])
    detector.restore = lambda: mean


def _warning(detector, X):
    warnings.warn(f"of {len(X)} rows some were clipped", UserWarning, stacklevel=2)


def _print(detector, X):
    print(X.head(1).to_string())  # noqa: T201


def _log(detector, X):
    logging.getLogger("dpoutlier.fit").debug("%d rows", len(X))


def _file(detector, X):
    Path("cache.bin").write_bytes(X["a"].to_numpy().tobytes())


def _left_behind(detector, X):
    tempfile.mkstemp(prefix=f"rows-{len(X)}-")


LEAKS = [_attribute, _hidden, _in_the_model, _in_a_closure, _warning, _print, _log, _file, _left_behind]


def test_without_a_leak_nothing_is_noticed(pair, tmp_path):
    replay(leaky(one_fit, even=True), pair, tmp_path / "run")
    search(leaky(one_fit), tmp_path / "run")


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.__name__.strip("_"))
def test_a_leak_that_is_planted_in_fit_is_noticed(leak, monkeypatch, pair, tmp_path):
    leaking_fit(monkeypatch, leak)
    noticed(leaky(one_fit), pair, tmp_path / "run")


def test_a_file_that_is_longer_with_more_rows_is_noticed(monkeypatch, pair, tmp_path):
    leaking_fit(monkeypatch, lambda self, X: Path("padding").write_bytes(bytes(len(X))))
    noticed(leaky(one_fit, even=True), pair, tmp_path / "run", by=["replay"])


def test_a_method_that_tells_the_number_of_rows_is_noticed(monkeypatch, pair, tmp_path):
    kept = {}
    leaking_fit(monkeypatch, lambda self, X: kept.update(rows=len(X)))
    monkeypatch.setattr(DPMarginals, "reference_size", lambda self: kept["rows"], raising=False)
    noticed(SCENARIOS["walk over DPMarginals"], pair, tmp_path / "run", by=["replay"])


def test_what_was_looked_up_while_rows_were_read_is_noticed(monkeypatch, tmp_path):
    def remembering(columns, domain):
        if any(np.isnan(np.asarray(column, float)).any() for column in columns):
            domain.__dict__["missing_was_looked_up"] = True
        return Rows(columns, domain)

    monkeypatch.setattr("dpoutlier.trusted.reference.Rows", remembering)
    noticed(leaky(one_fit), made_pair("somebody among no rows", random.Random(3)), tmp_path / "run", by=["replay"])


@pytest.mark.parametrize(
    ("place", "instead"),
    [
        ("dpoutlier.engines.schema.type_text", str),
        ("dpoutlier.detectors.base.check_text_is_path", lambda text: None),
        ("dpoutlier.trusted.reference.in_silence", lambda read: read()),
    ],
    ids=["levels of a type", "text that is no path", "what an engine says"],
)
def test_a_message_that_quotes_a_row_is_noticed(place, instead, monkeypatch, pair, tmp_path):
    monkeypatch.setattr(place, instead)
    noticed(SCENARIOS["rows that cannot be read"], pair, tmp_path / "run")


def test_a_row_that_is_not_charged_for_is_noticed(monkeypatch, pair, tmp_path):
    """Rows past the cap: what goes into the release differs by more than is charged."""
    whole = leaky(lambda rows, place: shown(MAKERS["DPMarginals"](**_uncapped(place)).fit(_three(rows))))
    with pytest.raises(AssertionError, match="counts"):
        replay(whole, pair, tmp_path / "run")


def _uncapped(place):
    return {"neighbours": place.neighbours, "features": {"a": (0, 10)}}


def _three(rows):
    return pd.DataFrame({"a": [0.5 for _ in rows for _ in range(3)]})


def test_rows_past_the_cap_in_private_bounds_are_noticed(monkeypatch, tmp_path):
    """Somebody has two rows more than are counted: the bounds may be estimated with the cap, and the missing cap is noticed."""
    own = [Row("someone new", a, "low", 1.0) for a in (0.5, 3.25, 9.875, 40.0)]
    pair = Pair("many rows", [], own, "add-or-remove-one")
    scenario = leaky(_with_private_bounds)
    replay(scenario, pair, tmp_path / "run")

    def uncapped(self, outer):
        reference = self._reference
        return real(StreamedReference(Reference(reference._table, reference._domain)), outer)

    real = StreamedReference.edge_counts
    monkeypatch.setattr(StreamedReference, "edge_counts", uncapped)
    with pytest.raises(AssertionError, match="bounds"):
        replay(scenario, pair, tmp_path / "run")


def test_rows_that_a_look_counts_twice_are_noticed(monkeypatch, tmp_path):
    """A look may count what is counted: rows that count twice in it are noticed."""
    own = [Row("someone new", a, "low", 1.0) for a in (0.5, 3.25)]
    pair = Pair("two rows", [], own, "add-or-remove-one")
    scenario = leaky(lambda rows, place: shown(with_loose_ranges(rows, place, 1000)))
    replay(scenario, pair, tmp_path / "run")
    real = ranges._cell_counts
    monkeypatch.setattr(ranges, "_cell_counts", lambda *given: 2 * real(*given))
    with pytest.raises(AssertionError, match="ranges"):
        replay(scenario, pair, tmp_path / "run")


def _with_private_bounds(rows, place):
    bounds = {"a": PrivateBounds(share=0.2, outer=(-1000, 1000))}
    return shown(fitted("DPForest", rows, place, target_fpr=None, features=bounds))


def test_a_release_more_for_more_rows_is_noticed(monkeypatch, pair, tmp_path):
    def twice(rows, place):
        for _ in range(1 + len(rows)):
            found = one_fit(rows, place)
        return found

    with pytest.raises(AssertionError, match="there is a release more"):
        replay(leaky(twice), pair, tmp_path / "run")


def test_a_command_that_tells_the_number_of_rows_is_noticed(monkeypatch, pair, tmp_path):
    def counted(*given):
        table = file_table(*given)
        typer.echo(f"{table.number_of_rows()} rows")
        return table

    monkeypatch.setattr("dpoutlier.tables.files.file_table", counted)
    noticed(SCENARIOS["fit on the command line"], pair, tmp_path / "run")


def test_a_route_that_tells_the_number_of_rows_is_noticed(monkeypatch, pair, tmp_path):
    kept = {}
    leaking_fit(monkeypatch, lambda self, X: kept.update(rows=len(X)))

    monkeypatch.setattr("dpoutlier.server.routes.Health", lambda **_: Health(status=f"ok, {kept['rows']} rows"))
    noticed(SCENARIOS["all routes"], pair, tmp_path / "run")
