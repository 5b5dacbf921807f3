"""Write all that a run leaves behind: tables, figures, and last of all the page."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from experiments.measure.datasets import LabelledRows
from experiments.measure.files import write_whole
from experiments.measure.rows import Compared, Ranged, Row, table_of_rows
from experiments.measure.runner import Results
from experiments.report.comparison import Comparison, compared_table, leads_table, sets_table
from experiments.report.figures import (
    FIGURES,
    Drawn,
    draw_all,
    draw_comparison,
    draw_illustration,
    draw_plot,
    draw_ranges,
)
from experiments.report.judgements import Judgement, judge_claims
from experiments.report.page import page
from experiments.report.ranges import Ranges
from experiments.report.steps import LADDER_EPSILONS, STEPS
from experiments.report.summary import Summary
from experiments.report.tables import (
    chosen_table,
    claims_table,
    ladder_table,
    readings_table,
    summary_table,
    table_1,
)

ONLY = {"table1": False, "illustration": False, "figure1": True, "figure2": True}
"""What can be asked for alone, and whether it takes runs."""


TABLES = (
    *("table1", "chosen", "claims", "readings", "ladder", "summary", "attack"),
    *("comparison", "comparison_sets", "comparison_tests", "ranges"),
)


@dataclass(frozen=True)
class Written:
    """What was found, and where it is."""

    judgements: list[Judgement]
    page: Path
    tables: list[Path]


def write_report(results: Results, data: dict[str, LabelledRows], folder: Path, seconds: float) -> Written:
    """Tables as Parquet (all runs) and CSV (the rest), figures as PNG and SVG, and report.html with all of it."""
    summary = Summary(results)
    judgements = judge_claims(results, summary)
    comparison, ranges = Comparison(results.study, results.comparison), Ranges(results.study, results.ranges)
    contents = (
        table_1(data),
        chosen_table(summary),
        claims_table(judgements),
        readings_table(judgements),
        ladder_table(summary, LADDER_EPSILONS, STEPS),
        summary_table(summary.lines.values()),
        pa.Table.from_pylist(results.attack),
        compared_table(comparison),
        sets_table(comparison),
        leads_table(comparison),
        ranges.table,
    )
    tables = dict(zip(TABLES, contents, strict=True))
    drawn = [*draw_all(summary, judgements, results.attack), *draw_comparison(comparison)]
    drawn.append(draw_ranges(ranges))
    _clear(folder)
    written = [write_whole(folder / "results.parquet", _parquet(table_of_rows(results.rows, Row)))]
    compared, ranged = table_of_rows(results.comparison, Compared), table_of_rows(results.ranges, Ranged)
    written.append(write_whole(folder / "comparison.parquet", _parquet(compared)))
    written.append(write_whole(folder / "ranges.parquet", _parquet(ranged)))
    written += [write_whole(folder / f"{name}.csv", _csv(table)) for name, table in tables.items() if table.num_columns]
    for one in drawn:
        _write_pictures(one, folder)
    text = page(summary, judgements, comparison, ranges, tables, drawn, results.seconds, seconds)
    return Written(judgements, write_whole(folder / "report.html", _bytes(text.encode())), written)


def write_only(name: str, results: Results | None, data: dict[str, LabelledRows], folder: Path) -> list[Path]:
    """One of ``ONLY`` alone: the table, or the figure with its numbers."""
    (folder / "figures").mkdir(exist_ok=True)
    if name == "table1":
        return [write_whole(folder / "table1.csv", _csv(table_1(data)))]
    if results is None:
        return _write_pictures(draw_illustration(), folder)
    summary = Summary(results)
    drawn = draw_plot(name, summary)
    numbers = summary_table(summary.lines[key] for key in drawn.keys)
    return [*_write_pictures(drawn, folder), write_whole(folder / f"{name}.csv", _csv(numbers))]


def _write_pictures(drawn: Drawn, folder: Path) -> list[Path]:
    return [
        write_whole(folder / "figures" / f"{drawn.name}.{kind}", _bytes(picture))
        for kind, picture in drawn.pictures.items()
    ]


def _clear(folder: Path) -> None:
    """Remove what an earlier run wrote here, the page first: what stands there is of one run. Nothing else is touched."""
    (folder / "figures").mkdir(exist_ok=True)
    names = [
        "report.html",
        "results.parquet",
        "comparison.parquet",
        "ranges.parquet",
        *(f"{name}.csv" for name in TABLES),
    ]
    names += [f"figures/{name}.{kind}" for name in FIGURES for kind in ("png", "svg")]
    for path in (folder / name for name in names):
        path.unlink(missing_ok=True)
        for half in path.parent.glob(f".{path.name}.*.part"):
            half.unlink()


def _bytes(content: bytes) -> Callable[[IO[bytes]], object]:
    return lambda stream: stream.write(content)


def _parquet(table: pa.Table) -> Callable[[IO[bytes]], None]:
    return lambda stream: pq.write_table(table, stream)


def _csv(table: pa.Table) -> Callable[[IO[bytes]], None]:
    return lambda stream: pa.csv.write_csv(table, stream)
