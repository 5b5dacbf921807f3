"""A study as a whole: the same numbers for any number of workers, sessions and kills."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from dpoutlier.exceptions import InvalidParameterError
from experiments.measure import store, workers
from experiments.measure.choice import Choice
from experiments.measure.runner import run_study
from experiments.measure.store import Store, alone_in, fingerprint
from experiments.measure.study import FULL, QUICK, TUNED, chosen_tasks, cost, exact_tasks, sweep_tasks
from experiments.report.figures import draw_plot
from experiments.report.summary import Summary
from made_data import TINY, made_sets
from shared_data import needs_data

pytestmark = pytest.mark.slow  # whole experiments, if small ones

SMALL = replace(TINY, sets=("lymphography", "heart"), bins=(2, 3), answers=20)
TABLES = (
    "results.parquet",
    "summary.csv",
    "claims.csv",
    "readings.csv",
    "ladder.csv",
    "chosen.csv",
    "table1.csv",
    "attack.csv",
)
COMMAND = [sys.executable, "-m", "experiments"]


def _tasks(study):
    k = dict.fromkeys(study.sets, 3)
    bins = {(name, variant): 2 for name in study.sets for variant in TUNED}
    other_k = dict.fromkeys(study.sets, 5)
    choice = Choice(k, bins, other_k, dict.fromkeys(study.sets, 3))
    return [*exact_tasks(study), *sweep_tasks(study, k, other_k), *chosen_tasks(study, choice)]


@pytest.mark.parametrize("study", [FULL, QUICK, TINY], ids=lambda study: study.name)
def test_every_task_has_a_name_of_its_own(study):
    """Else one result would be taken for another."""
    tasks = _tasks(study)
    assert len({task.key for task in tasks}) == len(tasks)
    assert all(cost(task) > 0 for task in tasks)


def test_no_run_is_in_the_table_twice(tiny_results):
    places = [row[:9] for row in tiny_results.rows]
    assert len(set(places)) == len(places)


def test_the_paper_s_figures_alone_take_part_of_the_runs_and_show_the_same(tmp_path, monkeypatch):
    """What they leave in the folder is not run again by the whole study."""
    alone = run_study(SMALL, made_sets(SMALL), tmp_path, 1, _ignore, figures_only=True)
    again, real = [], workers._finish
    monkeypatch.setattr(workers, "_finish", lambda task, *rest: again.append(task.key) or real(task, *rest))
    whole = run_study(SMALL, made_sets(SMALL), tmp_path, 1, _ignore)
    assert not [key for key in again if key.startswith("exact_base")]
    assert 2 * len(alone.rows) < len(whole.rows)
    for name in ("figure1", "figure2"):
        one, other = (draw_plot(name, Summary(results)) for results in (alone, whole))
        assert one.keys == other.keys
        assert one.pictures["png"] == other.pictures["png"]


def test_one_worker_or_two(tmp_path):
    """Same rows, same choice, same attack."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one, two = (
        run_study(SMALL, made_sets(SMALL), tmp_path / name, jobs, _ignore) for name, jobs in (("one", 1), ("two", 2))
    )
    assert (one.rows, one.choice, one.attack) == (two.rows, two.choice, two.attack)


def _ignore(*_):
    pass


def test_what_is_finished_is_not_run_again(tmp_path, monkeypatch):
    """A run that dies in the middle goes on from there, to the same end; progress starts where it was."""
    whole = run_study(SMALL, made_sets(SMALL), _folder(tmp_path / "whole"), 1, _ignore)
    folder, finished, real = _folder(tmp_path / "parts"), [], workers._finish

    def dies(task, *rest):
        if len(finished) == 25:
            raise KeyboardInterrupt
        finished.append(task.key)
        return real(task, *rest)

    monkeypatch.setattr(workers, "_finish", dies)
    with pytest.raises(KeyboardInterrupt):
        run_study(SMALL, made_sets(SMALL), folder, 1, _ignore)
    again, seen = [], []
    monkeypatch.setattr(workers, "_finish", lambda task, *rest: again.append(task.key) or real(task, *rest))
    resumed = run_study(SMALL, made_sets(SMALL), folder, 1, lambda *state: seen.append(state))
    assert resumed.rows == whole.rows
    assert len(finished) == 25
    assert not set(finished) & set(again)
    assert seen[0][1] > 0
    assert seen[-1][1] == pytest.approx(seen[-1][2])
    assert all(done <= total * (1 + 1e-9) for _, done, total in seen)


def _folder(path):
    path.mkdir()
    return path


def test_what_a_kill_left_half_written_is_removed(tmp_path):
    kept = Store(tmp_path, "0123")
    kept.open()
    left = kept.folder / ".exact.parquet.x.part"
    left.write_bytes(b"half")
    kept.open()
    assert not left.exists()


