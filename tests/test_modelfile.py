"""Model files: data only, checked whole, never half-written, and secrets cannot be taken for public."""

import errno
import hashlib
import io
import json
import os
import stat
import time
import warnings
import zipfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpoutlier import DPForest, DPGridKNN, DPMarginals, Forest, GridKNN, Marginals, load
from dpoutlier.exceptions import DpoutlierError, InvalidParameterError, ModelFileError, SecretError
from dpoutlier.modelfile import archive, load_model
from dpoutlier.noise.law import DiscreteLaplace

ROWS = np.random.default_rng(0).uniform(size=(200, 3))
POINTS = np.random.default_rng(1).uniform(size=(50, 3))
NAMES = {"age": (0, 1), "bmi": (0, 2), "crp": (-1, 1)}

quiet = pytest.mark.filterwarnings("ignore::dpoutlier.exceptions.UnsafeWarning")
VARIANTS = {
    "dense": DPGridKNN("1/3", bounds=NAMES, bins=[2, 3, 4], target_fpr=0.1),
    "bought": DPGridKNN(0.3, bounds=NAMES, n_hint="buy", weighted=True, distance="point", neighbours="replace-one"),
    "keyed": DPGridKNN(0.3, bounds=NAMES, bins=7, holder="keyed", rows_per_person=2, max_depth=None),
    "wide": DPGridKNN(1, bounds=NAMES, bins=2**24, k=3, max_cells=50),
    "seeded": DPGridKNN(1, bounds=NAMES, bins=3, unsafe_seed=3),
    "float": DPGridKNN(1, bounds=NAMES, bins=3, unsafe_float_laplace=True),
    "infinite": DPGridKNN(np.inf, bounds=NAMES, bins=3),
    "twin": GridKNN(NAMES, bins=3, target_fpr=0.2, exhausted="as-printed"),
    "forest": DPForest("1/3", bounds=NAMES, n_trees=3, depth=6, subspace=(1, 3), tree_seed=7, target_fpr=0.1),
    "bought forest": DPForest(2, bounds=NAMES, n_hint="buy", neighbours="replace-one", rows_per_person=3),
    "marginals": DPMarginals(0.3, bounds=NAMES, bins=[3, 10, 1], target_fpr=0.1, threshold_share=0.25),
    "infinite forest": DPForest(np.inf, bounds=NAMES, n_hint=200),
    "forest's twin": Forest(NAMES, target_fpr=0.2),
    "marginals' twin": Marginals(NAMES, target_fpr=0.2),
}
KEPT = {
    *("k", "weighted", "distance", "max_depth", "max_cells", "exhausted"),
    *("target_fpr", "threshold_share", "rows_per_person", "subspace", "tree_seed"),
}
PUBLIC = {"dense", "bought", "forest", "bought forest", "marginals"}


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
        assert getattr(estimator, argument) == getattr(detector, argument)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert estimator.fit(ROWS).model_.partition == detector.model_.partition or name == "bought"
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
        assert {"ids.npy", "exact.npy", "key.npy", "salt.npy"}.isdisjoint(members)
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
def saved_forest(tmp_path_factory):
    return VARIANTS["forest"].fit(ROWS).save(tmp_path_factory.mktemp("models") / "model")


@pytest.fixture(scope="module")
def saved_secret(tmp_path_factory):
    return VARIANTS["keyed"].fit(ROWS).save(tmp_path_factory.mktemp("models") / "model")


def test_a_file_is_a_zip_of_arrays_and_json(saved):
    with zipfile.ZipFile(saved) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        counts = np.load(io.BytesIO(archive.read("counts.npy")), allow_pickle=False)
    assert manifest["format_version"] == 1
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
def test_files_that_are_no_models(content, tmp_path):
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


def rewritten(path, target, *, change=None, arrays=None):
    """A model file with another manifest or other arrays, and checksums that fit: what a forger could write."""
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    manifest = json.loads(members.pop("manifest.json"))
    for name, content in (arrays or {}).items():
        members[f"{name}.npy"] = content
        manifest["arrays"][name] = hashlib.sha256(content).hexdigest()
    if change:
        change(manifest)
    manifest["checksum"] = archive.checksum(manifest)
    with zipfile.ZipFile(target, "w") as new:
        new.writestr("manifest.json", json.dumps(manifest))
        for name, content in members.items():
            new.writestr(name, content)
    return target


