"""Model files that somebody wrote or changed by hand: whatever they claim, they are refused, and at once."""

import io
import time
import zipfile
from fractions import Fraction

import numpy as np
import pytest

from dpoutlier import DPForest, DPGridKNN, Forest, load, merge
from dpoutlier.exceptions import ModelFileError
from dpoutlier.model.file import archive
from dpoutlier.model.file.versions import WRITTEN
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.noise.mechanism import Cost, Sensitivity
from dpoutlier.scoring.log_counts import UNIT, LogCounts
from forging import at, rewritten
from model_variants import NAMES, ROWS, VARIANTS


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return VARIANTS["dense"].fit(ROWS).save(tmp_path_factory.mktemp("models") / "model")


@pytest.fixture(scope="module")
def saved_forest(tmp_path_factory):
    return VARIANTS["forest"].fit(ROWS).save(tmp_path_factory.mktemp("models") / "model")


@pytest.fixture(scope="module")
def saved_secret(tmp_path_factory):
    return VARIANTS["keyed"].fit(ROWS).save(tmp_path_factory.mktemp("models") / "model")


@pytest.fixture(scope="module")
def saved_merge(tmp_path_factory):
    """A merge of three forests: epsilon 1/3, 1/2 (with a threshold) and 1."""
    named = {"features": NAMES, "n_trees": 3, "depth": 6}
    plain, threshold = DPForest("1/3", **named), DPForest("1/2", target_fpr=0.1, **named)
    fits = [plain.fit(ROWS), threshold.fit(ROWS), DPForest(1, **named).fit(ROWS)]
    return merge(fits, people="disjoint").save(tmp_path_factory.mktemp("models") / "model")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            at("format_version", value=WRITTEN + 1),
            f"format version {WRITTEN + 1}.*reads up to {WRITTEN}: upgrade dpoutlier",
        ),
        (at("format_version", value="1"), "impossible format version"),
        (at("format", value="other"), "not a dpoutlier model"),
        (at("publishable", value=False), "both secret and publishable, or neither"),
        (at("publishable", value=1), "both secret and publishable, or neither"),
        (at("format_version", value=True), "impossible format version"),
        (at("guarantee", "voided_by", value=["x"]), "not one that this format knows"),
        (at("guarantee", "voided_by", value=""), "not one that this format knows"),
        (at("guarantee", "delta", value="1/10"), "delta must be 0|does not follow from its guarantee"),
        (at("guarantee", "delta", value=1), "delta must be 0, or a number below 1"),
        (at("guarantee", "delta", value="0"), "not one that this format knows"),
        (at("guarantee", "epsilon", value=None), "do not match its guarantee"),
        (at("guarantee", "neighbours", value="replace-one"), "does not follow from its guarantee"),
        (at("guarantee", "rows_per_person", value=1000), "does not follow from its guarantee"),
        (at("detector", value="GridKNN"), "promises privacy for a detector that has none"),
        (at("domain", "names", value=[]), "not a model file"),
        (at("domain", "names", value="abc"), "not one that this format knows"),
        (at("domain", "names", value=["a", "b", "\x1b[2J"]), "not a model file"),
        (at("counts", "unsafe_float", value={}), "not one that this format knows"),
        (at("counts", "unsafe_float", value=True), "noise in floating point.*fit again"),
        (at("score_histogram", "rate", value=None), "not estimated at the rate"),
        (at("score_histogram", "rate", value="1/1024"), "not estimated at the rate"),
        (at("score_histogram", value=None), "charges of the model file do not match its parts"),
        (at("unknown", value=1), "not one that this format knows"),
        (at("detector", value="DP\x1b[31mX"), "cannot be printed"),
        (at("guarantee", "epsilon", value="1" + "0" * 40), "outside 1e-12 to 1e9"),
        (at("guarantee", "epsilon", value="1" + "0" * 5000), "where a number should be"),
        (at("guarantee", "neighbours", value="none"), "not a model file"),
        (at("partition", "bins", value=[2, 3, 5]), "array counts"),
        (at("partition", "bins", value=[2**20, 2**20, 2**20]), "too many cells"),
        (at("partition", "bins", value=[2, 12]), "differ in their number"),
        (at("partition", "bins", value=[2, 3, -4]), "not a model file"),
        (at("partition", "name", value="forest"), "not a model file"),
        (at("scorer", "k", value=0), "not a model file"),
        (at("scorer", "extra", value=0), "not a model file"),
        (at("counts", "kind", value="thin"), "counts 'thin'"),
        (at("counts", "kind", value="keyed"), "not a model file"),
        (at("domain", "lower", value=[0, 0, 5]), "not a model file"),
        (at("domain", "lower", value=[0.5, 0, -1]), "do not give its scales"),
        (at("detector", value="DPForest"), "do not belong together"),
        (at("detector", value="DPSomething"), "'DPSomething', a detector that this dpoutlier does not know"),
        (at("score_histogram", "target_fpr", value=7), "not a model file"),
        (at("arrays", "more", value="00"), "does not hold the arrays"),
        (at("charges", value=None), "not a model file"),
        (at("charges", value=[]), "charges of the model file do not match its parts"),
        (at("charges", 0, "epsilon", value="1e999999999"), "epsilon of a charge must be an exact number"),
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
        (at("scorer", "soft", value=False), "does not match its noise"),
        (at("scorer", "soft", value=1), "not a model file"),
        (at("scorer", "floor", value=1), "does not match its noise"),
        (at("scorer", "floor", value=2**60), "not a model file"),
        (at("scorer", "floor", value=-1), "not a model file"),
        (at("charges", 0, "sensitivity", value=1), "does not follow from its guarantee"),
        (
            both(
                at("charges", 0, "sensitivity", value=1),
                at(
                    "charges",
                    0,
                    "rate",
                    value=str(DiscreteLaplace.costing(Cost(Fraction(19, 60)), Sensitivity(1)).rate),
                ),
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
        (at("partition", "n_features", value=4), "differ in their number"),
        (at("partition", "name", value="margins"), "not a model file"),
    ],
)
def test_a_forged_forest_is_refused(saved_forest, tmp_path, change, message):
    with pytest.raises(ModelFileError, match=message):
        load(rewritten(saved_forest, tmp_path / "forged.dpo", change=change))


