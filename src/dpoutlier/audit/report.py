"""What an audit leaves behind: audit.html with everything in it, and beside it audit.csv and audit.png."""

import base64
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow.csv

from dpoutlier._atomic import write_aside
from dpoutlier.audit.figure import audit_picture
from dpoutlier.audit.findings import Finding, table_of
from dpoutlier.explain.drawing import Environment, FileSystemLoader, StrictUndefined


class Line:
    """The sharpest bounds of one case, by epsilon."""

    def __init__(self, findings: list[Finding]) -> None:
        first = findings[0]
        self.case, self.neighbours, self.counts = first.case, first.neighbours, first.counts
        self.by_epsilon: dict[float, Finding] = {}
        for one in findings:
            best = self.by_epsilon.get(one.claimed)
            if best is None or one.bound > best.bound:
                self.by_epsilon[one.claimed] = one


def sharpest_lines(findings: list[Finding]) -> list[Line]:
    """A line for each case, relation and kind of counts."""
    keys = dict.fromkeys((one.case, one.neighbours, one.counts) for one in findings)
    return [Line([one for one in findings if (one.case, one.neighbours, one.counts) == key]) for key in keys]


def verdict(findings: list[Finding]) -> str:
    """What it comes to, in words."""
    refuted = [one for one in findings if one.refuted]
    if refuted:
        worst = max(refuted, key=lambda one: one.certain - one.claimed)
        return (
            f"REFUTED: {len(refuted)} of {len(findings)} audits refute the claim. The worst: {worst.case}, {worst.neighbours}, "
            f"{worst.counts}, {worst.method} on {worst.channel}: epsilon is at least {worst.certain:.3f}, and {worst.claimed:g} is "
            "claimed. Something is broken: do not release anything."
        )
    text = f"No claim is refuted by any of {len(findings)} audits."
    blind = sorted({one.claimed for one in findings} - {one.claimed for one in findings if one.bound > 0})
    if blind:
        named = ", ".join(f"{epsilon:g}" for epsilon in blind)
        text += (
            f" At epsilon {named} the audit has no statistical power: one row changes too many counts for so few runs. Use more "
            "--runs, or a configuration with fewer trees or features."
        )
    expected = [one for one in findings if one.expects_power]
    if expected:
        sharp = sum(not one.without_power for one in expected)
        text += f" {sharp} of the {len(expected)} audits that should measure at least half of epsilon did."
    return text


def write_audit(findings: list[Finding], folder: Path, how: str, seconds: float, details: dict[str, str]) -> Path:
    """Write all files, the page last. ``details`` are further lines for the page. Returns the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    picture = audit_picture(findings)
    write_aside(folder / "audit.csv", lambda stream: pyarrow.csv.write_csv(table_of(findings), stream), overwrite=True)
    write_aside(folder / "audit.png", lambda stream: stream.write(picture), overwrite=True)
    page = _page(findings, how, seconds, details)
    return write_aside(folder / "audit.html", lambda stream: stream.write(page.encode()), overwrite=True)


def _page(findings: list[Finding], how: str, seconds: float, details: dict[str, str]) -> str:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    picture = "data:image/svg+xml;base64," + base64.b64encode(audit_picture(findings, "svg")).decode()
    run: dict[str, Any] = {
        "finished": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "minutes": seconds / 60,
        "how": how,
        "versions": f"dpoutlier {version('dpoutlier')}, Python {platform.python_version()}, NumPy {version('numpy')}",
    }
    return environment.get_template("audit.html.j2").render(
        findings=findings,
        lines=sharpest_lines(findings),
        epsilons=sorted({one.claimed for one in findings}),
        refuted=any(one.refuted for one in findings),
        blind=not any(one.bound > 0 for one in findings),
        verdict=verdict(findings),
        details=details,
        picture=picture,
        run=run,
    )
