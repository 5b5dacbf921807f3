"""``dpoutlier export``: write a score table, and the SQL that uses it."""

from pathlib import Path
from typing import Annotated

import typer

from dpoutlier.cli.progress import say, say_if_compiling


def export(
    model: Annotated[Path, typer.Argument(help="Model file of a forest or of marginals, .dpo.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Score table to write, .parquet: a term for each cell.")
    ],
    sql: Annotated[Path | None, typer.Option(help="File for the SQL, .sql; by default the SQL is printed.")] = None,
    table: Annotated[str, typer.Option(help="Name of the table of points that the SQL reads.")] = "points",
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
) -> None:
    """Write a table and SQL from which a database scores points by itself.

    Example: dpoutlier export model.dpo -o terms.parquet --sql score.sql --table points
    """
    from dpoutlier.detectors.load import load  # noqa: PLC0415 - --help must not wait for it
    from dpoutlier.model.file import has_secret_name  # noqa: PLC0415

    detector = load(model, secret=has_secret_name(model))  # a secret one is refused below, with the right message
    say_if_compiling()
    query = detector.export_scores(output, sql, table=table, overwrite=force)
    if sql is None:
        typer.echo(f"{query};")
        return
    say(f"Wrote {output} and {sql}")
