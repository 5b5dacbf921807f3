"""Dense and keyed counts (sparse has a file of its own): the same law, noise realised once, nothing secret let out."""

import copy
import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from dpoutlier import DPForest, DPGridKNN, DPMarginals, GridKNN, load, secrets_may_travel
from dpoutlier.counts.base import noisy_counts
from dpoutlier.counts.constant_time import in_constant_time
from dpoutlier.counts.keyed import KeyedCounts
from dpoutlier.exceptions import InvalidParameterError, SecretError, UnsafeWarning
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.partitions.base import cell_ids
from dpoutlier.tables.rows import Rows

ROWS = np.random.default_rng(0).uniform(size=(300, 3))
POINTS = np.random.default_rng(1).uniform(size=(200, 3))


def fitted(kind, rows=ROWS, **arguments):
    """A grid with that kind, or a forest, or marginals; each of 64 cells."""
    common = {"epsilon": 0.5, "features": (0, 1), **arguments}
    if kind == "forest":
        return DPForest(**{"n_trees": 2, "depth": 5, "subspace": 2, **common}).fit(rows)
    if kind == "marginals":
        return DPMarginals(**{"bins": [16, 16, 32], **common}).fit(rows)
    return DPGridKNN(**{"bins": 4, "counts": kind, **common}).fit(rows)


def all_counts(detector):
    assert detector.model_.partition.n_cells == 64
    return noisy_counts(detector.model_.counts, cell_ids(range(64)))


COUNT_KINDS = pytest.mark.parametrize("kind", ["dense", "keyed"])
EVERY_KIND = pytest.mark.parametrize("kind", ["dense", "keyed", "forest", "marginals"])
AND_SPARSE = pytest.mark.parametrize("kind", ["dense", "keyed", "sparse", "forest", "marginals"])


def test_the_choice_is_by_size_and_can_be_forced():
    small = DPGridKNN(1, features=(0, 1), bins=4).fit(ROWS)
    large = DPGridKNN(1, features=(0, 1), bins=1000).fit(ROWS)
    assert (small.model_.counts.kind, large.model_.counts.kind) == ("dense", "keyed")
    assert fitted("keyed").model_.counts.kind == "keyed"
    assert "keyed" in repr(large.model_)
    with pytest.raises(InvalidParameterError, match=r"counts='dense' takes at most 4,194,304 cells.*1e\+09"):
        DPGridKNN(1, features=(0, 1), bins=1000, counts="dense").fit(ROWS)
    with pytest.raises(
        InvalidParameterError, match="counts must be one of 'auto', 'dense', 'keyed', 'sparse', got 'thin'"
    ):
        fitted("thin")


@AND_SPARSE
def test_a_repeated_query_gives_the_same_answer(kind):
    detector = fitted(kind)
    first = detector.outlier_scores(POINTS)
    assert (detector.outlier_scores(POINTS) == first).all()
    assert (detector.outlier_scores(POINTS[::-1])[::-1] == first).all()


@AND_SPARSE
def test_the_same_cell_has_the_same_noise_across_threads(kind):
    detector = fitted(kind)
    first = detector.outlier_scores(POINTS)
    with ThreadPoolExecutor(4) as pool:
        for scores in pool.map(detector.outlier_scores, [POINTS] * 8):
            assert (scores == first).all()
    assert (detector.set_params(n_jobs=4).outlier_scores(POINTS) == first).all()


@pytest.mark.slow
@AND_SPARSE
def test_the_same_cell_has_the_same_noise_across_processes_restarts_and_files(kind, tmp_path):
    detector = fitted(kind)
    path = detector.save(tmp_path / "model")
    first = detector.outlier_scores(POINTS)
    assert (load(path, secret=True).outlier_scores(POINTS) == first).all()
    np.save(tmp_path / "points.npy", POINTS)
    program = (
        "import sys, numpy as np, dpoutlier\n"
        "print(dpoutlier.load(sys.argv[1], secret=True).outlier_scores(np.load(sys.argv[2])).tolist())"
    )
    for _ in range(2):
        run = [sys.executable, "-c", program, str(path), str(tmp_path / "points.npy")]
        printed = subprocess.run(run, capture_output=True, text=True, check=True).stdout
        assert printed.strip() == str(first.tolist())


@AND_SPARSE
def test_forked_children_agree_with_their_parent(kind):
    detector = fitted(kind)
    first = detector.outlier_scores(POINTS).tolist()
    with multiprocessing.get_context("fork").Pool(2, _keep, [detector]) as pool:
        assert pool.map(_score_in_child, range(2), chunksize=1) == [first, first]


def _keep(detector):
    globals()["_kept"] = detector


def _score_in_child(_):
    return globals()["_kept"].outlier_scores(POINTS).tolist()


@pytest.mark.system_noise
@AND_SPARSE
def test_two_fits_on_the_same_rows_draw_their_own_noise(kind):
    difference = all_counts(fitted(kind)) - all_counts(fitted(kind))
    assert np.count_nonzero(difference) > 20  # of 64; equal noise in one cell has probability 0.13


@pytest.mark.system_noise
def test_two_keyed_fits_share_neither_key_nor_salt():
    one, other = fitted("keyed").model_.counts, fitted("keyed").model_.counts
    assert one.key != other.key
    assert one.salt != other.salt
    assert len({*one.key}) > 8  # of 32 bytes; random ones repeat little


