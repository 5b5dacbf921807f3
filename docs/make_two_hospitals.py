"""Draw docs/two-hospitals.png and print its table: WDBC split in two, fitted apart, merged.

python docs/make_two_hospitals.py
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score

from dpoutlier import DPForest, merge

EPSILONS = (0.1, 0.3, 1.0)
SPLITS = 200
N_ROWS_HINT = 300
"""Public: about as many rows as both hospitals agreed to bring together."""
OUTLIERS = 10
HERE = Path(__file__).parent
INK, GREY = "#1b2a3a", "#9aa5b1"
COLOURS = {"one hospital": "#e08e45", "merged": "#2a7f62", "one joint fit": "#3b6fb6", "no rows (control)": GREY}


@dataclass(frozen=True)
class Split:
    """Reference rows of both hospitals, and points to score."""

    hospitals: tuple[NDArray[np.float64], NDArray[np.float64]]
    points: NDArray[np.float64]
    outlying: NDArray[np.bool_]


def split(seed: int) -> Split:
    """Benign cases: 80 % are reference rows, half of them in each hospital. The others and ten malignant ones are scored."""
    values, target = load_breast_cancer(return_X_y=True)
    benign, malignant = values[target == 1], values[target == 0][:OUTLIERS]
    rows = benign[np.random.default_rng(seed).permutation(len(benign))]
    n = int(0.8 * len(rows))
    return Split(
        (rows[: n // 2], rows[n // 2 : n]),
        np.concatenate([rows[n:], malignant]),
        np.repeat([False, True], [len(rows) - n, OUTLIERS]),
    )


def bounds() -> tuple[list[float], list[float]]:
    """Public ranges, as generous as those of an instrument: 0 to a round number for each feature."""
    uppers = [30, 40, 200, 2500, 0.2, 0.4, 0.5, 0.25, 0.35, 0.1, 3, 5, 25, 600, 0.04, 0.15, 0.4, 0.06, 0.1, 0.03]
    return [0.0] * 30, [*map(float, uppers), 40.0, 50.0, 260.0, 4500.0, 0.25, 1.1, 1.3, 0.3, 0.7, 0.25]


def measured(epsilon: float, seed: int) -> dict[str, float]:
    """AUROC of each way. The noise is real, since seeded releases cannot be merged: figures move a little from run to run."""
    data = split(seed)

    def fit(rows: NDArray[np.float64]) -> DPForest:
        return DPForest(epsilon, features=bounds(), n_rows_hint=N_ROWS_HINT).fit(rows)

    one, other = (fit(rows) for rows in data.hospitals)
    ways = {
        "one hospital": one,
        "merged": merge([one, other], people="disjoint"),
        "one joint fit": fit(np.concatenate(data.hospitals)),
        "no rows (control)": fit(data.points[:0]),
    }
    return {name: float(roc_auc_score(data.outlying, way.outlier_scores(data.points))) for name, way in ways.items()}


def table(found: dict[float, dict[str, NDArray[np.float64]]]) -> str:
    lines = ["| epsilon | " + " | ".join(COLOURS) + " |", "|---" * (len(COLOURS) + 1) + "|"]
    for epsilon, ways in found.items():
        cells = [f"{ways[name].mean():.3f} ± {ways[name].std():.3f}" for name in COLOURS]
        lines.append(f"| {epsilon:g} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(found: dict[float, dict[str, NDArray[np.float64]]], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    for at, (name, colour) in enumerate(COLOURS.items()):
        x = np.arange(len(found)) + 0.18 * (at - 1.5)
        means = [ways[name].mean() for ways in found.values()]
        spreads = [ways[name].std() for ways in found.values()]
        axes.errorbar(x, means, spreads, fmt="o", color=colour, capsize=3, markersize=7, label=name)
        for place, mean, spread in zip(x, means, spreads, strict=True):
            axes.annotate(f"{mean:.2f}", (place, mean + spread + 0.012), ha="center", fontsize=8, color=INK)
    axes.axhline(0.5, color=GREY, linewidth=0.8, linestyle=":")
    axes.set_xticks(range(len(found)), [f"{epsilon:g}" for epsilon in found])
    axes.set_xlabel("epsilon of each release")
    axes.set_ylabel("AUROC")
    axes.set_ylim(0.2, 1.08)
    axes.legend(frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.14), fontsize=9)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=150)


def main() -> None:
    found: dict[float, dict[str, NDArray[np.float64]]] = {}
    for epsilon in EPSILONS:
        runs = [measured(epsilon, seed) for seed in range(SPLITS)]
        found[epsilon] = {name: np.array([run[name] for run in runs]) for name in COLOURS}
        sys.stderr.write(f"epsilon {epsilon:g} done\n")
    print(table(found))
    draw(found, HERE / "two-hospitals.png")


if __name__ == "__main__":
    main()