def test_a_scoring_rule_that_fits_the_noise_and_not_the_detector_is_refused(tmp_path):
    fitted = DPForest(1, features=NAMES, n_trees=3, depth=6).fit(ROWS)
    path, plain = fitted.save(tmp_path / "model"), LogCounts().with_noise(fitted.model_.charges[0].rate)
    with pytest.raises(
        ModelFileError, match="detector, partition and scoring rule of the model file do not belong together"
    ):
        load(rewritten(path, tmp_path / "forged.dpo", change=at("scorer", value=plain.to_json())))


def of_parts(change):
    """A change of the parts, with charges of the whole that fit."""

    def changed(manifest):
        change(manifest["merged"]["parts"])
        manifest["charges"] = [charge for part in manifest["merged"]["parts"] for charge in part["charges"]]

    return changed


def part_of(parts, epsilon):
    return next(part for part in parts if part["epsilon"] == epsilon)


def cheaper(parts):
    """A part that claims to have cost a tenth, with its noise as it was."""
    part = part_of(parts, "1")
    part["epsilon"] = part["charges"][0]["epsilon"] = "1/10"


def without_its_threshold(parts):
    part = part_of(parts, "1/2")
    del part["charges"][1]


def with_another_charge(parts):
    part = part_of(parts, "1/2")
    part["charges"][1]["purpose"] = "bounds"


