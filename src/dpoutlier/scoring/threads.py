"""Chunks of rows in threads: kernels release the GIL, and what is made of a row does not depend on its chunk."""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from dpoutlier._validate import is_whole, parameter_error

MIN_CHUNK, FIRST_CHUNK, MAX_CHUNK = 64, 512, 4096
SHORT, LONG = 0.02, 0.2  # seconds


def thread_count(n_jobs: int | None) -> int:
    """scikit-learn's meaning: None is 1, -1 is all cores, -2 all but one."""
    if n_jobs is None:
        return 1
    if not is_whole(n_jobs) or n_jobs == 0:
        raise parameter_error("n_jobs", "None, a positive number of threads, or -1 for all cores", n_jobs)
    return int(n_jobs) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))


def in_chunks(n: int, threads: int, start: Callable[[], Callable[[slice], None]], *, most: int = MAX_CHUNK) -> None:
    """Call ``start`` once in each thread, and what it returns on slices that together cover range(n).

    Slices grow while they take little time, up to ``most``, and shrink when they take long: some points take a thousand times as
    long as others, a kernel cannot be interrupted, and to call one costs as much as to score a thousand easy points.
    """
    lock, taken, failed = Lock(), 0, False

    def take(size: int) -> slice | None:
        nonlocal taken
        with lock:
            if failed or taken >= n:
                return None
            fair = max((n - taken) // (2 * threads), MIN_CHUNK) if threads > 1 else n
            part = slice(taken, min(n, taken + min(size, fair)))
            taken = part.stop
            return part

    def run() -> None:
        nonlocal failed
        size = min(FIRST_CHUNK, most)
        try:
            work = start()
            while (part := take(size)) is not None:
                begin = time.perf_counter()
                work(part)
                took = time.perf_counter() - begin
                size = min(4 * size, most) if took < SHORT else max(size // 2, MIN_CHUNK) if took > LONG else size
        except BaseException:
            failed = True
            raise

    threads = min(threads, -(-n // MIN_CHUNK))
    if threads <= 1:
        run()
        return
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(run) for _ in range(threads)]:
            done.result()