def test_results_of_another_study_other_data_or_other_code_are_not_taken(tmp_path, monkeypatch):
    data = made_sets(SMALL)
    before = fingerprint(SMALL, data)
    assert before == fingerprint(SMALL, made_sets(SMALL))
    assert before != fingerprint(replace(SMALL, seeds=3), data)
    assert before != fingerprint(SMALL, {**data, "heart": replace(data["heart"], rows=data["heart"].rows + 1)})
    monkeypatch.setattr(store, "version", lambda name: "0")
    assert before != fingerprint(SMALL, data)
    monkeypatch.undo()
    monkeypatch.setattr(store, "LIBRARY", shutil.copytree(store.LIBRARY, tmp_path / "dpoutlier"))
    monkeypatch.setattr(store, "EXPERIMENTS", shutil.copytree(store.EXPERIMENTS, tmp_path / "experiments"))
    assert before == fingerprint(SMALL, data)
    for path, matters in (
        ("experiments/report/page.py", False),
        ("dpoutlier/cli/app.py", False),
        ("dpoutlier/kernels/walk.py", True),
    ):
        with (tmp_path / path).open("a") as stream:
            stream.write("# changed\n")
        assert (before != fingerprint(SMALL, data)) is matters


def test_a_damaged_result_is_run_again(tmp_path):
    whole = run_study(SMALL, made_sets(SMALL), tmp_path, 1, _ignore)
    part = sorted(tmp_path.glob("parts/*/*.parquet"))[3]
    part.write_bytes(part.read_bytes()[:100])
    again = run_study(SMALL, made_sets(SMALL), tmp_path, 1, _ignore)
    assert again.rows == whole.rows


def test_two_runs_in_one_folder_are_refused(tmp_path):
    with (
        alone_in(tmp_path),
        pytest.raises(InvalidParameterError, match="another run is at work in"),
        alone_in(tmp_path),
    ):
        pass
    with alone_in(tmp_path):
        pass  # the lock is dropped with the run


def test_the_phases_tell_k_then_b(tiny_results):
    assert set(tiny_results.choice.k) == set(TINY.sets)
    assert set(tiny_results.choice.bins) == {(name, variant) for name in TINY.sets for variant in TUNED}


def _start(data, out, *, jobs=2):
    command = [
        *COMMAND,
        "--quick",
        "--sets",
        "lymphography,heart",
        "--data",
        str(data),
        "--out",
        str(out),
        "--n-jobs",
        str(jobs),
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def _start_and_wait_for_a_part(data, out):
    process, end = _start(data, out), time.monotonic() + 60
    while not _parts(out) and time.monotonic() < end:
        time.sleep(0.05)
    return process


def _finish(process):
    _, complaint = process.communicate()
    assert process.returncode == 0, complaint


def _all_gone(group, seconds=10):
    """Whether every process of the group has ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def _tables(out):
    return {name: (out / name).read_bytes() for name in TABLES}


def _parts(out):
    return sorted(path.name for path in Path(out).glob("parts/*/*.parquet"))


@needs_data
def test_killed_five_times_the_tables_are_the_same_byte_for_byte(data, tmp_path):
    """SIGKILL in mid-work: no worker stays behind, nothing finished is lost or run again, and the end is the same."""
    _finish(_start(data, tmp_path / "whole", jobs=1))
    moments, kept = random.Random(4), {}
    for _ in range(5):
        process, more = _start(data, tmp_path / "killed"), len(kept) + moments.randint(1, 12)
        end = time.monotonic() + 60
        while len(_parts(tmp_path / "killed")) < more and time.monotonic() < end:
            time.sleep(moments.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert _all_gone(process.pid)
        finished = {path: path.stat().st_mtime_ns for path in (tmp_path / "killed").glob("parts/*/*.parquet")}
        assert len(finished) >= more
        assert kept.items() <= finished.items()
        kept = finished
    assert not (tmp_path / "killed" / "report.html").exists()
    _finish(_start(data, tmp_path / "killed"))
    assert kept.items() <= {path: path.stat().st_mtime_ns for path in kept}.items()
    assert _tables(tmp_path / "killed") == _tables(tmp_path / "whole")
    assert _parts(tmp_path / "killed") == _parts(tmp_path / "whole")


@needs_data
def test_ctrl_c_stops_at_once_and_says_how_to_go_on(data, tmp_path):
    process = _start_and_wait_for_a_part(data, tmp_path / "out")
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the command and its workers
    _, complaint = process.communicate(timeout=20)
    assert process.returncode == 130
    stopped = f"\nStopped. What is finished is kept in {tmp_path / 'out'}: the same command goes on from there.\n"
    assert complaint.endswith(stopped)
    assert "Traceback" not in complaint
    assert _all_gone(process.pid)
    _finish(_start(data, tmp_path / "out"))
    assert not list(tmp_path.glob("out/parts/*/.*.part"))


@needs_data
def test_a_worker_that_is_killed_ends_the_run_with_a_clear_error(data, tmp_path):
    process = _start_and_wait_for_a_part(data, tmp_path / "out")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not children.exists():
        process.kill()
        process.communicate()
        pytest.skip("this system does not list a process's children")
    workers_ = [pid for pid in children.read_text().split() if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()]
    assert len(workers_) == 2
    os.kill(int(workers_[0]), signal.SIGKILL)
    _, complaint = process.communicate(timeout=30)
    assert process.returncode == 1
    assert complaint.splitlines()[-1].startswith("Error: a worker process was ended from outside")
    assert "Traceback" not in complaint
    assert _all_gone(process.pid)
