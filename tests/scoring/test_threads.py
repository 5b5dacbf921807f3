"""Chunks in threads: each once, each thread with its own buffers, errors come through."""

import threading

import pytest

from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.scoring import threads as threads_module
from dpoutlier.scoring.threads import in_chunks, thread_count


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


def sizes_of_chunks(n, threads, seconds_per_row, monkeypatch, **arguments):
    """Sizes under a clock that runs with the rows."""
    clock, sizes = [0.0], []

    def work(part):
        sizes.append(part.stop - part.start)
        clock[0] += sizes[-1] * seconds_per_row

    monkeypatch.setattr(threads_module.time, "perf_counter", lambda: clock[0])
    in_chunks(n, threads, lambda: work, **arguments)
    return sizes


def test_chunks_grow_while_they_are_short_and_shrink_where_they_are_long(monkeypatch):
    easy = sizes_of_chunks(10**6, 1, 1e-7, monkeypatch, most=65536)
    assert max(easy) == 65536
    hard = sizes_of_chunks(20_000, 1, 1e-2, monkeypatch, most=65536)
    assert hard[-2] == 64
    assert max(sizes_of_chunks(10**5, 1, 1e-9, monkeypatch)) == 4096


def test_the_last_chunks_are_shared_out(monkeypatch):
    sizes = sizes_of_chunks(10_000, 2, 1e-9, monkeypatch, most=65536)
    assert sizes[-1] <= 64
    assert len(sizes) > 8


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
    assert len(done) < 100  # of 250 and more


def test_n_jobs_means_what_it_means_in_scikit_learn():
    assert (thread_count(None), thread_count(3)) == (1, 3)
    assert thread_count(-1) >= 1
    with pytest.raises(InvalidParameterError, match="n_jobs must be"):
        thread_count(0)
