"""Sparse models: fitted, refused, stated, scored and filed; nothing but the listed cells shows."""

import io
import json
import math
import pickle
import warnings
import zipfile
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from cell_numbers import cell_numbers
from dpoutlier import DPForest, DPGridKNN, load
from dpoutlier.counts.base import noisy_counts
from dpoutlier.counts.exact import ExactCounts
from dpoutlier.counts.sparse import MAX_SPARSE_SIZE, SparseCounts, tau_for
from dpoutlier.exceptions import InvalidParameterError, ModelFileError, UnsafeWarning
from dpoutlier.model.file.archive import npy_bytes
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.noise.sources import UnsafeSeededBytes
from dpoutlier.partitions.base import cell_ids
from dpoutlier.partitions.grid import Grid
from dpoutlier.scoring import nearest_cells
from dpoutlier.scoring.nearest_cells import NearestCells
from dpoutlier.tables.rows import Rows
from dpoutlier.trusted.counts import Counts
from dpoutlier.trusted.release import release_sparse
from forging import at, rewritten
from noise_laws import log_probability
from sparse_law import LAW, TAU
from strategies import coordinate, grids_with_points, rules

# Fits ------------------------------------------------------------------------------------------------------------------

ROWS = np.random.default_rng(0).uniform(size=(300, 3))
POINTS = np.random.default_rng(1).uniform(size=(40, 3))


def fitted(rows=ROWS, **arguments):
    return DPGridKNN(
        **{"epsilon": 1, "features": (0, 1), "bins": 200, "counts": "sparse", "sparse_size": 100, **arguments}
    ).fit(rows)


def test_a_grid_of_10_to_the_30_cells_is_fitted_saved_loaded_and_scored(tmp_path):
    rng = np.random.default_rng(0)
    rows = np.concatenate([np.full((400, 30), 0.55), rng.uniform(size=(100, 30))])
    detector = DPGridKNN(1, features=(0, 1), bins=10, counts="sparse", sparse_size=1000).fit(rows)
    held = detector.model_.counts
    assert detector.model_.publishable
    assert 300 < len(held.ids) < 1200
    crowded = cell_ids([int("5" * 30)])
    assert abs(noisy_counts(held, crowded)[0] - 400) < 30
    path = detector.save(tmp_path / "model")
    assert path.name == "model.dpo"
    points = np.array([[0.5] * 30, [0.65] + [0.51] * 29, [0.05] * 30])
    loaded = load(path)
    scores = loaded.outlier_scores(points)
    assert scores.tolist() == [0.0, 0.1, 30.0]
    assert (detector.outlier_scores(points) == scores).all()
    estimator = loaded.estimator()
    assert estimator.counts == "sparse"
    assert estimator.fit(rows).model_.counts.tau == held.tau
    assert estimator.sparse_size <= 1000


def test_a_publishable_sparse_model_holds_these_fields_only():
    model = fitted(target_fpr=0.1).model_
    assert set(vars(model.counts)) == {"ids", "noisy", "tau"}
    assert set(model.counts.arrays()) == {"ids", "noisy"}
    assert model.counts.to_json() == {"kind": "sparse", "threshold": model.counts.tau}
    exact = ExactCounts(*_exact(model))
    assert exact.exact.sum() == 300
    assert exact.ids.tobytes()[:256] not in pickle.dumps(model)
    assert (pickle.loads(pickle.dumps(model)).counts.noisy == model.counts.noisy).all()


def _exact(model):
    ids, counts = np.unique(model.partition.cells(Rows(ROWS, model.domain)[:])[:, 0, 1], return_counts=True)
    return cell_ids(ids), counts


def test_noise_lies_on_every_cell_of_a_sparse_fit_and_two_fits_draw_their_own():
    one, other = (fitted(ROWS[:0]).model_.counts for _ in range(2))
    assert 40 < len(one.ids) < 160
    assert set(cell_numbers(one.ids)).isdisjoint(cell_numbers(other.ids))


def test_a_large_epsilon_lists_the_exact_counts():
    model = fitted(epsilon=10**6).model_
    ids, counts = _exact(model)
    assert (model.counts.ids == ids).all()
    assert (model.counts.noisy == counts).all()
    assert model.counts.tau == 1


def test_infinite_epsilon_is_exact_and_secret():
    with pytest.warns(UnsafeWarning, match="epsilon is infinite"):
        model = fitted(epsilon=np.inf).model_
    assert (model.counts.kind, model.publishable) == ("exact", False)
    with pytest.warns(UnsafeWarning, match="unsafe_seed"):
        assert not fitted(unsafe_seed=1).model_.publishable


