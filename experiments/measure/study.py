"""What is run: the study's size, and its tasks. A task is the unit that is finished, kept and never repeated."""

from dataclasses import dataclass, replace
from itertools import product

from experiments.measure.choice import Choice
from experiments.measure.datasets import DATASETS
from experiments.measure.public_tables import PUBLIC_TABLES
from experiments.measure.ranges import CASES
from experiments.measure.variants import BASE, VARIANTS, variant_named

TUNED = tuple(variant.name for variant in VARIANTS if variant.k is None and not variant.shared.bins)
"""The variants whose b is chosen on the test set, each for itself."""
WALKED = tuple(name for name in TUNED if name != BASE and not variant_named(name).shared.private)
"""Those of them, but for the first, that have private walks of their own."""
READ = ("endless", "point", "scaled", "ranged", "text")
"""Those of them that read the paper in another way."""
EXACT = ("point", "scaled", "ranged", "text")
"""Those of them whose grid without noise is another one."""
ATTACKED = "lymphography"
ATTACKED_AT, ATTACKED_BINS = 0.15, 3
"""The paper calls its quality on this set, at this epsilon, nearly comparable to the baselines."""


@dataclass(frozen=True)
class Study:
    """How much is run."""

    name: str
    sets: tuple[str, ...] = tuple(dataset.name for dataset in DATASETS)
    splits: int = 5
    seeds: int = 10
    reading_seeds: int = 3
    """Seeds of private walks other than those of the base reading."""
    control_seeds: int = 5
    ks: tuple[int, ...] = (3, 10, 30, 60)
    bins: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8, 9, 10)
    epsilons: tuple[float, ...] = (5, 2.5, 1.25, 0.6, 0.3, 0.15, 0.075, 0.035, 0.015)
    sweep_epsilon: float = 1.25
    """At which b is chosen. The paper does not say; its own variant is run at all epsilons, so that every answer is known."""
    answers: int = 50_000
    """Answers from each of two worlds to the attacker who repeats a query."""
    tables: tuple[str, ...] = tuple(table.name for table in PUBLIC_TABLES)
    """Other public tables, on which all detectors are compared."""
    compared_epsilons: tuple[float, ...] = (5, 1.25, 0.3, 0.075)
    range_splits: int = 3
    """Splits and seeds of each way to declare ranges."""
    range_seeds: int = 3
    range_epsilons: tuple[float, ...] = (1, 0.3)

    def seeds_of(self, variant: str) -> int:
        return self.reading_seeds if variant in READ else self.seeds


FULL = Study("full")
QUICK_TABLES = ("ecoli4", "glass6", "ionosphere", "new-thyroid1", "spectfheart", "vowel0", "wine-0", "wisconsin")
QUICK = Study(
    "quick",
    splits=2,
    seeds=2,
    reading_seeds=1,
    control_seeds=1,
    bins=(2, 3, 10),
    answers=2_000,
    tables=QUICK_TABLES,
    compared_epsilons=(5, 0.3),
    range_splits=1,
    range_seeds=1,
)
COMPARISON = "comparison"
RANGES = "ranges"


@dataclass(frozen=True)
class Task:
    """Runs that belong together. ``kind`` is a function of ``runs``."""

    kind: str
    variant: str
    dataset: str
    split: int
    ks: tuple[int, ...]
    bins: int | None = None
    epsilons: tuple[float, ...] = ()
    seeds: int = 0
    control: bool = False
    """Private runs on no rows. Runs without noise bring their control along."""
    answers: int = 0

    @property
    def key(self) -> str:
        """Names the file of the result."""
        parts = [self.kind, self.variant, self.dataset, f"split{self.split}"]
        parts += ["k" + "-".join(map(str, self.ks))] if self.ks else []
        parts += [f"b{self.bins}"] if self.bins is not None else []
        parts += ["eps" + "-".join(f"{epsilon:g}" for epsilon in self.epsilons)] if self.epsilons else []
        parts += ["control"] if self.control else []
        return "_".join(parts)


def exact_tasks(study: Study) -> list[Task]:
    """First phase, without noise. It tells k."""
    return [
        task
        for name in study.sets
        for split in range(study.splits)
        for task in (
            Task("plain", BASE, name, split, study.ks),
            *(
                Task("exact", variant, name, split, study.ks, bins)
                for variant in (BASE, "limited")
                for bins in study.bins
            ),
        )
    ]


def sweep_tasks(study: Study, k: dict[str, int], other_k: dict[str, int]) -> list[Task]:
    """Second phase, over all b. It tells b."""
    tasks = []
    for name, split, bins in product(study.sets, range(study.splits), study.bins):
        what, sweep = (name, split, (k[name],), bins), (study.sweep_epsilon,)
        tasks += [
            Task("private", BASE, *what, study.epsilons, study.seeds),
            _control(study, Task("private", BASE, *what, sweep, study.seeds)),
            *(Task("private", variant, *what, sweep, study.seeds_of(variant)) for variant in WALKED),
            *(Task("exact", variant, *what) for variant in EXACT),
        ]
        if other_k[name] != k[name]:
            tasks.append(Task("private", BASE, name, split, (other_k[name],), bins, sweep, study.reading_seeds))
    return tasks


