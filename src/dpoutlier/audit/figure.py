"""The picture of an audit: the claimed epsilon against the measured lower bound."""

import io
from typing import Any

from dpoutlier.audit.findings import Finding
from dpoutlier.explain.drawing import INK, STYLE, Figure, Line2D, mpl

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A8A8A", "#000000")
MARKERS = {"counts": "o", "scores": "s", "file": "^"}
MIN_SHOWN = 1 / 12
"""Share of the smallest epsilon. Bounds below it are drawn there, at the mark 0."""


def audit_figure(findings: list[Finding]) -> Figure:
    """A panel for each detector and relation: claimed epsilon to the right, measured bound upward, both logarithmic.

    Full marks are guesses of canaries in one run, open ones many runs. Their form says what was looked at. No point may lie above
    the line of what is claimed; the closer to it, the sharper the audit.
    """
    detectors = list(dict.fromkeys(one.detector for one in findings))
    relations = list(dict.fromkeys(one.neighbours for one in findings))
    with mpl.rc_context(STYLE):
        width = 1.6 + 3.7 * len(detectors)
        figure = Figure(figsize=(width, 1.0 + 3.6 * len(relations)), layout="constrained")
        panels = figure.subplots(len(relations), len(detectors), squeeze=False, sharex=True, sharey=True)
        for row, relation in zip(panels, relations, strict=True):
            for axes, detector in zip(row, detectors, strict=True):
                own = [one for one in findings if (one.neighbours, one.detector) == (relation, detector)]
                _draw(axes, own, findings)
                axes.set_title(f"{detector}, {relation}")
        for axes in panels[-1]:
            axes.set_xlabel("epsilon claimed")
        for axes in panels[:, 0]:
            axes.set_ylabel("epsilon measured at least (99.9 %)")
        figure.legend(handles=_legend(findings), loc="outside lower center", ncols=min(6, 2 * len(detectors)))
    return figure


def _draw(axes: Any, own: list[Finding], everything: list[Finding]) -> None:
    epsilons = sorted({one.claimed for one in everything})
    least = epsilons[0] * MIN_SHOWN
    ends = [epsilons[0] / 1.5, epsilons[-1] * 1.5]
    axes.plot(ends, ends, color=INK, lw=1.2)
    axes.plot(ends, [end / 2 for end in ends], color=INK, lw=0.8, ls=":")
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=(least / 1.2, ends[1]))
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    ticks = [2.0**power for power in range(-10, 6) if 1.5 * least <= 2.0**power <= ends[1]]
    axes.set_yticks([least, *ticks], ["0", *(f"{tick:g}" for tick in ticks)])
    axes.minorticks_off()
    series = list(dict.fromkeys((one.case, one.counts) for one in own))
    for i, (case, counts) in enumerate(series):
        colour, aside = COLOURS[i % len(COLOURS)], 1 + 0.025 * (i - (len(series) - 1) / 2)
        mine = [one for one in own if (one.case, one.counts) == (case, counts)]
        tried = [epsilon for epsilon in epsilons if any(one.claimed == epsilon for one in mine)]
        sharpest = [max(one.bound for one in mine if one.claimed == epsilon) for epsilon in tried]
        name = case if counts == "dense" else f"{case}, {counts}"
        heights = [max(bound, least) for bound in sharpest]
        axes.plot([epsilon * aside for epsilon in tried], heights, color=colour, lw=1, label=name)
        for one in mine:
            filled = one.method == "one run"
            axes.plot(
                one.claimed * aside, max(one.bound, least), MARKERS[one.channel], ms=4.2, mew=0.9,
                mec=colour, mfc=colour if filled else "white", zorder=3,
            )  # fmt: skip
    many = len(series) > 4
    axes.legend(loc="lower right" if many else "upper left", fontsize=7.5, handlelength=1.2, labelspacing=0.25)


def _legend(findings: list[Finding]) -> list[Line2D]:
    handles = [
        Line2D([], [], color=INK, lw=1.2, label="claimed"),
        Line2D([], [], color=INK, lw=0.8, ls=":", label="half of it"),
    ]
    for method, face in (("many runs", "white"), ("one run", "#777777")):
        channels = dict.fromkeys(one.channel for one in findings if one.method == method)
        mark: Any = {"ls": "", "mec": "#777777", "mfc": face, "ms": 5}
        handles += [Line2D([], [], marker=MARKERS[name], label=f"{name}, {method}", **mark) for name in channels]
    return handles


def audit_picture(findings: list[Finding], kind: str = "png") -> bytes:
    """The figure as bytes of a PNG or SVG file."""
    stream = io.BytesIO()
    with mpl.rc_context(STYLE):
        audit_figure(findings).savefig(stream, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    return stream.getvalue()
