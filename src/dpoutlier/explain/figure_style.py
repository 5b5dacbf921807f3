"""How figures of reports look."""

from typing import Any

__all__ = ["INK", "STYLE"]

INK = "#222222"
STYLE: Any = {
    "font.size": 9.5,
    "axes.edgecolor": "#999999",
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.hashsalt": "dpoutlier",
    "legend.frameon": False,
}
"""Settings of matplotlib."""
