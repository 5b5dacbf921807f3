"""``dpoutlier score``: points in, scores out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpoutlier.cli.errors import errors_for_people

if TYPE_CHECKING:
    import pyarrow as pa

    from dpoutlier.detectors.partitioned import PartitionedDetector

__all__ = ["score"]

BATCH = 5_000


def score(
    model: Annotated[Path, typer.Argument(help="Model file, .dpo or .secret.dpo.")],
    points: Annotated[Path, typer.Argument(help="Points to score, CSV or Parquet.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="All rows with their scores, .csv or .parquet.")
    ] = None,
    top: Annotated[int, typer.Option(help="How many of the most outlying rows to print.")] = 10,
    target_fpr: Annotated[
        float | None, typer.Option(help="Move the threshold to this false-positive rate, free of charge.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Move the threshold to this outlier score, free of charge.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 for all cores.")] = -1,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output file.")] = False,
) -> None:
    """Score points with a model. Costs no privacy, however often it is done.

    Example: dpoutlier score model.dpo patients.csv -o scores.csv
    """
    with errors_for_people():
        from dpoutlier.cli.files import read_points, table_writer  # noqa: PLC0415 - --help must not wait for it
        from dpoutlier.cli.progress import console  # noqa: PLC0415
        from dpoutlier.detectors.loading import load  # noqa: PLC0415
        from dpoutlier.modelfile import SECRET_SUFFIX  # noqa: PLC0415

        write = None if output is None else table_writer(output)
        if output is not None and output.exists() and not force:
            raise FileExistsError(f"{output} exists. Choose another name, or say that it may be replaced.")
        secret = model.name.endswith(SECRET_SUFFIX)
        detector = load(model, secret=secret).set_params(n_jobs=jobs)
        if target_fpr is not None or threshold is not None:
            detector.set_threshold(target_fpr=target_fpr, score=threshold)
        table = read_points(points, detector.model_.domain.names)
        result = _scored(detector, table)
        if write is not None and output is not None:
            write(result, force)
        if secret:
            console(stderr=True).print("This model file is secret: keep it with the custodian.", style="yellow")
        _print_top(result, top)
        if output is not None:
            console().print(f"\nWrote {output}", soft_wrap=True, markup=False)


def _scored(detector: "PartitionedDetector", table: "pa.Table") -> "pa.Table":
    """The table with its scores, in batches."""
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    from dpoutlier.cli.progress import stages  # noqa: PLC0415

    names = detector.model_.domain.names
    features = table if names is None else table.select(list(names))
    parts: list[tuple[Any, ...]] = []
    for part in stages(len(table), BATCH, "scoring"):
        rows = features.slice(part.start, part.stop - part.start)
        parts.append((detector.outlier_scores(rows), detector.outside_bounds(rows)))
    scores, outside = (
        (np.concatenate(side) for side in zip(*parts, strict=True)) if parts else (np.empty(0), np.empty(0, bool))
    )
    table = table.append_column("outlier_score", pa.array(scores)).append_column("outside_bounds", pa.array(outside))
    if detector.model_.threshold is not None:
        table = table.append_column("prediction", pa.array(np.where(scores > detector.model_.threshold, -1, 1)))
    return table


def _print_top(result: "pa.Table", top: int) -> None:
    import numpy as np  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from dpoutlier.cli.progress import console  # noqa: PLC0415

    scores = result.column("outlier_score").to_numpy()
    order = np.argsort(-scores, kind="stable")[: max(top, 0)]
    extra = ["outlier_score", "outside_bounds"] + (["prediction"] if "prediction" in result.column_names else [])
    shown = [name for name in result.column_names if name not in extra][:6]
    table = Table(title=f"{len(order)} most outlying of {len(scores)} points", title_justify="left")
    table.add_column("row", justify="right")
    for name in (*extra, *shown):
        table.add_column(name, justify="right")
    for i in order:
        row = {name: result.column(name)[int(i)].as_py() for name in (*extra, *shown)}
        row["outlier_score"] = f"{row['outlier_score']:.4g}"
        row["outside_bounds"] = "yes" if row["outside_bounds"] else ""
        if "prediction" in row:
            row["prediction"] = "outlier" if row["prediction"] == -1 else "inlier"
        table.add_row(str(i), *(str(row[name]) for name in (*extra, *shown)))
    console().print(table)
