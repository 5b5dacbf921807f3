"""What pictures and reports are made with: the libraries of the extra ``dpoutlier[plots]``, and one style."""

from typing import Any

from dpoutlier.exceptions import MissingExtraError

try:
    import matplotlib as mpl
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.lines import Line2D
except ImportError as error:
    raise MissingExtraError(
        f"pictures and reports need packages that are not installed ({error.name}).",
        remedy="pip install 'dpoutlier[plots]', or '.[plots]' where its source is.",
    ) from None

__all__ = [
    "INK",
    "STYLE",
    "ConstrainedLayoutEngine",
    "Environment",
    "Figure",
    "FileSystemLoader",
    "Line2D",
    "StrictUndefined",
    "mpl",
]

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