def chosen_tasks(study: Study, choice: Choice) -> list[Task]:
    """Third phase, over all epsilons at the chosen b; and the attack."""
    tasks = []
    for name, split in product(study.sets, range(study.splits)):
        tasks += _at_chosen(study, choice, name, split)
    if ATTACKED in study.sets:
        k = (choice.k[ATTACKED],)
        tasks.append(Task("attack", BASE, ATTACKED, 0, k, ATTACKED_BINS, (ATTACKED_AT,), answers=study.answers))
    return tasks


def figure_tasks(study: Study, choice: Choice) -> list[Task]:
    """Third phase, of the paper's two figures alone: the controls of the base reading."""
    tasks = []
    for name, split in product(study.sets, range(study.splits)):
        k, bins = (choice.k[name],), choice.bins[name, BASE]
        tasks.append(_control(study, Task("private", BASE, name, split, k, bins, _rest(study), study.seeds)))
    return tasks


def _rest(study: Study) -> tuple[float, ...]:
    return tuple(epsilon for epsilon in study.epsilons if epsilon != study.sweep_epsilon)


def comparison_tasks(study: Study) -> list[Task]:
    """All detectors, on the paper's sets and on the other tables; nothing is chosen."""
    return [
        Task(COMPARISON, COMPARISON, name, split, (), None, study.compared_epsilons, study.seeds)
        for name in (*study.sets, *study.tables)
        for split in range(study.splits)
    ]


def range_tasks(study: Study) -> list[Task]:
    """Private detectors under ranges that are declared too wide, on the same sets and tables."""
    return [
        Task(RANGES, RANGES, name, split, (), None, study.range_epsilons, study.range_seeds)
        for name in (*study.sets, *study.tables)
        for split in range(study.range_splits)
    ]


def _at_chosen(study: Study, choice: Choice, name: str, split: int) -> list[Task]:
    """Tasks at the chosen b. The base reading has run every b at every epsilon already, so it needs the control only."""
    where, k, public = (name, split), (choice.k[name],), variant_named("public").k
    rest = _rest(study)
    b = {variant: choice.bins[name, variant] for variant in TUNED}
    assert public is not None
    tasks = [
        _control(study, Task("private", BASE, *where, k, bins, rest, study.seeds))
        for bins in sorted({b[BASE], b["far"], b["penalty"]})
    ]
    tasks += [Task("private", variant, *where, k, b[variant], rest, study.seeds_of(variant)) for variant in WALKED]
    if b["ranged-penalty"] != b["ranged"]:  # the same walks
        tasks.append(Task("private", "ranged", *where, k, b["ranged-penalty"], rest, study.reading_seeds))
    if choice.other_k[name] != choice.k[name]:
        other = (choice.other_k[name],)
        tasks.append(Task("private", BASE, *where, other, choice.other_bins[name], rest, study.reading_seeds))
    tasks += [
        _control(study, Task("private", variant, *where, k, b[variant], study.epsilons, study.seeds_of(variant)))
        for variant in ("point", "text", "right-scale", "declared")
    ]
    ours = [
        Task("private", "declared-point", *where, k, b["declared"], study.epsilons, study.seeds),
        Task("private", "public", *where, (public,), None, study.epsilons, study.seeds),
    ]
    return [
        *tasks,
        Task("plain", "scaled", *where, k),
        Task("plain", "declared", *where, k),
        Task("plain", "public", *where, (public,)),
        *ours,
        *(_control(study, task) for task in ours),
    ]


def _control(study: Study, task: Task) -> Task:
    return replace(task, control=True, seeds=min(task.seeds, study.control_seeds))


COST = {
    "lymphography": (0.02, 0.0012, 0.0012),
    "pima": (0.05, 0.003, 0.006),
    "wdbc": (0.08, 0.03, 0.06),
    "heart": (0.03, 0.003, 0.003),
    "adult": (0.4, 0.01, 0.25),
}
"""Seconds for a grid without noise, a private run, and a private run of the control: for order and progress only."""
COMPARED = {"adult": 0.65, "satellite": 0.5, "satimage-2": 0.5, "page-blocks0": 0.15}
"""Seconds for all methods of the comparison at one epsilon and seed; SMALL for all other sets."""
SMALL = 0.03


def cost(task: Task) -> float:
    """About the seconds that a task takes."""
    if task.kind in {COMPARISON, RANGES}:
        cases = len(CASES) if task.kind == RANGES else 1
        return COMPARED.get(task.dataset, SMALL) * task.seeds * len(task.epsilons) * cases
    exact, private, control = COST[task.dataset]
    runs = 2 * task.seeds * len(task.epsilons)
    by_kind = {
        "plain": 0.1,
        "exact": exact,
        "private": runs * (control if task.control else private),
        "attack": task.answers * 7e-4,
    }
    return by_kind[task.kind]
