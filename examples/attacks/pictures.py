"""How all pictures of the attacks look. Colours of Okabe and Ito, which the colour-blind can tell apart."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter

BLUE, RED, GREEN, PURPLE, GREY, INK = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8A8A8A", "#222222"
OURS, BROKEN, BOUND = BLUE, RED, INK
PERCENT = FuncFormatter(lambda share, _: f"{100 * share:g} %")
NUMBER = FuncFormatter(lambda number, _: f"{number:,g}")
STYLE = {
    "font.size": 11,
    "axes.edgecolor": "#999999",
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 10.5,
}


def in_style():
    """All drawing happens within this."""
    return mpl.rc_context(STYLE)


def new_figure(width, height):
    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08))


def title(axes, text, below):
    axes.set_title(text, loc="left", fontsize=12.5, fontweight="bold", color=INK, pad=25)
    axes.text(0, 1.025, below, transform=axes.transAxes, fontsize=10.5, color="#555555", va="bottom")


def bound_line(axes, share, label):
    """The most that epsilon permits, and what a blind guess gives."""
    axes.axhline(share, color=BOUND, ls=(0, (2, 2)), lw=1.6, label=label, zorder=5)
    blind_line(axes)


def blind_line(axes):
    axes.axhline(0.5, color=GREY, lw=0.8, zorder=0)
    where = axes.get_yaxis_transform()
    axes.annotate("blind guess", (1, 0.5), (0, -4), where, "offset points", color=GREY, ha="right", va="top")


def save(figure, out, name):
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"attack-{name}.png"
    figure.savefig(path, dpi=130, metadata={"Software": None})
    return path
