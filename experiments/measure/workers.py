"""Processes that finish tasks."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from typing import Protocol

import pyarrow as pa

from experiments.measure.attack import run_attack
from experiments.measure.comparison import run_comparison
from experiments.measure.datasets import LabelledRows
from experiments.measure.ranges import run_ranges
from experiments.measure.rows import Compared, Ranged, Row, table_of_rows
from experiments.measure.runs import run_exact, run_plain, run_private
from experiments.measure.store import Store
from experiments.measure.study import COMPARISON, RANGES, Task

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
    """Work in ``jobs`` processes. With one job, in this process itself."""
    if jobs == 1:
        yield lambda tasks: (_finish(task, data, store) for task in tasks)
        return
    context = multiprocessing.get_context("spawn")  # a fork would share this process's threads and locks
    line, held = context.Pipe(duplex=False)  # silent: it breaks when this process leaves, in whatever way
    with ProcessPoolExecutor(jobs, context, _start, (line, data, store)) as pool, held:

        def finish(tasks: list[Task]) -> Iterator[Task]:
            with _ctrl_c_later():
                submitted = [pool.submit(_finish_here, task) for task in tasks]
            return (done.result() for done in as_completed(submitted))

        try:
            yield finish
        except BrokenProcessPool:
            raise OSError(DIED) from None


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Processes that start in this block ignore Ctrl-C: only this process stops the work."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
    if task.kind == RANGES:
        ranged = run_ranges(task.dataset, task.split, task.epsilons, task.seeds, data)
        return table_of_rows(ranged, Ranged)
    return table_of_rows(RUNS[task.kind](task, data), Row)


_here: dict[str, tuple[Data, Store]] = {}
"""What a worker process was started with."""


def _start(line: "Connection[None, None]", data: Data, store: Store) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(line,), daemon=True).start()
    _here["all"] = data, store


def _end_with(line: "Connection[None, None]") -> None:
    wait([line])
    os._exit(1)  # what is under way is lost


def _finish_here(task: Task) -> Task:
    return _finish(task, *_here["all"])
