"""Figures of the comparison: quality over epsilon, and mean ranks with their critical difference."""

from typing import Any

from matplotlib.figure import Figure

from experiments.report.comparison import PRIVATE, Comparison
from experiments.report.drawing import BLACK, BLUE, GREEN, GREY, INK, PURPLE, RED, Look, epsilon_axis, handles

SKY, SAND = "#56B4E9", "#E69F00"
LOOKS = {
    "DPForest": Look(BLUE, "-", "o", "DPForest"),
    "DPMarginals": Look(RED, "-", "s", "DPMarginals"),
    "DPGridKNN": Look(PURPLE, "-", "D", "DPGridKNN, the paper's"),
    "synthetic, marginals": Look(SAND, "--", "^", "synthetic data (marginals) + k-NN"),
    "synthetic, tree": Look(SKY, "--", "v", "synthetic data (tree) + k-NN"),
}
PLAIN = Look(GREEN, "-", "", "k-NN, not private")
TWIN = Look(BLACK, ":", "", "Forest, not private")
CONTROLS = {
    "DPForest": Look(GREY, "-", "o", "control of DPForest"),
    "DPMarginals": Look(GREY, "--", "s", "control of DPMarginals"),
    "DPGridKNN": Look(GREY, ":", "D", "control of DPGridKNN"),
}


def quality_figure(comparison: Comparison) -> Figure:
    """A panel for each group of sets: mean AUROC over epsilon."""
    groups = comparison.groups
    figure = Figure(figsize=(9.2, 4.9), layout="constrained")
    panels = figure.subplots(1, len(groups), squeeze=False, sharey=True)[0]
    epsilons = comparison.study.compared_epsilons
    for axes, (group, sets) in zip(panels, groups.items(), strict=True):
        for control, looks in ((False, LOOKS), (True, CONTROLS)):
            for method, look in looks.items():
                means = [comparison.mean(sets, method, epsilon, control=control) for epsilon in epsilons]
                style = {"color": look.colour, "ls": look.dashes, "marker": look.marker}
                axes.plot(epsilons, means, markersize=3.5 if control else 5, lw=1 if control else 1.6, **style)
        for method, look in (("KNN", PLAIN), ("Forest", TWIN)):
            axes.axhline(comparison.mean(sets, method, None), color=look.colour, ls=look.dashes, lw=1.4, zorder=1)
        epsilon_axis(axes, epsilons)
        axes.set_title(f"{len(sets)} {'set' if len(sets) == 1 else 'sets'}: {group}")
        axes.set_xlabel("epsilon")
    panels[0].set_ylabel("mean AUROC")
    legend = handles([*LOOKS.values(), PLAIN, TWIN, *CONTROLS.values()])
    figure.legend(handles=legend, loc="outside lower center", ncols=3, fontsize=8.5)
    return figure


def ranks_figure(comparison: Comparison) -> Figure:
    """A line of mean ranks for each epsilon; a bar joins methods that do not differ significantly."""
    rows = [*comparison.study.compared_epsilons, None]
    figure = Figure(figsize=(9.2, 1.35 * len(rows) + 0.4), layout="constrained")
    for axes, epsilon in zip(figure.subplots(len(rows), 1, squeeze=False)[:, 0], rows, strict=True):
        _ranks(axes, comparison, epsilon)
    return figure


def _ranks(axes: Any, comparison: Comparison, epsilon: float | None) -> None:
    ranks = sorted(comparison.ranks(epsilon).items(), key=lambda item: item[1])
    axes.set_xlim(0.8, len(PRIVATE) + 0.2)
    axes.set_ylim(-2.1, 0.6)
    axes.hlines(0, 1, len(PRIVATE), color=INK, lw=1)
    for tick in range(1, len(PRIVATE) + 1):
        axes.vlines(tick, 0, 0.14, color=INK, lw=0.8)
        axes.text(tick, 0.24, str(tick), ha="center", fontsize=8)
    for i, (method, rank) in enumerate(ranks):
        look = LOOKS[method]
        axes.plot([rank], [0], marker=look.marker, color=look.colour, markersize=7, zorder=3)
        text = f"{method} {rank:.2f}"
        axes.annotate(
            text,
            (rank, 0),
            (1 + i, -1.75),
            ha="center",
            fontsize=8.5,
            color=look.colour,
            arrowprops={"arrowstyle": "-", "color": look.colour, "lw": 0.7, "shrinkA": 1, "shrinkB": 4},
        )
    for level, (first, last) in enumerate(_alike([rank for _, rank in ranks], comparison.critical_difference)):
        axes.hlines(-0.3 - 0.22 * level, first - 0.05, last + 0.05, color=INK, lw=3)
    title = "all epsilons" if epsilon is None else f"epsilon = {epsilon:g}"
    p = comparison.friedman(epsilon)
    axes.set_title(
        f"{title}   (critical difference {comparison.critical_difference:.2f}, Friedman p = {p:.1g})", fontsize=9
    )
    axes.set_axis_off()


def _alike(ranks: list[float], difference: float) -> list[tuple[float, float]]:
    """Longest ranges of ascending ranks that lie within the critical difference."""
    ranges: list[tuple[float, float]] = []
    for i, first in enumerate(ranks):
        last = max(rank for rank in ranks[i:] if rank - first <= difference)
        if last > first and (not ranges or last > ranges[-1][1]):
            ranges.append((first, last))
    return ranges
