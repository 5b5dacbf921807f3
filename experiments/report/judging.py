"""How words such as *nearly comparable* are judged by numbers: one tolerance, for and against every claim.

Two results are comparable if they differ by at most the tolerance. A larger difference is notable. "A is better than B" fails if B
leads notably somewhere, or if A leads notably nowhere. Three claims about who is ahead also count smaller leads: *best in nearly
all cases*, *sometimes better* and *slightly better*.

"Our approach" is the basic private grid or the weighted one, whichever is better for the claim.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import mean

from experiments.measure.quality import METRICS
from experiments.report.view import View
from experiments.report.wording import decimals, title_of

EXACT = 1e-9
"""Rounding of sums is no difference."""
ACCEPTABLE = 0.7
"""AUROC from which a detector is commonly called acceptable (Hosmer and Lemeshow, Applied Logistic Regression)."""
NEARLY_ALL = 0.9
SMALL = 5  # half of the largest b
METRIC_NAMES = dict(zip(METRICS, ("AUROC", "AP", "P@n"), strict=True))
PAIRS = {"basic": ("kNN", "Grid"), "weighted": ("wkNN", "Grid-w")}
"""Without a grid, and with one."""


@dataclass(frozen=True)
class Finding:
    """Whether a claim holds, and by what figure."""

    holds: bool
    figure: str


Judge = Callable[[View], Finding]


def _each(values: dict[str, float]) -> str:
    return ", ".join(f"{title_of(dataset)} {decimals(value)}" for dataset, value in values.items())


def _notable(tolerance: float, *sets: Iterable[float]) -> bool:
    """Whether on each data set some difference is notable, and on none is one the other way."""
    each = [list(differences) for differences in sets]
    return all(min(values) >= -tolerance - EXACT and max(values) > tolerance + EXACT for values in each)


def comparable(dataset: str, metrics: tuple[str, ...], baselines: tuple[str, ...], epsilon: float) -> Judge:
    """The better private grid is at most the tolerance below each baseline in each metric."""

    def worst(view: View, private: str) -> tuple[float, str]:
        gaps = []
        for metric in metrics:
            mine = view.value(dataset, private, metric, epsilon=epsilon)
            for baseline in baselines:
                other = view.value(dataset, baseline, metric, epsilon=epsilon)
                text = f"{METRIC_NAMES[metric]} {decimals(mine)} against {decimals(other)} of {baseline}"
                gaps.append((other - mine, text))
        return max(gaps)

    def judge(view: View) -> Finding:
        found = {kind: worst(view, f"DP {grid}") for kind, (_, grid) in PAIRS.items()}
        kind = min(found, key=lambda name: found[name][0])
        gap, text = found[kind]
        return Finding(gap <= view.tolerance + EXACT, f"worst gap {decimals(gap)} ({kind}): {text}")

    return judge


def as_good_on_each(sets: tuple[str, ...], epsilon: float | None = None) -> Judge:
    """The better grid's AUROC is at most the tolerance below that of (w)k-NN, on each of these sets: private, or without noise."""

    def judge(view: View) -> Finding:
        found = {
            kind: {
                dataset: view.value(dataset, plain, epsilon=epsilon)
                - view.value(dataset, grid if epsilon is None else f"DP {grid}", epsilon=epsilon)
                for dataset in sets
            }
            for kind, (plain, grid) in PAIRS.items()
        }
        kind = min(found, key=lambda name: max(found[name].values()))
        gaps = found[kind]
        below = "k-NN" if kind == "basic" else "wk-NN"
        return Finding(max(gaps.values()) <= view.tolerance + EXACT, f"AUROC below {below} by ({kind}): {_each(gaps)}")

    return judge


def plain_is_best(view: View) -> Finding:
    """Over all sets and b, basic and weighted: no grid, private or not, is above plain k-NN."""
    study, leads = view.summary.study, []
    for dataset in study.sets:
        for plain, grid in PAIRS.values():
            top = view.value(dataset, plain)
            for bins in study.bins:
                exact = view.value(dataset, grid, bins=bins)
                private = view.value(dataset, f"DP {grid}", bins=bins, epsilon=view.sweep_epsilon)
                leads.append(top - max(exact, private))
    best, near = (sum(lead >= -more - EXACT for lead in leads) for more in (0.0, view.tolerance))
    return Finding(
        best >= NEARLY_ALL * len(leads),
        f"best in {best} of {len(leads)} cases, within {view.tolerance:g} of the best in {near}",
    )


def only_adult_fails(view: View) -> Finding:
    """The best AUROC of the six algorithms, the private ones at their largest epsilon."""
    study, best = view.summary.study, {}
    for dataset in study.sets:
        exact = [view.value(dataset, algorithm) for pair in PAIRS.values() for algorithm in pair]
        private = [view.value(dataset, f"DP {grid}", epsilon=max(study.epsilons)) for _, grid in PAIRS.values()]
        best[dataset] = max(exact + private)
    above = {dataset: value - ACCEPTABLE for dataset, value in best.items()}
    holds = all((-lead if dataset == "adult" else lead) >= -view.tolerance - EXACT for dataset, lead in above.items())
    holds &= above["adult"] == min(above.values())
    return Finding(holds, "best AUROC: " + _each(best))


