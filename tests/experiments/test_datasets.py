"""The five data sets: what they are, where they come from, and what is said when they are not there."""

import csv
import gzip
import hashlib
import json
from dataclasses import replace
from urllib.request import Request, urlopen

import numpy as np
import pytest

from experiments.measure.datasets import DATASETS, DataSetError, dataset_named
from experiments.measure.protocol import split_rows
from experiments.measure.sources import data_folder, load_dataset
from fake_server import faked
from shared_data import needs_data

TABLE_1 = {
    "Lymph": (3, 113, 35, 6),
    "Diabetes": (8, 400, 140, 40),
    "Wdbc": (30, 285, 82, 10),
    "Heart": (13, 110, 38, 10),
    "Adult": (7, 19_776, 5_044, 100),
}
"""The paper's: dimension, size of reference set, size of test set, outliers in test set."""
DATASETS_BY_NAME = pytest.mark.parametrize("dataset", DATASETS, ids=lambda dataset: dataset.name)


@needs_data
@DATASETS_BY_NAME
def test_table_1_is_the_paper_s(dataset, data):
    """Every number of Table 1, on every split."""
    for number in range(5):
        split = split_rows(load_dataset(dataset, data), number)
        found = (split.reference.shape[1], len(split.reference), len(split.points), int(split.outlying.sum()))
        assert found == TABLE_1[dataset.title]


def test_wdbc_needs_no_download():
    """scikit-learn's copy gives the same values as any other."""
    split = split_rows(load_dataset(dataset_named("wdbc"), None), 0)
    assert (split.reference.shape[1], len(split.reference), len(split.points)) == TABLE_1["Wdbc"][:3]


@needs_data
@DATASETS_BY_NAME
def test_a_changed_value_is_noticed(dataset, data, tmp_path):
    lines = (data / dataset.file).read_text().splitlines()
    fields = lines[7].split(",")
    fields[0] = str(float(fields[0]) + 1)
    (tmp_path / dataset.file).write_text("\n".join([*lines[:7], ",".join(fields), *lines[8:]]))
    with pytest.raises(DataSetError, match=f"not the {dataset.name} data"):
        load_dataset(dataset, tmp_path)


@needs_data
def test_the_order_of_outliers_is_part_of_the_data(data, tmp_path):
    """The first m are taken, so another order is another experiment; the order of inliers is not."""
    pima = dataset_named("pima")
    header, *rows = (data / pima.file).read_text().splitlines()
    inliers, outliers = ([row for row in rows if row.endswith(f",{label}")] for label in "01")
    (tmp_path / pima.file).write_text("\n".join([header, *reversed(inliers), *outliers]))
    assert load_dataset(pima, tmp_path).digest() == pima.digest
    (tmp_path / pima.file).write_text("\n".join([header, *inliers, *reversed(outliers)]))
    with pytest.raises(DataSetError):
        load_dataset(pima, tmp_path)


