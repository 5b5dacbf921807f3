"""Print the tables of docs/real-tables.md: Adult and Lymphography with all their attributes.

DPOUTLIER_DATA=<folder with adult_full.csv and lymphography_full.csv> python docs/make_real_tables.py
"""

import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from dpoutlier import DPForest, DPMarginals
from dpoutlier.exceptions import UnsafeWarning
from dpoutlier.features.file import read_features

HERE = Path(__file__).parent
EPSILONS = (5.0, 1.25, 0.3, 0.075)
SPLITS = 10


@dataclass(frozen=True)
class Table:
    """A data set as the experiments use it: the first outliers of the file, a fifth of the inliers, the rest reference rows."""

    name: str
    outlier_classes: tuple[str, ...]
    n_outliers: int
    n_rows_hint: int
    numbers: tuple[str, ...]

    @property
    def features(self) -> dict[str, Any]:
        return read_features(HERE / "examples" / f"{self.name}.toml")[0]


TABLES = (
    Table("lymphography", ("1", "4"), 6, 100, ("lym_nodes_dimin", "lym_nodes_enlar", "no_of_nodes_in")),
    Table(
        "adult",
        (">50K",),
        100,
        20_000,
        ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"),
    ),
)


def measured(table: Table, rows: pd.DataFrame, columns: list[str], epsilon: float) -> tuple[list[str], list[str]]:
    """AUROC and that of the control, for the forest and the marginals."""
    outlying = rows["class"].isin(table.outlier_classes)
    inliers, outliers = rows[~outlying], rows[outlying].head(table.n_outliers)
    n, bounds = int(0.8 * len(inliers)), {name: table.features[name] for name in columns}
    labels = np.repeat([0, 1], [len(inliers) - n, len(outliers)])
    found, control = [], []
    for make in (DPForest, DPMarginals):
        own, without = [], []
        for seed in range(SPLITS):
            order = np.random.default_rng(seed).permutation(len(inliers))
            reference = inliers.iloc[order[:n]][columns]
            points = pd.concat([inliers.iloc[order[n:]], outliers])[columns]
            detector = make(
                epsilon, features=bounds, n_rows_hint=table.n_rows_hint, unsafe_seed=seed
            )  # public data: figures repeat
            own.append(roc_auc_score(labels, detector.fit(reference).outlier_scores(points)))
            without.append(roc_auc_score(labels, detector.fit(reference[:0]).outlier_scores(points)))
        found.append(f"{np.mean(own):.3f} ± {np.std(own):.3f}")
        control.append(f"{np.mean(without):.3f}")
    return found, control


def main() -> None:
    warnings.simplefilter("ignore", UnsafeWarning)
    if "DPOUTLIER_DATA" not in os.environ:
        sys.exit("name the folder with adult_full.csv and lymphography_full.csv in DPOUTLIER_DATA")
    for table in TABLES:
        rows = pd.read_csv(Path(os.environ["DPOUTLIER_DATA"]) / f"{table.name}_full.csv", dtype=str)
        every = [name for name in rows.columns if name != "class"]
        print(
            f"\n{table.name}\n\n| epsilon | features | forest | control | marginals | control |\n|---|---|---|---|---|---|"
        )
        for epsilon in EPSILONS:
            for what, columns in ((f"all {len(every)}", every), (f"{len(table.numbers)} numbers", [*table.numbers])):
                (forest, marginals), (without, without_too) = measured(table, rows, columns, epsilon)
                print(f"| {epsilon:g} | {what} | {forest} | {without} | {marginals} | {without_too} |")


if __name__ == "__main__":
    main()
