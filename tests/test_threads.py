"""Chunks in threads: each once, each thread with its own buffers, errors come through."""

import threading

import pytest

from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.scoring.threads import chunks_of, in_chunks, thread_count


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000, 100_000])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_row_is_worked_on_once(n, threads):
    seen, starts, lock = [0] * n, [], threading.Lock()

    def start():
        with lock:
            starts.append(threading.get_ident())

        def work(part):
            for i in range(part.start, part.stop):
                seen[i] += 1

        return work

    in_chunks(n, threads, start)
    assert seen == [1] * n
    assert 1 <= len(starts) <= threads


def test_chunks_are_never_so_large_that_they_cannot_be_interrupted():
    assert max(part.stop - part.start for part in chunks_of(10**6, 1)) <= 4096
    assert len(chunks_of(10**5, 4)) >= 16  # enough to share out


def test_an_error_in_a_thread_stops_all_of_them_and_is_raised():
    done = []

    def start():
        def work(part):
            done.append(part)
            if part.start >= 64:
                raise ZeroDivisionError

        return work

    with pytest.raises(ZeroDivisionError):
        in_chunks(10**6, 2, start)
    assert len(done) < 200  # of 245


def test_n_jobs_means_what_it_means_in_scikit_learn():
    assert (thread_count(None), thread_count(3)) == (1, 3)
    assert thread_count(-1) >= 1
    with pytest.raises(InvalidParameterError, match="n_jobs must be"):
        thread_count(0)
