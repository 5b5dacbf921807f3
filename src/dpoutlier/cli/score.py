"""``dpoutlier score``: points in, scores out."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from dpoutlier.cli.model_source import CaFile, KeyFile, ModelOrId, open_model
from dpoutlier.cli.progress import console, points_done, say, say_if_compiling
from dpoutlier.cli.threshold import warn_of
from dpoutlier.exceptions import InvalidParameterError, PointsError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from dpoutlier.cli.points import Points
    from dpoutlier.detectors.alarms import Alarms, Tally
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
    fdr: Annotated[
        float | None,
        typer.Option(help="Flag points at this false-discovery rate: adds columns p_value and alarm."),
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

    Alarms, of which about a tenth at most is false: dpoutlier score model.dpo patients.csv -o scores.csv --fdr 0.1

    On a server: dpoutlier score model patients.csv -o scores.csv --url https://host:8765 --key-file key.txt
    """
    from dpoutlier._atomic import check_output  # noqa: PLC0415 - --help must not wait for it
    from dpoutlier._validate import checked_share  # noqa: PLC0415
    from dpoutlier.tables.paths import format_of  # noqa: PLC0415

    if target_fpr is not None and threshold is not None:
        raise InvalidParameterError("--target-fpr and --threshold both move the threshold: give one of them.")
    if fdr is not None:
        checked_share(fdr=fdr)
    if output is not None:
        format_of(output)
        check_output(output, overwrite=force)
    detector = open_model(model, url, key_file, ca, n_jobs)
    if target_fpr is not None or threshold is not None:
        detector.set_threshold(target_fpr=target_fpr, score=threshold)
    remedy = "See dpoutlier inspect." if url is None else "Give one yourself: --threshold SCORE."
    warn_of(detector._false_alarms(), remedy, stderr=True)
    if url is None:
        say_if_compiling()

    def score_all(scoring: "ScoresPoints") -> ScoreResult:
        return _run(points, scoring, missing, output, TopPoints(top), fdr, overwrite=force)

    retry = getattr(detector, "_retry_on_replaced_model", None)
    scored = score_all(detector) if retry is None else retry(score_all)
    if url is None and not detector.publishable:
        console(stderr=True).print("This model file is secret: keep it with the custodian.", style="yellow")
    if top:
        _print_top(scored)
    if scored.flagging is not None:
        _print_flagged(scored.flagging)
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


class Flagging(NamedTuple):
    """What was flagged at a false-discovery rate."""

    fdr: float
    tally: "Tally"
    alarms: "Alarms"

    def of(self, score: float) -> dict[str, Any]:
        """What is added to one point."""
        import numpy as np  # noqa: PLC0415

        return {name: values[0].item() for name, values in self.alarms.columns(np.array([score])).items()}


class ScoreResult(NamedTuple):
    """The result of scoring, for the printed table."""

    top: TopPoints
    source: "Points"
    added: list[str]
    features: list[str]
    """The columns that are features, if the model knows names."""
    flagging: Flagging | None


def _run(
    points: list[Path],
    detector: "ScoresPoints",
    missing: Missing,
    output: Path | None,
    top: TopPoints,
    fdr: float | None,
    *,
    overwrite: bool,
) -> ScoreResult:
    """Score all points and write them. The file gets its name when it is complete.

    Which points are flagged depends on all of them, so with ``fdr`` a first pass counts and a second one writes.
    """
    import pyarrow as pa  # noqa: PLC0415

    from dpoutlier._atomic import write_aside  # noqa: PLC0415
    from dpoutlier.cli.points import Points, points_writer  # noqa: PLC0415
    from dpoutlier.detectors.alarms import ALARM, P_VALUE, Alarms, Tally  # noqa: PLC0415
    from dpoutlier.detectors.frames import batch_scorer, feature_columns  # noqa: PLC0415

    scorer, domain = batch_scorer(detector, missing=missing), detector._fitted_domain()
    tally = None if fdr is None else Tally(detector._p_table())
    more = [] if tally is None else [pa.field(P_VALUE, pa.float64()), pa.field(ALARM, pa.bool_())]
    names = [field.name for field in more]
    source = Points(points, domain)
    features = feature_columns(list(source.schema.names), scorer, more=names, where=str(source.files[0]))
    flagging = None
    if output is None or tally is not None:
        counted = top if output is None else TopPoints(0)
        for _, scores in _scored_batches(
            source, scorer, features, counted, "scoring" if output is None else "counting"
        ):
            if tally is not None:
                tally.add(scores)
    if fdr is not None and tally is not None:
        flagging = Flagging(fdr, tally, Alarms(tally.table, tally.cutoff(fdr)))
    scored = ScoreResult(top, source, [*scorer.names, *names], features if domain.names else [], flagging)
    if output is None:
        return scored
    schema = pa.schema([*source.schema, *scorer.fields(), *more], source.schema.metadata)
    numbers = [name for j, name in enumerate(features) if domain.category(j) is None]

    def content(stream: IO[bytes]) -> None:
        with points_writer(stream, output.suffix.lower(), schema, numbers) as write:
            for table, scores in _scored_batches(source, scorer, features, top, "scoring"):
                write(table if flagging is None else _with_alarms(table, scores, flagging, more))

    write_aside(output, content, overwrite=overwrite)
    return scored


