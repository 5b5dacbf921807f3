"""The comparison in a sentence and two small tables."""

from experiments.measure.comparison import DETECTORS, EXACT
from experiments.report.answers import Answer
from experiments.report.comparison import SHOWN, Comparison
from experiments.report.wording import decimals

TITLES = {
    "default": "what dpoutlier chooses",
    "DPGridKNN": "DPGridKNN, the paper's (b by rule)",
    "synthetic, marginals": "synthetic data (marginals) + k-NN",
    "synthetic, tree": "synthetic data (tree) + k-NN",
    "KNN": "k-NN, not private",
    "Forest": "Forest, not private",
    "Marginals": "Marginals, not private",
    "GridKNN": "GridKNN (same b), not private",
}


def detectors_answer(comparison: Comparison) -> Answer:
    """Over all sets: what is chosen by default beside the paper's grid and plain k-NN."""
    epsilons = comparison.study.compared_epsilons
    lines = []
    for method, control in (("default", False), ("default", True), ("DPGridKNN", False), ("KNN", False)):
        values = (comparison.mean(comparison.sets, method, epsilon, control=control) for epsilon in epsilons)
        name = "its control" if control else TITLES[method]
        lines.append((name, *map(decimals, values)))
    return Answer(
        "And with a better detector?",
        f"Mean AUROC over {len(comparison.sets)} sets with declared bounds and nothing tuned, at the epsilons in the columns.",
        ("", *(f"{epsilon:g}" for epsilon in epsilons)),
        lines,
    )


def compared_lines(comparison: Comparison) -> list[dict[str, str]]:
    """A line for each method: mean AUROC at each epsilon, for each group of sets."""
    lines = []
    for method, control in (
        *((method, False) for method in SHOWN),
        *((method, True) for method in DETECTORS),
    ):
        title = TITLES.get(method, method)
        line = {"method": f"control of {method}" if control else title}
        for group, sets in comparison.groups.items():
            values = [comparison.mean(sets, method, e, control=control) for e in comparison.study.compared_epsilons]
            line[group] = decimals(values[0]) if method in EXACT else " / ".join(map(decimals, values))
        lines.append(line)
    return lines
