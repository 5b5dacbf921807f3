"""The sparse holder: in law noise on all cells and then a threshold, whatever the size of the grid; and nothing else shows."""

import io
import itertools
import json
import math
import pickle
import warnings
import zipfile
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import naive
from dpoutlier import DPForest, DPGridKNN, load
from dpoutlier.exceptions import InvalidParameterError, ModelFileError, UnsafeWarning
from dpoutlier.holders.exact import ExactCounts
from dpoutlier.holders.holder import noisy_counts
from dpoutlier.holders.sparse import MOST_SPARSE_SIZE, SparseCounts, least_size_for, threshold_for
from dpoutlier.modelfile.archive import npy_bytes
from dpoutlier.noise.law import DiscreteLaplace
from dpoutlier.noise.sources import UnsafeSeededBytes
from dpoutlier.partitions.grid import Grid
from dpoutlier.partitions.partition import cell_ids, cell_numbers
from dpoutlier.rows import Rows
from dpoutlier.scoring import nearest_cells
from dpoutlier.scoring.nearest_cells import NearestCells
from dpoutlier.trusted import release
from dpoutlier.trusted.counts import Counts
from dpoutlier.trusted.release import release_dense, release_sparse, release_vector
from strategies import coordinate, grids_with_points, rules
from test_forged_files import at, rewritten

FALSE_ALARM = 1e-7
LAW = DiscreteLaplace(Fraction(1, 2))
N_CELLS, TAU, RELEASES = 20, 2, 12_000
OCCUPIED = {2: 1, 3: 2, 9: 5, 14: 3, 19: 1}
COUNTS = Counts(cell_ids(OCCUPIED), np.array(list(OCCUPIED.values())))
NOTHING = Counts(np.empty((0, 2), np.uint64), np.empty(0, np.int64))
EMPTY = [cell for cell in range(N_CELLS) if cell not in OCCUPIED]


# A release equals in law a dense one and then the threshold ------------------------------------------------------------


def sparse(counts, n_cells, law, tau, source):
    held = release_sparse(counts, n_cells, law, tau, source)
    return dict(zip(cell_numbers(held.ids), held.noisy.tolist()))


def dense_then_threshold(counts, n_cells, law, tau, source):
    return {i: c for i, c in enumerate(release_dense(counts, n_cells, law, source).counts.tolist()) if c >= tau}


def released(how, seed=0, tau=TAU):
    """Counts of all cells in many releases; 0 where a cell is not listed."""
    source, out = UnsafeSeededBytes(seed), np.zeros((RELEASES, N_CELLS), np.int64)
    for row in out:
        for cell, count in how(COUNTS, N_CELLS, LAW, tau, source).items():
            row[cell] = count
    return out


def pooled(observed, expected):
    """(statistic, degrees of freedom) of a chi-square test in which classes of less than 30 expected are one."""
    keep = expected >= 30
    rest = expected[~keep].sum()
    observed = np.append(observed[keep], observed[~keep].sum())
    expected = np.append(expected[keep], rest)
    if rest < 30:  # with the smallest of the others
        smallest = np.argmin(expected[:-1])
        expected[smallest] += expected[-1]
        observed[smallest] += observed[-1]
        observed, expected = observed[:-1], expected[:-1]
    return ((observed - expected) ** 2 / expected).sum(), len(expected) - 1


def p_of_cells(counts):
    """Each cell's law: not listed, or listed with a count of tau, tau + 1, ... Cells are independent, so statistics add up."""
    statistic = freedom = 0
    for cell in range(N_CELLS):
        exact, most = OCCUPIED.get(cell, 0), 25
        chances = [LAW.probability(value - exact) for value in range(TAU, most)]
        chances = np.array([1 - LAW.at_least(TAU - exact), *chances, LAW.at_least(most - exact)])
        classes = np.where(counts[:, cell] == 0, 0, np.clip(counts[:, cell] - TAU + 1, 1, most - TAU + 1))
        found = pooled(np.bincount(classes, minlength=len(chances)), chances * len(counts))
        statistic, freedom = statistic + found[0], freedom + found[1]
    return stats.chi2.sf(statistic, freedom)


def p_of_false_cells(counts):
    """How many empty cells are listed: a binomial number."""
    number = (counts[:, EMPTY] > 0).sum(axis=1)
    law = stats.binom(len(EMPTY), LAW.at_least(TAU))
    expected = law.pmf(np.arange(len(EMPTY) + 1)) * len(counts)
    return stats.chi2.sf(*pooled(np.bincount(number, minlength=len(expected)), expected))


