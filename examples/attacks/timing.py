"""Timing: does the time of an answer tell more of the exact counts than the answer does?

A keyed model holds exact counts and computes noise when it is asked. Two such models are made whose noisy counts are the same in
every cell, so that all answers are, while one has nobody in its data and the other somebody in every cell. They are asked
the same, in random order, and the times are compared. Nothing should be found where counts take constant time
(``with_constant_time_counts``, as the server does). Where they do not, on the custodian's own machine, something may be found. A
dense model holds no exact counts; two equal ones show the error of the measurement.
"""

import gc
import math
import secrets
import sys
import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import stats

import pictures
from chances import percent
from command import AS_PROMISED, TOO_MUCH, Finding, main, print_table
from dpoutlier import DPGridKNN, FittedDetector
from dpoutlier.counts.base import noisy_counts
from dpoutlier.counts.dense import DenseCounts
from dpoutlier.counts.keyed import KeyedCounts
from dpoutlier.detectors.constant_time import with_constant_time_counts
from dpoutlier.partitions.base import cell_ids
from people import expected

BINS = 2
CELLS = BINS * BINS
SIGNIFICANCE, POWER = 1e-3, 0.99
REFUTED = 1e-6  # a p below this, with constant time, is not chance
TRIMMED = 0.2  # of the differences, at either end: an interruption must not decide
REPEATS = 10  # times that either model of a pair is asked
FASTEST = 3  # of these, the number that counts: interruptions only ever add
WAYS = {
    "dense": "dense: no exact counts",
    "quick": "keyed, as on your own machine",
    "constant": "keyed, in constant time",
}
PAIRS = {"dense": 400, "quick": 400, "constant": 1_000}
POINTS = 1_000  # of a query: each looks at its own cell, where it finds enough


class Comparison(NamedTuple):
    """What a set of differences tells, in their own unit."""

    difference: float
    error: float
    degrees: float

    @property
    def p(self):
        """How often pure chance gives a difference as large: the t-test of a trimmed mean (Tukey and McLaughlin)."""
        return float(2 * stats.t.sf(abs(self.difference) / self.error, self.degrees))

    def interval(self, level=1 - SIGNIFICANCE):
        reach = stats.t.isf((1 - level) / 2, self.degrees) * self.error
        return self.difference - reach, self.difference + reach

    @property
    def detectable(self):
        """The true difference that would be found, at p < SIGNIFICANCE, with probability POWER."""
        return float((stats.t.isf(SIGNIFICANCE / 2, self.degrees) + stats.t.ppf(POWER, self.degrees)) * self.error)


def compare(differences):
    """The trimmed mean of independent differences, with its standard error."""
    ordered = np.sort(differences)
    n, cut = len(ordered), int(TRIMMED * len(ordered))
    kept = ordered[cut : n - cut]
    winsorized = np.clip(ordered, kept[0], kept[-1])
    error = winsorized.std(ddof=1) / ((1 - 2 * cut / n) * math.sqrt(n))
    return Comparison(float(kept.mean()), float(error), len(kept) - 1)


class Pair(NamedTuple):
    """Two keyed counts with the same noisy counts: nobody in any cell, and somebody in every cell."""

    empty: KeyedCounts
    full: KeyedCounts
    noisy: np.ndarray


def pairs_of_counts(law):
    """Keys are drawn, and those kept whose noise is positive in every cell, beside one whose noise is smaller in every cell.

    People make up for the difference, so the noisy counts are the same.
    """
    ids, nobody, salt = cell_ids(range(CELLS)), np.zeros(0, np.int64), bytes(16)
    keys = [secrets.token_bytes(32) for _ in range(4_000)]
    noise = np.array([noisy_counts(KeyedCounts(ids[:0], nobody, key, salt, law), ids) for key in keys]).astype(np.int64)
    found = []
    for larger in np.flatnonzero((noise > 0).all(axis=1)):
        smaller = int(np.argmax((noise < noise[larger]).all(axis=1)))
        people = noise[larger] - noise[smaller]
        if people.min() > 0:
            empty = KeyedCounts(ids[:0], nobody, keys[larger], salt, law)
            found.append(Pair(empty, KeyedCounts(ids, people, keys[smaller], salt, law), noise[larger]))
    return found


def detectors(pair, way, model):
    """Both models of a pair, made again each time, so that their place in memory does not decide."""
    if way == "dense":
        return [FittedDetector(replace(model, counts=DenseCounts(pair.noisy.copy()))) for _ in range(2)]
    both = [FittedDetector(replace(model, counts=replace(counts))) for counts in (pair.empty, pair.full)]
    return both if way == "quick" else [with_constant_time_counts(one) for one in both]


