"""Whatever bytes are given: only errors of the library's own, in bounded time and memory, and no code is run.

Inputs of the corpus, changed by rules that know their structure. ``campaign.py`` does the same with coverage, for longer.
"""

import random
from functools import cache

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fuzz.corpus_files import inputs
from fuzz.guards import guarded
from fuzz.mutations import mutated
from fuzz.replay import warm
from fuzz.targets import TARGETS

FAST = ("features_toml", "features_json", "csv_points", "keys_file", "anchor_file", "audit_log", "key_file")
FIXED = settings(
    derandomize=True,
    database=None,
    deadline=None,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)


warmed = cache(warm)
"""Modules that are needed later are imported, and kernels compiled."""


def fuzzed(name, examples):
    """Change inputs of one target a number of times."""
    warmed(name)
    seeds = sorted(inputs(name).values())

    @settings(FIXED, max_examples=examples)
    @given(st.integers(0, len(seeds) - 1), st.integers(0, 2**32 - 1))
    def run(which, seed):
        guarded(TARGETS[name], mutated(name, seeds[which], random.Random(seed)))

    run()


@pytest.mark.parametrize("name", FAST)
def test_a_few_changed_inputs(name):
    fuzzed(name, 25)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_many_changed_inputs(name):
    fuzzed(name, 400)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
@settings(FIXED, max_examples=150)
@given(data=st.binary(max_size=300))
def test_any_bytes(name, data):
    warmed(name)
    guarded(TARGETS[name], data)
