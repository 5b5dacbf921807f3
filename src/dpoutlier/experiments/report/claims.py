"""What the paper says of its results (Section 5.3), sentence by sentence, as tests of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dpoutlier.experiments.measure.datasets import dataset_named
from dpoutlier.experiments.measure.quality import METRICS
from dpoutlier.experiments.report.numbers import decimals
from dpoutlier.experiments.report.view import View

__all__ = ["ACCEPTABLE", "CLAIMS", "EXACT", "METRIC_NAMES", "TOLERANCE", "Claim", "Finding"]

TOLERANCE = 0.05
"""The one tolerance: what is lower by at most this much is comparable, and a change counts if it is larger."""
EXACT = 1e-9
"""Rounding of sums is no difference."""
ACCEPTABLE = 0.7
"""AUROC from which a detector is commonly called acceptable (Hosmer and Lemeshow, Applied Logistic Regression)."""
NEARLY_ALL = 0.9
METRIC_NAMES = dict(zip(METRICS, ("AUROC", "AP", "P@n"), strict=True))
PAIRS = (("kNN", "Grid"), ("wkNN", "Grid-w"))


@dataclass(frozen=True)
class Finding:
    """Whether a claim holds, and by what figure."""

    holds: bool
    figure: str


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, in our words, and its test."""

    name: str
    question: str
    text: str
    test: str
    sets: tuple[str, ...]
    """Data sets that it needs."""
    judge: Callable[[View], Finding]
    control: tuple[str, str, float] | None = None
    """Data set, metric and epsilon at which the data-free control says what the claim is worth."""


def _title(dataset: str) -> str:
    return dataset_named(dataset).title


