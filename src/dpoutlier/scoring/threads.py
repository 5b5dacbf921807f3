"""Chunks of points in threads: kernels release the GIL, and a point's score does not depend on its chunk."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from dpoutlier._validate import bad, is_whole

__all__ = ["in_chunks", "thread_count"]

LEAST_CHUNK = 64
MOST_CHUNK = 4096  # a kernel cannot be interrupted, so a chunk must not take long


def thread_count(n_jobs: int | None) -> int:
    """scikit-learn's meaning: None is 1, -1 is all cores, -2 all but one."""
    if n_jobs is None:
        return 1
    if not is_whole(n_jobs) or n_jobs == 0:
        raise bad("n_jobs", "None, a positive number of threads, or -1 for all cores", n_jobs)
    return int(n_jobs) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))


def in_chunks(n: int, threads: int, work: Callable[[slice], None]) -> None:
    """Call ``work`` on slices that cover range(n)."""
    size = min(max(LEAST_CHUNK, -(-n // (4 * threads))), MOST_CHUNK)
    chunks = [slice(first, min(first + size, n)) for first in range(0, n, size)]
    if threads == 1 or len(chunks) < 2:
        for chunk in chunks:
            work(chunk)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, chunks))
