"""Times side by side: all contestants in turn, round after round, and the median of each."""

import statistics
import time


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def interleaved(contestants, rounds=5):
    """Median seconds of each function. The order turns from round to round; one call before it all warms up."""
    for function in contestants.values():
        function()
    names, times = list(contestants), {name: [] for name in contestants}
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            times[name].append(seconds(contestants[name]))
    return {name: statistics.median(found) for name, found in times.items()}


def per_point(scorers, points, budget=0.3, most=500_000):
    """Median seconds per point of each scorer, each on as many points as it manages in about ``budget`` seconds."""
    sizes = {}
    for name, score in scorers.items():
        size = 8
        score(points[:size])  # compile, build, load
        while size < min(most, len(points)) and (taken := seconds(lambda s=score, n=size: s(points[:n]))) < budget / 4:
            size = min(most, len(points), size * max(2, int(budget / 4 / max(taken, 1e-6))))
        sizes[name] = size
    runs = {name: (lambda s=score, n=sizes[name]: s(points[:n])) for name, score in scorers.items()}
    return {name: found / sizes[name] for name, found in interleaved(runs, rounds=9).items()}
