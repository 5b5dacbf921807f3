"""Figure of ranges that are declared too wide: quality over how wide they are."""

from matplotlib.figure import Figure

from experiments.measure.comparison import SYNTHETIC
from experiments.measure.ranges import AS_DECLARED, FREE, LOOKING
from experiments.report.comparison_figures import CONTROLS, LOOKS, PLAIN
from experiments.report.drawing import BLACK, Look, handles
from experiments.report.ranges import GROUPS, Ranges

FACTORS = tuple(name for name in GROUPS if not name.startswith("own"))
DECLARED = {
    AS_DECLARED.format(name): LOOKS[name]._replace(dashes=":", label=f"{name}, ranges as declared") for name in LOOKING
}
FOR_FREE = Look(BLACK, "-", "*", "DPForest, ranges for free (not private)")
CURVES = {
    **{name: LOOKS[name]._replace(label=name) for name in LOOKING},
    **DECLARED,
    FREE: FOR_FREE,
    **{name: LOOKS[name] for name in SYNTHETIC},
}


def ranges_figure(ranges: Ranges) -> Figure:
    """A panel for each epsilon. Only equal factors are joined by lines."""
    epsilons = ranges.study.range_epsilons
    figure = Figure(figsize=(9.2, 5.0), layout="constrained")
    panels = figure.subplots(1, len(epsilons), squeeze=False, sharey=True)[0]
    for axes, epsilon in zip(panels, epsilons, strict=True):
        for control, looks in ((True, CONTROLS), (False, CURVES)):
            for method, look in looks.items():
                means = [ranges.mean(method, epsilon, group, control=control) for group in GROUPS]
                style = {"color": look.colour, "marker": look.marker, "markersize": 3.5 if control else 5}
                style |= {"markerfacecolor": "white"} if method in DECLARED else {}
                joined = len(FACTORS)
                axes.plot(range(joined), means[:joined], ls=look.dashes, lw=1 if control else 1.5, **style)
                axes.plot(range(joined, len(means)), means[joined:], ls="none", **style)
        axes.axhline(ranges.plain, color=PLAIN.colour, ls=PLAIN.dashes, lw=1.4, zorder=1)
        axes.set_xticks(range(len(GROUPS)), [name.replace(", ", ",\n") for name in GROUPS])
        axes.set_title(f"epsilon = {epsilon:g}")
        axes.set_xlabel("width of the declared ranges, where the file's is 1")
    panels[0].set_ylabel("mean AUROC")
    legend = handles([*CURVES.values(), PLAIN, *CONTROLS.values()])
    for mark, method in zip(legend, CURVES, strict=False):
        mark.set_markerfacecolor("white" if method in DECLARED else mark.get_color())
    figure.legend(handles=legend, loc="outside lower center", ncols=3, fontsize=8)
    return figure
