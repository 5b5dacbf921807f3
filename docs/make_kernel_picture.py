"""Draw docs/kernel.png: one walk on a small grid, window by window, and how one window becomes an order."""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.patches import Rectangle

BINS, POINT = 9, (0.415, 0.53)
SHADES = ["#D55E00", "#F0E442", "#56B4E9", "#009E73"]
ENDS = (0.5, 1.2, 1.9, 2.6)  # of the windows, in widths of a bin


def main() -> None:
    """Both panels."""
    home = [int(p * BINS) for p in POINT]
    cost = [np.abs((np.arange(BINS) + 0.5) - p * BINS) for p in POINT]  # in widths of a bin
    rank = [np.argsort(np.argsort(c)) for c in cost]
    cells = [(i, j) for i in range(BINS) for j in range(BINS)]
    beyond = {(i, j): cost[0][i] + cost[1][j] - cost[0][home[0]] - cost[1][home[1]] for i, j in cells}
    vector = {(i, j): (rank[0][i], rank[1][j]) for i, j in cells}
    walk = sorted(cells, key=lambda c: (beyond[c], vector[c]))
    window = {c: int(np.searchsorted(ENDS, beyond[c], side="right")) for c in cells}
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5.4), layout="constrained")
    draw_walk(left, walk, window, home)
    draw_window(right, [c for c in walk if window[c] == 2], beyond, vector)
    figure.savefig(Path(__file__).with_name("kernel.png"), dpi=110)


def draw_walk(axis, walk, window, home) -> None:
    """The cells with their place in the walk, shaded by window."""
    for place, (i, j) in enumerate(walk, start=1):
        seen = window[i, j] < len(SHADES)
        shade = SHADES[window[i, j]] if seen else "white"
        axis.add_patch(Rectangle((i, j), 1, 1, facecolor=shade, alpha=0.65, edgecolor="grey", linewidth=0.6))
        if seen:
            axis.text(i + 0.5, j + 0.5, str(place), ha="center", va="center", fontsize=9)
    axis.add_patch(Rectangle(home, 1, 1, fill=False, edgecolor="black", linewidth=2.2))
    axis.plot(POINT[0] * BINS, POINT[1] * BINS, "k*", markersize=11)
    axis.set(xlim=(0, BINS), ylim=(0, BINS), aspect="equal", xticks=[], yticks=[])
    axis.set_title(
        "The walk from the point (star): home is 1.\nShades are windows of cost; a walk seldom needs the last."
    )


def draw_window(axis, cells, beyond, vector) -> None:
    """The third window: found in the order of the rank vectors, sorted by cost alone."""
    found = sorted(cells, key=vector.get)
    by_cost = sorted(found, key=beyond.get)  # stable
    for y, title, order in ((1, "found: rank vectors ascend", found), (0, "sorted by cost, stably", by_cost)):
        for x, cell in enumerate(order):
            axis.add_patch(Rectangle((x, 2.2 * y), 1, 1, facecolor=SHADES[2], alpha=0.65, edgecolor="grey"))
            axis.text(x + 0.5, 2.2 * y + 0.66, "{} {}".format(*vector[cell]), ha="center", va="center", fontsize=8)
            axis.text(
                x + 0.5, 2.2 * y + 0.28, f"{beyond[cell]:.2f}", ha="center", va="center", fontsize=7, color="#333333"
            )
        axis.text(0, 2.2 * y + 1.12 if y else -0.22, title, fontsize=10)
    for x, cell in enumerate(found):
        axis.plot([x + 0.5, by_cost.index(cell) + 0.5], [2.2, 1.0], color="grey", linewidth=0.8)
    axis.set(xlim=(-0.2, len(cells) + 0.2), ylim=(-0.4, 3.8), xticks=[], yticks=[])
    axis.set_title(
        "One window: rank vector above, cost beyond home below.\nNo vector is stored: the search meets them in this order."
    )
    for side in axis.spines.values():
        side.set_visible(False)


if __name__ == "__main__":
    main()
