"""Planted values: no entry point shows a reference value, a person, or how many there are."""

import pytest
from replaying import search
from scenarios import SCENARIOS

ALL = [pytest.param(one, id=one.name, marks=[pytest.mark.slow] if one.slow else []) for one in SCENARIOS.values()]


@pytest.mark.parametrize("scenario", ALL)
def test_no_planted_value_is_seen(scenario, tmp_path, request):
    spark = request.getfixturevalue("spark") if "spark" in scenario.name else None
    search(scenario, tmp_path / "run", spark)
