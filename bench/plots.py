"""The one picture: points per second against the number of reference rows."""

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

# Okabe and Ito's colours, which the colour-blind can tell apart.
COLOURS = ["#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#CC79A7"]
MARKERS = "os^Dv*"


def plot_points_per_second(rates, path):
    features = sorted({d for d, _ in rates})
    names = list(dict.fromkeys(name for _, name in rates))
    figure, axes = plt.subplots(1, len(features), figsize=(12, 4.6), sharey=True, layout="constrained")
    for axis, d in zip(axes, features, strict=True):
        for name, colour, marker in zip(names, COLOURS, MARKERS, strict=False):
            n, rate = zip(*rates[d, name], strict=True)
            private = name == "dpoutlier"
            label = "dpoutlier (private, epsilon 1)" if private else name
            axis.plot(n, rate, marker=marker, color=colour, label=label, linewidth=2.6 if private else 1.3)
        axis.set(xscale="log", yscale="log", title=f"{d} features", xlabel="reference rows")
        axis.grid(visible=True, which="major", alpha=0.3)
    axes[0].set_ylabel("points per second, one thread")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
