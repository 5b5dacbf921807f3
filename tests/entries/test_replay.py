"""Neighbour replay of every entry point: with frozen noise, releases differ by what is charged for, and nothing else does."""

import itertools
import pickle
import random
import zlib

import pytest

from dpoutlier import secrets_may_travel
from entries.reference_tables import KINDS, Pair, Row, made_pair
from entries.replaying import replay
from entries.scenarios import MAKERS, SCENARIOS, Scenario, fitted


def slow_ones():
    for number, one in enumerate(SCENARIOS.values()):
        marks = [pytest.mark.slow] if one.slow else []
        yield pytest.param(one, KINDS[number % 2], id=one.name, marks=marks)


@pytest.mark.parametrize(("scenario", "kind"), [*slow_ones()])
def test_neighbours_differ_by_what_is_released_alone(scenario, kind, tmp_path, request):
    chance = random.Random(zlib.crc32(scenario.name.encode()))
    replay(scenario, made_pair(kind, chance), tmp_path / "run", cluster(scenario, request))


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [pytest.param(one, id=one.name) for one in SCENARIOS.values() if one.many])
def test_neighbours_of_all_kinds_differ_by_what_is_released_alone(scenario, tmp_path):
    chance = random.Random(zlib.crc32(scenario.name.encode()) + 1)
    for kind in KINDS:
        replay(scenario, made_pair(kind, chance), tmp_path / "run")


@pytest.mark.parametrize("maker", MAKERS)
def test_a_pickle_does_not_show_which_features_have_values(maker, tmp_path):
    """What was looked up while rows were read is not kept: else one value among missing ones would show."""
    nothing, something = [Row("p", None, None, None)], [Row("p", 1.5, "high", 2.0)]
    scenario = Scenario("pickled", (), lambda rows, place: pickled(fitted(maker, rows, place)))
    for one, other in itertools.pairwise([nothing, something, [], nothing]):
        replay(scenario, Pair("one value", one, other, "replace-one"), tmp_path / "run")


def pickled(detector):
    with secrets_may_travel():
        return pickle.dumps(detector)


def cluster(scenario, request):
    return request.getfixturevalue("spark") if "spark" in scenario.name else None
