"""``python -m experiments``: the paper's experiments, with one command (``make reproduce``)."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from dpoutlier.exceptions import DpoutlierError

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
FAILED, BAD_INPUT = 1, 2


@contextmanager
def _errors_as_a_line() -> Iterator[None]:
    """What was asked for cannot be done, or the machine failed. All else is a bug, and keeps its traceback."""
    try:
        yield
    except DpoutlierError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(BAD_INPUT) from None
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else error
        typer.echo(f"Error: {what}.", err=True)
        raise typer.Exit(FAILED) from None


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
    n_jobs: Annotated[int, typer.Option("--n-jobs", "-j", help="Processes; -1 for all cores.")] = -1,
) -> None:
    """Rerun the paper's experiments: its Table 1, Figure 1, Figure 2, and which of its claims hold.

    Writes report.html, with every figure and number in it, and beside it results.parquet, summary.csv, claims.csv, readings.csv and
    figures/. Where the paper leaves a choice open, several readings are run: a claim holds, depends on the reading, or fails.
    Figures 1 and 2 are those of the results; if you count the picture of the grid, they are Figures 2 and 3.
    Stop it at any time: the same command goes on where it was left, and ends with the same tables.

    Example: python -m experiments --quick --out reproduction

    Example: python -m experiments --only figure1
    """
    with _errors_as_a_line():
        from experiments.report import command  # noqa: PLC0415 - --help must not wait for all this

        command.reproduce(data, out, sets, only, n_jobs, quick=quick)


if __name__ == "__main__":
    app(prog_name="python -m experiments")
