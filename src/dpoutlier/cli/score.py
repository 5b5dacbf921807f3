"""``dpoutlier score``: points in, scores out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpoutlier.cli.errors import errors_for_people

if TYPE_CHECKING:
    import pyarrow as pa

    from dpoutlier.detectors.fitted import FittedDetector

__all__ = ["score"]

BATCH = 4096
ADDED = ("outlier_score", "outside_bounds", "prediction")


def score(
    model: Annotated[Path, typer.Argument(help="Model file, .dpo or .secret.dpo.")],
    points: Annotated[Path, typer.Argument(help="Points to score, CSV or Parquet.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="All rows with their scores, .csv or .parquet.")
    ] = None,
    top: Annotated[int, typer.Option(min=0, help="How many of the most outlying rows to print.")] = 10,
    target_fpr: Annotated[
        float | None, typer.Option(help="Move the threshold to this false-positive rate, free of charge.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Move the threshold to this outlier score, free of charge.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 for all cores.")] = -1,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output file.")] = False,
) -> None:
    """Score points with a model, free of privacy cost.

    Example: dpoutlier score model.dpo patients.csv -o scores.csv
    """
    with errors_for_people():
        from dpoutlier.cli.files import read_points, table_writer  # noqa: PLC0415 - --help must not wait for it
        from dpoutlier.cli.progress import console, say_if_compiling  # noqa: PLC0415
        from dpoutlier.detectors.loading import load  # noqa: PLC0415
        from dpoutlier.modelfile import SECRET_SUFFIX  # noqa: PLC0415

        write = None if output is None else table_writer(output, overwrite=force)
        detector = load(model, secret=model.name.endswith(SECRET_SUFFIX), n_jobs=jobs)
        if target_fpr is not None or threshold is not None:
            detector.set_threshold(target_fpr=target_fpr, score=threshold)
        domain = detector.model_.domain
        table = read_points(points, domain)
        _check_names(points, table)
        say_if_compiling()
        result = _scored(detector, table)
        if write is not None:
            write(
                result,
                [name for j, name in enumerate(domain.names or table.column_names) if domain.category(j) is None],
            )
        if not detector.model_.publishable:
            console(stderr=True).print("This model file is secret: keep it with the custodian.", style="yellow")
        if top:
            _print_top(result, top, list(domain.names or ()))
        if output is not None:
            console().print(f"Wrote {output}", soft_wrap=True, markup=False)


def _check_names(path: Path, table: "pa.Table") -> None:
    from dpoutlier.exceptions import PointsError  # noqa: PLC0415

    taken = [name for name in table.column_names if name in ADDED]
    if taken:
        raise PointsError(f"{path} has a column {taken[0]!r}, which scoring would add. Rename it, or leave it out.")


def _scored(detector: "FittedDetector", table: "pa.Table") -> "pa.Table":
    """The table with its scores, in batches."""
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    from dpoutlier.cli.progress import stages  # noqa: PLC0415

    domain = detector.model_.domain
    features = table if domain.names is None else table.select(list(domain.names))
    outside = detector.outside_bounds(features)  # finds what is missing, wherever that is, before any work
    scores = np.empty(len(table))
    for part in stages(len(table), BATCH, "scoring"):
        scores[part] = detector.outlier_scores(features.slice(part.start, part.stop - part.start))
    table = table.append_column("outlier_score", pa.array(scores))
    table = table.append_column("outside_bounds", pa.array(outside))
    if detector.model_.threshold is not None:
        table = table.append_column("prediction", pa.array(detector.labels(scores)))
    return table


def _print_top(result: "pa.Table", top: int, features: list[str]) -> None:
    import numpy as np  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from dpoutlier.cli.progress import console  # noqa: PLC0415

    out = console()
    scores = result.column("outlier_score").to_numpy()
    order = np.argsort(-scores, kind="stable")[:top]
    extra = [name for name in ADDED if name in result.column_names]
    room = max(0, (out.width - 52) // 14)  # as many of the other columns as fit
    others = [*features, *(name for name in result.column_names if name not in {*extra, *features})]
    names = [*extra, *others[:room]]
    table = Table(title=f"{len(order)} most outlying of {len(scores)} points", title_justify="left")
    for name in ("row", *names):
        table.add_column(
            Text(name), justify="right", no_wrap=name in {"row", *extra}, overflow="ellipsis", max_width=24
        )
    for i in order:
        values = {name: result.column(name)[int(i)].as_py() for name in names}
        table.add_row(str(i), *(Text(_shown(name, value)) for name, value in values.items()))
    out.print(table)


def _shown(name: str, value: Any) -> str:
    if name == "outlier_score":
        return f"{value:.4g}"
    if name == "outside_bounds":
        return "yes" if value else ""
    if name == "prediction":
        return "outlier" if value == -1 else "inlier"
    return str(value)
