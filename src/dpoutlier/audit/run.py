"""Run an audit: its fits are dealt to processes, and what each of them saw becomes bounds on epsilon."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import as_completed
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dpoutlier.audit.cases import EPSILONS_WITH_POWER, Case
from dpoutlier.audit.confidence import attainable, attainable_by_guesses
from dpoutlier.audit.events import PRACTICE, Seen, bound_epsilon
from dpoutlier.audit.findings import Finding
from dpoutlier.audit.many_runs import COUNTS, FILE, SCORES, observe
from dpoutlier.audit.one_run import Guesses, bound_by_guesses, canaries_of, guess_coins
from dpoutlier.audit.processes import processes, submitted
from dpoutlier.audit.worlds import worlds_of

MANY, ONE = "many runs", "one run"
DIED = "a process of the audit was ended from outside, perhaps because memory ran out. Run it again, with --n-jobs 1 if necessary"
FEWEST, FEWEST_FITS, COINS_ELSEWHERE = 1000, 5, 10_000
FEW_CELLS, MIN_RUNS = 4096, 100
"""Where a dense model has more cells, as many times fewer fits are made, but not fewer than this."""
AIM, ENOUGH = 0.78, 0.74
"""Shares of epsilon. There are as many runs as are needed to expect a bound of the first share. From the second share on, a bound
hardly ever misses half of epsilon by chance: that is about four times its spread away."""
CHUNK = FEWEST
COSTS = {COUNTS: 0.4, SCORES: 0.2, FILE: 1.6}
"""Rough time to look once through a channel, in milliseconds, for the progress bar."""

Watch = Callable[[str, float, float], None]


@dataclass(frozen=True)
class Effort:
    """How much is tried for one case.

    Parameters
    ----------
    most_runs : int
        Largest number of fits on each of two neighbouring data sets, if that is enough to see half of epsilon.
    most_elsewhere : int
        The same in all other cases.
    most_files : int
        Largest number of these runs in which the file is written and read; fewer if fewer are enough.
    canaries : int
        Largest number of canaries in one fit.
    most_coins : int
        Largest number of canaries over all fits; fewer if fewer are enough.
    patient : bool
        Whether models of many cells are fitted as often as others.
    """

    most_runs: int = 32_000
    most_elsewhere: int = 1_000
    most_files: int = 2_000
    canaries: int = 10_000
    most_coins: int = 520_000
    patient: bool = False


FULL = Effort()
QUICK = Effort(most_runs=4_000, most_elsewhere=500, most_files=500, canaries=2_000, most_coins=8_000)


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
            case = cases[task.case]
            watch(f"{case.label}, epsilon {case.epsilon:g}", done, total)
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
    configuration, wanted, by_score, channels, first, fits, seed = task.what
    canaries = _canaries(configuration, wanted, by_score=by_score)
    if not len(canaries.places):
        return task, (first, [])
    return task, (first, [guess_coins(canaries, channels, i, seed) for i in range(first, first + fits)])


_canaries = lru_cache(maxsize=2)(canaries_of)


def _tasks(number: int, case: Case, effort: Effort, seed: int | None) -> Iterator[_Task]:
    channels = (COUNTS, SCORES) if case.many.counts == "keyed" else (COUNTS, SCORES, FILE)  # a secret file is not seen
    runs, files = runs_for(case, effort)
    slow = 1.0 if effort.patient else _effort_of_a_fit(case)
    if slow > 1:
        runs, files = (max(int(wanted / slow), min(wanted, MIN_RUNS)) for wanted in (runs, files))
    for first in range(0, runs, CHUNK):
        own = channels if first < files else tuple(name for name in channels if name != FILE)
        some, cost = min(CHUNK, runs - first), sum(COSTS[channel] for channel in own)
        for world in (0, 1):
            yield _Task(number, MANY, (case.many, own, world, first, some, seed), cost * some)
    if case.one.estimates_cells:  # where canaries would lie is not known beforehand
        return
    coins = coins_for(case, effort)
    by_counts = tuple(name for name in channels if name != SCORES or case.by_score is None)
    for configuration, by_score, own in ((case.one, False, by_counts), (case.by_score, True, (SCORES,))):
        if configuration is not None:
            wanted = min(effort.canaries, coins)
            room = len(_canaries(configuration, wanted, by_score=by_score).places) if by_score else wanted // 3
            fits = max(int(coins / max(room, 1) / slow), FEWEST_FITS)
            yield from _fits(number, (configuration, wanted, by_score, own), fits, seed)


def _fits(number: int, what: tuple[Any, ...], fits: int, seed: int | None) -> Iterator[_Task]:
    """The tasks of ``fits`` fits with canaries: two tasks or more."""
    each = min(-(-fits // 2), CHUNK)
    for first in range(0, fits, each):
        some = min(each, fits - first)
        yield _Task(number, ONE, (*what, first, some, seed), 300 + 10.0 * some if some < CHUNK else 2.0 * some)


def runs_for(case: Case, effort: Effort) -> tuple[int, int]:
    """Runs in each world, and in how many of them the file is looked at."""
    changed = _changed(case)

    def reached(runs: int) -> float:
        return attainable(changed, case.epsilon, int(runs * (1 - PRACTICE)))

    few = min(effort.most_elsewhere, effort.most_runs)
    if not _asked(case):
        return few, min(FEWEST, few)
    runs = _enough(case, reached, effort.most_runs) or few
    return runs, min(_enough(case, reached, effort.most_files) or FEWEST, runs)


def coins_for(case: Case, effort: Effort) -> int:
    """Canaries over all fits."""
    changed = _changed(case)

    def reached(coins: int) -> float:
        return attainable_by_guesses(changed, case.epsilon, int(coins * (1 - PRACTICE)))

    if not _asked(case):
        return min(COINS_ELSEWHERE, effort.most_coins)
    return _enough(case, reached, effort.most_coins) or effort.most_coins


def _enough(case: Case, reached: Callable[[int], float], most: int) -> int | None:
    """A number that is enough for the bound aimed at: FEWEST, doubled until it is. None if that is more than ``most``."""
    number = FEWEST
    while reached(number) < AIM * case.epsilon:
        number *= 2
        if number > most:
            return None
    return min(number, most)


def _effort_of_a_fit(case: Case) -> float:
    """How many times as long a fit takes as one of few cells, roughly; by the number of cells, so that an audit can be repeated."""
    return max(case.many.model().partition.n_cells / FEW_CELLS, 1.0) if case.many.counts == "dense" else 1.0


def _asked(case: Case) -> bool:
    """Whether half of epsilon is to be seen."""
    return case.has_power and EPSILONS_WITH_POWER[0] <= case.epsilon <= EPSILONS_WITH_POWER[1]


def _changed(case: Case) -> int:
    return len(worlds_of(case.many).changed(case.many.model()).ids)


def _of_many(case: Case, results: list[tuple[int, int, dict[str, Seen]]]) -> Iterator[Finding]:
    worlds = [[seen for world, _, seen in sorted(results, key=lambda one: one[:2]) if world == own] for own in (0, 1)]
    for channel in worlds[0][0]:
        one, other = (_joined([seen[channel] for seen in world if channel in seen]) for world in worlds)
        bound, runs = bound_epsilon(one, other), len(one.evidence)
        sharp = attainable(_changed(case), case.epsilon, int(runs * (1 - PRACTICE))) >= ENOUGH * case.epsilon
        yield Finding.of(case, MANY, channel, (bound.reported, bound.certain), runs, bound.event, sharp=sharp)


def _joined(parts: list[Seen]) -> Seen:
    return Seen(np.concatenate([part.evidence for part in parts]), np.concatenate([part.labels for part in parts]))


def _of_one(case: Case, results: list[tuple[int, list[dict[str, Guesses]]]]) -> Iterator[Finding]:
    fits: dict[str, list[Guesses]] = defaultdict(list)
    for _, some in sorted(results, key=lambda one: one[0]):
        for fit in some:
            for channel, guesses in fit.items():
                fits[channel].append(guesses)
    for channel, own in fits.items():
        reported, certain, made = bound_by_guesses(own)
        yield Finding.of(case, ONE, channel, (reported, certain), made, "coins of canaries guessed", sharp=True)
