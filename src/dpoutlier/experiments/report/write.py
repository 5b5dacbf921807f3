"""Write all that a run leaves behind: tables, figures, and last of all the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from dpoutlier._files import write_aside
from dpoutlier.experiments.measure.datasets import LabelledRows
from dpoutlier.experiments.measure.rows import table_of_rows
from dpoutlier.experiments.measure.runner import Results
from dpoutlier.experiments.report.figures import draw_all
from dpoutlier.experiments.report.judgements import Judgement, judge_claims
from dpoutlier.experiments.report.more_figures import LADDER_EPSILONS, STEPS
from dpoutlier.experiments.report.page import page
from dpoutlier.experiments.report.summary import Summary
from dpoutlier.experiments.report.tables import chosen_table, claims_table, ladder_table, summary_table, table_1

__all__ = ["Written", "write_report"]


@dataclass(frozen=True)
class Written:
    """What was found, and where it is."""

    judgements: list[Judgement]
    page: Path
    tables: list[Path]
    figures: list[Path]


def write_report(results: Results, data: dict[str, LabelledRows], folder: Path, seconds: float) -> Written:
    """Tables as Parquet (all runs) and CSV (the rest), figures as PNG and SVG, and report.html with all of it."""
    summary = Summary(results)
    judgements = judge_claims(results, summary)
    tables = {
        "table1": table_1(data),
        "chosen": chosen_table(summary),
        "claims": claims_table(judgements),
        "ladder": ladder_table(summary, LADDER_EPSILONS, STEPS),
        "summary": summary_table(summary.lines.values()),
        "attack": pa.Table.from_pylist(results.attack),
    }
    drawn = draw_all(summary, results.attack)
    written = [_write(folder / "results.parquet", _parquet(table_of_rows(results.rows)))]
    written += [_write(folder / f"{name}.csv", _csv(table)) for name, table in tables.items() if table.num_columns]
    (folder / "figures").mkdir(exist_ok=True)
    figures = [
        _write(folder / "figures" / f"{one.name}.{kind}", _bytes(picture))
        for one in drawn
        for kind, picture in one.pictures.items()
    ]
    text = page(summary, judgements, tables, drawn, results.seconds, seconds)
    return Written(judgements, _write(folder / "report.html", _bytes(text.encode())), written, figures)


def _write(path: Path, write: Callable[[IO[bytes]], None]) -> Path:
    return write_aside(path, write, overwrite=True)


def _bytes(content: bytes) -> Callable[[IO[bytes]], None]:
    def write(stream: IO[bytes]) -> None:
        stream.write(content)

    return write


def _parquet(table: pa.Table) -> Callable[[IO[bytes]], None]:
    return lambda stream: pq.write_table(table, stream)


def _csv(table: pa.Table) -> Callable[[IO[bytes]], None]:
    return lambda stream: pa.csv.write_csv(table, stream)
