"""Figures of what the paper lacks."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.measure.variants import BASE
from experiments.report.drawing import (
    BLUE,
    GREEN,
    GREY,
    INK,
    PURPLE,
    RED,
    Look,
    epsilon_axis,
    grid_of_panels,
    handles,
    level,
)
from experiments.report.steps import LADDER_EPSILONS, STEPS
from experiments.report.summary import Summary
from experiments.report.wording import title_of

COLOURS = (BLUE, RED, PURPLE)
PLAIN = Look(GREEN, "-", "", "plain k-NN")


def ladder(summary: Summary) -> Figure:
    """One panel for each data set, one group of marks for each step."""
    figure, panels = grid_of_panels(summary, 1, 9.2, 2.1)
    for axes, dataset in zip(panels[:, 0], summary.study.sets, strict=True):
        for at, step in enumerate(STEPS):
            for shift, epsilon, colour in zip((-0.17, 0, 0.17), LADDER_EPSILONS, COLOURS, strict=True):
                _rung(axes, at + shift, summary, (dataset, step, epsilon), colour)
            plain = summary.entry(summary.key(dataset, step, "kNN", epsilon=LADDER_EPSILONS[0])).mean
            axes.hlines(plain, at - 0.35, at + 0.35, color=GREEN, lw=2)
        axes.set_xticks(range(len(STEPS)), STEPS.values())
        axes.set_xlim(-0.5, len(STEPS) - 0.5)
        _auroc_panel(axes, dataset)
    marks = [
        Line2D([], [], color=colour, marker="o", ls="", label=f"epsilon = {epsilon:g}")
        for epsilon, colour in zip(LADDER_EPSILONS, COLOURS, strict=True)
    ]
    marks.append(Line2D([], [], color=INK, marker="o", markerfacecolor="white", ls="", label="control"))
    figure.legend(handles=[*marks, *handles([PLAIN])], loc="outside upper center", ncols=5, fontsize=9)
    return figure


def _rung(axes: Any, at: float, summary: Summary, what: tuple[str, str, float], colour: str) -> None:
    dataset, step, epsilon = what
    for control in (True, False):
        entry = summary.entry(summary.key(dataset, step, "DP Grid", epsilon=epsilon, control=control))
        axes.errorbar(
            [at],
            [entry.mean],
            yerr=None if control else [entry.sd_splits],
            fmt="o",
            color=colour,
            markerfacecolor="white" if control else colour,
            markersize=5.5,
            capsize=2.5,
            elinewidth=0.9,
        )


def _auroc_panel(axes: Any, dataset: str) -> None:
    axes.axhline(0.5, color=GREY, lw=0.8, ls=":")
    axes.set_title(title_of(dataset))
    axes.set_ylabel("AUROC")


def point(summary: Summary) -> Figure:
    """One panel for each data set, over epsilon."""
    looks = {
        (BASE, False): Look(BLUE, "-", "o", "distance from the cell, bounds by the rows"),
        (BASE, True): Look(BLUE, ":", "", "its control"),
        ("point", False): Look(RED, "-", "s", "distance from the point, bounds by the rows"),
        ("point", True): Look(RED, ":", "", "its control"),
        ("declared-point", False): Look(PURPLE, "-", "D", "distance from the point, declared bounds"),
        ("declared-point", True): Look(PURPLE, ":", "", "its control"),
    }
    sets, epsilons = summary.study.sets, summary.study.epsilons
    rows = (len(sets) + 2) // 3
    figure = Figure(figsize=(9.2, 2.9 * rows + 0.5), layout="constrained")
    panels = figure.subplots(rows, 3, squeeze=False).ravel()
    for axes, dataset in zip(panels, sets, strict=False):
        for (variant, control), look in looks.items():
            keys = [summary.key(dataset, variant, "DP Grid", epsilon=value, control=control) for value in epsilons]
            means = [summary.entry(key).mean for key in keys]
            style = {"color": look.colour, "ls": look.dashes, "marker": look.marker, "lw": 2 if control else 1.4}
            axes.plot(epsilons, means, markersize=4, **style)
        level(axes, summary.entry(summary.key(dataset, BASE, "kNN")).mean, PLAIN)
        epsilon_axis(axes, epsilons)
        axes.tick_params(axis="x", labelrotation=60)
        axes.set_xlabel("epsilon")
        _auroc_panel(axes, dataset)
    for axes in panels[len(sets) :]:
        axes.set_axis_off()
    figure.legend(handles=handles([*looks.values(), PLAIN]), loc="outside upper center", ncols=3, fontsize=8.5)
    return figure


def splits(summary: Summary) -> Figure:
    """One panel for each data set, one dot for each split."""
    middle = LADDER_EPSILONS[1]
    shown = (
        ("k-NN", "kNN", None, False, GREEN),
        ("Grid", "Grid", None, False, RED),
        *((f"DP Grid\nepsilon {epsilon:g}", "DP Grid", epsilon, False, BLUE) for epsilon in LADDER_EPSILONS),
        (f"control\nepsilon {middle:g}", "DP Grid", middle, True, GREY),
    )
    figure, panels = grid_of_panels(summary, 1, 9.2, 1.75)
    for axes, dataset in zip(panels[:, 0], summary.study.sets, strict=True):
        for at, (_, algorithm, epsilon, control, colour) in enumerate(shown):
            entry = summary.entry(summary.key(dataset, BASE, algorithm, epsilon=epsilon, control=control))
            dots = np.linspace(-0.16, 0.16, len(entry.by_split)) if len(entry.by_split) > 1 else np.zeros(1)
            axes.plot(at + dots, entry.by_split, "o", color=colour, markersize=5, alpha=0.85)
            axes.hlines(entry.mean, at - 0.28, at + 0.28, color=colour, lw=1.6)
        axes.set_xticks(range(len(shown)), [label for label, *_ in shown])
        _auroc_panel(axes, dataset)
    return figure


def attack_figure(attack: list[dict[str, float]]) -> Figure:
    """Left what the answers tell, right how often that suffices."""
    figure = Figure(figsize=(9.2, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    queries = np.array([record["queries"] for record in attack])
    worlds = (("present", BLUE, 0.93, "patient in the data"), ("absent", RED, 1.07, "patient not in it"))
    for world, colour, shift, label in worlds:
        means, spread = ([record[f"{name}_{world}"] for record in attack] for name in ("mean", "sd"))
        left.errorbar(queries * shift, means, spread, fmt="o-", color=colour, markersize=4, capsize=2.5, label=label)
    left.set_title("What fresh noise gives away")
    left.set_ylabel("mean of the answers")
    ways = (("fresh", RED, "s-", "fresh noise for every query"), ("kept", BLUE, "o-", "noise drawn once"))
    for way, colour, marks, label in ways:
        success = [record[f"success_{way}"] for record in attack]
        right.plot(queries, success, marks, color=colour, markersize=4.5, label=label)
    most, epsilon = attack[0]["promised_most"], attack[0]["epsilon"]
    right.axhline(most, color=INK, ls=":", lw=1.4, label=f"most that epsilon = {epsilon:g} permits")
    right.set_title("How often the attacker is right")
    right.set_ylabel("share of right guesses")
    right.set_ylim(0.48, 1.02)
    for axes, place in ((left, "upper right"), (right, "upper left")):
        axes.set_xscale("log")
        axes.set_xlabel("times that the query is repeated")
        axes.legend(loc=place, fontsize=9)
    return figure
