"""The answers to the paper's three questions, and to one that it did not ask: a sentence and a small table each."""

from statistics import mean
from typing import NamedTuple

from experiments.measure.variants import BASE
from experiments.report.judging import EXACT, PAIRS
from experiments.report.steps import LADDER_EPSILONS
from experiments.report.summary import Summary
from experiments.report.view import TOLERANCE, View
from experiments.report.wording import decimals, title_of


class Answer(NamedTuple):
    """A question, and what the numbers say."""

    question: str
    text: str
    columns: tuple[str, ...]
    lines: list[tuple[str, ...]]


def answers(summary: Summary) -> list[Answer]:
    view = View(summary)
    return [_grid(view), _private(view), _epsilon(view), _complete(summary)]


def _grid(view: View) -> Answer:
    """Mean loss of AUROC from b = 3 on."""
    study = view.summary.study
    large = [bins for bins in study.bins if bins >= 3]

    def loss(side: View, dataset: str, pair: tuple[str, str]) -> float:
        return mean(side.value(dataset, pair[0]) - side.value(dataset, pair[1], bins=bins) for bins in large)

    sides = (view, View(view.summary, "limited"))
    losses = {
        dataset: [loss(side, dataset, pair) for side in sides for pair in PAIRS.values()] for dataset in study.sets
    }
    lines = [(title_of(dataset), *map(decimals, values)) for dataset, values in losses.items()]
    lines.append(("mean", *(decimals(mean(column)) for column in zip(*losses.values(), strict=True))))
    return Answer(
        "RQ1: what does the grid cost, without noise?",
        "AUROC lost against (w)k-NN, mean over b from 3 on; and if walks end after 4 grid steps, which the authors' code asks of "
        "private walks alone.",
        ("", "basic", "weighted", "basic, 4 steps", "weighted, 4 steps"),
        lines,
    )


def _private(view: View) -> Answer:
    epsilon = view.sweep_epsilon
    lines = []
    for dataset in view.summary.study.sets:
        values = [view.value(dataset, name, epsilon=epsilon) for name in ("kNN", "Grid", "DP Grid")]
        values.append(view.value(dataset, "DP Grid", epsilon=epsilon, control=True))
        lines.append((title_of(dataset), *map(decimals, values)))
    return Answer(
        "RQ2: what does privacy cost?",
        f"AUROC at epsilon = {epsilon:g} and the chosen b. b was chosen on these very test sets: that flatters the private grid, "
        "and not its control.",
        ("", "k\u2011NN", "grid", "private grid", "control"),
        lines,
    )


def _epsilon(view: View) -> Answer:
    """Down to which epsilon, coming from the largest, a condition holds without a break."""
    epsilons = sorted(view.summary.study.epsilons, reverse=True)

    def smallest(dataset: str, *, control: bool) -> str:
        found = "none"
        for epsilon in epsilons:
            mine = view.value(dataset, "DP Grid", epsilon=epsilon)
            other = view.value(dataset, "DP Grid" if control else "kNN", epsilon=epsilon, control=control)
            if not (mine > other + TOLERANCE + EXACT if control else mine >= other - TOLERANCE - EXACT):
                break
            found = f"{epsilon:g}".removeprefix("0")
        return found

    return Answer(
        "RQ3: how much epsilon does it take?",
        f"Smallest epsilon down to which the private grid's AUROC stays within {TOLERANCE:g} of k-NN, and down to which it "
        f"stays more than {TOLERANCE:g} above its own control.",
        ("", "as good as k\u2011NN", "better than its control"),
        [
            (title_of(dataset), smallest(dataset, control=False), smallest(dataset, control=True))
            for dataset in view.summary.study.sets
        ],
    )


def _complete(summary: Summary) -> Answer:
    """Means over the data sets."""

    def average(variant: str, algorithm: str, epsilon: float, *, control: bool = False) -> str:
        keys = [
            summary.key(dataset, variant, algorithm, epsilon=epsilon, control=control) for dataset in summary.study.sets
        ]
        return decimals(mean(summary.entry(key).mean for key in keys))

    return Answer(
        "What remains under a complete accounting?",
        "Mean AUROC over the sets: in the base reading; with exact noise of the right scale, declared bounds and missing rows of "
        "exhausted walks far away; and with k and b from public numbers alone, beside its control. k\u2011NN: declared bounds, "
        "tuned k.",
        ("epsilon", "base reading", "complete", "public k, b", "its control", "k\u2011NN"),
        [
            (
                f"{epsilon:g}",
                average(BASE, "DP Grid", epsilon),
                average("declared", "DP Grid", epsilon),
                average("public", "DP Grid", epsilon),
                average("public", "DP Grid", epsilon, control=True),
                average("declared", "kNN", epsilon),
            )
            for epsilon in LADDER_EPSILONS
        ],
    )
