"""Keyed counts in constant time: what they cost, and whether time tells two kinds of cells apart.

``python bench/constant_time.py`` prints both tables; they are also a part of ``make bench``.
"""

import time
from fractions import Fraction

import numpy as np

from dpoutlier.counts.base import STREAM, kernel_table, noisy_counts
from dpoutlier.counts.constant_time import in_constant_time
from dpoutlier.counts.keyed import KeyedCounts
from dpoutlier.kernels.counts import look_up, new_scratch
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.noise.laplace_table import guided_table
from dpoutlier.partitions.base import cell_ids
from measure import interleaved

BATCH = 512  # cells of a question
BATCHES = 4  # of each kind, so that the places of some cells in memory do not decide


def keyed(rate, occupied=10_000, cells=200_000):
    """Ids, and their counts by the quick way and in constant time; every twentieth cell is occupied."""
    ids = cell_ids(range(cells))
    law = DiscreteLaplace(Fraction(rate))
    counts = np.random.default_rng(0).integers(1, 50, occupied)
    quick = KeyedCounts(ids[:: cells // occupied].copy(), counts, bytes(range(32)), bytes(16), law)
    return ids, quick, in_constant_time(quick)


def kinds_of_cells(ids, quick):
    """Pairs of kinds that a caller might distinguish: name, cells of the one kind, cells of the other."""
    exact = np.zeros(len(ids), np.int64)
    exact[np.searchsorted(ids[:, 1], quick.ids[:, 1])] = quick.exact
    noise = noisy_counts(quick, ids).astype(np.int64) - exact
    empty, scale = exact == 0, quick.noise.scale
    size = np.abs(noise)
    return [
        ("occupied, or empty", exact > 0, empty),
        (
            "noise of at most half its scale, or of three or more",
            empty & (2 * size <= scale),
            empty & (size >= 3 * scale),
        ),
        ("past the table, or not", empty & (size >= guided_table(quick.noise.rate).n), empty & (size <= scale)),
        ("two halves of the empty cells, at random", *_halves(empty)),
    ]


def _halves(empty):
    first = np.random.default_rng(1).random(len(empty)) < 0.5
    return empty & first, empty & ~first


def compare(counts, ids, one, other, rounds=400):
    """(nanoseconds per cell by which the kinds differ, Welch's t): questions of one kind of cells, in turn with the other.

    In each round all questions are asked, in a random order. Of each question's times the fastest half is kept: an interruption
    only ever makes it slower.
    """
    rng, table, scratch, out = (
        np.random.default_rng(2),
        kernel_table(counts),
        new_scratch(BATCH, 2 * STREAM),
        np.empty(BATCH, np.int64),
    )
    questions = []
    few = min(np.count_nonzero(one), np.count_nonzero(other))  # as many different ones of each: these may be in a cache
    for kind in (one, other):
        known = rng.choice(np.flatnonzero(kind), few, replace=False)
        for _ in range(BATCHES):
            chosen = ids[rng.choice(known, BATCH)]
            questions.append((chosen[:, 1].copy(), chosen[:, 0].copy()))
    times = np.empty((len(questions), rounds))
    for r in range(-20, rounds):
        for q in rng.permutation(len(questions)):
            low, high = questions[q]
            begin = time.perf_counter_ns()
            look_up(table, low, high, scratch, out)
            if r >= 0:
                times[q, r] = time.perf_counter_ns() - begin
    kept = np.sort(times, axis=1)[:, : rounds // 2]
    a, b = kept[:BATCHES].ravel(), kept[BATCHES:].ravel()
    t = (a.mean() - b.mean()) / np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
    return abs(a.mean() - b.mean()) / BATCH, abs(float(t))


def constant_time_counts(report):
    """Nanoseconds per cell by scale and number of cells asked for at once, and what time tells."""
    rows = []
    for rate in (1, Fraction(1, 10), Fraction(1, 100), Fraction(1, 2048)):
        law_rate = Fraction(int(Fraction(rate) * 2**40), 2**40)
        ids, quick, slow = keyed(law_rate)
        low, high = ids[:, 1].copy(), ids[:, 0].copy()
        for n in (8, BATCH, 2**15):
            out, scratch = np.empty(n, np.int64), new_scratch(n, 2 * STREAM)
            repeats = max(1, 2**12 // n)

            def ask(counts, n=n, out=out, scratch=scratch, low=low, high=high, repeats=repeats):
                table = kernel_table(counts)
                for i in range(repeats):
                    look_up(table, low[i * n : (i + 1) * n], high[i * n : (i + 1) * n], scratch, out)

            found = interleaved(
                {"quick": lambda ask=ask, c=quick: ask(c), "constant time": lambda ask=ask, c=slow: ask(c)}, 21
            )
            each = [found[name] / repeats / n * 1e9 for name in ("quick", "constant time")]
            rows.append(
                [f"{float(1 / law_rate):.4g}", f"{n:,}", *(f"{one:.3g}" for one in each), f"{each[1] / each[0]:.3g}"]
            )
    report.section(
        "Keyed counts in constant time: nanoseconds per cell",
        "Both ways, asked for so many cells at once; with few cells most of the time is the call itself.",
        ["scale of the noise", "cells", "quick", "constant time", "constant time / quick"],
        rows,
    )
    ids, quick, slow = keyed(1, cells=2_000_000)
    rows = []
    for name, one, other in kinds_of_cells(ids, quick):
        found = [compare(counts, ids, one, other, 60 if report.quick else 400) for counts in (quick, slow)]
        rows.append([name, *(f"{ns:.3g} ns, t = {t:.3g}" for ns, t in found)])
    report.section(
        "Keyed counts in constant time: what time tells",
        "Two kinds of cells, asked for in turn, 512 cells at once: by how many nanoseconds per cell they differ, and Welch's t "
        "over the faster half of the times. The last line is a control: nothing tells these apart but where they are in memory.",
        ["kinds", "quick", "constant time"],
        rows,
    )


if __name__ == "__main__":
    from report import Report

    constant_time_counts(Report(None, quick=False))
