"""Run a study from where it was left: the same numbers for any number of workers, sessions and kills."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from experiments.measure.choice import Choice, choose_bins, choose_k
from experiments.measure.datasets import LabelledRows
from experiments.measure.rows import Compared, Ranged, Row, rows_of_table
from experiments.measure.store import Store, fingerprint
from experiments.measure.study import (
    COMPARISON,
    RANGES,
    TUNED,
    Study,
    Task,
    chosen_tasks,
    comparison_tasks,
    cost,
    exact_tasks,
    figure_tasks,
    range_tasks,
    sweep_tasks,
)
from experiments.measure.variants import BASE
from experiments.measure.workers import workers

Watch = Callable[[str, float, float], None]
"""Called with what is under way, the work done and the work in all, in about the seconds that one core takes."""


@dataclass(frozen=True)
class Results:
    """All that was measured."""

    study: Study
    rows: list[Row]
    choice: Choice
    attack: list[dict[str, float]]
    comparison: list[Compared]
    """All detectors side by side."""
    ranges: list[Ranged]
    """Private ones under ranges that are declared too wide."""
    seconds: float
    """Processor time of all tasks, those of earlier sessions included."""
    fingerprint: str
    """Fingerprint of settings, data, code and versions."""


def run_study(
    study: Study, data: dict[str, LabelledRows], folder: Path, jobs: int, watch: Watch, *, figures_only: bool = False
) -> Results:
    """Run what is not done yet, and return everything; with ``figures_only`` what the paper's two figures show."""
    store = Store(folder, fingerprint(study, data))
    store.open()
    rows: list[Row] = []
    tasks: list[Task] = []
    ahead = _expected_work(study, figures_only=figures_only)
    with workers(jobs, data, store) as finish:

        def run(phase: str, wanted: list[Task]) -> None:
            ahead.pop(0)
            total = sum(map(cost, [*tasks, *wanted])) + sum(ahead)
            done = sum(map(cost, tasks)) + sum(cost(task) for task in wanted if store.done(task))
            watch(phase, done, total)
            left = sorted((task for task in wanted if not store.done(task)), key=cost, reverse=True)
            for task in finish(left):
                done += cost(task)
                watch(phase, done, total)
            tasks.extend(wanted)
            for table in store.read(task for task in wanted if task.kind not in {"attack", COMPARISON, RANGES}):
                rows.extend(rows_of_table(table, Row))

        run("without noise", exact_tasks(study))
        k, other_k = choose_k(rows, "limited"), choose_k(rows, BASE, ("kNN", "wkNN"))
        if figures_only:
            run("over all b", _of_base(study, k))
            choice = Choice(k, _chosen_bins(study, rows, k))
            run("at the chosen b", figure_tasks(study, choice))
        else:
            run("over all b", sweep_tasks(study, k, other_k))
            other_bins = choose_bins(rows, BASE, study.sweep_epsilon, other_k)
            choice = Choice(k, _chosen_bins(study, rows, k), other_k, other_bins)
            run("at the chosen b", chosen_tasks(study, choice))
            run("all detectors", comparison_tasks(study))
            run("ranges that are too wide", range_tasks(study))
    attack = [
        record for table in store.read(task for task in tasks if task.kind == "attack") for record in table.to_pylist()
    ]
    compared = [
        row for table in store.read(t for t in tasks if t.kind == COMPARISON) for row in rows_of_table(table, Compared)
    ]
    ranged = [row for table in store.read(t for t in tasks if t.kind == RANGES) for row in rows_of_table(table, Ranged)]
    seconds, by_place = store.seconds(tasks), sorted(rows, key=_place)
    return Results(study, by_place, choice, attack, compared, ranged, seconds, store.fingerprint)


def _chosen_bins(study: Study, rows: list[Row], k: dict[str, int]) -> dict[tuple[str, str], int]:
    return {
        (dataset, variant): bins
        for variant in TUNED
        for dataset, bins in choose_bins(rows, variant, study.sweep_epsilon, k).items()
    }


def _of_base(study: Study, k: dict[str, int]) -> list[Task]:
    return [task for task in sweep_tasks(study, k, k) if task.variant == BASE]


def _expected_work(study: Study, *, figures_only: bool) -> list[float]:
    """Expected work of each phase. It is about the same whatever is chosen."""
    k, other_k = dict.fromkeys(study.sets, study.ks[0]), dict.fromkeys(study.sets, study.ks[-1])
    bins = {(dataset, variant): study.bins[0] for dataset in study.sets for variant in TUNED}
    choice = Choice(k, bins, other_k, dict.fromkeys(study.sets, study.bins[0]))
    if figures_only:
        phases = [exact_tasks(study), _of_base(study, k), figure_tasks(study, choice)]
    else:
        phases = [
            exact_tasks(study),
            sweep_tasks(study, k, other_k),
            chosen_tasks(study, choice),
            comparison_tasks(study),
            range_tasks(study),
        ]
    return [sum(map(cost, tasks)) for tasks in phases]


def _place(row: Row) -> tuple[object, ...]:
    """Where a row stands in the table."""
    bins, epsilon, seed = (-1 if value is None else value for value in (row.bins, row.epsilon, row.seed))
    return (row.dataset, row.variant, row.algorithm, row.control, row.k, bins, -epsilon, row.split, seed)
