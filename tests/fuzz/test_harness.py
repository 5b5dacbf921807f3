"""The harness fails when it should: a planted crash, hang, allocation, and planted code that is run."""

import json
import pickle
import random
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dpoutlier.model.file import load_model
from fuzz import targets
from fuzz.corpus_files import inputs
from fuzz.guards import MEGABYTE, Finding, guarded, reading
from fuzz.mutations import mutated
from fuzz.replay import outcome_of, warm
from fuzz.targets import Target

ROOT = Path(__file__).parents[2]


def target(run, seconds=5, base=16 * MEGABYTE, per_byte=0):
    return Target(run, seconds, base, per_byte)


def test_a_crash_is_found():
    def run(data):
        if data[:1] == b"\x7f":
            raise ValueError("planted")
        return "fine"

    assert outcome_of(target(run), b"x", traced=False) == ("fine", None)
    outcome, finding = outcome_of(target(run), b"\x7f", traced=False)
    assert outcome is None
    assert "ValueError: planted" in finding


def test_what_takes_too_long_is_found():
    def run(_):
        until = time.thread_time() + 0.15
        while time.thread_time() < until:
            pass
        return "fine"

    assert guarded(target(run, seconds=5), b"") == "fine"
    with pytest.raises(Finding, match=r"took 0\.\d s of at most 0\.05"):
        guarded(target(run, seconds=0.05), b"")


PLANTED = """
import sys
from tests.helpers.fuzz import replay, targets
replay.COMPILING = 0
def run(data):
    {body}
targets.TARGETS.clear()
targets.TARGETS["planted"] = targets.Target(run, 0.2, 1 << 24, 0)
replay.inputs = lambda name: {{"good": b"", "bad": b"x"}}
sys.exit(replay.main(["planted"]))
"""


def planted(body):
    """The lines of a replay of two inputs, of which the second does what is planted; and its exit code."""
    script = PLANTED.format(body=body)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, timeout=120, check=False
    )
    return [json.loads(line) for line in done.stdout.splitlines()], done.returncode


@pytest.mark.slow
def test_a_hang_ends_the_process_and_names_the_input():
    lines, code = planted("while data: pass\n    return 'fine'")
    assert code != 0
    assert lines[-1] == {"target": "planted", "input": "bad"}
    assert lines[-2]["outcome"] == "fine"


@pytest.mark.slow
def test_an_allocation_past_all_addresses_is_found_though_its_error_is_caught():
    body = """import numpy
    try: numpy.empty(len(data) << 36)
    except Exception as error: return f"{type(error).__name__}: MemoryError"
    return 'fine'"""
    lines, code = planted(body)
    assert code == 1
    assert "ran out of memory" in lines[-1]["finding"]


def test_memory_that_is_taken_is_found():
    def run(data):
        np.ones(len(data) * MEGABYTE // 8)
        return "fine"

    assert guarded(target(run), b"x" * 4) == "fine"
    with pytest.raises(Finding, match="MB of at most 16 MB"):
        guarded(target(run), b"x" * 80)
    with pytest.raises(Finding, match="MB of at most 16 MB"):
        guarded(target(lambda _: str(np.empty(1 << 27).nbytes)), b"", traced=True)  # not touched
    assert guarded(target(run, per_byte=2 * MEGABYTE), b"x" * 80) == "fine"


def ways_to_run_code(folder):
    module = "planted_for_a_test_of_the_harness"
    (folder / f"{module}.py").write_text("")
    code = compile("1", "x", "exec")
    return {
        "exec": lambda: exec(code),
        "compile": lambda: compile("1", "x", "exec"),
        "import": lambda: __import__(module),
        "pickle.find_class": lambda: pickle.loads(b"cbuiltins\nlen\n."),
        "subprocess.Popen": lambda: subprocess.Popen(["true"]),
        "socket.__new__": socket.socket,
        "open": lambda: (folder / "other").open("wb"),
    }


def test_code_and_other_files_are_found_though_the_error_is_caught(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    own = tmp_path / "own"
    own.write_text("")
    for name, act in ways_to_run_code(tmp_path).items():

        def run(_, act=act):
            with reading(own):
                own.read_bytes()
                try:
                    act()
                except BaseException:  # noqa: BLE001 - as a careless parser would
                    return "swallowed"
            return "fine"

        with pytest.raises(Finding, match=f"forbidden: {name}"):
            guarded(target(run), b"")
    assert not (tmp_path / "other").exists()


def test_a_parser_that_evaluates_is_found(monkeypatch):
    good = inputs("model_file")["grid-dense"]
    monkeypatch.setattr(targets, "load_model", lambda path, **named: eval("1") and load_model(path, **named))
    with pytest.raises(Finding, match=r"forbidden: (compile|exec)"):
        guarded(targets.TARGETS["model_file"], good)


def test_words_about_rows_are_found(monkeypatch):
    warm("csv_reference")
    own = targets._fitted
    good = inputs("csv_reference")["people"]
    monkeypatch.setattr(targets, "_fitted", lambda path, person: own(path, person) + str(path.stat().st_size))
    with pytest.raises(Finding, match="depends on them"):
        targets.csv_reference(good)


@pytest.mark.slow
def test_changes_reach_what_lies_behind_checksums():
    """Most changed model files have checksums that fit, and are refused for something else, or accepted."""
    rng, seeds = random.Random(0), sorted(inputs("model_file").values())
    said = [targets.TARGETS["model_file"].run(mutated("model_file", rng.choice(seeds[-12:]), rng)) for _ in range(60)]
    assert sum("checksum" in one or "not a zip" in one for one in said) < 30
    assert len({one.partition("dpo")[2] for one in said}) > 10


@pytest.mark.slow
def test_a_campaign_finds_a_planted_bug(tmp_path):
    pytest.importorskip("atheris")
    script = (
        "import sys; from tests.helpers.fuzz import campaign, targets, replay\n"
        "def run(data):\n    if data[:2] == b'DP': raise ValueError('planted')\n    return 'fine'\n"
        "targets.TARGETS['planted'] = targets.Target(run, 1, 1 << 26, 64)\n"
        "sys.exit(campaign.fuzz('planted', sys.argv[1:]))"
    )
    arguments = ["-max_total_time=60", f"-artifact_prefix={tmp_path}/", "-max_len=100"]
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, cwd=ROOT, timeout=200, check=False
    )
    assert done.returncode != 0
    (found,) = tmp_path.glob("crash-*")
    assert found.read_bytes().startswith(b"DP")