def at(*keys, value):
    def change(manifest):
        for key in keys[:-1]:
            manifest = manifest[key]
        manifest[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (at("format_version", value=2), "format version 2.*reads up to 1: upgrade dpoutlier"),
        (at("format_version", value="1"), "impossible format version"),
        (at("format", value="other"), "not a dpoutlier model"),
        (at("publishable", value=False), "both secret and publishable, or neither"),
        (at("publishable", value=1), "both secret and publishable, or neither"),
        (at("format_version", value=True), "impossible format version"),
        (at("guarantee", "voided_by", value=["x"]), "not one that this format knows"),
        (at("guarantee", "voided_by", value=""), "not one that this format knows"),
        (at("guarantee", "delta", value=0.1), "not one that this format knows"),
        (at("guarantee", "epsilon", value=None), "does not fit its guarantee"),
        (at("guarantee", "neighbours", value="replace-one"), "does not follow from its guarantee"),
        (at("guarantee", "rows_per_person", value=1000), "does not follow from its guarantee"),
        (at("detector", value="GridKNN"), "promises privacy for a detector that has none"),
        (at("domain", "names", value=[]), "not a model file"),
        (at("domain", "names", value="abc"), "not one that this format knows"),
        (at("domain", "names", value=["a", "b", "\x1b[2J"]), "not a model file"),
        (at("counts", "unsafe_float", value={}), "not one that this format knows"),
        (at("counts", "unsafe_float", value=True), "does not fit its guarantee"),
        (at("score_histogram", "rate", value=None), "not bought at the rate"),
        (at("score_histogram", "rate", value="1/1024"), "not bought at the rate"),
        (at("score_histogram", value=None), "charges of the model file are not those of its parts"),
        (at("unknown", value=1), "not one that this format knows"),
        (at("detector", value="DP\x1b[31mX"), "cannot be printed"),
        (at("guarantee", "epsilon", value="1" + "0" * 40), "outside of 1e-12 to 1e9"),
        (at("guarantee", "epsilon", value="1" + "0" * 5000), "where a number should be"),
        (at("guarantee", "neighbours", value="none"), "not a model file"),
        (at("partition", "bins", value=[2, 3, 5]), "array counts"),
        (at("partition", "bins", value=[2**20, 2**20, 2**20]), "too many cells"),
        (at("partition", "bins", value=[2, 12]), "number of features"),
        (at("partition", "bins", value=[2, 3, -4]), "not a model file"),
        (at("partition", "name", value="forest"), "not a model file"),
        (at("scorer", "k", value=0), "not a model file"),
        (at("scorer", "extra", value=0), "not a model file"),
        (at("counts", "kind", value="thin"), "holder 'thin'"),
        (at("counts", "kind", value="keyed"), "not a model file"),
        (at("domain", "lower", value=[0, 0, 5]), "not a model file"),
        (at("domain", "lower", value=[0.5, 0, -1]), "do not give its scales"),
        (at("detector", value="DPForest"), "do not belong together"),
        (at("detector", value="DPSomething"), "'DPSomething', a detector that this dpoutlier does not know"),
        (at("score_histogram", "target_fpr", value=7), "not a model file"),
        (at("arrays", "more", value="00"), "does not hold the arrays"),
        (at("charges", value=None), "not a model file"),
        (at("charges", value=[]), "charges of the model file are not those of its parts"),
        (at("charges", 0, "epsilon", value="1e999999999"), "where a number should be"),
        (at("charges", 0, "epsilon", value="1/1000"), "do not add up to its epsilon"),
        (at("charges", 0, "rate", value="0"), "not a model file"),
        (at("charges", 0, "sensitivity", value=0), "not a model file"),
        (at("guarantee", "epsilon", value="1/100"), "do not add up to its epsilon"),
        (at("guarantee", "epsilon", value="1e999999999"), "where a number should be"),
        (at("n_hint", value="many"), "not a model file"),
    ],
)
def test_a_forged_manifest_is_refused(saved, tmp_path, change, message):
    with pytest.raises(ModelFileError, match=message):
        load(rewritten(saved, tmp_path / "model.dpo", change=change))


