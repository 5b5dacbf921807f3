"""The five data sets of the paper's Table 1."""

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpoutlier.exceptions import DpoutlierError


class DataSetError(DpoutlierError):
    """A public data set is missing, or is not the expected one."""


@dataclass(frozen=True)
class DataSet:
    """What is used of a set: its features, which classes are outliers, and how many of them."""

    name: str
    title: str
    """As the paper writes it."""
    features: tuple[str, ...]
    outlier_classes: tuple[str, ...]
    n_rows: int
    n_outliers: int
    """The paper's m: the first m rows of the outlier classes, in file order, are the outliers."""
    digest: str
    """Digest of the values, whatever file or service they came from; see ``LabelledRows.digest``."""

    @property
    def file(self) -> str:
        return f"{self.name}.csv"


@dataclass(frozen=True)
class LabelledRows:
    """All rows of a set in file order, and which belong to the outlier classes."""

    dataset: DataSet
    rows: NDArray[np.float64]
    outlying: NDArray[np.bool_]

    @property
    def inliers(self) -> NDArray[np.float64]:
        """In lexicographic order, since public copies differ in theirs."""
        return _sorted(self.rows[~self.outlying])

    @property
    def outliers(self) -> NDArray[np.float64]:
        """The first m rows of the outlier classes."""
        return _sorted(self.rows[self.outlying][: self.dataset.n_outliers])

    @property
    def left_out(self) -> NDArray[np.float64]:
        """The other rows of the outlier classes: they only widen the file's range."""
        return _sorted(self.rows[self.outlying][self.dataset.n_outliers :])

    def digest(self) -> str:
        """SHA-256 of inliers, outliers and left-out rows: equal for all copies that give the same experiment."""
        hasher = hashlib.sha256()
        for part in (self.inliers, self.outliers, self.left_out):
            hasher.update(f"{part.shape};".encode())
            hasher.update(np.ascontiguousarray(part, "<f8").tobytes())
        return hasher.hexdigest()


def _sorted(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return rows[np.lexsort(rows.T[::-1])]


_NUCLEUS = (
    *("radius", "texture", "perimeter", "area", "smoothness"),
    *("compactness", "concavity", "concave_points", "symmetry", "fractal_dimension"),
)

DATASETS = (
    DataSet(
        name="lymphography",
        title="Lymph",
        features=("lym_nodes_dimin", "lym_nodes_enlar", "no_of_nodes_in"),
        outlier_classes=("1", "4"),
        n_rows=148,
        n_outliers=6,
        digest="3c661eb1186f97971aa39cdebffa27621a95541eecb9ae028ced0682faa28c15",
    ),
    DataSet(
        name="pima",
        title="Diabetes",
        features=(
            "pregnancies",
            "plasma_glucose",
            "blood_pressure",
            "skin_thickness",
            "insulin",
            "bmi",
            "pedigree",
            "age",
        ),
        outlier_classes=("1",),
        n_rows=768,
        n_outliers=40,
        digest="9e67e25f0a414b1426e720f8ea5ded5417645e206f65996cd4c80c7ecce7d4be",
    ),
    DataSet(
        name="wdbc",
        title="Wdbc",
        features=(
            *(f"mean_{name}" for name in _NUCLEUS),
            *(f"{name}_error" for name in _NUCLEUS),
            *(f"worst_{name}" for name in _NUCLEUS),
        ),
        outlier_classes=("M",),
        n_rows=569,
        n_outliers=10,
        digest="e15a41aa01afb59c71ee3c44c1b1c2e53157d03880009171c370c952ac334be5",
    ),
    DataSet(
        name="heart",
        title="Heart",
        features=(
            "age",
            "sex",
            "cp",
            "trestbps",
            "chol",
            "fbs",
            "restecg",
            "thalach",
            "exang",
            "oldpeak",
            "slope",
            "ca",
            "thal",
        ),
        outlier_classes=("1",),
        n_rows=303,
        n_outliers=10,
        digest="1618cd6db03341b1c7d3ff35d5475f9f66aad276fbd5da6ac8a8c2376c5b8b5d",
    ),
    DataSet(
        name="adult",
        title="Adult",
        features=("age", "fnlwgt", "education_num", "sex", "capital_gain", "capital_loss", "hours_per_week"),
        outlier_classes=(">50K",),
        n_rows=32_561,
        n_outliers=100,
        digest="5c38382b15ba76a0ff9952e527f5232fb8cbf4ea250e6527abe00efa33e70198",
    ),
)
"""In the order of Table 1."""


def dataset_named(name: str) -> DataSet:
    """The set of that name, or an error that lists the names."""
    for dataset in DATASETS:
        if dataset.name == name:
            return dataset
    raise DataSetError(f"there is no data set {name!r}; the sets are {', '.join(one.name for one in DATASETS)}.")
