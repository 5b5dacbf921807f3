"""The tables of the report, as Arrow tables: what is written to files is what the page shows."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from experiments.measure.datasets import DATASETS, LabelledRows
from experiments.measure.protocol import split_rows
from experiments.measure.quality import METRICS
from experiments.measure.rows import Row, schema_of
from experiments.measure.study import TUNED
from experiments.measure.variants import BASE
from experiments.report.judgements import Judgement
from experiments.report.summary import Key, Line, Summary
from experiments.report.wording import title_of


def table_1(data: dict[str, LabelledRows]) -> pa.Table:
    """The paper's Table 1, counted on what was run."""
    records = []
    for dataset in DATASETS:
        if dataset.name in data:
            split = split_rows(data[dataset.name], 0)
            records.append(
                {
                    "dataset": dataset.title,
                    "dimension": split.reference.shape[1],
                    "reference": len(split.reference),
                    "test": len(split.points),
                    "outliers": int(split.outlying.sum()),
                }
            )
    return pa.Table.from_pylist(records)


def summary_table(lines: Iterable[Line]) -> pa.Table:
    """Mean and standard deviations of each metric, one line for all runs alike."""
    return pa.Table.from_pylist([_record(line) for line in lines], _SUMMARY)


_SUMMARY = pa.schema(
    [
        *(schema_of(Row).field(name) for name in Key._fields),
        ("runs", pa.int32()),
        ("ran_out", pa.float64()),
        *((f"{metric}_{name}", pa.float64()) for metric in METRICS for name in ("mean", "sd_noise", "sd_splits")),
    ]
)


def _record(line: Line) -> dict[str, Any]:
    record = {**line.key._asdict(), "runs": line.runs, "ran_out": line.ran_out}
    for metric, entry in line.metrics.items():
        record |= {f"{metric}_{name}": getattr(entry, name) for name in ("mean", "sd_noise", "sd_splits")}
    return record


def chosen_table(summary: Summary) -> pa.Table:
    """The k and b that were chosen on the test set; and b by rule, which looks at no data."""
    records = []
    for dataset in summary.study.sets:
        record: dict[str, Any] = {"dataset": title_of(dataset), "k": summary.choice.k[dataset]}
        record["k_of_plain_k_nn"] = summary.choice.other_k[dataset]
        record |= {f"b_{variant}": summary.choice.bins[dataset, variant] for variant in TUNED}
        by_rule = [str(summary.bins_by_rule[dataset, epsilon]) for epsilon in summary.study.epsilons]
        records.append({**record, "b_public_by_epsilon": " ".join(by_rule)})
    return pa.Table.from_pylist(records)


def claims_table(judgements: Iterable[Judgement]) -> pa.Table:
    """Every claim with its verdict and figures."""
    return pa.Table.from_pylist(
        [
            {
                "place": one.claim.place,
                "claim": one.claim.text,
                "test": one.claim.test,
                "verdict": one.verdict,
                "holds_in_base": one.base_holds,
                "figure_in_base": one.figure,
                "otherwise": one.turned_by,
                "splits": None if one.splits is None else f"{one.splits[0]} of {one.splits[1]}",
                "holds_with_twice_the_tolerance": one.if_twice,
                "private": one.private,
                "control": one.control,
            }
            for one in judgements
        ],
        _CLAIMS,
    )


_CLAIMS = pa.schema(
    [
        *((name, pa.string()) for name in ("place", "claim", "test", "verdict")),
        ("holds_in_base", pa.bool_()),
        *((name, pa.string()) for name in ("figure_in_base", "otherwise", "splits")),
        ("holds_with_twice_the_tolerance", pa.bool_()),
        *((name, pa.float64()) for name in ("private", "control")),
    ]
)


def readings_table(judgements: Iterable[Judgement]) -> pa.Table:
    """Every claim under every reading."""
    return pa.Table.from_pylist(
        [
            {
                "claim": one.claim.name,
                "reading": reading.name,
                "choice": reading.choice,
                "read_as": reading.text,
                "holds": finding.holds,
                "figure": finding.figure,
            }
            for one in judgements
            for reading, finding in one.findings.items()
        ]
    )


def ladder_table(summary: Summary, epsilons: Iterable[float], steps: Iterable[str]) -> pa.Table:
    """AUROC of the basic private grid, of its control and of plain k-NN on the way to a complete accounting."""
    records = []
    steps = tuple(steps)
    for epsilon in epsilons:
        for dataset in summary.study.sets:
            record: dict[str, Any] = {"epsilon": float(epsilon), "dataset": title_of(dataset)}
            for step in steps:
                mine, control = (
                    summary.entry(summary.key(dataset, step, "DP Grid", epsilon=epsilon, control=without)).mean
                    for without in (False, True)
                )
                record |= {step: mine, f"{step}_control": control}
            for step in (BASE, "declared", "public"):
                record[f"k_nn_{step}"] = summary.entry(summary.key(dataset, step, "kNN", epsilon=epsilon)).mean
            records.append(record)
    return pa.Table.from_pylist(records)
