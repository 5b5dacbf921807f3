"""The report: one page that needs no other file and no network."""

import base64
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from experiments.measure.variants import VARIANTS
from experiments.report.answers import answers
from experiments.report.comparison import Comparison
from experiments.report.comparison_answer import compared_lines, detectors_answer
from experiments.report.figures import Drawn
from experiments.report.judgements import Judgement, tally
from experiments.report.judging import METRIC_NAMES
from experiments.report.ranges import GROUPS, Ranges, ranged_lines
from experiments.report.summary import Summary
from experiments.report.tables import summary_table
from experiments.report.view import TOLERANCE
from experiments.report.wording import decimals, title_of

PACKAGES = ("dpoutlier", "numpy", "scipy", "scikit-learn", "numba", "pyarrow", "matplotlib")


def page(
    summary: Summary,
    judgements: list[Judgement],
    comparison: Comparison,
    ranges: Ranges,
    tables: dict[str, pa.Table],
    drawn: list[Drawn],
    processor_seconds: float,
    session_seconds: float,
) -> str:
    """The page as text."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {"decimals": decimals, "shown": _shown, "title_of": title_of}
    environment.filters |= filters
    return environment.get_template("report.html.j2").render(
        study=summary.study,
        judgements=judgements,
        tally=tally(judgements),
        readings=list(next((one.findings for one in judgements if one.findings), {})),
        answers=[*answers(summary), detectors_answer(comparison)],
        compared=compared_lines(comparison),
        comparison=comparison,
        ranged=ranged_lines(ranges),
        range_groups=list(GROUPS),
        plain=ranges.plain,
        tables={name: table.to_pylist() for name, table in tables.items()},
        figures={one.name: _embedded(one, summary) for one in drawn},
        variants=VARIANTS,
        tolerance=TOLERANCE,
        metric_names=METRIC_NAMES,
        run=_run(summary, processor_seconds, session_seconds),
    )


def _embedded(drawn: Drawn, summary: Summary) -> dict[str, Any]:
    lines = summary_table(summary.lines[key] for key in drawn.keys)
    return {
        "title": drawn.title,
        "caption": drawn.caption,
        "source": "data:image/svg+xml;base64," + base64.b64encode(drawn.pictures["svg"]).decode(),
        "numbers": lines.to_pylist(),
    }


def _run(summary: Summary, processor_seconds: float, session_seconds: float) -> dict[str, Any]:
    return {
        "finished": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor_minutes": processor_seconds / 60,
        "session_minutes": session_seconds / 60,
        "versions": {"Python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "fingerprint": summary.fingerprint,
    }


def _shown(value: Any) -> str:
    """A cell of a table of numbers."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return decimals(value)
    return str(value)