def p_of_sets(counts, cells=(0, 1, 2, 3, 9, 19)):
    """Which of these cells are listed together: of all sets, each as often as independence asks."""
    chances = [LAW.at_least(TAU - OCCUPIED.get(cell, 0)) for cell in cells]
    expected = [
        math.prod(c if bit else 1 - c for c, bit in zip(chances, bits))
        for bits in itertools.product((0, 1), repeat=len(cells))
    ]
    which = (counts[:, cells] > 0) @ (1 << np.arange(len(cells))[::-1])
    return stats.chi2.sf(*pooled(np.bincount(which, minlength=len(expected)), np.array(expected) * len(counts)))


EACH_LAW = (p_of_cells, p_of_false_cells, p_of_sets)


@pytest.mark.parametrize("how", [sparse, dense_then_threshold])
def test_a_sparse_release_is_a_dense_release_and_then_the_threshold(how):
    counts = released(how)
    for p_value in EACH_LAW:
        assert p_value(counts) > FALSE_ALARM


@pytest.mark.parametrize("factor", [Fraction(9, 10), Fraction(11, 10)])
def test_planted_errors_in_the_number_of_false_cells_are_noticed(factor, monkeypatch):
    drawn = release.draw_binomial
    monkeypatch.setattr(release, "draw_binomial", lambda n, *more: min(drawn(int(n * factor), *more), n))
    counts = released(sparse)
    assert p_of_cells(counts) < FALSE_ALARM
    assert p_of_false_cells(counts) < FALSE_ALARM


def marks_on_occupied_cells_that_did_not_pass(counts, n_cells, law, tau, source):
    noisy = release_vector(counts.counts, law, source).tolist()
    passed = {cell: count for cell, count in zip(cell_numbers(counts.ids), noisy) if count >= tau}
    return {**sparse(NOTHING, n_cells, law, tau, source), **passed}


def marks_for_empty_cells_alone_thrown_at_all(counts, n_cells, law, tau, source):
    with pytest.MonkeyPatch.context() as patch:
        drawn = release.draw_binomial
        patch.setattr(release, "draw_binomial", lambda n, *more: drawn(n - len(counts.ids), *more))
        return sparse(counts, n_cells, law, tau, source)


@pytest.mark.parametrize("how", [marks_on_occupied_cells_that_did_not_pass, marks_for_empty_cells_alone_thrown_at_all])
def test_thinning_that_is_forgotten_is_noticed(how):
    counts = released(how)
    assert p_of_cells(counts) < FALSE_ALARM
    assert p_of_sets(counts) < FALSE_ALARM


def plant(monkeypatch, where):
    drawn, noise = release.draw_binomial, release._not_negative
    if where == "chance":
        monkeypatch.setattr(release, "draw_binomial", lambda n, law, tau, source: drawn(n, law, tau + 1, source))
    if where == "value":
        monkeypatch.setattr(release, "_not_negative", lambda *more: noise(*more) + 1)


@pytest.mark.parametrize("where", ["chance", "value", "occupied", "all"])
def test_a_threshold_off_by_one_is_noticed(where, monkeypatch):
    plant(monkeypatch, where)
    how = sparse
    if where == "occupied":

        def how(*more):
            return {cell: count for cell, count in sparse(*more).items() if cell not in OCCUPIED or count > TAU}

    assert p_of_cells(released(how, tau=TAU + (where == "all"))) < FALSE_ALARM


def test_the_same_bytes_give_the_same_release():
    one, other, another = (release_sparse(COUNTS, 10**30, LAW, 120, UnsafeSeededBytes(seed)) for seed in (1, 1, 2))
    assert (one.ids == other.ids).all()
    assert (one.noisy == other.noisy).all()
    assert cell_numbers(one.ids) != cell_numbers(another.ids)