def _each(values: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{_title(dataset)} {text}" for dataset, text in values)


def _gap(
    view: View, dataset: str, metrics: Iterable[str], baselines: Iterable[str], epsilon: float
) -> tuple[float, str]:
    """By how much the private basic grid falls behind the baseline that is furthest ahead."""
    gaps = []
    for metric in metrics:
        mine = view.value(dataset, "DP Grid", metric, epsilon=epsilon)
        for baseline in baselines:
            other = view.value(dataset, baseline, metric)
            text = f"{METRIC_NAMES[metric]} {decimals(mine)} against {decimals(other)} of {baseline}"
            gaps.append((other - mine, text))
    return max(gaps)


def _comparable(
    dataset: str, metrics: tuple[str, ...], baselines: tuple[str, ...], epsilon: float
) -> Callable[[View], Finding]:
    def judge(view: View) -> Finding:
        gap, text = _gap(view, dataset, metrics, baselines, epsilon)
        return Finding(gap <= TOLERANCE + EXACT, f"worst gap {decimals(gap)}: {text}")

    return judge


def _plain_is_best(view: View) -> Finding:
    """Over all sets and b, basic and weighted: no grid, private or not, is above plain k-NN."""
    study, cases, best = view.summary.study, 0, 0
    for dataset in study.sets:
        for plain, grid in PAIRS:
            top = view.value(dataset, plain)
            for bins in study.bins:
                rivals = (
                    view.value(dataset, grid, bins=bins),
                    view.value(dataset, f"DP {grid}", bins=bins, epsilon=view.sweep_epsilon),
                )
                cases, best = cases + 1, best + (top >= max(rivals) - EXACT)
    return Finding(best >= NEARLY_ALL * cases, f"{best} of {cases} cases")


def _only_adult_fails(view: View) -> Finding:
    """The best AUROC of the six algorithms, the private ones at their largest epsilon."""
    study = view.summary.study
    best = {
        dataset: max(
            *(view.value(dataset, algorithm) for pair in PAIRS for algorithm in pair),
            *(view.value(dataset, f"DP {grid}", epsilon=max(study.epsilons)) for _, grid in PAIRS),
        )
        for dataset in study.sets
    }
    holds = all((value < ACCEPTABLE) == (dataset == "adult") for dataset, value in best.items())
    return Finding(holds, "best AUROC: " + _each((dataset, decimals(value)) for dataset, value in best.items()))


def _modest_at_two(view: View) -> Finding:
    losses = {
        dataset: max(view.value(dataset, plain) - view.value(dataset, grid, bins=2) for plain, grid in PAIRS)
        for dataset in view.summary.study.sets
    }
    worst = max(losses.values())
    return Finding(
        worst <= 2 * TOLERANCE + EXACT,
        "larger loss of the two: " + _each((dataset, decimals(loss)) for dataset, loss in losses.items()),
    )


def _close_from_three(view: View) -> Finding:
    """For most b from 3 on, basic and weighted, the grid is at most the tolerance below plain k-NN: on each set but Adult."""
    study, close = view.summary.study, {}
    for dataset in study.sets:
        losses = [
            view.value(dataset, plain) - view.value(dataset, grid, bins=bins)
            for plain, grid in PAIRS
            for bins in study.bins
            if bins >= 3
        ]
        close[dataset] = (sum(loss <= TOLERANCE + EXACT for loss in losses), len(losses))
    holds = all(2 * near > cases for dataset, (near, cases) in close.items() if dataset != "adult")
    return Finding(
        holds, "close: " + _each((dataset, f"{near} of {cases}") for dataset, (near, cases) in close.items())
    )


def _falls_with_b(view: View) -> Finding:
    study, losses = view.summary.study, {}
    for dataset in ("lymphography", "wdbc"):
        values = [view.value(dataset, "DP Grid", bins=bins, epsilon=view.sweep_epsilon) for bins in study.bins]
        losses[dataset] = max(values) - values[-1]
    return Finding(
        min(losses.values()) > TOLERANCE + EXACT,
        "best b minus b = 10: " + _each((name, decimals(loss)) for name, loss in losses.items()),
    )


def _adult_rises_with_b(view: View) -> Finding:
    study = view.summary.study
    low, high = (
        view.value("adult", "DP Grid", bins=bins, epsilon=view.sweep_epsilon)
        for bins in (min(study.bins), max(study.bins))
    )
    return Finding(high - low > TOLERANCE + EXACT, f"AUROC {decimals(low)} at b = 2, {decimals(high)} at b = 10")


def _basic_beats_weighted(view: View) -> Finding:
    """Mean over the epsilons of the difference in AUROC."""
    study = view.summary.study
    leads = {
        dataset: sum(
            view.value(dataset, "DP Grid", epsilon=epsilon) - view.value(dataset, "DP Grid-w", epsilon=epsilon)
            for epsilon in study.epsilons
        )
        / len(study.epsilons)
        for dataset in study.sets
    }
    return Finding(
        min(leads.values()) > EXACT,
        "mean lead in AUROC: " + _each((name, decimals(lead)) for name, lead in leads.items()),
    )


def _gain(view: View, dataset: str, metric: str) -> float:
    """From the smallest to the largest epsilon."""
    epsilons = view.summary.study.epsilons
    return view.value(dataset, "DP Grid", metric, epsilon=max(epsilons)) - view.value(
        dataset, "DP Grid", metric, epsilon=min(epsilons)
    )


def _gains(cases: tuple[tuple[str, str], ...], *, expected: bool) -> Callable[[View], Finding]:
    def judge(view: View) -> Finding:
        gains = [(dataset, metric, _gain(view, dataset, metric)) for dataset, metric in cases]
        holds = all((gain > TOLERANCE + EXACT) == expected for *_, gain in gains)
        figures = (f"{_title(dataset)} {METRIC_NAMES[metric]} {decimals(gain)}" for dataset, metric, gain in gains)
        return Finding(holds, "gain from epsilon .015 to 5: " + ", ".join(figures))

    return judge


EVERY = ("lymphography", "pima", "wdbc", "heart", "adult")
FOUR = ("kNN", "wkNN", "Grid", "Grid-w")

CLAIMS = (
    Claim(
        "plain-is-best",
        "RQ1",
        "Unmodified (w)k-NN is best in nearly all cases.",
        "no grid above it at 90 % of all (set, b, basic or weighted)",
        EVERY,
        _plain_is_best,
    ),
    Claim(
        "only-adult-fails",
        "RQ1",
        "Adult is the only set on which no algorithm is acceptable.",
        f"best AUROC of the six below {ACCEPTABLE:g} on Adult alone",
        EVERY,
        _only_adult_fails,
    ),
    Claim(
        "modest-at-two",
        "RQ1",
        "At b = 2 the grid without noise loses only modestly against (w)k-NN.",
        "AUROC lower by at most twice the tolerance on every set",
        EVERY,
        _modest_at_two,
    ),
    Claim(
        "close-from-three",
        "RQ1",
        "From b = 3 on the grid without noise is mostly comparable with (w)k-NN, on all sets but Adult.",
        "AUROC within the tolerance for more than half of b = 3 to 10, basic and weighted",
        EVERY,
        _close_from_three,
    ),
    Claim(
        "falls-with-b",
        "RQ2",
        "With larger b the private grid declines on Lymph and Wdbc.",
        "AUROC at b = 10 below the best by more than the tolerance",
        ("lymphography", "wdbc"),
        _falls_with_b,
    ),
    Claim(
        "adult-rises-with-b",
        "RQ2",
        "On Adult it is the other way round.",
        "AUROC at b = 10 above b = 2 by more than the tolerance",
        ("adult",),
        _adult_rises_with_b,
    ),
    Claim(
        "basic-beats-weighted",
        "RQ3",
        "On all sets the basic private grid is slightly better than the weighted one.",
        "mean AUROC over the epsilons higher on every set",
        EVERY,
        _basic_beats_weighted,
    ),
    Claim(
        "lymph",
        "RQ3",
        "Lymph at epsilon .15: all metrics nearly as good as the four baselines.",
        "within the tolerance of each",
        ("lymphography",),
        _comparable("lymphography", METRICS, FOUR, 0.15),
        ("lymphography", "auroc", 0.15),
    ),
    Claim(
        "diabetes",
        "RQ3",
        "Diabetes at epsilon .3: all metrics nearly as good as the four baselines.",
        "within the tolerance of each",
        ("pima",),
        _comparable("pima", METRICS, FOUR, 0.3),
        ("pima", "auroc", 0.3),
    ),
    Claim(
        "adult",
        "RQ3",
        "Adult at epsilon .15: all metrics nearly as good as the four baselines.",
        "within the tolerance of each",
        ("adult",),
        _comparable("adult", METRICS, FOUR, 0.15),
        ("adult", "auroc", 0.15),
    ),
    Claim(
        "heart",
        "RQ3",
        "Heart at epsilon .3: P@n nearly as good as (w)k-NN.",
        "within the tolerance of both",
        ("heart",),
        _comparable("heart", ("p_at_n",), ("kNN", "wkNN"), 0.3),
        ("heart", "p_at_n", 0.3),
    ),
    Claim(
        "wdbc",
        "RQ3",
        "Wdbc at epsilon 5: AUROC has converged towards the baselines.",
        "within the tolerance of all four",
        ("wdbc",),
        _comparable("wdbc", ("auroc",), FOUR, 5),
        ("wdbc", "auroc", 5),
    ),
    Claim(
        "epsilon-helps",
        "RQ3",
        "A larger epsilon helps on Lymph, on Diabetes and for the AUROC of Wdbc.",
        "gain of more than the tolerance",
        ("lymphography", "pima", "wdbc"),
        _gains((("lymphography", "auroc"), ("pima", "auroc"), ("wdbc", "auroc")), expected=True),
    ),
    Claim(
        "epsilon-does-not-help",
        "RQ3",
        "It does not help on Heart and Adult, nor for AP and P@n of Wdbc.",
        "gain of at most the tolerance",
        ("heart", "adult", "wdbc"),
        _gains((("heart", "auroc"), ("adult", "auroc"), ("wdbc", "ap"), ("wdbc", "p_at_n")), expected=False),
    ),
)