def _with_alarms(
    table: "pa.Table", scores: "NDArray[np.float64]", flagging: Flagging, fields: "list[pa.Field]"
) -> "pa.Table":
    """The table with p-values and alarms, both empty for points without a score."""
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    for field, values in zip(fields, flagging.alarms.columns(scores).values(), strict=True):
        table = table.append_column(field, pa.array(values, mask=np.isnan(scores)))
    return table


def _scored_batches(
    source: "Points", scorer: "BatchScorer", features: list[str], top: TopPoints, doing: str
) -> "Iterator[tuple[pa.Table, NDArray[np.float64]]]":
    """The points with their scores, batch by batch, and the scores, NaN for a point that has none."""
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    with points_done(doing) as show:
        for batch in source:
            table, (before, after) = batch.table, batch.share
            chosen, parts = table.select(features), []
            for first in range(0, len(table), BATCH):
                parts.append(_batch_scores(source, scorer, chosen.slice(first, BATCH), batch.file, batch.first + first))
                done = min(first + BATCH, len(table))
                show(top.points + done, before + (after - before) * done / len(table))
            for field, *values in zip(scorer.fields(), *parts, strict=True):
                table = table.append_column(field, pa.chunked_array(values, field.type))
            scores = np.asarray(table.column(scorer.score).to_numpy(), np.float64)
            top.add(table, scores, batch.file, batch.first)
            yield table, scores


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

    out, (top, source, added, features, flagging) = console(), scored
    places = ["file", "row"] if len(source.files) > 1 else ["row"]
    own = 52 if flagging is None else 74
    room = max(0, (out.width - own) // 14 - len(places) + 1)  # as many of the other columns as fit
    others = [*features, *(name for name in source.schema.names if name not in features)]
    names = [*added, *others[:room]]
    table = Table(title=f"{len(top.best)} most outlying of {top.points} points", title_justify="left")
    for name in (*places, *names):
        table.add_column(
            Text(name), justify="right", no_wrap=name in {"row", *added}, overflow="ellipsis", max_width=24
        )
    for one in top.best:
        where = [Text(source.files[one.file].name), Text(str(one.row))][-len(places) :]
        values = one.values if flagging is None else one.values | flagging.of(one.score)
        table.add_row(*where, *(Text(_shown(name, values[name])) for name in names))
    out.print(table)


def _print_flagged(flagging: Flagging) -> None:
    """How many points were flagged; if none was, why."""
    fdr, tally, alarms = flagging
    n, smallest = tally.n, float(tally.table.values.min())
    flagged = tally.flagged(alarms.cutoff)
    say(f"Flagged {flagged:,} of {n:,} points at a false-discovery rate of {fdr:g}.")
    remedy = "A fit with more rows times epsilon gives smaller ones."
    if smallest > fdr:
        say(f"None can ever be, since the smallest p-value that this model gives is {smallest:.3g}. {remedy}")
    elif n and not flagged:
        fewest = math.ceil(smallest * n / fdr)
        say(
            f"The smallest p-value that this model gives is {smallest:.3g}, so of {n:,} points fewer than {fewest:,} are never "
            f"flagged. {remedy}"
        )


def _shown(name: str, value: Any) -> str:
    if name in {"outlier_score", "p_value"}:
        return f"{value:.4g}"
    if name in {"outside_bounds", "alarm"}:
        return "yes" if value else ""
    if name == "prediction":
        return "outlier" if value == -1 else "inlier"
    return str(value)
