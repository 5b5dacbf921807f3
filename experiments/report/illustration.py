"""The paper's illustration of the grid: two cells of eight hold the rows, and their centroids stand for them."""

from itertools import product
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.report.drawing import BLUE, GREY, RED

EDGES = (0, 0.5, 1)
CELLS = ((0.25, 0.25, 0.25), (0.25, 0.25, 0.75))
"""Centroids of the two cells that hold rows."""
POINT = (0.8, 0.75, 0.6)
ROWS = 6


def illustration() -> Figure:
    """Left the rows, right what the grid keeps of them."""
    figure = Figure(figsize=(9.2, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2, subplot_kw={"projection": "3d"})
    for axes, title in ((left, "(a) reference rows and a point"), (right, "(b) centroids and their weights")):
        _cube(axes)
        axes.scatter(*POINT, color=RED, s=42, label="point to score, y")
        axes.set_title(title, loc="center")
    places = np.random.default_rng(1).uniform(-0.2, 0.2, (len(CELLS), ROWS, 3))
    rows = (np.array(CELLS)[:, np.newaxis] + places).reshape(-1, 3)
    left.scatter(*rows.T, color=GREY, s=26, depthshade=False, label="reference rows, X")
    right.scatter(*np.array(CELLS).T, color=BLUE, s=90, depthshade=False, label="centroids of cells that hold rows")
    for x, y, z in CELLS:
        right.text(x + 0.06, y, z + 0.04, f"weight {ROWS}", color=BLUE, fontsize=10)
    for axes in (left, right):
        axes.legend(loc="lower center", ncols=2, fontsize=9, bbox_to_anchor=(0.5, -0.08))
    return figure


def _cube(axes: Any) -> None:
    """The edges of all cells, and nothing else."""
    for a, b in product(EDGES, EDGES):
        for ends in (((0, 1), (a, a), (b, b)), ((a, a), (0, 1), (b, b)), ((a, a), (b, b), (0, 1))):
            axes.plot(*ends, color="#BBBBBB", lw=0.8)
    axes.set_axis_off()
    axes.set_box_aspect((1, 1, 1))
    axes.view_init(elev=18, azim=-62)
