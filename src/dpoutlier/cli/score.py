"""``dpoutlier score``: points in, scores out."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from dpoutlier.cli.model_source import CaFile, KeyFile, ModelOrId, open_model
from dpoutlier.cli.progress import console, points_done, say, say_if_compiling
from dpoutlier.exceptions import InvalidParameterError, PointsError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from dpoutlier.cli.points import Points
    from dpoutlier.detectors.batches import BatchScorer
    from dpoutlier.detectors.scores import ScoresPoints


BATCH = 4096
UNSCORED = (
    "Input contains NaN or text: remove or fill such rows, leave them without a score with --missing null, or fit with a cell for "
    "missing values."
)


Missing = Literal["error", "null"]
"""What to do with a point that misses a value."""


def score(
    model: ModelOrId,
    points: Annotated[
        list[Path],
        typer.Argument(
            help="Points to score, CSV or Parquet: files, a pattern in quotes, or a folder of .parquet files."
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for all rows with their scores, .csv or .parquet.")
    ] = None,
    top: Annotated[int, typer.Option(min=0, help="Number of most outlying rows to print.")] = 10,
    target_fpr: Annotated[
        float | None, typer.Option(help="Move the threshold to this false-positive rate, free of charge.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Move the threshold to this outlier score, free of charge.")
    ] = None,
    missing: Annotated[
        Missing,
        typer.Option(
            help="What to do if a point lacks a value for a feature without a cell for missing values: raise an error, or "
            "give no score."
        ),
    ] = "error",
    n_jobs: Annotated[int, typer.Option("--n-jobs", "-j", help="Threads; -1 for all cores.")] = -1,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output file.")] = False,
    url: Annotated[
        str | None,
        typer.Option(help="Address of a server that scores, such as https://host:8765. The output is the same."),
    ] = None,
    key_file: KeyFile = None,
    ca: CaFile = None,
) -> None:
    """Score points with a model, free of privacy cost. Files may be larger than memory.

    Example: dpoutlier score model.dpo patients.csv -o scores.csv

    Many files: dpoutlier score model.dpo "points/*.parquet" -o scores.parquet

    On a server: dpoutlier score model patients.csv -o scores.csv --url https://host:8765 --key-file key.txt
    """
    from dpoutlier._atomic import check_output  # noqa: PLC0415 - --help must not wait for it
    from dpoutlier.tables.paths import format_of  # noqa: PLC0415

    if target_fpr is not None and threshold is not None:
        raise InvalidParameterError("--target-fpr and --threshold both move the threshold: give one of them.")
    if output is not None:
        format_of(output)
        check_output(output, overwrite=force)
    detector = open_model(model, url, key_file, ca, n_jobs)
    if target_fpr is not None or threshold is not None:
        detector.set_threshold(target_fpr=target_fpr, score=threshold)
    if url is None:
        say_if_compiling()

    def score_all(scoring: "ScoresPoints") -> ScoreResult:
        return _run(points, scoring, missing, output, TopPoints(top), overwrite=force)

    retry = getattr(detector, "_retry_on_replaced_model", None)
    scored = score_all(detector) if retry is None else retry(score_all)
    if url is None and not detector.publishable:
        console(stderr=True).print("This model file is secret: keep it with the custodian.", style="yellow")
    if top:
        _print_top(scored)
    if output is not None:
        say(f"Wrote {output}")


class OutlyingPoint(NamedTuple):
    """One of the most outlying points."""

    score: float
    file: int
    row: int
    values: dict[str, Any]


class TopPoints:
    """The points with the largest scores so far. Among equal scores, the first ones stay."""

    def __init__(self, size: int) -> None:
        self.size, self.points, self.best = size, 0, list[OutlyingPoint]()

    def add(self, scored: "pa.Table", scores: "NDArray[np.float64]", file: int, first: int) -> None:
        """Take some more rows into account. NaN is not a score."""
        import numpy as np  # noqa: PLC0415

        self.points += len(scores)
        order = np.argsort(-scores, kind="stable")[: self.size]  # NaN comes last
        for i in order[~np.isnan(scores[order])].tolist():
            if len(self.best) < self.size or scores[i] > self.best[-1].score:
                row = {name: scored.column(name)[i].as_py() for name in scored.column_names}
                self.best.append(OutlyingPoint(float(scores[i]), file, first + i, row))
                self.best.sort(key=lambda one: -one.score)
                del self.best[self.size :]


class ScoreResult(NamedTuple):
    """The result of scoring, for the printed table."""

    top: TopPoints
    source: "Points"
    added: list[str]
    features: list[str]
    """The columns that are features, if the model knows names."""


def _run(
    points: list[Path],
    detector: "ScoresPoints",
    missing: Missing,
    output: Path | None,
    top: TopPoints,
    *,
    overwrite: bool,
) -> ScoreResult:
    """Score all points and write them. The file gets its name when it is complete."""
    import pyarrow as pa  # noqa: PLC0415

    from dpoutlier._atomic import write_aside  # noqa: PLC0415
    from dpoutlier.cli.points import Points, points_writer  # noqa: PLC0415
    from dpoutlier.detectors.frames import batch_scorer, feature_columns  # noqa: PLC0415

    scorer, domain = batch_scorer(detector, missing=missing), detector._fitted_domain()
    source = Points(points, domain)
    features = feature_columns(list(source.schema.names), scorer, where=str(source.files[0]))
    scored = ScoreResult(top, source, scorer.names, features if domain.names else [])
    if output is None:
        for _ in _scored_batches(source, scorer, features, top):
            pass
        return scored
    schema = pa.schema([*source.schema, *scorer.fields()], source.schema.metadata)
    numbers = [name for j, name in enumerate(features) if domain.category(j) is None]

    def content(stream: IO[bytes]) -> None:
        with points_writer(stream, output.suffix.lower(), schema, numbers) as write:
            for table in _scored_batches(source, scorer, features, top):
                write(table)

    write_aside(output, content, overwrite=overwrite)
    return scored


def _scored_batches(
    source: "Points", scorer: "BatchScorer", features: list[str], top: TopPoints
) -> "Iterator[pa.Table]":
    """The points with their scores, batch by batch."""
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    with points_done("scoring") as show:
        for batch in source:
            table, (before, after) = batch.table, batch.share
            chosen, parts = table.select(features), []
            for first in range(0, len(table), BATCH):
                parts.append(_batch_scores(source, scorer, chosen.slice(first, BATCH), batch.file, batch.first + first))
                done = min(first + BATCH, len(table))
                show(top.points + done, before + (after - before) * done / len(table))
            for field, *values in zip(scorer.fields(), *parts, strict=True):
                table = table.append_column(field, pa.chunked_array(values, field.type))
            scores = table.column(scorer.score).to_numpy()
            top.add(table, np.asarray(scores, np.float64), batch.file, batch.first)
            yield table


def _batch_scores(source: "Points", scorer: "BatchScorer", features: "pa.Table", file: int, first: int) -> list[Any]:
    """The columns to add; an error says in which file, and what can be done here."""
    try:
        return scorer.arrays(features, first)
    except PointsError as error:
        problem = (error.within(source.files[file]) if len(source.files) > 1 else error).problem
        remedy = UNSCORED if error.code == "missing-value" else error.remedy
        raise PointsError(problem, remedy=remedy, code=error.code, row=error.row, column=error.column) from None


def _print_top(scored: ScoreResult) -> None:
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    out, (top, source, added, features) = console(), scored
    places = ["file", "row"] if len(source.files) > 1 else ["row"]
    room = max(0, (out.width - 52) // 14 - len(places) + 1)  # as many of the other columns as fit
    others = [*features, *(name for name in source.schema.names if name not in features)]
    names = [*added, *others[:room]]
    table = Table(title=f"{len(top.best)} most outlying of {top.points} points", title_justify="left")
    for name in (*places, *names):
        table.add_column(
            Text(name), justify="right", no_wrap=name in {"row", *added}, overflow="ellipsis", max_width=24
        )
    for one in top.best:
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
