"""What all figures share. Colours of Okabe and Ito, which the colour-blind can tell apart."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.report.summary import Entry, Summary

GREEN, RED, BLUE, BLACK, GREY, PURPLE = "#009E73", "#D55E00", "#0072B2", "#000000", "#8A8A8A", "#CC79A7"
SAND = "#E9B58F"
INK = "#222222"
STYLE: Any = {
    **dict.fromkeys(("axes.labelcolor", "text.color", "xtick.color", "ytick.color"), INK),
    "axes.edgecolor": "#999999",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "font.size": 9.5,
    "legend.frameon": False,
    "svg.hashsalt": "dpoutlier",  # the same names inside, whenever it is drawn
}
"""Settings of matplotlib."""


class Look(NamedTuple):
    """How a curve is drawn: basic full, weighted dashed."""

    colour: str
    dashes: str
    marker: str
    label: str


def grid_of_panels(summary: Summary, columns: int, width: float, height: float) -> tuple[Figure, Any]:
    """A row of panels for each data set."""
    rows = len(summary.study.sets)
    figure = Figure(figsize=(width, height * rows + 1.1), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def epsilon_axis(axes: Any, epsilons: Iterable[float]) -> None:
    axes.set_xscale("log")
    ticks = sorted(epsilons)
    axes.set_xticks(ticks, [f"{epsilon:g}".removeprefix("0") for epsilon in ticks], fontsize=8)
    axes.minorticks_off()


def level(axes: Any, value: float, look: Look) -> None:
    axes.axhline(value, color=look.colour, ls=look.dashes, lw=1.4, zorder=1)


def curve(axes: Any, x: Iterable[float], entries: list[Entry], look: Look) -> None:
    axes.errorbar(
        list(x),
        [entry.mean for entry in entries],
        yerr=[entry.sd_noise for entry in entries] if any(entry.sd_noise for entry in entries) else None,
        color=look.colour,
        ls=look.dashes,
        marker=look.marker,
        markersize=3.8,
        lw=1.3,
        capsize=2,
        elinewidth=0.8,
        alpha=0.8 if look.colour == GREY else 1,
        zorder=2 if look.colour in {GREY, SAND} else 3,
    )


def handles(looks: Iterable[Look]) -> list[Line2D]:
    """Entries of a legend."""
    return [
        Line2D([], [], color=look.colour, ls=look.dashes, marker=look.marker, markersize=5, label=look.label)
        for look in looks
    ]
