"""Claims against readings: where a claim holds, where it fails, and which choice decides."""

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from experiments.report.drawing import BLUE, INK, SAND
from experiments.report.judgements import Judgement


def readings_figure(judgements: list[Judgement]) -> Figure:
    """A square for each claim and reading; the base reading stands apart."""
    judged = [one for one in judgements if one.findings]
    readings = list(judged[0].findings)
    figure = Figure(figsize=(9.2, 0.33 * len(judged) + 2.4), layout="constrained")
    axes = figure.subplots()
    for y, one in enumerate(judged):
        for x, finding in enumerate(one.findings.values()):
            colour, sign, ink = (BLUE, "✓", "white") if finding.holds else (SAND, "✗", INK)
            axes.add_patch(Rectangle((x - 0.46, y - 0.44), 0.92, 0.88, color=colour, lw=0))
            axes.text(x, y, sign, ha="center", va="center", fontsize=10, color=ink)
    axes.set_xlim(-0.5, len(readings) - 0.5)
    axes.set_ylim(len(judged) - 0.5, -0.5)
    names = [reading.name for reading in readings]
    axes.set_xticks(range(len(readings)), names, rotation=60, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(judged)), [f"{one.claim.name} ({one.claim.place})" for one in judged])
    axes.grid(visible=False)
    axes.axvline(0.5, color=INK, lw=1.2)
    for side in axes.spines.values():
        side.set_visible(False)
    return figure
