"""``dpoutlier score``: points in, scores out."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from dpoutlier.cli.errors import errors_for_people

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from dpoutlier.cli.points import Points
    from dpoutlier.detectors.batches import BatchScorer
    from dpoutlier.detectors.scores import ScoresPoints

__all__ = ["score"]

BATCH = 4096
CELL = "or fit with a cell for missing values (missing='cell')"
UNSCORED = "leave them without a score with --missing null, or fit with a cell for missing values"


class Missing(StrEnum):
    """What becomes of a point that misses a value."""

    error = "error"
    null = "null"


def score(
    model: Annotated[Path, typer.Argument(help="Model file, .dpo or .secret.dpo; with --url, the id of a model.")],
    points: Annotated[
        list[Path],
        typer.Argument(
            help="Points to score, CSV or Parquet: files, a pattern in quotes, or a folder of .parquet files."
        ),
    ],
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
    missing: Annotated[
        Missing, typer.Option(help="Points that miss a value for which the model has no cell: an error, or no score.")
    ] = Missing.error,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 for all cores.")] = -1,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output file.")] = False,
    url: Annotated[
        str | None, typer.Option(help="Let a server score, such as https://host:8765; the output is the same.")
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option(help="File that holds the key for --url; else it is taken from DPOUTLIER_KEY.")
    ] = None,
    ca: Annotated[Path | None, typer.Option(help="File of the authority that signed the certificate of --url.")] = None,
) -> None:
    """Score points with a model, free of privacy cost. Files may be larger than memory.

    Example: dpoutlier score model.dpo patients.csv -o scores.csv

    Many files: dpoutlier score model.dpo "points/*.parquet" -o scores.parquet

    On a server: dpoutlier score model patients.csv -o scores.csv --url https://host:8765 --key-file key.txt
    """
    with errors_for_people():
        from dpoutlier._atomic import check_output  # noqa: PLC0415 - --help must not wait for it
        from dpoutlier.cli.opening import opened  # noqa: PLC0415
        from dpoutlier.cli.progress import console, say_if_compiling  # noqa: PLC0415
        from dpoutlier.tables.paths import format_of  # noqa: PLC0415

        if output is not None:
            format_of(output)
            check_output(output, overwrite=force)
        detector = opened(model, url, key_file, ca, jobs)
        if target_fpr is not None or threshold is not None:
            _set_threshold(detector, target_fpr, threshold)
        if url is None:
            say_if_compiling()

        def all_of(scoring: "ScoresPoints") -> Scored:
            return _run(points, scoring, missing, output, Most(top), overwrite=force)

        scored = (
            all_of(detector)
            if not hasattr(detector, "_retry_on_replaced_model")
            else detector._retry_on_replaced_model(all_of)
        )
        if url is None and not detector.publishable:
            console(stderr=True).print("This model file is secret: keep it with the custodian.", style="yellow")
        if top:
            _print_top(scored)
        if output is not None:
            console().print(f"Wrote {output}", soft_wrap=True, markup=False)


def _set_threshold(detector: "ScoresPoints", target_fpr: float | None, threshold: float | None) -> None:
    """Move the threshold; errors name the options."""
    from dpoutlier.exceptions import InvalidParameterError, ThresholdNotSetError  # noqa: PLC0415

    if target_fpr is not None and threshold is not None:
        raise InvalidParameterError("--target-fpr and --threshold both move the threshold: give one of them.")
    text = None
    try:
        detector.set_threshold(target_fpr=target_fpr, score=threshold)
    except ThresholdNotSetError as error:
        text = str(error).replace("set_threshold(score=...)", "--threshold SCORE")
        text = text.replace("with target_fpr=0.05 (it", "with --target-fpr 0.05 (it")
    except InvalidParameterError as error:
        name, rest = str(error).split(" ", 1)
        called = {"target_fpr": "--target-fpr", "score": "--threshold"}.get(name, name)
        text = f"{called} {rest}"
    if text is not None:
        raise InvalidParameterError(text)


class Found(NamedTuple):
    """One of the most outlying points."""

    score: float
    file: int
    row: int
    values: dict[str, Any]


class Most:
    """The points with the largest scores so far; of equal ones those that came first."""

    def __init__(self, size: int) -> None:
        self.size, self.points, self.found = size, 0, list[Found]()

    def add(self, scored: "pa.Table", scores: "NDArray[np.float64]", file: int, first: int) -> None:
        """Look through some rows more. A score that is NaN is none."""
        import numpy as np  # noqa: PLC0415

        self.points += len(scores)
        order = np.argsort(-scores, kind="stable")[: self.size]  # NaN comes last
        for i in order[~np.isnan(scores[order])].tolist():
            if len(self.found) < self.size or scores[i] > self.found[-1].score:
                row = {name: scored.column(name)[i].as_py() for name in scored.column_names}
                self.found.append(Found(float(scores[i]), file, first + i, row))
                self.found.sort(key=lambda one: -one.score)
                del self.found[self.size :]


class Scored(NamedTuple):
    """What was scored, for the table that is printed."""

    best: Most
    source: "Points"
    added: list[str]
    features: list[str]
    """The columns that are features, where the model knows their names."""


def _run(
    points: list[Path],
    detector: "ScoresPoints",
    missing: Missing,
    output: Path | None,
    best: Most,
    *,
    overwrite: bool,
) -> Scored:
    """Score all points and write them aside; the file has its name when it is complete."""
    import pyarrow as pa  # noqa: PLC0415

    from dpoutlier._atomic import write_aside  # noqa: PLC0415
    from dpoutlier.cli.points import Points, points_writer  # noqa: PLC0415
    from dpoutlier.detectors.frames import batch_scorer, check_columns  # noqa: PLC0415

    scorer, domain = batch_scorer(detector, missing=missing.value), detector._fitted_domain()
    source = Points(points, domain)
    features = check_columns(list(source.schema.names), scorer, where=str(source.files[0]))
    scored = Scored(best, source, scorer.names, features if domain.names else [])
    if output is None:
        for _ in _scored(source, scorer, features, best):
            pass
        return scored
    schema = pa.schema([*source.schema, *scorer.arrow_fields()], source.schema.metadata)
    numbers = [name for j, name in enumerate(features) if domain.category(j) is None]

    def content(stream: IO[bytes]) -> None:
        with points_writer(stream, output.suffix.lower(), schema, numbers) as write:
            for table in _scored(source, scorer, features, best):
                write(table)

    write_aside(output, content, overwrite=overwrite)
    return scored


def _scored(source: "Points", scorer: "BatchScorer", features: list[str], best: Most) -> "Iterator[pa.Table]":
    """The points with their scores, batch by batch."""
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    from dpoutlier.cli.progress import points_done  # noqa: PLC0415

    with points_done("scoring") as show:
        for batch in source:
            table, (before, after) = batch.table, batch.share
            chosen, parts = table.select(features), []
            for first in range(0, len(table), BATCH):
                parts.append(_told(source, scorer, chosen.slice(first, BATCH), batch.file, batch.first + first))
                done = min(first + BATCH, len(table))
                show(best.points + done, before + (after - before) * done / len(table))
            for field, *values in zip(scorer.arrow_fields(), *parts, strict=True):
                table = table.append_column(field, pa.chunked_array(values, field.type))
            scores = table.column(scorer.score).to_numpy()
            best.add(table, np.asarray(scores, np.float64), batch.file, batch.first)
            yield table


def _told(source: "Points", scorer: "BatchScorer", features: "pa.Table", file: int, first: int) -> list[Any]:
    from dpoutlier.exceptions import PointsError  # noqa: PLC0415

    try:
        return scorer.arrow(features, first)
    except PointsError as error:
        text = str(error).replace(CELL, UNSCORED)
        if len(source.files) > 1:
            text = f"{source.files[file]}: {text}"
    raise PointsError(text)


def _print_top(scored: Scored) -> None:
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from dpoutlier.cli.progress import console  # noqa: PLC0415

    out, (best, source, added, features) = console(), scored
    places = ["file", "row"] if len(source.files) > 1 else ["row"]
    room = max(0, (out.width - 52) // 14 - len(places) + 1)  # as many of the other columns as fit
    others = [*features, *(name for name in source.schema.names if name not in features)]
    names = [*added, *others[:room]]
    table = Table(title=f"{len(best.found)} most outlying of {best.points} points", title_justify="left")
    for name in (*places, *names):
        table.add_column(
            Text(name), justify="right", no_wrap=name in {"row", *added}, overflow="ellipsis", max_width=24
        )
    for one in best.found:
        where = [Text(source.files[one.file].name), Text(str(one.row))][-len(places) :]
        table.add_row(*where, *(Text(_shown(name, one.values[name])) for name in names))
    out.print(table)


def _shown(name: str, value: Any) -> str:
    if name == "outlier_score":
        return f"{value:.4g}"
    if name == "outside_bounds":
        return "yes" if value else ""
    if name == "prediction":
        return "outlier" if value == -1 else "inlier"
    return str(value)
