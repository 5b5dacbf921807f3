"""Chunks of rows in threads: kernels release the GIL, and what is made of a row does not depend on its chunk."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from dpoutlier._validate import bad, is_whole

__all__ = ["chunks_of", "in_chunks", "thread_count"]

LEAST_CHUNK = 64
MOST_CHUNK = 4096  # a kernel cannot be interrupted, so a chunk must not take long


def thread_count(n_jobs: int | None) -> int:
    """scikit-learn's meaning: None is 1, -1 is all cores, -2 all but one."""
    if n_jobs is None:
        return 1
    if not is_whole(n_jobs) or n_jobs == 0:
        raise bad("n_jobs", "None, a positive number of threads, or -1 for all cores", n_jobs)
    return int(n_jobs) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))


def chunks_of(n: int, threads: int, most: int = MOST_CHUNK) -> list[slice]:
    """Slices that cover range(n): several for each thread, since some points take far longer than others."""
    size = min(max(LEAST_CHUNK, -(-n // (8 * threads))), most)
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]


def in_chunks(n: int, threads: int, start: Callable[[], Callable[[slice], None]], *, most: int = MOST_CHUNK) -> None:
    """Call ``start`` once in each thread, and what it returns on slices that together cover range(n)."""
    chunks = chunks_of(n, threads, most)
    if threads == 1 or len(chunks) < 2:
        work = start()
        for chunk in chunks:
            work(chunk)
        return
    rest, lock, failed = iter(chunks), Lock(), False

    def take() -> Iterator[slice]:
        while not failed:
            with lock:
                chunk = next(rest, None)
            if chunk is None:
                return
            yield chunk

    def run() -> None:
        nonlocal failed
        try:
            work = start()
            for chunk in take():
                work(chunk)
        except BaseException:
            failed = True
            raise

    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(run) for _ in range(min(threads, len(chunks)))]:
            done.result()
