"""Model files: data only, checked whole, never half-written, and secrets cannot be taken for public."""

import errno
import io
import json
import os
import stat
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpoutlier import DPGridKNN, load
from dpoutlier.exceptions import DpoutlierError, InvalidParameterError, ModelFileError, SecretError
from dpoutlier.model.file import load_model
from dpoutlier.model.file.versions import WRITTEN
from model_variants import NAMES, ROWS, VARIANTS

POINTS = np.random.default_rng(1).uniform(size=(50, 3))

quiet = pytest.mark.filterwarnings("ignore::dpoutlier.exceptions.UnsafeWarning")
KEPT = {
    *("k", "weighted", "distance", "max_depth", "max_cells", "exhausted"),
    *("target_fpr", "threshold_share", "rows_per_person", "subspace", "tree_seed"),
}
PUBLIC = {"dense", "private rows", "sparse", "forest", "private rows forest", "marginals"}


@quiet
@pytest.mark.parametrize("name", VARIANTS)
def test_a_loaded_model_is_the_model_that_was_saved(name, tmp_path):
    detector = VARIANTS[name].fit(ROWS)
    path = detector.save(tmp_path / "model")
    loaded = load(path, secret=name not in PUBLIC)
    estimator = loaded.estimator()
    assert type(estimator) is type(detector)
    assert (loaded.outlier_scores(POINTS) == detector.outlier_scores(POINTS)).all()
    assert loaded.privacy_statement() == detector.privacy_statement()
    assert loaded.model_.guarantee == detector.model_.guarantee
    assert loaded.model_.charges == detector.model_.charges
    assert loaded.feature_names_in_.tolist() == list(NAMES)
    for argument in KEPT & detector.get_params().keys():
        given = getattr(detector, argument)
        chosen = {"auto", 0.2} if given == "auto" else {given}  # by the rule, if there is a threshold
        assert getattr(estimator, argument) in chosen
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert estimator.fit(ROWS).model_.partition == detector.model_.partition or name == "private rows"
    again = loaded.save(tmp_path / "again")
    assert again.read_bytes() == path.read_bytes()


@quiet
@pytest.mark.parametrize("name", VARIANTS)
def test_secret_and_publishable_files_cannot_be_confused(name, tmp_path):
    detector = VARIANTS[name].fit(ROWS)
    path = detector.save(tmp_path / "model")
    mode = stat.S_IMODE(path.stat().st_mode)
    with zipfile.ZipFile(path) as archive:
        members = archive.namelist()
    if name in PUBLIC:
        assert (path.name, mode, "SECRET.txt" in members) == ("model.dpo", 0o644, False)
        assert {"exact.npy", "key.npy", "salt.npy"}.isdisjoint(members)
        assert ("ids.npy" in members) is (name == "sparse")
        with pytest.raises(SecretError, match="is publishable"):
            detector.save(tmp_path / "other.secret.dpo")
    else:
        assert (path.name, mode, "SECRET.txt" in members) == ("model.secret.dpo", 0o600, True)
        with pytest.raises(SecretError, match="this one is secret"):
            detector.save(tmp_path / "other.dpo")
        with pytest.raises(SecretError, match="secret=True"):
            load(path)
        renamed = path.rename(tmp_path / "renamed.dpo")
        with pytest.raises(SecretError, match="secret=True"):
            load(renamed)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return VARIANTS["dense"].fit(ROWS).save(tmp_path_factory.mktemp("models") / "model")


@pytest.fixture(scope="module")
def saved_secret(tmp_path_factory):
    return VARIANTS["keyed"].fit(ROWS).save(tmp_path_factory.mktemp("models") / "model")


def test_a_file_is_a_zip_of_arrays_and_json(saved):
    with zipfile.ZipFile(saved) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        counts = np.load(io.BytesIO(archive.read("counts.npy")), allow_pickle=False)
    assert manifest["format_version"] == WRITTEN
    assert manifest["guarantee"]["epsilon"] == "1/3"
    assert manifest["statement"]["private"] is True
    assert counts.shape == (24,)


def test_the_file_opens_no_pickle(saved, monkeypatch):
    monkeypatch.setattr("pickle.loads", pytest.fail)
    monkeypatch.setattr("pickle.load", pytest.fail)
    assert load_model(saved).publishable


def test_a_missing_file(tmp_path):
    with pytest.raises(ModelFileError, match="does not exist"):
        load(tmp_path / "none.dpo")


def test_a_folder(tmp_path):
    with pytest.raises(ModelFileError, match="cannot be read"):
        load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"not a model", b"PK\x05\x06" + bytes(18)])
def test_files_that_are_not_models(content, tmp_path):
    path = tmp_path / "model.dpo"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="not a model"):
        load(path)


def test_every_truncation_is_noticed(saved, tmp_path):
    content = saved.read_bytes()
    path = tmp_path / "model.dpo"
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        with pytest.raises(ModelFileError):
            load(path)