def both(*changes):
    return lambda manifest: [change(manifest) for change in changes]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (at("detector", value="DPMarginals"), "do not belong together"),
        (at("scorer", "soft", value=False), "do not belong together"),
        (at("scorer", "soft", value=1), "not a model file"),
        (at("scorer", "floor", value=1), "not that of its noise"),
        (at("scorer", "floor", value=2**60), "not a model file"),
        (at("scorer", "floor", value=-1), "not a model file"),
        (at("charges", 0, "sensitivity", value=1), "does not follow from its guarantee"),
        (
            both(
                at("charges", 0, "sensitivity", value=1),
                at("charges", 0, "rate", value=str(DiscreteLaplace.costing(Fraction(19, 60), 1).rate)),
            ),
            "does not follow from its guarantee",
        ),
        (at("partition", "n_trees", value=1), "array counts"),
        (at("partition", "n_trees", value=10**12), "not a model file"),
        (at("partition", "depth", value=60), "not a model file"),
        (at("partition", "subspace", value=[10**9]), "not a model file"),
        (at("partition", "subspace", value=[]), "not a model file"),
        (at("partition", "seed", value=-1), "not a model file"),
        (at("partition", "seed", value=2**64), "not a model file"),
        (at("partition", "n_features", value=4), "number of features"),
        (at("partition", "name", value="margins"), "not a model file"),
    ],
)
def test_a_forged_forest_is_refused(saved_forest, tmp_path, change, message):
    with pytest.raises(ModelFileError, match=message):
        load(rewritten(saved_forest, tmp_path / "forged.dpo", change=change))


def test_the_largest_forest_with_a_threshold_loads_at_once(tmp_path):
    """Levels of thresholds follow from the shape of the trees: a small file must not take long, whatever shape it names."""
    twin = Forest((0, 1), n_trees=64, depth=16, subspace=16, target_fpr=0.1).fit(np.zeros((2, 16)))
    path = twin.save(tmp_path / "large")
    begin = time.process_time()
    load(path, secret=True)
    assert time.process_time() - begin < 2


def npy(array):
    return archive.npy_bytes(np.asarray(array))


def lying_header(count):
    """An array that claims to be longer than the file."""
    content = npy(np.zeros(24, np.int64))
    return content.replace(b"(24,)", f"({count},)".encode().ljust(5)[:5] if count < 1000 else f"({count},)".encode())


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"counts": npy(np.zeros(24, np.int32))}, "array counts of the model file has type int32"),
        ({"counts": npy(np.zeros(23, np.int64))}, "array counts"),
        ({"counts": npy(np.zeros((4, 6), np.int64))}, "array counts"),
        ({"counts": lying_header(99)}, "impossible shape"),
        ({"counts": lying_header(10**12)}, "not a model file|impossible shape"),
        ({"counts": b"\x80\x04K\x01."}, "not a model file"),
        ({"score_levels": npy(np.zeros(3)), "score_counts": npy(np.zeros(3, np.int64))}, "score levels"),
        ({"threshold": npy(np.zeros(2))}, "array threshold"),
        ({"threshold": npy(np.array([np.nan]))}, "threshold of the model file is no number"),
        ({"counts": npy(np.full(24, 2**40))}, "counts of the model file are too large"),
        ({"counts": npy(np.full(24, -(2**63)))}, "counts of the model file are too large"),
        ({"exact": npy(np.zeros(24, np.int64))}, "not one that this format knows"),
    ],
)
def test_forged_arrays_are_refused(saved, tmp_path, arrays, message):
    with pytest.raises(ModelFileError, match=message):
        load(rewritten(saved, tmp_path / "model.dpo", arrays=arrays))


def test_forged_cells_are_refused(saved_secret, tmp_path):
    with zipfile.ZipFile(saved_secret) as archive:
        ids = np.load(io.BytesIO(archive.read("ids.npy")))
    for forged in (ids[::-1], ids + np.uint64(2**40)):
        with pytest.raises(ModelFileError, match="not in order"):
            load(rewritten(saved_secret, tmp_path / "m.secret.dpo", arrays={"ids": npy(forged)}), secret=True)


def test_a_keyed_file_with_another_rate_than_was_charged_is_refused(saved_secret, tmp_path):
    change = at("counts", "rate", value="1000")
    with pytest.raises(ModelFileError, match="not the rate that was charged"):
        load(rewritten(saved_secret, tmp_path / "m.secret.dpo", change=change), secret=True)