@pytest.mark.parametrize("kind", ["dense", "forest", "marginals"])
def test_a_publishable_model_holds_these_fields_only(kind):
    """A field more could hold exact counts, and a pickle would carry it."""
    model = fitted(kind, target_fpr=0.1).model_
    assert set(vars(model)) == {
        "detector", "domain", "partition", "scorer", "counts", "guarantee", "charges", "n_rows_hint", "score_histogram",
        "threshold", "merged", "receipt",
    }  # fmt: skip
    assert model.merged is None
    assert set(vars(model.counts)) == {"counts"}
    assert set(vars(model.score_histogram)) == {
        "levels", "counts", "noise", "target_fpr", "continuous", "left_out", "outlier_share",
    }  # fmt: skip
    assert vars(model.score_histogram.noise).keys() == {"rate"}
    trees = {"n_features", "n_trees", "depth", "subspace", "seed", "axes"}
    bins = {"bins", "axes", "sizes"}
    held = {"forest": trees, "marginals": {*bins, "first"}}.get(kind, bins)
    assert set(vars(model.partition)) == held
    made = {"labels", "scales", "axes", "lines", "estimated"}
    declared = {"lower", "upper", "names", "categories", "missing", "outer", "declared"}
    assert set(vars(model.domain)) - made == declared
    exact = np.zeros(64, np.int64)
    model.partition.tally(Rows(ROWS, model.domain)[:], exact)
    assert exact.sum() == 300 * model.partition.cells_per_row
    assert exact.astype(np.int64).tobytes()[:256] not in pickle.dumps(model)


@EVERY_KIND
def test_noise_lies_on_every_cell_occupied_or_not(kind):
    empty = fitted(kind, ROWS[:0], epsilon=0.1)
    assert np.count_nonzero(all_counts(empty)) > 40  # of 64; an entry is 0 with probability 0.05


@EVERY_KIND
def test_where_noise_lies_on_every_cell_none_is_listed(kind):
    """A walk takes cells that are not listed for empty: a list of the occupied ones would do away with the noise of all others."""
    counts = fitted(kind).model_.counts
    assert counts.listed() is None
    assert kind != "keyed" or in_constant_time(counts).listed() is None


@pytest.mark.parametrize("noise", [1, 2])
@pytest.mark.parametrize("offset", [0, 2**70])
def test_a_cells_noise_does_not_depend_on_its_count(noise, offset):
    """Occupied or not, few rows or many: the noisy count is the count plus the noise that the empty cell has."""
    ids, law = cell_ids(range(offset, offset + 3000)), DiscreteLaplace(Fraction(1, 2))
    counts = np.random.default_rng(0).integers(1, 10**6, 1500)
    empty = KeyedCounts(ids[:0], counts[:0], bytes(32), bytes(16), law, sampler_version=noise)
    held = KeyedCounts(ids[::2], counts, bytes(32), bytes(16), law, sampler_version=noise)
    difference = noisy_counts(held, ids) - noisy_counts(empty, ids)
    assert (difference[::2] == counts).all()
    assert not difference[1::2].any()


@COUNT_KINDS
def test_infinite_epsilon_equals_the_twin(kind):
    twin = GridKNN((0, 1), bins=4, target_fpr=0.1).fit(ROWS)
    with pytest.warns(UnsafeWarning, match="epsilon is infinite"):
        infinite = fitted(kind, epsilon=np.inf, target_fpr=0.1)
    assert (infinite.outlier_scores(POINTS) == twin.outlier_scores(POINTS)).all()
    assert infinite.offset_ == twin.offset_
    assert not infinite.model_.publishable


@COUNT_KINDS
def test_a_large_epsilon_is_close_to_exact(kind):
    exact = np.bincount((ROWS * 4).astype(int) @ [16, 4, 1], minlength=64)
    assert (all_counts(fitted(kind, epsilon=10**9)) == exact).all()


def test_a_dense_model_pickles_and_a_keyed_one_needs_secrets_may_travel():
    dense, keyed = fitted("dense"), fitted("keyed")
    assert (pickle.loads(pickle.dumps(dense)).outlier_scores(POINTS) == dense.outlier_scores(POINTS)).all()
    with pytest.raises(SecretError, match="secrets_may_travel"):
        pickle.dumps(keyed)
    with secrets_may_travel():
        sent = pickle.dumps(keyed)
    assert (pickle.loads(sent).outlier_scores(POINTS) == keyed.outlier_scores(POINTS)).all()
    with pytest.raises(SecretError):
        pickle.dumps(keyed)
    assert (copy.deepcopy(keyed).outlier_scores(POINTS) == keyed.outlier_scores(POINTS)).all()


def test_secrets_do_not_show_in_a_repr():
    keyed = fitted("keyed")
    shown = repr(keyed) + repr(keyed.model_) + repr(keyed.model_.counts) + str(keyed.privacy_statement())
    assert keyed.model_.counts.key.hex() not in shown
    assert "array" not in repr(keyed.model_.counts)


def test_thirty_features_of_ten_bins_score():
    """10**30 cells: nothing may be as large as the grid."""
    rng = np.random.default_rng(0)
    detector = DPGridKNN(1, features=(0, 1), bins=10).fit(rng.uniform(size=(285, 30)))
    walk = detector.walk(rng.uniform(size=(20, 30)))
    assert walk.visited.max() <= 100_000
    assert np.isfinite(walk.scores).all()
    assert detector.model_.charges[0].epsilon == Fraction(1)


def test_a_grid_past_128_bits_is_refused():
    with pytest.raises(InvalidParameterError, match=r"more than 2\*\*128"):
        DPGridKNN(1, features=(0, 1), bins=100).fit(np.zeros((2, 30)))
