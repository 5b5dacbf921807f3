"""Processes that finish tasks. They die with their parent, and leave Ctrl-C to it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import Protocol

import pyarrow as pa

from dpoutlier.experiments.measure.attack import run_attack
from dpoutlier.experiments.measure.comparison import SCHEMA as COMPARED_SCHEMA
from dpoutlier.experiments.measure.comparison import run_comparison
from dpoutlier.experiments.measure.datasets import LabelledRows
from dpoutlier.experiments.measure.rows import table_of_rows
from dpoutlier.experiments.measure.runs import run_exact, run_plain, run_private
from dpoutlier.experiments.measure.store import Store
from dpoutlier.experiments.measure.study import COMPARISON, Task

__all__ = ["Workers", "workers"]

DIED = (
    "a worker process was ended from outside, perhaps for want of memory. What is finished is kept: run the same command again, "
    "if need be with --jobs 1"
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
    context = multiprocessing.get_context("spawn")  # a fork would share this process's threads and pipes
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(jobs, context, _start, (data, store)) as pool:
        try:
            yield lambda tasks: (done.result() for done in as_completed(_submitted(pool, tasks)))
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()  # what it was at is not kept yet, and will be run again
            if isinstance(error, BrokenProcessPool):
                raise OSError(DIED) from None
            raise


def _submitted(pool: ProcessPoolExecutor, tasks: list[Task]) -> list[Future[Task]]:
    """Processes start with the first task. Until one can ignore Ctrl-C itself, it inherits that the signal is held back."""
    held = hasattr(signal, "pthread_sigmask") and signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return [pool.submit(_finish_here, task) for task in tasks]
    finally:
        if held is not False:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)


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
        return pa.Table.from_pylist([row._asdict() for row in compared], COMPARED_SCHEMA)
    return table_of_rows(RUNS[task.kind](task, data))


_here: dict[str, tuple[Data, Store]] = {}
"""What a worker process was started with."""


def _start(data: Data, store: Store) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _here["all"] = data, store


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _finish_here(task: Task) -> Task:
    return _finish(task, *_here["all"])