def test_what_cannot_be_is_refused():
    for size in (0, -1, 2.5, True, None, "many", MAX_SPARSE_SIZE + 1):
        with pytest.raises(
            InvalidParameterError, match=r"sparse_size must be a whole number of at least 1 and at most 10000000"
        ):
            fitted(sparse_size=size)
    assert "sparse_size" not in DPForest(1).get_params()


def test_the_statement_says_what_is_released():
    detector = fitted()
    page = " ".join(str(detector.privacy_statement()).split())
    tau = detector.model_.counts.tau
    expected = 200**3 * DiscreteLaplace(Fraction(1)).at_least(tau)
    assert f"whose noisy count is {tau} or more" in page
    assert f"{expected:.2g} of them would be expected to reach the threshold" in page
    assert "sparse (publishable)" in page
    assert "computational" not in page
    assert "whose noisy count" not in str(fitted(counts="dense", bins=3).privacy_statement())


def observed(rows, tmp_path):
    """All that a fit shows, except which cells are listed, how many, and their counts."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        detector = fitted(rows, unsafe_seed=4, target_fpr=0.1, bins=20, sparse_size=50)
    path = detector.save(tmp_path / "model", overwrite=True)
    with zipfile.ZipFile(path) as archive:
        members = archive.namelist()
        manifest = json.loads(archive.read("manifest.json"))
        types = {name: np.load(io.BytesIO(archive.read(name))).dtype for name in members if name.endswith(".npy")}
    for key in ("arrays", "checksum"):
        manifest.pop(key)
    return (
        [str(warning.message) for warning in caught], members, manifest, types, repr(detector), repr(detector.model_),
        sorted(vars(detector)), str(detector.privacy_statement()), sorted(vars(detector.model_.counts)),
    )  # fmt: skip


@settings(max_examples=30)
@given(st.integers(0, 40), st.tuples(*[st.sampled_from([np.nan, np.inf, -5.0, 0.3, 1e308])] * 3))
def test_neighbours_differ_in_the_listed_cells_and_in_nothing_else(tmp_path_factory, n, more):
    folder = tmp_path_factory.mktemp("sparse")
    assert observed(ROWS[:n], folder) == observed(np.vstack([ROWS[:n], more]), folder)


def test_the_ratio_of_neighbouring_releases_is_at_most_epsilon():
    """The law of one cell, listed or not and with which count, for counts of 0 to 5: as sharp as the bound of the theorem."""

    def law_of(exact):
        listed = [log_probability(LAW, value - exact) for value in range(TAU, 40)]
        return np.array([math.log(1 - LAW.at_least(TAU - exact)), *listed, math.log(LAW.at_least(40 - exact))])

    ratios = [np.abs(law_of(exact + 1) - law_of(exact)).max() for exact in range(6)]
    assert max(ratios) == pytest.approx(0.5)


# Scores ----------------------------------------------------------------------------------------------------------------


def checked_scores(bins, points, rule, held, *, look):
    counts = dict(zip(cell_numbers(held.ids), held.noisy.tolist()))
    partition, positions, scorer = Grid(bins), np.array(points, np.uint32), NearestCells(**rule)
    with pytest.MonkeyPatch.context() as patch:
        if look:  # at the stored cells after two visits
            patch.setattr(nearest_cells, "MIN_CROSSOVER", 2)
            patch.setattr(nearest_cells, "CELLS_PER_VISIT", 10**9)
        walks = scorer.walk(positions, partition, held)
        assert (scorer.outlier_scores(positions, partition, held) == walks.scores).all()
    for i, point in enumerate(points):
        expected = naive.score_of_listed(point, bins, counts, **rule)
        assert (walks.scores[i], walks.gathered[i], walks.visited[i]) == expected
    return walks


@settings(max_examples=200)
@given(grids_with_points(), rules(), st.integers(0, 2**32 - 1), st.booleans())
def test_sparse_scores_equal_the_definition(grid, rule, seed, look):
    bins, points = grid
    n_cells, rng = Grid(bins).n_cells, np.random.default_rng(seed)
    numbers = np.flatnonzero(rng.random(n_cells) < 0.2)
    counts = Counts(cell_ids(numbers), rng.integers(1, 6, len(numbers)))
    held = release_sparse(counts, n_cells, LAW, int(rng.integers(1, 5)), UnsafeSeededBytes(seed))
    checked_scores(bins, points, rule, held, look=look)


@pytest.mark.slow
@pytest.mark.parametrize(("bins", "steps"), [((10,) * 22, 2), ((3,) * 70, 1), ((2,) * 128, 1)])
@settings(max_examples=25)
@given(st.data())
def test_sparse_scores_equal_the_definition_past_64_bits(bins, steps, data):
    """Occupied cells a few steps from the point, false ones anywhere."""
    n_cells = Grid(bins).n_cells
    assert n_cells > 2**64
    rule = {**data.draw(rules()), "k": data.draw(st.integers(1, 700)), "max_depth": data.draw(st.integers(0, steps))}
    point = data.draw(st.tuples(*(coordinate(b) for b in bins)))
    near = list(naive.cells_within(naive.home_of(point, bins), bins, naive.kinds((), bins), 1))
    some = data.draw(st.lists(st.sampled_from(near), max_size=8, unique=True))
    numbers = sorted(naive.number_of(cell, bins) for cell in some)
    counts = Counts(cell_ids(numbers), np.full(len(numbers), 300))
    tau, source = tau_for(n_cells, LAW, 20), UnsafeSeededBytes(data.draw(st.integers(0, 99)))
    held = release_sparse(counts, n_cells, LAW, tau, source)
    assert set(numbers) <= set(cell_numbers(held.ids))
    checked_scores(bins, [point], rule, held, look=data.draw(st.booleans()))


# Files -----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return fitted().save(tmp_path_factory.mktemp("models") / "model")


def arrays_in(path):
    with zipfile.ZipFile(path) as archive:
        return tuple(np.load(io.BytesIO(archive.read(f"{name}.npy"))) for name in ("ids", "noisy"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (at("counts", "threshold", value=0), "not a model file"),
        (at("counts", "threshold", value=-3), "not a model file"),
        (at("counts", "threshold", value=2**38), "not a model file"),
        (at("counts", "threshold", value=5.0), "not a model file"),
        (at("counts", "threshold", value=True), "not a model file"),
        (at("counts", "threshold", value="5"), "not a model file"),
        (at("counts", "threshold", value=None), "not a model file"),
        (at("counts", "threshold", value=10**6), "cells of the model file are not in order"),
        (at("counts", "more", value=1), "not one that this format knows"),
        (at("counts", "unsafe_float", value=False), "not one that this format knows"),
        (at("counts", "kind", value="dense"), "too many cells|not a model file"),
        (at("counts", "kind", value="exact"), "not a model file"),
        (at("partition", "bins", value=[2, 2, 2]), "not in order"),
        (at("guarantee", "epsilon", value=None), "do not match its guarantee|not a model file"),
        (at("publishable", value=False), "both secret and publishable, or neither"),
    ],
)
def test_a_forged_sparse_manifest_is_refused(saved, tmp_path, change, message):
    with pytest.raises(ModelFileError, match=message):
        load(rewritten(saved, tmp_path / "model.dpo", change=change))


def forged(what, ids, noisy, tau):
    match what:
        case "order":
            return {"ids": ids[::-1], "noisy": noisy}
        case "twice":
            return {"ids": np.concatenate([ids[:1], ids[:-1]]), "noisy": noisy}
        case "outside":
            return {"ids": np.concatenate([ids[:-1], cell_ids([200**3])]), "noisy": noisy}
        case "below the threshold":
            return {"ids": ids, "noisy": np.append(noisy[:-1], tau - 1)}
        case "too large":
            return {"ids": ids, "noisy": np.append(noisy[:-1], 2**38)}
        case "short":
            return {"ids": ids, "noisy": noisy[:-1]}
        case "floats":
            return {"ids": ids, "noisy": noisy.astype(float)}
        case "signed":
            return {"ids": ids.astype(np.int64), "noisy": noisy}
        case _:
            return {"ids": ids[:, 1], "noisy": noisy}


@pytest.mark.parametrize(
    "what", ["order", "twice", "outside", "below the threshold", "too large", "short", "floats", "signed", "flat"]
)
def test_forged_sparse_arrays_are_refused(saved, tmp_path, what):
    ids, noisy = arrays_in(saved)
    arrays = forged(what, ids, noisy, load(saved).model_.counts.tau)
    arrays = {name: npy_bytes(np.ascontiguousarray(array)) for name, array in arrays.items()}
    with pytest.raises(ModelFileError, match=r"not in order|has type"):
        load(rewritten(saved, tmp_path / "model.dpo", arrays=arrays))


def test_a_file_of_no_cells_and_any_threshold_loads(saved, tmp_path):
    """Tied to nothing else: what was not released cannot be checked."""
    arrays = {"ids": npy_bytes(np.empty((0, 2), np.uint64)), "noisy": npy_bytes(np.empty(0, np.int64))}
    change = at("counts", "threshold", value=2**38 - 1)
    loaded = load(rewritten(saved, tmp_path / "model.dpo", change=change, arrays=arrays))
    assert loaded.outlier_scores(POINTS).tolist() == [3.0] * len(POINTS)
    assert loaded.estimator().sparse_size == 1
    assert "expected to reach" in str(loaded.privacy_statement())


def test_counts_cannot_be_changed_by_accident():
    held = SparseCounts(cell_ids([3]), np.array([5]), 2)
    with pytest.raises(ValueError, match="read-only"):
        held.noisy[0] = 7
