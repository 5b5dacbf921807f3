"""The demonstration: breast cancer data (WDBC, which scikit-learn ships), two features, one private fit."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpoutlier._warn import nothing_to_protect
from dpoutlier.detectors.grid import DPGridKNN, GridKNN
from dpoutlier.detectors.knn import KNN
from dpoutlier.exceptions import MissingExtraError

BOUNDS = {"worst radius": (5.0, 40.0), "worst concave points": (0.0, 0.35)}
"""Declared from what the features mean: a nucleus' radius in its image's units, and a depth of contour."""
BINS = 10
REFITS = 20


@dataclass(frozen=True)
class DemoRow:
    """One line of the result."""

    name: str
    auroc: float
    spread: float | None
    privacy: str


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration found and wrote."""

    rows: tuple[DemoRow, ...]
    n_inliers: int
    n_outliers: int
    picture: Path | None
    """None without the extra dpoutlier[plots]."""
    model: Path


@dataclass(frozen=True)
class DemoData:
    """Reference rows, and held-out points with 1 for malignant."""

    reference: NDArray[np.float64]
    points: NDArray[np.float64]
    labels: NDArray[np.int64]


def demo_data() -> DemoData:
    """80 % of the benign rows as reference; the other benign and all malignant rows as held-out points."""
    from sklearn.datasets import load_breast_cancer  # noqa: PLC0415

    data = load_breast_cancer()
    names = list(data.feature_names)
    values = data.data[:, [names.index(name) for name in BOUNDS]]
    benign, malignant = values[data.target == 1], values[data.target == 0]
    benign = benign[np.random.default_rng(0).permutation(len(benign))]
    cut = int(0.8 * len(benign))
    points = np.concatenate([benign[cut:], malignant])
    labels = np.repeat([0, 1], [len(benign) - cut, len(malignant)])
    return DemoData(benign[:cut], points, labels)


def named(rows: NDArray[np.float64]) -> pa.Table:
    """Rows as a table whose columns have their names."""
    return pa.table(dict(zip(BOUNDS, rows.T, strict=True)))


def run_demo(folder: Path, epsilon: str) -> DemoResult:
    """Fit, score, compare and draw. The comparison fits again and again to show the spread; a custodian fits once."""
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415

    data = demo_data()
    folder.mkdir(parents=True, exist_ok=True)
    reference = named(data.reference)
    detector = DPGridKNN(epsilon, features=BOUNDS, bins=BINS, target_fpr=0.1)
    with nothing_to_protect():  # the rows are public, and the picture says what the threshold does
        detector.fit(reference)
    twin = GridKNN(BOUNDS, bins=BINS).fit(reference)

    def aurocs(rows: pa.Table) -> list[float]:
        fresh = DPGridKNN(epsilon, features=BOUNDS, bins=BINS)
        with nothing_to_protect():  # the rows are public
            fits = [fresh.fit(rows).outlier_scores(data.points) for _ in range(REFITS)]
        return [float(roc_auc_score(data.labels, scores)) for scores in fits]

    def exact(other: GridKNN | KNN) -> float:
        return float(roc_auc_score(data.labels, other.outlier_scores(data.points)))

    private, control = aurocs(reference), aurocs(reference[:0])
    rows = (
        DemoRow("DPGridKNN, mean of 20 fits", float(np.mean(private)), float(np.std(private)), f"epsilon = {epsilon}"),
        DemoRow("GridKNN, its exact twin", exact(twin), None, "none"),
        DemoRow("KNN, plain", exact(KNN(BOUNDS).fit(reference)), None, "none"),
        DemoRow(
            "data-free control, 20 fits", float(np.mean(control)), float(np.std(control)), "noise only: no rows at all"
        ),
    )
    try:
        from dpoutlier.explain.plots import demo_figure  # noqa: PLC0415

        picture = demo_figure(folder / "demo.png", detector, data, rows)
    except MissingExtraError:
        picture = None
    model = detector.save(folder / "wdbc", overwrite=True)
    return DemoResult(rows, int((data.labels == 0).sum()), int((data.labels == 1).sum()), picture, model)