def test_a_bought_number_of_rows_is_checked(tmp_path):
    path = VARIANTS["bought"].fit(ROWS).save(tmp_path / "m")
    for change in (at("n_hint", value=None), at("charges", 0, "epsilon", value="1/10")):
        with pytest.raises(ModelFileError, match="not bought as this format does"):
            load(rewritten(path, tmp_path / "forged.dpo", change=change))


@pytest.mark.parametrize("levels", [np.linspace(-1, 3, 6), np.arange(6.0)])
def test_levels_that_are_not_the_scorers_are_refused(saved, tmp_path, levels):
    arrays = {"score_levels": npy(levels), "score_counts": npy(np.zeros(len(levels), np.int64))}
    with pytest.raises(ModelFileError, match="not those of its scorer"):
        load(rewritten(saved, tmp_path / "m.dpo", arrays=arrays))


@quiet
@pytest.mark.parametrize(
    "arguments",
    [
        {"epsilon": "0." + "3" * 30, "target_fpr": 0.1, "threshold_share": 0.0123456789012345},
        {"epsilon": "1e-6", "unsafe_float_laplace": True},
        {"epsilon": "123456789012345678901234567890/987654321098765432109876543210"},
        {"epsilon": 1, "bounds": {"größe": (0, 1), "b": (0, 1), "c": (0, 1)}},
        {"epsilon": 1, "max_depth": 2**70, "weighted": True, "target_fpr": 0.5},
    ],
)
def test_odd_but_legitimate_models_can_be_read_back(arguments, tmp_path):
    detector = DPGridKNN(**{"bounds": NAMES, "bins": 3, **arguments}).fit(ROWS)
    loaded = load(detector.save(tmp_path / "m"), secret=True)
    assert (loaded.outlier_scores(POINTS) == detector.outlier_scores(POINTS)).all()


def test_an_epsilon_of_too_many_digits_is_refused_before_the_fit():
    with pytest.raises(InvalidParameterError, match="epsilon must be"):
        DPGridKNN("0." + "1" * 60, bounds=NAMES, bins=3).fit(ROWS)


@quiet
@pytest.mark.parametrize("number", [np.int64, np.int32, np.uint64, np.uint8])
def test_numpy_numbers_are_saved_as_numbers(number, tmp_path):
    detector = DPGridKNN(
        1, bounds=NAMES, bins=number(3), k=number(4), max_depth=number(3), max_cells=number(90), rows_per_person=number(2),
        weighted=np.True_, n_hint=number(100), unsafe_seed=number(1),
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
    assert again.model_.counts.noise == 1
    assert (again.outlier_scores(points) == loaded.outlier_scores(points)).all()


def test_a_table_is_refused_for_noise_too_wide_for_one(tmp_path):
    path = DPGridKNN("1/5000", bounds=NAMES, bins=3, holder="keyed").fit(ROWS).save(tmp_path / "wide")

    def change(manifest):
        manifest["counts"] |= {"prf": "siphash-2-4-of-16-bytes-then-24/2", "sampler": "guided-table/2"}

    with pytest.raises(ModelFileError, match="too wide for the table"):
        load(rewritten(path, tmp_path / "m.secret.dpo", change=change), secret=True)


def test_noise_of_another_version_is_refused_and_not_replaced(saved_secret, tmp_path):
    change = at("counts", "sampler", value="guided-table/9")
    with pytest.raises(ModelFileError, match="second release: upgrade"):
        load(rewritten(saved_secret, tmp_path / "m.secret.dpo", change=change), secret=True)


def test_compressed_members_are_refused(saved, tmp_path):
    """A small file must not grow in memory."""
    target = tmp_path / "model.dpo"
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    with pytest.raises(ModelFileError, match="impossible size"):
        load(target)


def test_an_existing_file_is_kept_unless_told(tmp_path):
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
        large = DPGridKNN(1, bounds=(0, 1), bins=40).fit(ROWS)
        with pytest.raises(OSError, match="No space left"):
            large.save(tmp_path / "model")
        assert not list(tmp_path.iterdir())
    finally:
        os.system(f"umount {tmp_path}")
