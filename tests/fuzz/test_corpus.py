"""The corpus: every input that ever failed or reached new code, and hostile ones made by hand, one after the other."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.corpus_files import CORPUS, inputs
from fuzz.replay import VALID
from fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]
MAX_BYTES = 300_000
ACCEPTED = {
    "model_file": "accepted",
    "features_toml": "accepted",
    "features_json": "accepted",
    "csv_points": "scored",
    "csv_reference": "fitted",
    "server_body": "200",
    "anchor_file": "heads",
    "ledger_file": "accepted",
    "keys_file": "keys",
    "key_file": "taken",
    "audit_log": "entries; gone on",
}
"""What becomes of a valid input; that of a client depends on what was asked."""
CLIENT = {
    "models": "described",
    "description": "described",
    "scores": "scored",
    "explanation": "explained",
    "threshold": "threshold",
}


def replayed(*arguments):
    """What became of all inputs, in a process of its own with bounded memory. A hang ends that process."""
    command = [sys.executable, "-m", "tests.helpers.fuzz.replay", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    found = {(one["target"], one["input"]): one for one in lines if len(one) > 2}
    bad = [one for one in found.values() if "finding" in one]
    assert not bad, json.dumps(bad, indent=1)[:5000]
    assert done.returncode == 0, (lines[-1:], done.stderr[-3000:])
    return {key: one["outcome"] for key, one in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("how", [(), ("--traced",)], ids=["addresses", "allocations"])
def test_the_whole_corpus_under_all_limits(how):
    found = replayed(*how)
    assert set(found) == {(name, key) for name in TARGETS for key in inputs(name)}
    for name, word in ACCEPTED.items():
        for key in VALID[name].split():
            assert word in found[name, key], (name, key, found[name, key])
    for key, word in CLIENT.items():
        assert found["client_answer", key] == word
    refused = [outcome for (name, _), outcome in found.items() if name == "model_file" and outcome != "accepted"]
    assert len(refused) > 10


def test_the_corpus_is_small_and_has_inputs_for_every_target():
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < MAX_BYTES
    for name in TARGETS:
        assert set(VALID[name].split()) <= set(inputs(name))
