"""``dpoutlier watch``: do points still come from where the reference rows came from?"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpoutlier.cli.progress import console, points_done, say, say_if_compiling
from dpoutlier.exceptions import PointsError

if TYPE_CHECKING:
    import pyarrow as pa

    from dpoutlier.model.drift import Drift


def watch(
    model: Annotated[Path, typer.Argument(help="Model file, .dpo or .secret.dpo.")],
    points: Annotated[
        list[Path],
        typer.Argument(
            help="Points of a day, say, CSV or Parquet: files, a pattern in quotes, or a folder of .parquet files."
        ),
    ],
    checks_per_month: Annotated[
        int, typer.Option(help="How often you check in a month: a false alarm in a month has a chance of at most 1 %.")
    ] = 30,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare points with the released counts: have they drifted away from the reference rows? Free of privacy cost.

    The exit status is 1 if a drift is seen, and 0 if not. Noise and chance are accounted for; small drifts need many points.

    Example: dpoutlier watch model.dpo today.csv

    Once a week: dpoutlier watch model.dpo "week/*.parquet" --checks-per-month 4
    """
    from dpoutlier.cli.points import Points  # noqa: PLC0415 - --help must not wait for it
    from dpoutlier.detectors.load import load  # noqa: PLC0415
    from dpoutlier.model.file import has_secret_name  # noqa: PLC0415

    detector = load(model, secret=has_secret_name(model))
    domain = detector._fitted_domain()
    source = Points(points, domain)
    features = source.schema.names if domain.names is None else list(domain.names)
    say_if_compiling()

    def parts() -> "Iterator[pa.Table]":
        with points_done("comparing") as show:
            done = 0
            for batch in source:
                yield batch.table.select(features)
                done += len(batch.table)
                show(done, batch.share[1])

    try:
        found = detector.drift(parts(), checks_per_month=checks_per_month)
    except PointsError as error:
        if error.code != "missing-value":
            raise
        raise PointsError(error.problem, remedy="Remove or fill such rows.", code=error.code) from None
    if as_json:
        import json  # noqa: PLC0415

        typer.echo(json.dumps(found.to_dict(), indent=2))
    else:
        _print(found)
    raise typer.Exit(int(found.drifted))


def _print(found: "Drift") -> None:
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    head = f"{found.n_points:,} points, {found.n_compared} shares compared with the released counts"
    if not found.drifted:
        say(f"No drift seen: {head}.")
        return
    say(f"DRIFT: {head}.", style="yellow")
    table = Table(title="What does not fit", title_justify="left")
    for name, justify in (("feature", "left"), ("where", "left"), ("points", "right"), ("reference rows", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for one in found.shifts:
        rows = f"{100 * one.lower:.3g} to {100 * one.upper:.3g} %"
        table.add_row(Text(one.what), Text(one.where), f"{100 * one.points:.3g} %", rows)
    console().print(table)
