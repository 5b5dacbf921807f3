"""``dpoutlier explain``: which features make a point outlying, and what would be usual instead."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpoutlier.cli.model_source import CaFile, KeyFile, ModelOrId, open_model
from dpoutlier.cli.progress import console, say, say_if_compiling
from dpoutlier.exceptions import PointsError

if TYPE_CHECKING:
    from dpoutlier.explain.explanation import Explanation


def explain(
    model: ModelOrId,
    points: Annotated[Path, typer.Argument(help="Points, CSV or Parquet.")],
    row: Annotated[int, typer.Option(help="Row to explain, counted from 0; by default the most outlying one.")] = -1,
    top: Annotated[int, typer.Option(min=1, help="How many features to print.")] = 10,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Picture to write, .png or .svg.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing picture.")] = False,
    url: Annotated[
        str | None, typer.Option(help="Address of a server that explains, such as https://host:8765.")
    ] = None,
    key_file: KeyFile = None,
    ca: CaFile = None,
) -> None:
    """Show which features make a point outlying and what would be usual instead, free of privacy cost.

    For a grid, "instead" is the nearest region in which the point would be usual. For forests and marginals it is, for one feature
    at a time, the nearest values at which the score would be typical.

    Example: dpoutlier explain model.dpo patients.csv --row 3 -o why.png
    """
    from dpoutlier._atomic import check_output  # noqa: PLC0415 - --help must not wait for it
    from dpoutlier._validate import parameter_error  # noqa: PLC0415
    from dpoutlier.cli.files import read_points  # noqa: PLC0415

    if output is not None:
        if output.suffix.lower() not in {".png", ".svg"}:
            raise parameter_error("--output", "a .png or .svg file", str(output))
        import dpoutlier.explain.drawing  # noqa: PLC0415, F401 - a missing extra is said before the work

        check_output(output, overwrite=force)
        if url is not None:
            raise parameter_error("--output", "left out with --url", str(output), "A picture needs the model file.")
    detector = open_model(model, url, key_file, ca)
    domain = detector._fitted_domain()
    table = read_points(points, domain)
    if url is None:
        say_if_compiling()
    chosen = table if domain.names is None else table.select(list(domain.names))
    if not len(table):
        raise PointsError(f"{points} has no rows, so there is nothing to explain.")
    if not -1 <= row < len(table):
        most = len(table) - 1
        raise parameter_error(
            "--row", f"a row number of {points}, from 0 to {most}, or -1 for the most outlying row", row
        )
    number = row if row >= 0 else int(detector.outlier_scores(chosen).argmax())
    one = chosen.slice(number, 1)
    found = detector.explain(one)
    given = {name: column[0].as_py() for name, column in zip(found.features, one.columns, strict=True)}
    _print(found, given, number, top)
    if output is not None:
        from dpoutlier.explain.plots import explanation_figure  # noqa: PLC0415

        explanation_figure(output, found, given, number, top)
        say(f"Wrote {output}")


def _print(found: "Explanation", given: dict[str, object], number: int, top: int) -> None:

    table = found.to_table(top=top, name=f"row {number}", given=given)
    table.caption = None  # it may be wider than the table
    console().print(table)
    say(found.note(top=top), style="dim")