def times(way, blocks, rng):
    """Nanoseconds per query: for each block, of a new pair of models, the mean of the fastest FASTEST of either's times."""
    with expected():
        fitted = DPGridKNN(0.25, features=(0, 1), bins=BINS, k=1, counts="keyed").fit(np.empty((0, 2)))
    model = fitted.model_
    pairs, points = pairs_of_counts(model.counts.noise), rng.random((POINTS, 2))
    found, taken = np.empty((blocks, 2)), np.empty((2, REPEATS))
    for block in range(-3, blocks):
        both = detectors(pairs[block % len(pairs)], way, model)
        order = rng.permutation(2)
        answers = [both[which].outlier_scores(points) for which in order]  # fills the caches
        assert (answers[0] == answers[1]).all()
        for repeat in range(REPEATS):
            for which in rng.permutation(2):
                begin = time.perf_counter_ns()
                both[which].outlier_scores(points)
                taken[which, repeat] = time.perf_counter_ns() - begin
        if block >= 0:
            found[block] = np.sort(taken, axis=1)[:, :FASTEST].mean(axis=1)
    return found


def measure(settings):
    rng, found = np.random.default_rng(settings.seed), {}
    gc.disable()
    try:
        for way in WAYS:
            found[way] = times(way, settings.pick(PAIRS[way], 80), rng)
    finally:
        gc.enable()
    return {way: (taken, compare(taken[:, 1] - taken[:, 0])) for way, taken in found.items()}


def report(measured):
    rows = []
    for way, (taken, found) in measured.items():
        each, query = 1 / POINTS, float(np.median(taken))
        low, high = (each * end for end in found.interval())
        rows.append(
            [
                WAYS[way],
                f"{len(taken):,}",
                f"{query / 1e3:,.0f} us",
                f"{each * query:.0f} ns",
                f"{each * found.difference:+.2f} ns ({low:+.2f} to {high:+.2f})",
                f"{found.p:.1g}",
                f"{each * found.detectable:.2f} ns, {percent(found.detectable / query, 2)}",
            ]
        )
    print_table(
        "Timing: somebody in every cell, or nobody, behind the same noisy counts",
        ["way", "pairs", "query", "a cell", "more if full, a cell (99.9 %)", "p", "would be found in 99 of 100 runs"],
        rows,
    )


def summary(measured):
    said = []
    for way in ("quick", "constant"):
        taken, found = measured[way]
        said.append(f"{found.difference / POINTS:+.2f} ns of {np.median(taken) / POINTS:.0f}, p = {found.p:.1g}")
    verdict = AS_PROMISED if measured["constant"][1].p >= REFUTED else TOO_MUCH
    return Finding("timing", *said, f"p above {SIGNIFICANCE:g}", verdict)


def draw(measured, out):
    figure = pictures.new_figure(15, 4.7)
    left, middle, right = figure.subplots(1, 3, width_ratios=[1, 1, 1.25])
    for axes, way in ((left, "quick"), (middle, "constant")):
        draw_times(axes, measured[way][0] / POINTS)
        pictures.title(
            axes,
            f"{WAYS[way][0].upper()}{WAYS[way][1:]}",
            f"times of {len(measured[way][0]):,} pairs with the same noisy counts",
        )
    draw_differences(right, measured)
    return pictures.save(figure, out, "timing")


def draw_times(axes, taken):
    low, high = np.quantile(taken, [0.001, 0.94])
    edges = np.linspace(low - 0.05 * (high - low), high, 46)
    for which, colour, label in (
        (0, pictures.GREEN, "nobody in any cell"),
        (1, pictures.PURPLE, "somebody in every cell"),
    ):
        axes.hist(taken[:, which], edges, histtype="stepfilled", color=colour, alpha=0.35)
        axes.hist(taken[:, which], edges, histtype="step", color=colour, lw=1.8, label=label)
        axes.axvline(np.median(taken[:, which]), color=colour, lw=1.6, ls=(0, (3, 2)), ymax=0.8)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(0, axes.get_ylim()[1] * 1.28)
    axes.set_xlabel("nanoseconds for each cell")
    axes.set_ylabel("models")
    axes.legend(loc="upper right")


def draw_differences(axes, measured):
    labels = []
    for height, (way, (_, found)) in enumerate(reversed(measured.items())):
        colour = pictures.BROKEN if way == "quick" else pictures.OURS
        low, high = (end / POINTS for end in found.interval())
        reach = found.detectable / POINTS
        axes.fill_between([-reach, reach], height - 0.28, height + 0.28, color="#E6EBEF", lw=0)
        axes.plot(found.difference / POINTS, height, "o", color=colour, markersize=8)
        axes.plot([low, high], [height] * 2, color=colour, lw=2.4, solid_capstyle="butt")
        name = WAYS[way].replace(": ", ",\n").replace(", ", ",\n")
        labels.append(f"{name}\n{found.difference / POINTS:+.2f} ns, p = {found.p:.1g}")
    axes.fill_between(
        [], [], color="#E6EBEF", label="a true difference outside would be\nfound in 99 of 100 runs (p < 0.001)"
    )
    axes.axvline(0, color=pictures.INK, lw=0.9, ymax=0.82)
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-0.5, len(measured) + 0.1)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("somebody in every cell, less nobody (ns for each cell)")
    axes.legend(loc="upper right")
    pictures.title(axes, "What the exact counts cost in time", "bars: 99.9 % intervals of the difference")


if __name__ == "__main__":
    main(sys.modules[__name__])
