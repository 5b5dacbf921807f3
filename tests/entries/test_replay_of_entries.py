"""Neighbour replay of every entry point: with frozen noise, releases differ by what is charged for, and nothing else does."""

import random
import zlib

import pytest
from reference_tables import KINDS, made_pair
from replaying import replay
from scenarios import SCENARIOS


def slow_ones():
    for number, one in enumerate(SCENARIOS.values()):
        marks = [pytest.mark.slow] if one.slow else []
        yield pytest.param(one, KINDS[number % 2], id=one.name, marks=marks)


@pytest.mark.parametrize(("scenario", "kind"), [*slow_ones()])
def test_neighbours_are_told_apart_by_what_is_released_alone(scenario, kind, tmp_path, request):
    chance = random.Random(zlib.crc32(scenario.name.encode()))
    replay(scenario, made_pair(kind, chance), tmp_path / "run", cluster(scenario, request))


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [pytest.param(one, id=one.name) for one in SCENARIOS.values() if one.many])
def test_neighbours_of_all_kinds_are_told_apart_by_what_is_released_alone(scenario, tmp_path):
    chance = random.Random(zlib.crc32(scenario.name.encode()) + 1)
    for kind in KINDS:
        replay(scenario, made_pair(kind, chance), tmp_path / "run")


def cluster(scenario, request):
    return request.getfixturevalue("spark") if "spark" in scenario.name else None