@settings(max_examples=400)
@given(st.data())
def test_a_flipped_byte_gives_an_error_or_the_same_model(saved, saved_secret, tmp_path_factory, data):
    source = data.draw(st.sampled_from([saved, saved_secret]))
    content = bytearray(source.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.mktemp("flipped") / "model.dpo"
    path.write_bytes(content)
    try:
        found = load(path, secret=True)
    except DpoutlierError:
        return
    original = load(source, secret=True)
    assert (found.outlier_scores(POINTS) == original.outlier_scores(POINTS)).all()
    assert found.privacy_statement() == original.privacy_statement()


@quiet
@pytest.mark.parametrize(
    "arguments",
    [
        {"epsilon": "0." + "3" * 30, "target_fpr": 0.1, "threshold_share": 0.0123456789012345},
        {"epsilon": "123456789012345678901234567890/987654321098765432109876543210"},
        {"epsilon": 1, "features": {"größe": (0, 1), "b": (0, 1), "c": (0, 1)}},
        {"epsilon": 1, "max_depth": 2**70, "weighted": True, "target_fpr": 0.5},
    ],
)
def test_odd_but_legitimate_models_can_be_read_back(arguments, tmp_path):
    detector = DPGridKNN(**{"features": NAMES, "bins": 3, **arguments}).fit(ROWS)
    loaded = load(detector.save(tmp_path / "m"), secret=True)
    assert (loaded.outlier_scores(POINTS) == detector.outlier_scores(POINTS)).all()


def test_an_epsilon_of_too_many_digits_is_refused_before_the_fit():
    with pytest.raises(InvalidParameterError, match="epsilon must be"):
        DPGridKNN("0." + "1" * 60, features=NAMES, bins=3).fit(ROWS)


@quiet
@pytest.mark.parametrize("number", [np.int64, np.int32, np.uint64, np.uint8])
def test_numpy_numbers_are_saved_as_numbers(number, tmp_path):
    detector = DPGridKNN(
        1, features=NAMES, bins=number(3), k=number(4), max_depth=number(3), max_cells=number(90), rows_per_person=number(2),
        weighted=np.True_, n_rows_hint=number(100), unsafe_seed=number(1),
    )  # fmt: skip
    loaded = load(detector.fit(ROWS).save(tmp_path / "m"), secret=True).estimator()
    assert (loaded.k, loaded.max_depth, loaded.max_cells, loaded.rows_per_person, loaded.weighted) == (
        4,
        3,
        90,
        2,
        True,
    )


def test_a_file_of_the_first_noise_gives_the_scores_that_it_gave_when_it_was_written(tmp_path):
    """Written before there was a second version. Other noise on its counts would be a second release."""
    path = Path(__file__).parent / "data" / "keyed-noise-1.secret.dpo"
    loaded = load(path, secret=True)
    points = (np.arange(40).reshape(5, 8) * 7 % 23) / 23
    assert loaded.outlier_scores(points).tolist() == [1 / 4, 1 / 12, 1 / 12, 1 / 6, 1 / 12]
    assert loaded.walk(points).visited.tolist() == [338, 5, 3, 4, 2]
    again = load(loaded.save(tmp_path / "again"), secret=True)
    assert again.model_.counts.sampler_version == 1
    assert (again.outlier_scores(points) == loaded.outlier_scores(points)).all()


def test_an_existing_file_is_kept_without_force(tmp_path):
    detector = VARIANTS["dense"].fit(ROWS)
    path = detector.save(tmp_path / "model")
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="exists"):
        detector.fit(ROWS).save(tmp_path / "model")
    assert path.read_bytes() == before
    detector.save(tmp_path / "model", overwrite=True)
    assert path.read_bytes() != before
    assert [path.name for path in tmp_path.iterdir()] == ["model.dpo"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_full_disk_leaves_nothing_half_written(tmp_path, monkeypatch, overwrite):
    detector = VARIANTS["dense"].fit(ROWS)
    before = detector.save(tmp_path / "model").read_bytes() if overwrite else None

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        detector.save(tmp_path / "model", overwrite=overwrite)
    assert [path.name for path in tmp_path.iterdir()] == (["model.dpo"] if overwrite else [])
    if overwrite:
        assert (tmp_path / "model.dpo").read_bytes() == before


def test_a_really_full_disk(tmp_path):
    """/dev/full refuses every byte; a small file system of our own does it with a real rename."""
    if os.geteuid() != 0 or os.system(f"mount -t tmpfs -o size=64k none {tmp_path} 2>/dev/null"):
        pytest.skip("mounting a small file system needs root")
    try:
        large = DPGridKNN(1, features=(0, 1), bins=40).fit(ROWS)
        with pytest.raises(OSError, match="No space left"):
            large.save(tmp_path / "model")
        assert not list(tmp_path.iterdir())
    finally:
        os.system(f"umount {tmp_path}")


@quiet
@pytest.mark.parametrize("missing", ["error", "cell", ["a"]])
@pytest.mark.parametrize("categories", [None, {"b": ["x", "y", "z"]}])
@pytest.mark.parametrize("arguments", [{}, {"max_depth": None}, {"weighted": True}, {"distance": "point"}])
def test_whatever_a_grid_is_made_of_it_can_be_saved(missing, categories, arguments, tmp_path):
    """A fit that cannot be saved is paid for and lost. A cell for missing values can lie as far away as the cube is wide."""
    features = {"a": (0, 1), **({} if categories else {"b": (0, 1)})}
    rows = pa.table({"a": [0.1, None, 0.7], "b": ["x", "y", None] if categories else [0.2, None, 0.4]})
    detector = DPGridKNN(
        1, features=features, categories=categories, missing=missing, bins=3, target_fpr=0.1, unsafe_seed=0, **arguments
    ).fit(rows)
    again = load(detector.save(tmp_path / "m"), secret=True)
    assert again.offset_ == detector.offset_
