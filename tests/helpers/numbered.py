"""Results in which every number is another one, so that a table, a curve or a claim that reads the wrong one is noticed."""

from functools import cache
from hashlib import sha256
from itertools import product

from experiments.measure.choice import Choice
from experiments.measure.comparison import DETECTORS, EXACT, GRID_TWIN, SYNTHETIC
from experiments.measure.quality import METRICS
from experiments.measure.ranges import CASES, FREE, METHODS
from experiments.measure.rows import Compared, Ranged, Row
from experiments.measure.runner import Results
from experiments.measure.study import TUNED
from experiments.measure.variants import VARIANTS
from made_data import TINY

K = {"lymphography": 3, "pima": 5, "wdbc": 3, "heart": 5, "adult": 3}
OTHER_K = {"lymphography": 5, "pima": 5, "wdbc": 5, "heart": 3, "adult": 3}
OTHER_BINS = {"lymphography": 10, "pima": 2, "wdbc": 2, "heart": 10, "adult": 3}
BINS = {(name, variant): TINY.bins[(i + j) % 3] for i, name in enumerate(TINY.sets) for j, variant in enumerate(TUNED)}
BY_RULE = dict(zip(TINY.epsilons, (10, 3, 3, 2, 2), strict=True))
RUN = tuple(variant.name for variant in VARIANTS if variant.name != "public")


def number(dataset, variant, algorithm, metric, *, control=False, k=None, bins=None, epsilon=None):
    """A number from .2 to .8 of its own for each of these."""
    k = K[dataset] if k is None else k
    epsilon = None if epsilon is None else float(epsilon)
    digest = sha256(repr((dataset, variant, algorithm, metric, control, k, bins, epsilon)).encode()).digest()
    return 0.2 + 0.6 * int.from_bytes(digest[:6], "big") / 2**48


@cache
def numbered():
    """All rows that a study could have, on two splits with two seeds."""
    rows = []

    def add(dataset, variant, algorithm, k, bins, epsilon):
        for control in (False, True):
            values = [
                number(dataset, variant, algorithm, metric, control=control, k=k, bins=bins, epsilon=epsilon)
                for metric in METRICS
            ]
            epsilons = None if epsilon is None else float(epsilon)
            for split, seed in product(range(2), (None,) if epsilon is None else range(2)):
                rows.append(Row(dataset, variant, algorithm, control, k, bins, epsilons, split, seed, 0.25, *values))

    for dataset in TINY.sets:
        for variant in RUN:
            for k, weighted in product((3, 5), ("", "-w")):
                add(dataset, variant, "wkNN" if weighted else "kNN", k, None, None)
                for bins in TINY.bins:
                    add(dataset, variant, f"Grid{weighted}", k, bins, None)
                    for epsilon in TINY.epsilons:
                        add(dataset, variant, f"DP Grid{weighted}", k, bins, epsilon)
        for weighted in ("", "-w"):
            add(dataset, "public", "wkNN" if weighted else "kNN", 10, None, None)
            for bins in TINY.bins:
                add(dataset, "public", f"Grid{weighted}", 10, bins, None)
            for epsilon, bins in BY_RULE.items():
                add(dataset, "public", f"DP Grid{weighted}", 10, bins, epsilon)
    return Results(
        TINY,
        rows,
        Choice(K, BINS, OTHER_K, OTHER_BINS),
        [],
        numbered_comparison(),
        numbered_ranges(),
        60.0,
        "0123456789abcdef",
    )


def compared_number(dataset, method, metric, *, control=False, epsilon=None):
    """A number from .2 to .8 of its own for each of these."""
    digest = sha256(repr((dataset, method, metric, control, epsilon)).encode()).digest()
    return 0.2 + 0.6 * int.from_bytes(digest[:6], "big") / 2**48


def numbered_comparison(study=TINY):
    """All rows that a comparison could have, on two splits with two seeds; splits and seeds differ, their mean is the number."""
    rows = []
    for dataset in (*study.sets, *study.tables):
        for method, control in (
            *((method, False) for method in (*DETECTORS, *SYNTHETIC, GRID_TWIN, *EXACT)),
            *((method, True) for method in DETECTORS),
        ):
            for epsilon in (None,) if method in EXACT else map(float, study.compared_epsilons):
                values = [
                    compared_number(dataset, method, metric, control=control, epsilon=epsilon) for metric in METRICS
                ]
                for split, seed in product(range(2), (None,) if epsilon is None or method == GRID_TWIN else range(2)):
                    moved = [
                        value + (split - 0.5) * 0.1 + ((seed or 0) - 0.5) * 0.06 * (seed is not None)
                        for value in values
                    ]
                    rows.append(Compared(dataset, method, control, epsilon, split, seed, *moved))
    return rows


def ranged_number(dataset, method, control, epsilon, case):
    """A number from .2 to .8 of its own for each of these."""
    return compared_number(dataset, (method, case), "auroc", control=control, epsilon=epsilon)


def numbered_ranges(study=TINY):
    """All rows that the measurement of declared ranges could have, on one split with one seed."""
    private = [(name, control) for name in (*METHODS, FREE) for control in (False, True)]
    private += [(name, False) for name in SYNTHETIC]
    runs = [(case, *one, float(epsilon)) for case in CASES for one in private for epsilon in study.range_epsilons]
    return [
        Ranged(*case, dataset, method, control, epsilon, 0, None if epsilon is None else 0, *[number] * 3)
        for dataset in (*study.sets, *study.tables)
        for case, method, control, epsilon in (*runs, (CASES[0], "KNN", False, None))
        for number in [ranged_number(dataset, method, control, epsilon, case)]
    ]
