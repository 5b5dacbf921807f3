"""How k and b are chosen: as the paper did, by AUROC on the test set. That is tuning on the answers, and is marked as such."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from experiments.measure.rows import Row

DECIMALS = 3
"""Means that agree so far are a tie, and the smallest k or b among them is taken."""


@dataclass(frozen=True)
class Choice:
    """What was chosen for each data set."""

    k: dict[str, int] = field(default_factory=dict)
    """At which the walk of the private grid is best without noise."""
    bins: dict[tuple[str, str], int] = field(default_factory=dict)
    """By data set and variant."""
    other_k: dict[str, int] = field(default_factory=dict)
    """At which plain k-NN is best."""
    other_bins: dict[str, int] = field(default_factory=dict)
    """With that k, in the base reading."""


def choose_k(rows: Iterable[Row], variant: str, by: tuple[str, str] = ("Grid", "Grid-w")) -> dict[str, int]:
    """For each data set the k at which a non-private grid, basic or weighted, is best at its best b; or k-NN. Mean over splits."""
    means = _means(
        (row.dataset, row.k, (row.bins, row.algorithm), row)
        for row in rows
        if row.variant == variant and row.algorithm in by and not row.control
    )
    return {dataset: _smallest_best(by_k) for dataset, by_k in means.items()}


def choose_bins(rows: Iterable[Row], variant: str, epsilon: float, k: dict[str, int]) -> dict[str, int]:
    """For each data set the smallest b at which a private grid, basic or weighted, is best. Mean over splits and seeds."""
    means = _means(
        (row.dataset, row.bins or 0, row.algorithm, row)
        for row in rows
        if row.variant == variant
        and row.algorithm in {"DP Grid", "DP Grid-w"}
        and row.epsilon == epsilon
        and not row.control
        and row.k == k.get(row.dataset)
    )
    return {dataset: _smallest_best(by_bins) for dataset, by_bins in means.items()}


def _means(entries: Iterable[tuple[str, int, object, Row]]) -> dict[str, dict[int, list[float]]]:
    """For each data set and candidate the mean AUROC of each way to run it."""
    found: dict[str, dict[int, dict[object, list[float]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for dataset, candidate, way, row in entries:
        found[dataset][candidate][way].append(row.auroc)
    return {
        dataset: {
            candidate: [sum(runs) / len(runs) for runs in ways.values()] for candidate, ways in candidates.items()
        }
        for dataset, candidates in found.items()
    }


def _smallest_best(candidates: dict[int, list[float]]) -> int:
    best = {candidate: round(max(means), DECIMALS) for candidate, means in candidates.items()}
    return min(candidate for candidate, value in best.items() if value == max(best.values()))
