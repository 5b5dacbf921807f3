"""Ranges that are declared too wide: means over the sets, and a small table."""

from collections.abc import Sequence
from statistics import fmean

import pyarrow as pa

from experiments.measure.comparison import SYNTHETIC
from experiments.measure.quality import METRICS
from experiments.measure.ranges import CASES, FREE, METHODS, Declared
from experiments.measure.rows import Ranged, table_of_rows
from experiments.measure.study import Study
from experiments.report.comparison_answer import TITLES
from experiments.report.wording import decimals

KEYS = ("factor", "data", "method", "control", "epsilon")


def _group(case: Declared) -> str:
    if case.factor is not None:
        return f"{case.factor:g}"
    return "own, anywhere" if case.data == "anywhere" else "own"


GROUPS = {name: [case for case in CASES if _group(case) == name] for name in dict.fromkeys(map(_group, CASES))}
"""Columns of the table: a factor with the data low, in the middle and high; own factors; own factors and places."""
SHOWN = (
    *((name, control) for name in (*METHODS, FREE) for control in (False, True)),
    *((name, False) for name in SYNTHETIC),
)


class Ranges:
    """Mean AUROC over sets, splits and seeds. All sets have equally many of these, and so have equal weight."""

    def __init__(self, study: Study, rows: Sequence[Ranged]) -> None:
        self.study, self.table = study, ranges_table(rows)
        self._means = {
            (record["method"], record["control"], record["epsilon"], record["factor"], record["data"]): record["auroc"]
            for record in self.table.to_pylist()
        }

    def mean(self, method: str, epsilon: float, group: str, *, control: bool = False) -> float:
        """Mean over the ways to declare ranges that a column stands for."""
        return fmean(self._means[method, control, float(epsilon), *case] for case in GROUPS[group])

    @property
    def plain(self) -> float:
        """k-NN without privacy, under the usual ranges."""
        return float(self._means["KNN", False, None, *CASES[0]])


def ranges_table(rows: Sequence[Ranged]) -> pa.Table:
    """A line for each method, way to declare ranges and epsilon."""
    groups = table_of_rows(rows, Ranged).group_by(list(KEYS), use_threads=False)
    means = groups.aggregate([(metric, "mean") for metric in METRICS])
    return means.select([*KEYS, *(f"{metric}_mean" for metric in METRICS)]).rename_columns([*KEYS, *METRICS])


def ranged_lines(ranges: Ranges) -> list[dict[str, str]]:
    """A line for each method: mean AUROC in each column, for each epsilon."""
    lines = []
    for method, control in SHOWN:
        title = TITLES.get(method, method)
        line = {"method": f"control of {method}" if control else title}
        for epsilon in ranges.study.range_epsilons:
            means = (ranges.mean(method, epsilon, group, control=control) for group in GROUPS)
            line[f"epsilon {epsilon:g}"] = " / ".join(map(decimals, means))
        lines.append(line)
    return lines
