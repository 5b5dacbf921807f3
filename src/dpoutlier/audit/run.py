"""Run an audit: its fits are dealt to processes, and what each of them saw becomes bounds on epsilon."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import as_completed
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpoutlier.audit.cases import Case
from dpoutlier.audit.confidence import attainable
from dpoutlier.audit.events import PRACTICE, Seen, bound_epsilon
from dpoutlier.audit.findings import Finding
from dpoutlier.audit.many_runs import COUNTS, FILE, SCORES, channels_of, observe
from dpoutlier.audit.one_run import Canaries, Guesses, bound_by_guesses, canaries_of, guess_coins
from dpoutlier.audit.worlds import worlds_of
from dpoutlier.processes import processes, submitted

__all__ = ["FULL", "MANY", "ONE", "QUICK", "Effort", "run_audit"]

MANY, ONE = "many runs", "one run"
DIED = (
    "a process of the audit was ended from outside, perhaps for want of memory. Run it again, if need be with --jobs 1"
)
LEAST_CANARIES = 50
FEWEST_RUNS = 4000
AIM = 0.7
"""Of epsilon: as many runs are made as let a bound of this share be expected, if that is not too many."""
CHUNK = 1000
COSTS = {COUNTS: 0.4, SCORES: 0.2, FILE: 1.6}
"""Of looking once through a channel, in milliseconds, roughly: for the progress bar."""

Watch = Callable[[str, float, float], None]


@dataclass(frozen=True)
class Effort:
    """How much is tried for one case.

    Parameters
    ----------
    most_runs : int
        Fits on each of two neighbouring data sets where that many can bring the bound to 70 % of epsilon; fewer if fewer can.
    most_in_vain : int
        The same where not even the largest number can.
    canaries : int
        In one fit, at most.
    fits : int
        With canaries; the number of guesses adds up.
    """

    most_runs: int = 160_000
    most_in_vain: int = 20_000
    canaries: int = 10_000
    fits: int = 60


FULL = Effort()
QUICK = Effort(most_runs=4_000, most_in_vain=2_000, canaries=2_000, fits=10)


class _Task(NamedTuple):
    case: int
    method: str
    what: Any
    cost: float


def run_audit(
    cases: list[Case], effort: Effort = FULL, *, jobs: int = 1, seed: int | None = None, watch: Watch | None = None
) -> list[Finding]:
    """Audit each case through all channels. Without a seed the noise is the operating system's, as for any user."""
    tasks = [task for i, case in enumerate(cases) for task in _tasks(i, case, effort, seed)]
    total, done = sum(task.cost for task in tasks), 0.0
    seen: dict[tuple[int, str], list[Any]] = defaultdict(list)
    for task, result in _results(tasks, jobs):
        seen[task.case, task.method].append(result)
        done += task.cost
        if watch is not None:
            watch(cases[task.case].label, done, total)
    return [
        one for i, case in enumerate(cases) for one in (*_of_many(case, seen[i, MANY]), *_of_one(case, seen[i, ONE]))
    ]


def _results(tasks: list[_Task], jobs: int) -> Iterator[tuple[_Task, Any]]:
    if jobs == 1:
        yield from map(_work, tasks)
        return
    with processes(jobs, DIED) as pool:
        for done in as_completed(submitted(pool, _work, tasks)):
            yield done.result()


def _work(task: _Task) -> tuple[_Task, Any]:
    if task.method == MANY:
        _, _, world, first, *_ = task.what
        return task, (world, first, observe(*task.what))
    canaries, channels, first, fits, seed = task.what
    return task, (first, [guess_coins(canaries, channels, i, seed) for i in range(first, first + fits)])


def _tasks(number: int, case: Case, effort: Effort, seed: int | None) -> Iterator[_Task]:
    channels = channels_of(case.many)
    runs, cost = runs_for(case, effort), sum(COSTS[channel] for channel in channels)
    for first in range(0, runs, CHUNK):
        some = min(CHUNK, runs - first)
        for world in (0, 1):
            yield _Task(number, MANY, (case.many, channels, world, first, some, seed), cost * some)
    canaries = canaries_for(case, effort)
    if canaries is not None:
        each = -(-effort.fits // 4)
        for first in range(0, effort.fits, each):
            fits = min(each, effort.fits - first)
            yield _Task(number, ONE, (canaries, channels, first, fits, seed), 30.0 * fits)


def runs_for(case: Case, effort: Effort) -> int:
    """Runs in each world: the least, doubled as often as it takes."""
    changed = len(worlds_of(case.many).changed(case.many.model()).ids)
    runs = min(FEWEST_RUNS, effort.most_runs)
    while attainable(changed, case.epsilon, int(runs * (1 - PRACTICE))) < AIM * case.epsilon:
        if runs >= effort.most_runs:
            return runs if case.teeth else min(runs, effort.most_in_vain)
        runs = min(2 * runs, effort.most_runs)
    return runs


def canaries_for(case: Case, effort: Effort) -> Canaries | None:
    """None where there is no room for many, or where the cells depend on what is bought."""
    arguments = case.one.arguments
    if case.one.domain().bought or arguments.get("n_hint") == "buy":
        return None
    canaries = canaries_of(case.one, effort.canaries)
    return canaries if len(canaries.places) >= LEAST_CANARIES else None


def _of_many(case: Case, results: list[tuple[int, int, dict[str, Seen]]]) -> Iterator[Finding]:
    worlds = [[seen for world, _, seen in sorted(results, key=lambda one: one[:2]) if world == own] for own in (0, 1)]
    for channel in worlds[0][0]:
        one, other = (
            Seen(*(np.concatenate(parts) for parts in zip(*(seen[channel] for seen in world), strict=True)))
            for world in worlds
        )
        bound = bound_epsilon(one, other)
        yield Finding.of(case, MANY, channel, (bound.reported, bound.certain), len(one.evidence), bound.event)


def _of_one(case: Case, results: list[tuple[int, list[dict[str, Guesses]]]]) -> Iterator[Finding]:
    fits = [fit for _, some in sorted(results, key=lambda one: one[0]) for fit in some]
    for channel in fits[0] if fits else ():
        reported, certain, made = bound_by_guesses([fit[channel] for fit in fits])
        yield Finding.of(case, ONE, channel, (reported, certain), made, "coins of canaries guessed")
