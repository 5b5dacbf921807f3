"""All figures of the report, with their captions."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from experiments.report.comparison import Comparison
from experiments.report.comparison_figures import quality_figure, ranks_figure
from experiments.report.drawing import STYLE
from experiments.report.illustration import illustration
from experiments.report.judgements import Judgement
from experiments.report.more_figures import attack_figure, ladder, point, splits
from experiments.report.paper_figures import figure1, figure2
from experiments.report.ranges import Ranges
from experiments.report.ranges_figure import ranges_figure
from experiments.report.readings_figure import readings_figure
from experiments.report.summary import Key, Noting, Summary


class Plot(NamedTuple):
    """A figure to be drawn from a summary. The caption names splits, seeds and the epsilon at which b is chosen."""

    title: str
    caption: str
    draw: Callable[[Summary], Figure]


PLOTS = {
    "figure1": Plot(
        "AUROC over grid parameter and privacy budget",
        "The paper's Figure 1. Left: over b, private runs at epsilon = {sweep}. Right: over epsilon, at the b that was chosen on "
        "the test set (grey bar). Mean over {splits} splits x {seeds} seeds; bars: standard deviation over the noise. Grey and "
        "pale curves: the controls, with every count zero before the noise; that of plain k-NN scores all points alike, AUROC .5.",
        figure1,
    ),
    "figure2": Plot(
        "Average precision and precision at n over the privacy budget",
        "The paper's Figure 2, at the b that was chosen on the test set. Mean over {splits} splits x {seeds} seeds; bars: standard "
        "deviation over the noise. Grey and pale curves: the controls.",
        figure2,
    ),
    "ladder": Plot(
        "From the base reading to a complete accounting",
        "AUROC of the basic private grid as the accounting is completed step by step; each step keeps those before it, and b is "
        "tuned anew. Bars: standard deviation over the splits. Hollow: the controls. Green: plain k-NN with the bounds and k of "
        "the step. In the last step k and b are public numbers.",
        ladder,
    ),
    "point": Plot(
        "Distance from the point instead of its cell",
        "AUROC of the basic private grid. The paper's text says distance from the point, its algorithm distance from the cell's "
        "centroid. Where a dotted control, which counts no row, follows its curve, the score reads the map into the cube and not "
        "the counts; red, that map depends on the reference rows' mean and reach, which no epsilon covers; purple, it is declared.",
        point,
    ),
    "splits": Plot(
        "What one split is worth",
        "AUROC on each of {splits} splits, mean over {seeds} seeds; line: mean of the splits. The paper shows one split.",
        splits,
    ),
}
COMPARED = {
    "comparison": (
        "All detectors over the privacy budget",
        (
            "Mean AUROC, declared bounds, nothing tuned; {splits} splits x {seeds} seeds on each set. Grey: the controls, fitted "
            "on no rows. Synthetic data has (epsilon, 1e-6)-DP, a weaker promise than the others' pure epsilon."
        ),
        quality_figure,
    ),
    "ranks": (
        "Mean ranks, and what is significant",
        (
            "Each method's rank by AUROC, mean over {n} sets; 1 is best. A bar joins methods whose mean ranks differ by less than "
            "the critical difference of Nemenyi's test at 5 %."
        ),
        ranks_figure,
    ),
}
FIGURES = ("illustration", *PLOTS, "readings", "attack", *COMPARED, "ranges")
RANGES_TITLE = "Ranges that are declared too wide"
RANGES_CAPTION = (
    "Mean AUROC over {n} sets, {splits} splits x {seeds} seeds on each. Full lines and filled marks: detectors as a user gets "
    "them, which look for where the rows lie. Dotted lines and hollow marks: ranges as declared. 10 and 100 are means of data at "
    "the lower end of the range, in the middle and at the upper end; own: a factor from 1 to 1,000 for each feature, with the data "
    "at the lower end; own, anywhere: a place for each, too. Stars: the forest where ranges cost nothing. Grey: the controls, "
    "fitted on no rows."
)
ILLUSTRATION_TITLE = "The grid"
ILLUSTRATION_CAPTION = (
    "The paper's illustration, b = 2 and d = 3. Left: reference rows in grey, a point to score in red; two cells hold six rows "
    "each. Right: what the grid keeps, the centroids of the cells with the number of their rows as weight."
)
READINGS_TITLE = "Which claims hold under which reading"
READINGS_CAPTION = (
    "A row for each claim, a column for each reading of the paper: the first is the base reading, each of the others makes a "
    "choice otherwise. A claim holds if its whole row does."
)
ATTACK_TITLE = "Fresh noise for every query"
ATTACK_CAPTION = (
    "One query about one patient, repeated. Left: mean of the answers with and without the patient in the reference data, and "
    "its standard deviation. Right: how often the attacker guesses right which of the two it is."
)


@dataclass(frozen=True)
class Drawn:
    """A figure with its name, title, what to see in it, and the lines of the summary that it was drawn from."""

    name: str
    title: str
    caption: str
    figure: Figure
    keys: tuple[Key, ...] = ()

    @cached_property
    def pictures(self) -> dict[str, bytes]:
        """As files, by format; the same bytes for the same numbers."""
        pictures = {}
        with mpl.rc_context(STYLE):
            for kind, metadata in (("png", {}), ("svg", {"Date": None})):
                memory = io.BytesIO()
                self.figure.savefig(memory, format=kind, dpi=130, metadata=metadata)
                self.figure.set_layout_engine("none")  # the layout has been found
                pictures[kind] = memory.getvalue()
        return pictures


def draw_illustration() -> Drawn:
    with mpl.rc_context(STYLE):
        return Drawn("illustration", ILLUSTRATION_TITLE, ILLUSTRATION_CAPTION, illustration())


def draw_plot(name: str, summary: Summary) -> Drawn:
    """One of the figures of the paper's experiments."""
    plot, study, noting = PLOTS[name], summary.study, Noting(summary)
    what = {"splits": study.splits, "seeds": study.seeds, "sweep": f"{study.sweep_epsilon:g}"}
    with mpl.rc_context(STYLE):
        figure = plot.draw(noting)
    return Drawn(name, plot.title, plot.caption.format(**what), figure, tuple(noting.read))


def draw_all(summary: Summary, judgements: list[Judgement], attack: list[dict[str, float]]) -> list[Drawn]:
    """The figures of the paper's experiments, in the order of the report."""
    drawn = [draw_illustration(), *(draw_plot(name, summary) for name in PLOTS)]
    with mpl.rc_context(STYLE):
        if any(one.findings for one in judgements):
            drawn.append(Drawn("readings", READINGS_TITLE, READINGS_CAPTION, readings_figure(judgements)))
        if attack:
            drawn.append(Drawn("attack", ATTACK_TITLE, ATTACK_CAPTION, attack_figure(attack)))
    return drawn


def draw_comparison(comparison: Comparison) -> list[Drawn]:
    """The figures of all detectors side by side."""
    study = comparison.study
    what = {"splits": study.splits, "seeds": study.seeds, "n": len(comparison.sets)}
    with mpl.rc_context(STYLE):
        return [
            Drawn(name, title, caption.format(**what), draw(comparison))
            for name, (title, caption, draw) in COMPARED.items()
        ]


def draw_ranges(ranges: Ranges) -> Drawn:
    """The figure of ranges that are declared too wide."""
    study = ranges.study
    n = len(study.sets) + len(study.tables)
    caption = RANGES_CAPTION.format(n=n, splits=study.range_splits, seeds=study.range_seeds)
    with mpl.rc_context(STYLE):
        return Drawn("ranges", RANGES_TITLE, caption, ranges_figure(ranges))
