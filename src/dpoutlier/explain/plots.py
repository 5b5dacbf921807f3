"""Pictures, in colours that also work for the colour-blind (Okabe and Ito)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpoutlier._atomic import write_aside
from dpoutlier.counts.base import noisy_counts
from dpoutlier.explain.drawing import INK, ConstrainedLayoutEngine, Figure, Line2D
from dpoutlier.partitions.base import cell_ids
from dpoutlier.scoring.false_alarms import percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dpoutlier.explain.explanation import Explanation


BLUE, ORANGE, GREY, GREEN = "#0072B2", "#D55E00", "#8A8A8A", "#009E73"


def _title(axes: Any, text: str, below: str) -> None:
    axes.set_title(text, loc="left", fontsize=12.5, fontweight="bold", color=INK, pad=26)
    axes.text(0, 1.025, below, transform=axes.transAxes, fontsize=9.5, color="#555555", va="bottom")


def demo_figure(path: Path, detector: Any, data: Any, rows: Sequence[Any]) -> Path:
    """Three panels: what is published, what it says about new points, and how well."""
    figure = Figure(figsize=(16, 5.2), layout=ConstrainedLayoutEngine(w_pad=0.12))
    left, middle, right = figure.subplots(1, 3, width_ratios=[1, 1.08, 0.92])
    _counts_panel(figure, left, detector)
    _scores_panel(figure, middle, detector, data)
    _quality_panel(right, rows)
    return write_aside(path, lambda stream: figure.savefig(stream, format="png", dpi=130), overwrite=True)


LONGEST_LABEL = 44


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"


def explanation_figure(
    path: str | Path, explanation: Explanation, given: Mapping[str, Any] | None = None, number: int = 0, top: int = 10
) -> Path:
    """Draw why the first point of an explanation has its score: a bar for each feature, and what would be usual instead.

    Parameters
    ----------
    path : str or Path
        File to write, ``.png`` or ``.svg``. An existing file is replaced.
    explanation : Explanation
        Explanation of one point.
    given : dict, default=None
        The point's values as they were written, by feature.
    number : int, default=0
        Number of the point in the title.
    top : int, default=10
        Number of features to show.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    MissingExtraError
        If the extra ``dpoutlier[plots]`` is not installed. ``from dpoutlier import explanation_figure`` raises it already.
    InvalidParameterError
        If the file cannot be written there, or if the explanation has no points.
    TypeError
        If the explanation was pickled, which drops the model: call ``explain`` again.

    See Also
    --------
    Explanation.to_table : The same as a table.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from dpoutlier import DPMarginals, explanation_figure
    >>> detector = DPMarginals(epsilon=1, features=(-8, 8)).fit(np.random.default_rng(0).normal(size=(5000, 2)))
    >>> explanation_figure(Path(tempfile.mkdtemp()) / "why.svg", detector.explain([[0, 6]])).name
    'why.svg'
    """
    path, given = Path(path), given or {}
    ranking, grid = explanation.ranking()[:top], explanation.k is not None
    figure = Figure(figsize=(9, 1.8 + 0.34 * len(ranking)), layout=ConstrainedLayoutEngine())
    axes = figure.subplots()
    for i, (name, contribution, _) in enumerate(reversed(ranking)):
        axes.barh(i, contribution, color=ORANGE if contribution > 0 else BLUE, height=0.66)
        text, *score = explanation.instead(name)
        label = f" {_short(text)}" + (f", then {score[0]}" if score else "") if text else ""
        axes.text(max(contribution, 0), i, label, va="center", fontsize=8.5, color=GREEN, parse_math=False)
    axes.axvline(0, color=INK, lw=0.8)
    labels = [
        f"{_short(name)} = {_short(explanation.value(name, given=given.get(name)))}" for name, _, _ in reversed(ranking)
    ]
    axes.set_yticks(range(len(ranking)), labels)
    for tick in axes.get_yticklabels():
        tick.set_parse_math(False)  # a name may hold a dollar sign
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.3)
    axes.set_xlabel("added to the outlier score" + ("" if grid else ", beyond what a typical row has"))
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    near = "; green: the nearest region that would be usual, where it differs"
    if not grid:
        near = f", typical {explanation.typical_score:.3g}; green: what would be more usual, and the score then"
    elif explanation.found is None or not explanation.found[0]:
        near = "; no region within reach is more usual"
    elif not (other := explanation.counterfactual()) or not other.changes:
        near = f"; its own region gathers {explanation.k} rows"
    below = f"score {explanation.scores[0]:.3g}{near}"
    _title(
        axes,
        f"Why row {number} is outlying" if explanation.scores[0] > explanation.typical_score else f"Row {number}",
        below,
    )
    kind = path.suffix.lower().removeprefix(".")
    save = partial(figure.savefig, format=kind, dpi=130, bbox_inches="tight")  # as wide as its longest words
    return write_aside(path, save, overwrite=True)


def _extent(domain: Any) -> tuple[float, float, float, float]:
    return domain.lower[0], domain.upper[0], domain.lower[1], domain.upper[1]


def _counts_panel(figure: Figure, axes: Any, detector: Any) -> None:
    model = detector.model_
    bins = model.partition.bins
    counts = noisy_counts(model.counts, cell_ids(range(model.partition.n_cells))).reshape(bins)
    limit = np.abs(counts).max()
    image = axes.imshow(
        counts.T, origin="lower", extent=_extent(model.domain), aspect="auto", cmap="PuOr_r", vmin=-limit, vmax=limit
    )
    low, high = np.array(model.domain.lower), np.array(model.domain.upper)
    middles = [low[j] + (np.arange(bins[j]) + 0.5) / bins[j] * (high[j] - low[j]) for j in range(2)]
    if max(bins) <= 12:
        for i, x in enumerate(middles[0]):
            for j, y in enumerate(middles[1]):
                strong = abs(counts[i, j]) > 0.6 * limit
                axes.text(
                    x, y, f"{counts[i, j]:.0f}", ha="center", va="center", fontsize=8.5, color="w" if strong else INK
                )
    figure.colorbar(image, ax=axes, label="noisy rows in the cell", pad=0.02)
    epsilon = float(model.guarantee.epsilon)
    _title(
        axes,
        "1  What is published",
        f"counts of {bins[0]} x {bins[1]} cells with noise, epsilon = {epsilon:g}; no rows",
    )
    _label(axes, model.domain)


def _scores_panel(figure: Figure, axes: Any, detector: Any, data: Any) -> None:
    domain = detector.model_.domain
    x = np.linspace(domain.lower[0], domain.upper[0], 241)
    y = np.linspace(domain.lower[1], domain.upper[1], 241)
    plane = np.stack([side.ravel() for side in np.meshgrid(x, y)], axis=1)
    scores = detector.outlier_scores(plane).reshape(len(y), len(x))
    near = scores[scores < domain.n_features]
    top = float(near.max()) if len(near) else 1.0  # walks that gathered nothing score the diameter: cap the colours
    image = axes.imshow(
        np.minimum(scores, top),
        origin="lower",
        extent=_extent(domain),
        aspect="auto",
        cmap="Greys",
        vmin=0,
        vmax=1.4 * top,
    )
    axes.contour(x, y, (scores > -detector.offset_).astype(float), levels=[0.5], colors=GREEN, linewidths=1.8)
    for label, colour, marker in ((1, ORANGE, "x"), (0, BLUE, "o")):
        here = data.points[data.labels == label]
        axes.scatter(here[:, 0], here[:, 1], c=colour, marker=marker, s=20, linewidths=1, alpha=0.85)
    axes.set_xlim(domain.lower[0], domain.upper[0])
    axes.set_ylim(domain.lower[1], domain.upper[1])
    found = detector.false_alarms()
    handles = [
        Line2D([], [], color=BLUE, marker="o", ls="", label="benign, held out"),
        Line2D([], [], color=ORANGE, marker="x", ls="", label="malignant"),
        Line2D([], [], color=GREEN, label=f"threshold: {percent(found.lower)} to {percent(found.upper)} false alarms"),
    ]
    axes.legend(handles=handles, loc="upper left", fontsize=8.5, framealpha=0.92)
    figure.colorbar(image, ax=axes, label="outlier score", pad=0.02, extend="max").ax.set_ylim(0, top)
    _title(axes, "2  What it says of new points", "darker is more outlying; scoring costs no privacy, however often")
    _label(axes, domain)


def _quality_panel(axes: Any, rows: Sequence[Any]) -> None:
    colours = [ORANGE, BLUE, BLUE, GREY]
    axes.axvline(0.5, color=GREY, lw=1, ls=":", zorder=0)
    axes.text(0.505, len(rows) - 0.45, "chance", color=GREY, fontsize=9, va="center")
    for i, (row, colour) in enumerate(zip(reversed(rows), reversed(colours), strict=True)):
        axes.hlines(i, 0.3, 1, color="#E6E6E6", lw=1, zorder=0)
        axes.errorbar(row.auroc, i, xerr=row.spread, fmt="o", color=colour, capsize=4, markersize=9)
        axes.text(row.auroc, i + 0.13, f"{row.auroc:.3f}", ha="center", fontsize=11, color=INK)
    axes.set_yticks(range(len(rows)), [row.name.replace(", ", "\n") for row in reversed(rows)], fontsize=10)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0.3, 1.02)
    axes.set_ylim(-0.5, len(rows) - 0.3)
    axes.set_xticks([0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    axes.set_xlabel("AUROC on held-out points")
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    _title(axes, "3  How well", "bars: standard deviation over the noise")


def _label(axes: Any, domain: Any) -> None:
    axes.set_xlabel(domain.labels[0])
    axes.set_ylabel(domain.labels[1])
