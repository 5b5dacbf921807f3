"""Processes that finish tasks."""

import time
from collections.abc import Iterator
from concurrent.futures import as_completed
from contextlib import contextmanager
from typing import Protocol

import pyarrow as pa

from dpoutlier.audit.processes import processes, submitted
from experiments.measure.attack import run_attack
from experiments.measure.comparison import run_comparison
from experiments.measure.datasets import LabelledRows
from experiments.measure.rows import Compared, Row, table_of_rows
from experiments.measure.runs import run_exact, run_plain, run_private
from experiments.measure.store import Store
from experiments.measure.study import COMPARISON, Task

__all__ = ["Workers", "workers"]

DIED = (
    "a worker process was ended from outside, perhaps for want of memory. What is finished is kept: run the same command again, "
    "if need be with --n-jobs 1"
)
RUNS = {"plain": run_plain, "exact": run_exact, "private": run_private}
Data = dict[str, LabelledRows]


class Workers(Protocol):
    """Finishes tasks and keeps their results, in any order; yields each when it is done."""

    def __call__(self, tasks: list[Task]) -> Iterator[Task]: ...


@contextmanager
def workers(jobs: int, data: Data, store: Store) -> Iterator[Workers]:
    """So many processes; with one job this process itself."""
    if jobs == 1:
        yield lambda tasks: (_finish(task, data, store) for task in tasks)
        return
    with processes(jobs, DIED, _start, (data, store)) as pool:
        yield lambda tasks: (done.result() for done in as_completed(submitted(pool, _finish_here, tasks)))


def _finish(task: Task, data: Data, store: Store) -> Task:
    begin = time.process_time()
    try:
        table = _result(task, data[task.dataset])
    except Exception as error:
        error.add_note(f"in {task.key}")
        raise
    store.keep(task, table, time.process_time() - begin)
    return task


def _result(task: Task, data: LabelledRows) -> pa.Table:
    if task.kind == "attack":
        return run_attack(task, data)
    if task.kind == COMPARISON:
        compared = run_comparison(task.dataset, task.split, task.epsilons, task.seeds, data)
        return table_of_rows(compared, Compared)
    return table_of_rows(RUNS[task.kind](task, data), Row)


_here: dict[str, tuple[Data, Store]] = {}
"""What a worker process was started with."""


def _start(data: Data, store: Store) -> None:
    _here["all"] = data, store


def _finish_here(task: Task) -> Task:
    return _finish(task, *_here["all"])