def test_a_missing_set_is_named_with_a_remedy(tmp_path, monkeypatch):
    with pytest.raises(
        DataSetError, match=r"heart is missing: there is no file .*heart\.csv.*--data or DPOUTLIER_DATA"
    ):
        load_dataset(dataset_named("heart"), tmp_path)
    with pytest.raises(DataSetError, match=r"no folder .*nowhere \(--data\)"):
        data_folder(tmp_path / "nowhere")
    monkeypatch.setenv("DPOUTLIER_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataSetError, match=r"nowhere \(DPOUTLIER_DATA\)"):
        data_folder(None)
    with pytest.raises(DataSetError, match="the sets are lymphography, pima"):
        dataset_named("iris")


def test_messages_name_the_column_and_a_blank_line_is_no_row(tmp_path):
    lymphography = dataset_named("lymphography")
    (tmp_path / lymphography.file).write_text("lym_nodes_dimin,lym_nodes_enlar,class\n1,2,3\n")
    with pytest.raises(
        DataSetError,
        match=r"no column 'no_of_nodes_in'.*columns lym_nodes_dimin, lym_nodes_enlar, no_of_nodes_in, class\)",
    ):
        load_dataset(lymphography, tmp_path)
    (tmp_path / lymphography.file).write_text("lym_nodes_dimin,lym_nodes_enlar,no_of_nodes_in,class\n1,2,3,2\n\n")
    with pytest.raises(DataSetError, match="1 rows with checksum"):
        load_dataset(lymphography, tmp_path)


def test_the_folder_is_the_option_then_the_variable_then_none(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    monkeypatch.setenv("DPOUTLIER_DATA", str(tmp_path))
    assert data_folder(tmp_path / "a") == tmp_path / "a"
    assert data_folder(None) == tmp_path
    monkeypatch.delenv("DPOUTLIER_DATA")
    assert data_folder(None) is None


@pytest.mark.parametrize(
    "text",
    ["", "a,b\n1,2\n", "lym_nodes_dimin,lym_nodes_enlar,no_of_nodes_in,class\n1,x,3,2\n", "lym_nodes_dimin\n1,2,3\n"],
)
def test_a_file_of_something_else_is_refused(text, tmp_path):
    (tmp_path / "lymphography.csv").write_text(text)
    with pytest.raises(DataSetError, match=r"not the lymphography data"):
        load_dataset(dataset_named("lymphography"), tmp_path)


# OpenML's form of the sets, made from the CSV files and served on this machine.


def _records(data, name):
    with (data / name).open(newline="") as stream:
        return list(csv.DictReader(stream))


def _lymphography(data):
    classes = {"1": "normal", "2": "metastases", "3": "malign_lymph", "4": "fibrosis"}
    columns = dict.fromkeys(dataset_named("lymphography").features)
    columns["class"] = sorted(classes.values())
    rows = [[*list(row.values())[:3], classes[row["class"]]] for row in _records(data, "lymphography.csv")]
    return columns, rows[::-1]  # OpenML's order is another


def _pima(data):
    columns = dict.fromkeys(("preg", "plas", "pres", "skin", "insu", "mass", "pedi", "age"))
    columns["class"] = ["tested_negative", "tested_positive"]
    return columns, [
        [*list(row.values())[:8], columns["class"][int(row["class"])]] for row in _records(data, "pima.csv")
    ]


def _heart(data):
    codes = {
        "sex": ["female", "male"],
        "cp": ["asympt", "atyp_angina", "non_anginal", "typ_angina"],
        "fbs": ["f", "t"],
        "restecg": ["left_vent_hyper", "normal", "st_t_wave_abnormality"],
        "exang": ["no", "yes"],
        "slope": ["down", "flat", "up"],
        "thal": ["?", "fixed_defect", "normal", "reversable_defect"],
        "num": ["'>50_1'", "'<50'"],
    }
    names = [*dataset_named("heart").features, "num"]
    columns = {name: [text for text in codes[name] if text != "?"] if name in codes else None for name in names}
    rows = []
    for row in _records(data, "heart.csv"):
        row["num"] = row.pop("class")
        texts = [codes[name][int(row[name])] if name in codes else row[name] for name in names]
        texts[names.index("ca")] = "?" if row["ca"] == "4" else row["ca"]
        rows.append(texts)
    return columns, rows


def _adult(data):
    columns = {"age": None, "fnlwgt": None, "education-num": None, "sex": ["Female", "Male"]}
    columns |= {"capital-gain": None, "capital-loss": None, "hours-per-week": None, "class": ["<=50K", ">50K"]}
    train = [[*list(row.values())] for row in _records(data, "adult.csv")]
    rows = [[*row[:3], columns["sex"][int(row[3])], *row[4:]] for row in train]
    return columns, [*rows[:16_281], *rows]  # the test file stands first


OPENML = {10: _lymphography, 37: _pima, 49: _heart, 1590: _adult}


def _arff(columns, rows):
    lines = ["@RELATION r"]
    for name, levels in columns.items():
        lines.append(f"@ATTRIBUTE {name} " + ("REAL" if levels is None else "{" + ",".join(levels) + "}"))
    return "\n".join([*lines, "@DATA", *(",".join(row) for row in rows), ""]).encode()


RETRIES = pytest.mark.filterwarnings("ignore:Invalid cache", "ignore:A network error", "ignore:OpenML")
"""What scikit-learn says when it asks OpenML again."""


@pytest.fixture
def openml(data, tmp_path, monkeypatch):
    """A server that answers as OpenML does; requests to OpenML go there, and are kept under a data home of their own."""
    broken = []

    def answer(request):
        kind, number = request.path.rstrip("/").split("/")[-2:]
        columns, rows = OPENML[int(number)](data)
        if "another column" in broken:
            columns = {"years" if name == "age" else name: levels for name, levels in columns.items()}
        body = _arff(columns, rows)
        if kind == "data":
            checksum = hashlib.md5(body).hexdigest() if True not in broken else "0" * 32
            url = f"https://www.openml.org/data/download/{number}"
            about = {"id": number, "name": "x", "version": "1", "status": "active", "format": "ARFF", "url": url}
            body = json.dumps({"data_set_description": {**about, "md5_checksum": checksum, "description": ""}}).encode()
        elif kind == "features":
            flags = {"is_ignore": "false", "is_row_identifier": "false", "number_of_missing_values": "0"}
            features = [
                {
                    "index": str(i),
                    "name": name,
                    "data_type": "numeric" if levels is None else "nominal",
                    "is_target": str(i == len(columns) - 1).lower(),
                    **flags,
                }
                for i, (name, levels) in enumerate(columns.items())
            ]
            body = json.dumps({"data_features": {"feature": features}}).encode()
        elif kind == "qualities":
            quality = [{"name": "NumberOfInstances", "value": str(float(len(rows)))}]
            body = json.dumps({"data_qualities": {"quality": quality}}).encode()
        body = gzip.compress(b"{}" if "other json" in broken else body)
        return 200, {"Content-Encoding": "gzip"}, body[:-20] if "truncated" in broken else body

    with faked(always=answer) as (url, asked):

        def redirect(request, *args, **kwargs):
            _, _, path = request.full_url.removeprefix("https://").partition("/")
            return urlopen(Request(f"{url}/{path}", headers=dict(request.headers)), *args, **kwargs)

        monkeypatch.setattr("sklearn.datasets._openml.urlopen", redirect)
        monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
        yield asked, broken


@needs_data
@pytest.mark.parametrize("name", ["lymphography", "pima", "heart", "adult"])
def test_openml_s_copy_is_the_same_data_and_is_fetched_once(name, openml):
    """Other names, codes and orders, the same checksum; the second time from the cache."""
    asked, _ = openml
    dataset = dataset_named(name)
    assert load_dataset(dataset, None).digest() == dataset.digest
    n_asked = len(asked)
    assert n_asked > 0
    load_dataset(dataset, None)
    assert len(asked) == n_asked


@RETRIES
@needs_data
def test_a_download_with_a_wrong_checksum_is_refused(openml):
    _, broken = openml
    broken.append(True)
    with pytest.raises(DataSetError, match=r"pima could not be fetched from OpenML \(data id 37\): .*checksum"):
        load_dataset(dataset_named("pima"), None)


@RETRIES
@needs_data
@pytest.mark.parametrize("damage", ["truncated", "other json", "another column"])
def test_a_damaged_answer_of_openml_is_an_error_with_a_remedy(damage, openml):
    _, broken = openml
    broken.append(damage)
    with pytest.raises(DataSetError, match=r"heart could not be fetched from OpenML \(data id 49\): .*Put heart\.csv"):
        load_dataset(dataset_named("heart"), None)


@RETRIES
def test_without_a_network_the_error_says_what_to_do(tmp_path, monkeypatch):
    def unreachable(*_args, **_kwargs):
        raise OSError("no route to host")

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", unreachable)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    with pytest.raises(DataSetError, match=r"adult could not be fetched .*no route to host.*Put adult\.csv"):
        load_dataset(dataset_named("adult"), None)


def test_the_digest_is_of_values_and_of_their_part():
    """A row that moves from inliers to outliers changes it, though all values stay."""
    wdbc = load_dataset(dataset_named("wdbc"), None)
    moved = wdbc.outlying.copy()
    moved[np.flatnonzero(~moved)[0]] = True
    assert replace(wdbc, outlying=moved).digest() != wdbc.digest()
