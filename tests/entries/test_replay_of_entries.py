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
@pytest.mark.parametrize("scenario", [pytest.param(one, id=one.name) for one in SCENARIOS.values()])
def test_many_neighbours_are_told_apart_by_what_is_released_alone(scenario, tmp_path, request):
    chance = random.Random(zlib.crc32(scenario.name.encode()) + 1)
    pairs = [made_pair(kind, chance) for kind in KINDS for _ in range(1 if "all commands" in scenario.name else 2)]
    for pair in pairs[: 3 if "spark" in scenario.name else None]:
        replay(scenario, pair, tmp_path / "run", cluster(scenario, request))


def cluster(scenario, request):
    return request.getfixturevalue("spark") if "spark" in scenario.name else None
