"""Processes that work off tasks. They die with their parent, and leave Ctrl-C to it."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


@contextmanager
def processes(jobs: int, died: str) -> Iterator[ProcessPoolExecutor]:
    """A pool of ``jobs`` processes. ``died`` is the error if one is ended from outside."""
    context = multiprocessing.get_context("spawn")  # a fork would share this process's threads and pipes
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(jobs, context, _begin) as pool:
        try:
            yield pool
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()  # what it was at is lost
            if isinstance(error, BrokenProcessPool):
                raise OSError(died) from None
            raise


def submitted(pool: ProcessPoolExecutor, work: Callable[[Task], Result], tasks: Iterable[Task]) -> list[Future[Result]]:
    """Processes start with the first task. Until one can ignore Ctrl-C itself, it inherits that the signal is held back."""
    held = hasattr(signal, "pthread_sigmask") and signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return [pool.submit(work, task) for task in tasks]
    finally:
        if held is not False:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