def estimated_for_too_little(parts):
    part = part_of(parts, "1/2")
    part["charges"].reverse()
    part["charges"][0]["purpose"] = "number of rows"
    part["charges"][0]["epsilon"] = "1/50"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (at("merged", "people", value="overlapping"), "epsilon of the model file does not match its parts together"),
        (at("guarantee", "epsilon", value="1/3"), "epsilon of the model file does not match its parts together"),
        (at("guarantee", "epsilon", value="11/6"), "epsilon of the model file does not match its parts together"),
        (at("merged", "people", value="other"), "not a model file"),
        (at("merged", value=None), "not a model file"),
        (at("merged", "parts", value=[]), "not a model file"),
        (at("merged", "parts", value=[{}] * 1001), "more parts than this format knows"),
        (at("merged", "extra", value=1), "not one that this format knows"),
        (at("merged", "parts", 0, "extra", value=1), "not one that this format knows"),
        (at("merged", "parts", 0, "release", value="f" * 64), "not a model file.*in order"),
        (at("merged", "parts", 0, "release", value="x"), "not a model file"),
        (of_parts(lambda parts: parts.reverse()), "not a model file.*in order"),
        (of_parts(lambda parts: parts.__setitem__(1, parts[0])), "not a model file.*different releases"),
        (of_parts(lambda parts: parts.pop()), "does not match its (parts together|noise)"),
        (of_parts(cheaper), "does not follow from its guarantee"),
        (of_parts(without_its_threshold), "do not add up to its epsilon"),
        (of_parts(with_another_charge), "charges of the model file do not match its parts"),
        (of_parts(estimated_for_too_little), "not estimated as this format does"),
        (lambda manifest: manifest["charges"].pop(), "charges of the model file do not match its parts"),
        (at("charges", 0, "epsilon", value="1/10"), "charges of the model file do not match its parts"),
        (at("merged", "parts", 0, "epsilon", value="1" + "0" * 40), "outside 1e-12 to 1e9"),
        (at("n_hint", value=100), "not what a merge makes"),
        (at("guarantee", "neighbours", value="replace-one"), "does not follow from its guarantee"),
        (at("scorer", "floor", value=UNIT), "does not match its noise"),
        (lambda manifest: manifest.pop("merged"), "charges of the model file do not match its parts"),
    ],
)
def test_a_forged_merge_is_refused(saved_merge, tmp_path, change, message):
    with pytest.raises(ModelFileError, match=message):
        load(rewritten(saved_merge, tmp_path / "forged.dpo", change=change))


def test_a_single_release_is_no_merge(saved, tmp_path):
    def change(manifest):
        part = {"release": "0" * 64, "epsilon": "1/3", "charges": manifest["charges"]}
        manifest["merged"] = {"people": "disjoint", "parts": [part, {**part, "release": "1" * 64}]}
        manifest["charges"] = manifest["charges"] * 2

    with pytest.raises(ModelFileError, match="not what a merge makes"):
        load(rewritten(saved, tmp_path / "forged.dpo", change=change))


@pytest.mark.slow
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
        ({"counts": lying_header(10**12)}, "unknown layout"),
        ({"counts": b"\x80\x04K\x01."}, "unknown layout"),
        ({"score_levels": npy(np.zeros(3)), "score_counts": npy(np.zeros(3, np.int64))}, "score levels"),
        ({"threshold": npy(np.zeros(2))}, "array threshold"),
        ({"threshold": npy(np.array([np.nan]))}, "threshold of the model file is not a number"),
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
    with pytest.raises(ModelFileError, match="is not the noise that was charged"):
        load(rewritten(saved_secret, tmp_path / "m.secret.dpo", change=change), secret=True)


def test_a_private_number_of_rows_is_checked(tmp_path):
    path = VARIANTS["private rows"].fit(ROWS).save(tmp_path / "m")
    for change in (at("n_hint", value=None), at("charges", 0, "epsilon", value="1/10")):
        with pytest.raises(ModelFileError, match="not estimated as this format does"):
            load(rewritten(path, tmp_path / "forged.dpo", change=change))


@pytest.mark.parametrize("levels", [np.linspace(-1, 3, 6), np.arange(6.0)])
def test_levels_that_are_not_the_scorers_are_refused(saved, tmp_path, levels):
    arrays = {"score_levels": npy(levels), "score_counts": npy(np.zeros(len(levels), np.int64))}
    with pytest.raises(ModelFileError, match="do not follow from its counts and its scorer"):
        load(rewritten(saved, tmp_path / "m.dpo", arrays=arrays))


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


def test_a_table_is_refused_for_noise_too_wide_for_one(tmp_path):
    path = DPGridKNN("1/5000", features=NAMES, bins=3, counts="keyed").fit(ROWS).save(tmp_path / "wide")

    def change(manifest):
        manifest["counts"] |= {"prf": "siphash-2-4-of-16-bytes-then-24/2", "sampler": "guided-table/2"}

    with pytest.raises(ModelFileError, match="too wide for the table"):
        load(rewritten(path, tmp_path / "m.secret.dpo", change=change), secret=True)
