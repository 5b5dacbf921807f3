"""Tasks, workers and executors are lost in the middle of a fit: Spark runs them again, and the counts stay exact."""

import os
import signal
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dpoutlier import Forest, GridKNN
from dpoutlier.model.file.manifest import arrays_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::dpoutlier.exceptions.UnsafeWarning"),
]

ROWS = 20_000
BOUNDS = {"x": (0, 1), "y": (0, 1)}
TWINS = {"grid": GridKNN(BOUNDS, bins=[50, 40], k=5), "forest": Forest(BOUNDS, n_trees=8, depth=6)}


def rows():
    """Made of whole numbers, so that Spark and numpy make the same."""
    i = np.arange(ROWS)
    return pa.table({"x": i * 7919 % 10_007 / 10_007, "y": i * 104_729 % 9973 / 9973})


def same_rows(spark):
    return spark.range(0, ROWS, numPartitions=6).selectExpr(
        "id * 7919 % 10007 / 10007D AS x", "id * 104729 % 9973 / 9973D AS y"
    )


def once(folder, event):
    """Whether this is the first time that any process comes by."""
    try:
        (folder / event).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def lose(what, folder):
    """A function of batches that passes the first one on, and is then struck, once in all its runs."""

    def struck(batches):
        note_run(folder)
        for i, batch in enumerate(batches):
            if i == 1 and once(folder, what):
                match what:
                    case "task":
                        raise RuntimeError("a task fails")
                    case "worker":
                        os.kill(os.getpid(), signal.SIGKILL)
                    case "executor":
                        os.kill(executor_of(os.getpid()), signal.SIGKILL)
            yield batch

    return struck


def noted(folder):
    """A function of batches that passes all of them on."""

    def passed(batches):
        note_run(folder)
        yield from batches

    return passed


def executor_of(process):
    """The process of Java above a worker of Python."""
    while "java" not in Path(f"/proc/{process}/comm").read_text():
        process = int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return process


def counts_of(detector):
    return {name: array.tolist() for name, array in arrays_of(detector.model_).items()}


def note_run(folder):
    from pyspark import TaskContext

    task = TaskContext.get()
    (folder / f"run-{task.partitionId()}-{task.taskAttemptId()}").touch()


def most_runs(folder):
    """How often the task that ran most often ran."""
    return max(Counter(path.name.split("-")[1] for path in folder.glob("run-*")).values())


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for the executor's process in /proc")
@pytest.mark.parametrize(
    ("twin", "what"),
    [
        ("grid", "executor"),
        *(
            pytest.param(twin, what, marks=pytest.mark.slow)
            for twin in TWINS
            for what in ("task", "worker", "executor")
            if (twin, what) != ("grid", "executor")
        ),
    ],
)
def test_what_is_lost_is_counted_again_and_nothing_twice(spark, twin, what, tmp_path):
    frame = same_rows(spark).mapInArrow(lose(what, tmp_path), "x double, y double")
    found = TWINS[twin].fit(frame)
    assert (tmp_path / what).exists()
    assert most_runs(tmp_path) > 1
    assert counts_of(found) == counts_of(TWINS[twin].fit(rows()))


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for the executor's process in /proc")
@pytest.mark.slow
@pytest.mark.parametrize("twin", TWINS)
def test_a_stage_whose_output_is_lost_runs_again(spark, twin, tmp_path):
    """The executor falls when the stage before is done: what it made in that stage is lost with it."""
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    after.mkdir()
    schema = "x double, y double"
    shuffled = same_rows(spark).mapInArrow(noted(before), schema).repartition(6, "x")
    found = TWINS[twin].fit(shuffled.mapInArrow(lose("executor", after), schema))
    assert (after / "executor").exists()
    assert most_runs(before) > 1
    assert counts_of(found) == counts_of(TWINS[twin].fit(rows()))
