"""The paper's two figures, in its layout: a row of panels for each data set."""

from typing import Any

from matplotlib.figure import Figure

from experiments.measure.datasets import dataset_named
from experiments.measure.variants import BASE
from experiments.report.drawing import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    RED,
    SAND,
    Look,
    curve,
    epsilon_axis,
    grid_of_panels,
    handles,
    level,
)
from experiments.report.judging import METRIC_NAMES
from experiments.report.summary import Summary

LOOKS = {
    ("kNN", False): Look(GREEN, "-", "", "k-NN"),
    ("wkNN", False): Look(GREEN, "--", "", "wk-NN"),
    ("Grid", False): Look(RED, "-", "s", "Grid k-NN"),
    ("Grid-w", False): Look(RED, "--", "s", "Grid wk-NN"),
    ("DP Grid", False): Look(BLUE, "-", "o", "DP Grid k-NN"),
    ("DP Grid-w", False): Look(BLACK, "--", "^", "DP Grid wk-NN"),
    ("Grid", True): Look(SAND, "-", "", "Grid k-NN, control"),
    ("Grid-w", True): Look(SAND, "--", "", "Grid wk-NN, control"),
    ("DP Grid", True): Look(GREY, "-", "o", "DP Grid k-NN, control"),
    ("DP Grid-w", True): Look(GREY, "--", "^", "DP Grid wk-NN, control"),
}
"""By algorithm, and whether it is the data-free control."""


def figure1(summary: Summary) -> Figure:
    figure, panels = grid_of_panels(summary, 2, 9.2, 2.35)
    study = summary.study
    for (left, right), dataset in zip(panels, study.sets, strict=True):
        _plain_lines(left, summary, dataset, "auroc")
        for algorithm, control in list(LOOKS)[2:]:
            epsilon = study.sweep_epsilon if algorithm.startswith("DP") else None
            keys = [summary.key(dataset, BASE, algorithm, epsilon=epsilon, bins=b, control=control) for b in study.bins]
            curve(left, study.bins, [summary.entry(key) for key in keys], LOOKS[algorithm, control])
        left.set_xticks(study.bins)
        _over_epsilon(right, summary, dataset, "auroc")
        _name(left, summary, dataset, "AUROC")
        chosen = summary.choice.bins[dataset, BASE]
        left.axvline(chosen, color="#DDDDDD", lw=7, zorder=0)
        low, high = zip(left.get_ylim(), right.get_ylim(), strict=True)
        for axes in (left, right):
            axes.set_ylim(min(low), max(high))
        right.set_title(f"at b = {chosen}", fontweight="normal")
    panels[-1, 0].set_xlabel("grid parameter b")
    panels[-1, 1].set_xlabel("privacy budget epsilon")
    _legend(figure)
    return figure


def figure2(summary: Summary) -> Figure:
    figure, panels = grid_of_panels(summary, 2, 9.2, 2.35)
    for pair, dataset in zip(panels, summary.study.sets, strict=True):
        for axes, metric in zip(pair, ("ap", "p_at_n"), strict=True):
            _over_epsilon(axes, summary, dataset, metric)
            axes.set_ylabel(METRIC_NAMES[metric])
            axes.set_ylim(bottom=0)
        _name(pair[0], summary, dataset, "AP")
        pair[1].set_title(f"at b = {summary.choice.bins[dataset, BASE]}", fontweight="normal")
    for axes in panels[-1]:
        axes.set_xlabel("privacy budget epsilon")
    _legend(figure)
    return figure


def _over_epsilon(axes: Any, summary: Summary, dataset: str, metric: str) -> None:
    epsilons = summary.study.epsilons
    _plain_lines(axes, summary, dataset, metric)
    for algorithm, control in list(LOOKS)[2:]:
        if algorithm.startswith("Grid"):
            key = summary.key(dataset, BASE, algorithm, control=control)
            level(axes, summary.entry(key, metric).mean, LOOKS[algorithm, control])
            continue
        keys = [summary.key(dataset, BASE, algorithm, epsilon=epsilon, control=control) for epsilon in epsilons]
        curve(axes, epsilons, [summary.entry(key, metric) for key in keys], LOOKS[algorithm, control])
    epsilon_axis(axes, epsilons)


def _plain_lines(axes: Any, summary: Summary, dataset: str, metric: str) -> None:
    for algorithm in ("kNN", "wkNN"):
        entry = summary.entry(summary.key(dataset, BASE, algorithm), metric)
        level(axes, entry.mean, LOOKS[algorithm, False])


def _name(axes: Any, summary: Summary, dataset: str, label: str) -> None:
    one = dataset_named(dataset)
    axes.set_title(f"{one.title}   d = {len(one.features)}, k = {summary.choice.k[dataset]}")
    axes.set_ylabel(label)


def _legend(figure: Figure) -> None:
    figure.legend(
        handles=handles(LOOKS.values()),
        loc="outside upper center",
        ncols=5,
        fontsize=8.2,
        columnspacing=1.3,
        handlelength=2.4,
    )
