"""Where the data sets come from: a folder of CSV files, scikit-learn's own copy, or OpenML. All give the same values, or fail."""

import csv
import os
import zlib
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.measure.datasets import DataSet, DataSetError, LabelledRows

DATA_VARIABLE = "DPOUTLIER_DATA"
Columns = dict[str, NDArray[Any]]
"""Columns of a public copy by name: floats, or texts for categories."""


def data_folder(given: Path | None) -> Path | None:
    """The folder that was given, else that of the environment variable, else None: public sources."""
    if given is None and os.environ.get(DATA_VARIABLE):
        given, said = Path(os.environ[DATA_VARIABLE]), DATA_VARIABLE
    else:
        said = "--data"
    if given is not None and not given.is_dir():
        raise DataSetError(
            f"there is no folder {given} ({said}). Give the folder that holds the CSV files of the data sets."
        )
    return given


def load_dataset(dataset: DataSet, folder: Path | None) -> LabelledRows:
    """The rows of a set, checked value by value."""
    if folder is not None:
        found, where = _from_folder(dataset, folder / dataset.file), f"{folder / dataset.file}"
    elif dataset.name == "wdbc":
        found, where = _from_sklearn(dataset), "scikit-learn's copy"
    else:
        found, where = _from_openml(dataset), f"OpenML's data set {OPENML[dataset.name][0]}"
    if found.digest() != dataset.digest:
        raise DataSetError(
            f"{where} is not the {dataset.name} data of the experiments: {len(found.rows)} rows with checksum "
            f"{found.digest()[:16]}, where {dataset.n_rows} with {dataset.digest[:16]} were expected. {_remedy(dataset)}"
        )
    return found


def _remedy(dataset: DataSet) -> str:
    return (
        f"Put {dataset.file} ({dataset.n_rows} rows; columns {_columns(dataset)}) into a folder and name "
        f"the folder with --data or {DATA_VARIABLE}. Without a folder the sets come from scikit-learn (wdbc) and OpenML. "
        "docs/reproduction.md says where each set is from; --sets runs some of them only."
    )


def _columns(dataset: DataSet) -> str:
    names = (*dataset.features, "class")
    return ", ".join(names if len(names) <= 4 else (*names[:3], "...", names[-1]))


def _from_folder(dataset: DataSet, path: Path) -> LabelledRows:
    if not path.is_file():
        raise DataSetError(f"the data set {dataset.name} is missing: there is no file {path}. {_remedy(dataset)}")
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            header, *records = filter(None, csv.reader(stream))
        absent = [name for name in (*dataset.features, "class") if name not in header]
        if absent:
            raise DataSetError(
                f"{path} is not the {dataset.name} data: it has no column {absent[0]!r}. {_remedy(dataset)}"
            )
        values = [dict(zip(header, record, strict=True)) for record in records]
        rows = np.array([[float(row[name]) for name in dataset.features] for row in values])
        outlying = np.isin([row["class"] for row in values], dataset.outlier_classes)
    except (ValueError, csv.Error) as error:
        raise DataSetError(f"{path} is not the {dataset.name} data: {error}. {_remedy(dataset)}") from None
    return LabelledRows(dataset, rows.reshape(len(values), len(dataset.features)), outlying)


def _from_sklearn(dataset: DataSet) -> LabelledRows:
    from sklearn.datasets import load_breast_cancer  # noqa: PLC0415 - slow to import

    data = load_breast_cancer()
    return LabelledRows(dataset, np.asarray(data.data, float), np.asarray(data.target == 0))


def _from_openml(dataset: DataSet) -> LabelledRows:
    """As OpenML has it, through scikit-learn, which checks OpenML's checksum and keeps a copy in its data home."""
    from sklearn.datasets import fetch_openml  # noqa: PLC0415 - slow to import

    number, recode = OPENML[dataset.name]
    try:
        data = fetch_openml(data_id=number, as_frame=False, parser="liac-arff", n_retries=2)
        return recode(dataset, *_columns_of(data))
    except (OSError, ValueError, LookupError, EOFError, zlib.error, HTTPException) as error:
        cause = f"{type(error).__name__}: {error}" if isinstance(error, LookupError) else error
    raise DataSetError(
        f"the data set {dataset.name} could not be fetched from OpenML (data id {number}): {cause}. {_remedy(dataset)}"
    )


def _columns_of(data: Any) -> tuple[Columns, NDArray[Any]]:
    """Features and target, with categories as texts."""
    columns = dict(zip(data.feature_names, np.asarray(data.data, float).T, strict=True))
    for name, levels in data.categories.items():
        if name in columns:
            columns[name] = _texts(columns[name], levels)
    return columns, np.asarray(data.target, str)


def _texts(codes: NDArray[np.float64], levels: list[Any]) -> NDArray[Any]:
    """Categories by name; "?" where the value is missing."""
    names = np.array([*map(str, levels), "?"])
    return np.asarray(names[np.where(np.isnan(codes), len(levels), codes).astype(int)])


def _lymphography(dataset: DataSet, columns: Columns, target: NDArray[Any]) -> LabelledRows:
    rows = np.stack([columns[name].astype(float) for name in dataset.features], axis=1)
    return LabelledRows(dataset, rows, np.isin(target, ("normal", "fibrosis")))


def _pima(dataset: DataSet, columns: Columns, target: NDArray[Any]) -> LabelledRows:
    names = ("preg", "plas", "pres", "skin", "insu", "mass", "pedi", "age")
    return LabelledRows(dataset, np.stack([columns[name] for name in names], axis=1), target == "tested_positive")


_HEART_CODES = {
    "sex": {"female": 0, "male": 1},
    "cp": {"typ_angina": 3, "atyp_angina": 1, "non_anginal": 2, "asympt": 0},
    "fbs": {"f": 0, "t": 1},
    "restecg": {"normal": 1, "st_t_wave_abnormality": 2, "left_vent_hyper": 0},
    "exang": {"no": 0, "yes": 1},
    "slope": {"up": 2, "flat": 1, "down": 0},
    "thal": {"normal": 2, "fixed_defect": 1, "reversable_defect": 3, "?": 0},
}


def _heart(dataset: DataSet, columns: Columns, target: NDArray[Any]) -> LabelledRows:
    """The codes of the copy that the paper's counts point to, where unknown vessels are 4 and class 1 is *without* disease."""
    decoded = {name: np.array([codes[text] for text in columns[name]]) for name, codes in _HEART_CODES.items()}
    vessels = np.where(np.isnan(columns["ca"]), 4.0, columns["ca"])
    known = {**columns, **decoded, "ca": vessels}
    rows = np.stack([np.asarray(known[name], float) for name in dataset.features], axis=1)
    return LabelledRows(dataset, rows, target == "<50")


def _adult(dataset: DataSet, columns: Columns, target: NDArray[Any]) -> LabelledRows:
    """UCI's training file: OpenML has the test file first, then these rows."""
    training = slice(len(target) - dataset.n_rows, None)
    known = {name.replace("-", "_"): values[training] for name, values in columns.items()}
    known["sex"] = (known["sex"] == "Male").astype(float)
    rows = np.stack([known[name].astype(float) for name in dataset.features], axis=1)
    return LabelledRows(dataset, rows, target[training] == ">50K")


OPENML: dict[str, tuple[int, Callable[[DataSet, Columns, NDArray[Any]], LabelledRows]]] = {
    "lymphography": (10, _lymphography),
    "pima": (37, _pima),
    "heart": (49, _heart),
    "adult": (1590, _adult),
}
"""Data id, and how to read it."""