def modest_at_two(view: View) -> Finding:
    """On every set, basic and weighted."""
    losses = {
        dataset: max(view.value(dataset, plain) - view.value(dataset, grid, bins=2) for plain, grid in PAIRS.values())
        for dataset in view.summary.study.sets
    }
    return Finding(max(losses.values()) <= 2 * view.tolerance + EXACT, "larger loss of the two: " + _each(losses))


def _losses_from_three(view: View, dataset: str) -> list[float]:
    """AUROC of plain k-NN minus that of the grid, for each b from 3 on, basic and weighted."""
    return [
        view.value(dataset, plain) - view.value(dataset, grid, bins=bins)
        for plain, grid in PAIRS.values()
        for bins in view.summary.study.bins
        if bins >= 3
    ]


def close_from_three(view: View) -> Finding:
    """In more than half of the cases, on each set but Adult."""
    close, cases = {}, 0
    for dataset in view.summary.study.sets:
        losses = _losses_from_three(view, dataset)
        close[dataset], cases = sum(loss <= view.tolerance + EXACT for loss in losses), len(losses)
    holds = all(2 * near > cases for dataset, near in close.items() if dataset != "adult")
    return Finding(holds, f"of {cases} each: " + ", ".join(f"{title_of(name)} {near}" for name, near in close.items()))


def sometimes_better(view: View) -> Finding:
    """In some case of the same, on some set but Adult."""
    better = {
        dataset: sum(loss < -EXACT for loss in _losses_from_three(view, dataset))
        for dataset in view.summary.study.sets
        if dataset != "adult"
    }
    figure = "cases: " + ", ".join(f"{title_of(name)} {cases}" for name, cases in better.items())
    return Finding(sum(better.values()) > 0, figure)


def no_notable_loss(view: View) -> Finding:
    """Mean over the sets, at the chosen b."""
    losses = [
        mean(view.value(dataset, plain) - view.value(dataset, grid) for dataset in view.summary.study.sets)
        for plain, grid in PAIRS.values()
    ]
    return Finding(
        max(losses) <= view.tolerance + EXACT, f"mean loss: basic {decimals(losses[0])}, weighted {decimals(losses[1])}"
    )


def _over_b(view: View, dataset: str, grid: str) -> list[float]:
    return [
        view.value(dataset, f"DP {grid}", bins=bins, epsilon=view.sweep_epsilon) for bins in view.summary.study.bins
    ]


def falls_with_b(view: View) -> Finding:
    """From the best small b to the largest, basic and weighted, on both sets: the paper expects a rise before the fall."""
    falls: dict[str, dict[str, float]] = {}
    for dataset in ("lymphography", "wdbc"):
        own = falls.setdefault(title_of(dataset), {})
        for kind, (_, grid) in PAIRS.items():
            values = dict(zip(view.summary.study.bins, _over_b(view, dataset, grid), strict=True))
            best = max(value for bins, value in values.items() if bins <= SMALL)
            own[kind] = best - values[max(values)]
    texts = [f"{title} {kind} {decimals(fall)}" for title, own in falls.items() for kind, fall in own.items()]
    return Finding(
        _notable(view.tolerance, *(own.values() for own in falls.values())),
        "best b up to 5 minus largest b: " + ", ".join(texts),
    )


def adult_rises_with_b(view: View) -> Finding:
    """From the smallest b to the largest, basic and weighted."""
    ends = [(values[0], values[-1]) for values in (_over_b(view, "adult", grid) for _, grid in PAIRS.values())]
    (basic, basic_end), (weighted, weighted_end) = ends
    return Finding(
        _notable(view.tolerance, [high - low for low, high in ends]),
        f"AUROC basic {decimals(basic)} to {decimals(basic_end)}, weighted {decimals(weighted)} to {decimals(weighted_end)}",
    )


def basic_beats_weighted(view: View) -> Finding:
    """Mean over the epsilons of the difference in AUROC: *slightly* is on average over the sets, and on none notably worse."""
    epsilons = view.summary.study.epsilons
    leads = {
        dataset: mean(
            view.value(dataset, "DP Grid", epsilon=epsilon) - view.value(dataset, "DP Grid-w", epsilon=epsilon)
            for epsilon in epsilons
        )
        for dataset in view.summary.study.sets
    }
    holds = min(leads.values()) >= -view.tolerance - EXACT and mean(leads.values()) > EXACT
    return Finding(holds, "mean lead in AUROC: " + _each(leads))


def gains(cases: dict[str, tuple[str, ...]], *, expected: bool) -> Judge:
    """Whether these metrics gain from the smallest to the largest epsilon, or none of them does."""

    def judge(view: View) -> Finding:
        ends = max(view.summary.study.epsilons), min(view.summary.study.epsilons)
        found: list[list[float]] = []
        texts = []
        for dataset, metrics in cases.items():
            own = [
                view.value(dataset, "DP Grid", metric, epsilon=ends[0])
                - view.value(dataset, "DP Grid", metric, epsilon=ends[1])
                for metric in metrics
            ]
            found.append(own)
            parts = (f"{METRIC_NAMES[metric]} {decimals(gain)}" for metric, gain in zip(metrics, own, strict=True))
            texts.append(f"{title_of(dataset)} {', '.join(parts)}")
        holds = _notable(view.tolerance, *found) if expected else max(map(max, found)) <= view.tolerance + EXACT
        return Finding(holds, "gain from smallest to largest epsilon: " + "; ".join(texts))

    return judge