@settings(max_examples=50)
@given(st.sampled_from([1, 2, 20, 2**64 - 1, 2**64, 2**64 + 1, 10**30, 2**128]), st.integers(0, 2**32), st.data())
def test_a_sparse_model_is_written_in_the_order_of_cells(n_cells, seed, data):
    numbers = sorted(data.draw(st.sets(st.integers(0, n_cells - 1), max_size=6)))
    counts = Counts(cell_ids(numbers), np.full(len(numbers), 100))
    tau = threshold_for(n_cells, LAW, 50)
    held = release_sparse(counts, n_cells, LAW, tau, UnsafeSeededBytes(seed))
    found = cell_numbers(held.ids)
    assert found == sorted(set(found))
    assert set(found) <= set(range(n_cells)) if n_cells < 100 else max(found) < n_cells
    assert (held.noisy >= tau).all()
    assert len(found) < 150
    assert held.tau == tau
    if tau < 20:
        assert set(numbers) <= set(found)  # a count of 100 goes below 20 with chance exp(-40)


def test_false_cells_of_a_huge_grid_lie_anywhere_and_have_geometric_counts():
    n, tau = 10**30, threshold_for(10**30, LAW, 100_000)
    held = release_sparse(NOTHING, n, LAW, tau, UnsafeSeededBytes(0))
    expected = n * LAW.at_least(tau)
    assert stats.poisson(expected).cdf(len(held.ids)) == pytest.approx(0.5, abs=0.5 - FALSE_ALARM)
    numbers = cell_numbers(held.ids)
    for classes in (np.array([number * 100 // n for number in numbers]), np.array([number % 97 for number in numbers])):
        assert stats.chisquare(np.bincount(classes)).pvalue > FALSE_ALARM
    a, reach = math.exp(-0.5), 12
    chances = np.append((1 - a) * a ** np.arange(reach), a**reach)
    found = np.bincount(np.minimum(held.noisy - tau, reach), minlength=reach + 1)
    assert stats.chisquare(found, chances * len(numbers)).pvalue > FALSE_ALARM
    low, high = held.noisy[: len(numbers) // 2], held.noisy[len(numbers) // 2 :]
    assert stats.ks_2samp(low, high).pvalue > FALSE_ALARM  # no order but that of cells


# The threshold ---------------------------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(st.integers(2**10, 2**60), st.integers(1, 2**128), st.integers(1, MOST_SPARSE_SIZE))
def test_the_threshold_is_the_least_that_few_empty_cells_pass(units, n_cells, size):
    law = DiscreteLaplace(Fraction(units, 2**40))
    tau = threshold_for(n_cells, law, size)
    rate = Decimal(units) / Decimal(2**40)

    def expected(threshold):
        return Decimal(n_cells) * (-rate * threshold).exp() / (1 + (-rate).exp())

    assert tau >= 1
    assert expected(tau) <= size * (1 + Decimal("1e-15"))
    assert tau == 1 or expected(tau - 1) >= size * (1 - Decimal("1e-15"))
    again = least_size_for(n_cells, law, tau)
    assert again <= size
    assert threshold_for(n_cells, law, again) == tau


def test_the_threshold_depends_on_public_numbers_only():
    """Many rows, one, none; the grid, epsilon and size set it."""
    rows = np.random.default_rng(0).uniform(size=(5000, 3))

    def tau(n, **arguments):
        arguments = {"epsilon": 1, "bins": 1000, "sparse_size": 500, **arguments}
        return DPGridKNN(bounds=(0, 1), holder="sparse", **arguments).fit(rows[:n]).model_.counts.tau

    assert tau(5000) == tau(1) == tau(0) == threshold_for(10**9, DiscreteLaplace(Fraction(1)), 500)
    assert tau(1, sparse_size=5) > tau(1) > tau(1, bins=100)
    assert tau(1, epsilon=2) < tau(1)
    assert tau(1, bins=2) == 1


# Fits ------------------------------------------------------------------------------------------------------------------

ROWS = np.random.default_rng(0).uniform(size=(300, 3))
POINTS = np.random.default_rng(1).uniform(size=(40, 3))


def fitted(rows=ROWS, **arguments):
    return DPGridKNN(
        **{"epsilon": 1, "bounds": (0, 1), "bins": 200, "holder": "sparse", "sparse_size": 100, **arguments}
    ).fit(rows)


def test_a_grid_of_10_to_the_30_cells_is_fitted_saved_loaded_and_scored(tmp_path):
    rng = np.random.default_rng(0)
    rows = np.concatenate([np.full((400, 30), 0.55), rng.uniform(size=(100, 30))])
    detector = DPGridKNN(1, bounds=(0, 1), bins=10, holder="sparse", sparse_size=1000).fit(rows)
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
    assert estimator.holder == "sparse"
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
    with (
        pytest.warns(UnsafeWarning),
        pytest.raises(InvalidParameterError, match="unsafe_float_laplace has no sparse holder"),
    ):
        fitted(unsafe_float_laplace=True)
    for size in (0, -1, 2.5, True, None, "many", MOST_SPARSE_SIZE + 1):
        with pytest.raises(
            InvalidParameterError, match=r"sparse_size must be a whole number of at least 1 and at most 10000000"
        ):
            fitted(sparse_size=size)
    assert "sparse_size" not in DPForest(1).get_params()


def test_float_noise_is_refused_before_rows_are_read(monkeypatch):
    monkeypatch.setattr("dpoutlier.trusted.fit.read_reference", pytest.fail)
    with pytest.warns(UnsafeWarning), pytest.raises(InvalidParameterError, match="no sparse holder"):
        fitted(unsafe_float_laplace=True)


def test_the_statement_says_what_is_released():
    detector = fitted()
    page = " ".join(str(detector.privacy_statement()).split())
    tau = detector.model_.counts.tau
    expected = 200**3 * DiscreteLaplace(Fraction(1)).at_least(tau)
    assert f"whose noisy count is {tau} or more" in page
    assert f"{expected:.2g} would be expected to pass" in page
    assert "sparse (publishable)" in page
    assert "computational" not in page
    assert "whose noisy count" not in str(fitted(holder="dense", bins=3).privacy_statement())


def observed(rows, tmp_path):
    """All that a fit shows, but for which cells are listed, how many, and their counts."""
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
        listed = [LAW.log_probability(value - exact) for value in range(TAU, 40)]
        return np.array([math.log(1 - LAW.at_least(TAU - exact)), *listed, math.log(LAW.at_least(40 - exact))])

    ratios = [np.abs(law_of(exact + 1) - law_of(exact)).max() for exact in range(6)]
    assert max(ratios) == pytest.approx(0.5)


# Scores ----------------------------------------------------------------------------------------------------------------


def checked_scores(bins, points, rule, held, *, look):
    counts = dict(zip(cell_numbers(held.ids), held.noisy.tolist()))
    partition, positions, scorer = Grid(bins), np.array(points, np.uint32), NearestCells(**rule)
    with pytest.MonkeyPatch.context() as patch:
        if look:  # at the stored cells after two visits
            patch.setattr(nearest_cells, "LEAST_CROSSOVER", 2)
            patch.setattr(nearest_cells, "CELLS_PER_VISIT", 10**9)
        walks = scorer.walk(positions, partition, held)
        assert (scorer.outlier_scores(positions, partition, held) == walks.scores).all()
    for i, point in enumerate(points):
        expected = naive.score(point, bins, lambda number: counts.get(number, 0), **rule)
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


@pytest.mark.parametrize(("bins", "steps"), [((10,) * 22, 2), ((3,) * 70, 1), ((2,) * 128, 1)])
@settings(max_examples=25)
@given(st.data())
def test_sparse_scores_equal_the_definition_past_64_bits(bins, steps, data):
    """Occupied cells a few steps from the point, false ones anywhere."""
    n_cells = Grid(bins).n_cells
    assert n_cells > 2**64
    limits = {"max_depth": data.draw(st.integers(0, steps)), "max_cells": data.draw(st.sampled_from([5, 10**5]))}
    rule = {**data.draw(rules()), "k": data.draw(st.integers(1, 700)), **limits}
    point = data.draw(st.tuples(*(coordinate(b) for b in bins)))
    near = list(naive.cells_within(naive.home_of(point, bins), bins, naive.kinds((), bins), 1))
    some = data.draw(st.lists(st.sampled_from(near), max_size=8, unique=True))
    numbers = sorted(naive.number_of(cell, bins) for cell in some)
    counts = Counts(cell_ids(numbers), np.full(len(numbers), 300))
    tau, source = threshold_for(n_cells, LAW, 20), UnsafeSeededBytes(data.draw(st.integers(0, 99)))
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
        (at("guarantee", "epsilon", value=None), "does not fit its guarantee|not a model file"),
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
    assert "expected to pass" in str(loaded.privacy_statement())


def test_a_holder_cannot_be_changed_by_accident():
    held = SparseCounts(cell_ids([3]), np.array([5]), 2)
    with pytest.raises(ValueError, match="read-only"):
        held.noisy[0] = 7
