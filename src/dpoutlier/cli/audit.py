"""``dpoutlier audit``: bound epsilon from below by experiment."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpoutlier.cli.progress import console, say, say_if_compiling, share_done, working

if TYPE_CHECKING:
    from rich.table import Table

    from dpoutlier.audit.cases import Case
    from dpoutlier.audit.findings import Finding


REFUTED, INTERRUPTED = 3, 130


def audit(
    config: Annotated[
        Path | None,
        typer.Argument(
            help="What to audit: a TOML file with a detector and its arguments, or a model file, whose arguments are taken. "
            "Without it: the standard cases of every detector, relation and kind of counts."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for audit.html, audit.csv and audit.png.")] = Path("audit"),
    runs: Annotated[
        int | None,
        typer.Option(
            min=100, help="Largest number of fits on each of the two data sets. By default, as many as each case needs."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few runs: minutes instead of a quarter of an hour.")] = False,
    n_jobs: Annotated[int, typer.Option("--n-jobs", "-j", help="Processes; -1 for all cores.")] = -1,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed of the noise, to repeat an audit. By default, the noise comes from the system, as in any fit."
        ),
    ] = None,
) -> None:
    """Measure how much of epsilon an attacker can see.

    Fits the detector many times on made-up worst-case data with and without one person, and once with thousands of canaries, and
    tells these fits apart by their counts, scores and files. That bounds the true epsilon from below. No data is read and no budget
    is spent. Ends with status 3 if a bound exceeds the claim: the chance of a false alarm is 10^-7 for each line of the report.

    Example: dpoutlier audit forest.toml --out audit
    """
    import os  # noqa: PLC0415 - --help must not wait for all this
    from dataclasses import replace  # noqa: PLC0415
    from time import perf_counter  # noqa: PLC0415

    from dpoutlier._validate import parameter_error  # noqa: PLC0415
    from dpoutlier.audit.report import verdict, write_audit  # noqa: PLC0415
    from dpoutlier.audit.run import FULL, QUICK, run_audit  # noqa: PLC0415
    from dpoutlier.scoring.threads import thread_count  # noqa: PLC0415

    begin = perf_counter()
    if n_jobs < -1 or n_jobs == 0:
        raise parameter_error("--n-jobs", "a number of processes, or -1 for all cores", n_jobs)
    there = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise parameter_error("--out", "a folder that can be written to", str(out))
    say_if_compiling()
    cases = _cases(config)
    effort = QUICK if quick else FULL
    if runs is not None:
        effort = replace(
            effort, most_runs=runs, most_elsewhere=runs, most_files=min(runs, effort.most_files), patient=True
        )
    try:
        with share_done() as watch:
            findings = run_audit(cases, effort, jobs=thread_count(n_jobs), seed=seed, watch=watch)
    except KeyboardInterrupt:
        console(stderr=True).print("\nStopped. Nothing was written.")
        raise typer.Exit(INTERRUPTED) from None
    with working("drawing and writing"):
        noise = "Noise of the operating system" if seed is None else f"Noise from the seed {seed}"
        page = write_audit(findings, out, noise, perf_counter() - begin, _described(cases, quick=quick))
    console().print(_table(findings))
    say(f"\n{verdict(findings)}\n\nReport: {page}")
    if any(one.refuted for one in findings):
        raise typer.Exit(REFUTED)


def _cases(config: Path | None) -> "list[Case]":
    from dpoutlier.audit.cases import Case, standard_cases  # noqa: PLC0415
    from dpoutlier.audit.configuration import configuration_of_file  # noqa: PLC0415

    if config is None:
        return list(standard_cases())
    configuration, epsilons = configuration_of_file(config)
    found: list[Any] = [configuration.with_epsilon(epsilon) for epsilon in epsilons]
    return [Case(config.name, one, one, has_power=False) for one in found]


def _table(findings: "list[Finding]") -> "Table":
    from rich.table import Table  # noqa: PLC0415

    from dpoutlier.audit.report import sharpest_lines  # noqa: PLC0415

    epsilons = sorted({one.claimed for one in findings})
    table = Table(title="Sharpest lower bound on epsilon (99.9 % confidence), by claimed epsilon", title_justify="left")
    for name in ("case", "neighbours", "counts"):
        table.add_column(name, no_wrap=name != "case")
    for epsilon in epsilons:
        table.add_column(f"{epsilon:g}", justify="right", no_wrap=True)
    for line in sharpest_lines(findings):
        cells = []
        for epsilon in epsilons:
            one = line.by_epsilon.get(epsilon)
            cells.append("" if one is None else f"[red]{one.bound:.3f}[/]" if one.refuted else f"{one.bound:.3f}")
        table.add_row(line.case, line.neighbours, line.counts, *cells)
    return table


def _described(cases: "list[Case]", *, quick: bool) -> dict[str, str]:
    """What was audited, for the page: of the standard cases their names are enough."""
    details = {"effort": "quick: few runs"} if quick else {}
    if len({case.label for case in cases}) > 1:
        return {"configuration": "the standard cases of every detector, relation and kind of counts", **details}
    case = cases[0]
    arguments = {name: value for name, value in case.many.arguments.items() if name != "epsilon" and value is not None}
    listed = ", ".join(f"{name}={value!r}" for name, value in sorted(arguments.items()))
    return {"configuration": f"{case.detector} of {case.many.n_features} features: {listed}", **details}
