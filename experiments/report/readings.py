"""Where the paper leaves a choice: its readings. Each differs from the first in one choice or two."""

from collections.abc import Callable
from dataclasses import dataclass

from experiments.measure.choice import choose_bins
from experiments.measure.runner import Results
from experiments.measure.variants import BASE
from experiments.report.summary import Summary
from experiments.report.view import View


@dataclass(frozen=True, eq=False)
class Reading:
    """One way to read the paper, and the results seen that way."""

    name: str
    choice: str
    """What the paper leaves open."""
    text: str
    """How it is read here."""
    short: str
    view: View


VARIANTS = {
    BASE: (
        "",
        "Algorithm 1 as printed; depths and order of preprocessing as in the authors' code",
        "the base reading",
    ),
    "limited": ("depth of the non-private walk", "4 grid steps, instead of none", "a limit of 4 steps without noise"),
    "endless": (
        "depth of the private walk",
        "none (but 100,000 cells), instead of 4 grid steps",
        "no limit of steps with noise",
    ),
    "point": (
        "distance",
        "from the point (Section 4.2), instead of from its cell's centroid (Algorithm 1)",
        "distances from the point",
    ),
    "far": (
        "exhausted walks",
        "missing rows count at the cube's diameter, instead of the score so far",
        "missing rows at the diameter",
    ),
    "penalty": (
        "exhausted walks",
        "score the number of features, as in the authors' code, instead of the score so far",
        "the code's penalty",
    ),
    "scaled": (
        "order of preprocessing",
        "scale, map, centre (Section 4.1), instead of centre, scale, map",
        "scaling before centring",
    ),
    "ranged": (
        "range of the grid",
        "of the reference rows, as in the authors' code, instead of the unit cube",
        "a grid over the rows' range",
    ),
    "text": (
        "order of preprocessing and distance",
        "both as in the text: scale, map, centre (Section 4.1); from the point (Section 4.2)",
        "the text's preprocessing and distances",
    ),
    "ranged-penalty": (
        "range and exhausted walks",
        "both as in the authors' code",
        "the code's range and penalty",
    ),
}
"""What is left open, how it is read, and the same in short, by variant."""


CHOSEN_AT = "epsilon at which b is chosen"


def readings_of(results: Results, summary: Summary) -> list[Reading]:
    """All readings, the base reading first."""
    study, choice = results.study, results.choice
    found = [
        Reading(variant, open_choice, text, short, View(summary, variant))
        for variant, (open_choice, text, short) in VARIANTS.items()
    ]
    other = View(summary, k=choice.other_k, b=_chosen(choice.other_bins))
    text = "the one at which plain k-NN is best, instead of the walk of the private grid without noise"
    found.append(Reading("k", "k", text, "k by plain k-NN", other))
    apart = View(summary, b=_apart(results))
    text = "apart for the basic and the weighted grid, as in the authors' code, instead of one for both"
    found.append(Reading("b-apart", "b", text, "b apart for basic and weighted", apart))
    by_epsilon = {
        epsilon: choose_bins(results.rows, BASE, epsilon, choice.k) for epsilon in sorted(study.epsilons, reverse=True)
    }
    anew = View(summary, b=lambda dataset, _, at: by_epsilon[study.sweep_epsilon if at is None else at][dataset])
    found.append(Reading("b-anew", CHOSEN_AT, "each anew", "b chosen anew for each epsilon", anew))
    for epsilon, bins in by_epsilon.items():
        if epsilon != study.sweep_epsilon:
            text = f"at {epsilon:g}, and curves over b there too, instead of {study.sweep_epsilon:g}"
            at = View(summary, b=_chosen(bins), swept_at=epsilon)
            found.append(Reading(f"b-at-{epsilon:g}", CHOSEN_AT, text, f"b chosen at epsilon {epsilon:g}", at))
    return found


def _chosen(bins: dict[str, int]) -> Callable[[str, str, float | None], int]:
    """One b for each data set."""
    return lambda dataset, *_: bins[dataset]


def _apart(results: Results) -> Callable[[str, str, float | None], int]:
    """The b at which the basic private grid is best, and the one at which the weighted one is."""
    basic, weighted = (
        choose_bins(
            [row for row in results.rows if row.algorithm == name], BASE, results.study.sweep_epsilon, results.choice.k
        )
        for name in ("DP Grid", "DP Grid-w")
    )
    return lambda dataset, algorithm, _: (weighted if algorithm.endswith("Grid-w") else basic)[dataset]
