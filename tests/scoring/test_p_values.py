"""p-values: valid for every staircase of rows, by the exact law of the noise; alarms are Benjamini and Hochberg's."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpoutlier import KNN, DPForest, DPGridKNN, DPMarginals, Forest, GridKNN, Marginals, as_in_paper, merge
from dpoutlier.exceptions import InvalidParameterError, PointsError, ThresholdNotSetError
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.scoring.p_values import benjamini_hochberg, p_values_of
from dpoutlier.scoring.threshold import ScoreHistogram

NOISE = DiscreteLaplace(Fraction(1))
REACH = 30  # past that lies a mass of 1e-13
DRAWS = np.arange(-REACH, REACH + 1)


def law(noise):
    a = np.exp(-float(noise.rate))
    return (1 - a) / (1 + a) * a ** np.abs(DRAWS)


def table_of(counts, noise, factor=1.0):
    levels = np.arange(float(len(counts)))
    return p_values_of(ScoreHistogram(levels, np.array(counts), noise, 0.1, left_out=True), factor).values


def chance_of_at_most(in_top, n, noise, kinds=2):
    """For all a: P(p <= a) - a, for a point that is equally likely each of n + 1, of which ``in_top`` score in the upper bin.

    By the exact law of the noise on two bins. Returned is the largest excess.
    """
    chances, p = [], []
    masses = np.ones(1) if noise is None else np.outer(law(noise), law(noise)).ravel()
    shifts = [(0, 0)] if noise is None else [(low, top) for low in DRAWS for top in DRAWS]
    for in_upper, chance in ((True, in_top / (n + 1)), (False, 1 - in_top / (n + 1))):
        if chance == 0:
            continue
        above = in_top - in_upper  # without the point itself
        for (low, top), mass in zip(shifts, masses):
            p.append(table_of([n - above + low, above + top], noise)[1 if in_upper else 0])
            chances.append(chance * mass)
    order = np.argsort(p)
    values, total = np.array(p)[order], np.cumsum(np.array(chances)[order])
    last = np.append(values[1:] > values[:-1], True)
    return float((total[last] - values[last]).max())


@pytest.mark.parametrize("in_top", [0, 1, 2, 3, 5, 8, 20, 60])
def test_p_values_are_valid_for_every_staircase_of_rows(in_top):
    assert chance_of_at_most(in_top, 100, NOISE) <= 1e-12


@pytest.mark.parametrize("in_top", range(1, 12))
def test_without_noise_they_are_the_conformal_ones(in_top):
    """Exactly: the 1 counts the point itself."""
    assert chance_of_at_most(in_top, 10, None) == pytest.approx(0, abs=1e-12)


@pytest.mark.slow
@given(hnp.arrays(np.int64, st.integers(2, 5), elements=st.integers(0, 60)), st.sampled_from(["1/2", "1", "3"]))
def test_p_values_of_many_bins_are_valid(members, rate):
    """By simulation with a million draws: an excess of .004 has a probability below 1e-9 where p is near .5, and less elsewhere."""
    rng, noise, n = np.random.default_rng(0), DiscreteLaplace(Fraction(rate)), int(members.sum()) - 1
    if n < 1:
        return
    size = 200_000
    bins = np.repeat(np.arange(len(members)), members)[rng.integers(n + 1, size=size)]
    q = 1 - np.exp(-float(noise.rate))
    draws = rng.geometric(q, (size, len(members))) - rng.geometric(q, (size, len(members)))
    counts = members + draws
    counts[np.arange(size), bins] -= 1
    # The formula of docs/p-values.md, for all draws at once.
    from dpoutlier.noise.summed import MAX_LEVEL, SummedNoise

    least = counts.sum(axis=1) - SummedNoise((noise,), len(members)).half_width(MAX_LEVEL)
    above = counts[:, ::-1].cumsum(axis=1)[:, ::-1]
    p = (1 + np.maximum(above, -1) + np.sqrt(len(members) * noise.variance) / 2) / np.maximum(least + 1, 1e-9)[:, None]
    p = np.minimum(np.maximum.accumulate(p[:, ::-1], axis=1)[:, ::-1] + 1e-6, 1)
    p[least < 0] = 1
    some = rng.integers(size, size=20)
    for i in some:
        np.testing.assert_allclose(table_of(counts[i], noise), p[i])
    own = p[np.arange(size), bins]
    for a in (0.003, 0.01, 0.03, 0.1, 0.3, 0.5):
        assert (own <= a).mean() <= a + 6.5 * np.sqrt(a * (1 - a) / size)


@given(hnp.arrays(np.int64, st.integers(1, 20), elements=st.integers(-20, 500)), st.floats(1, 3))
def test_a_larger_score_never_has_a_larger_p_value(counts, factor):
    for noise in (None, NOISE):
        values = table_of(counts, noise, factor) if noise is not None else table_of(np.abs(counts), None, factor)
        assert (np.diff(values) <= 0).all()
        assert ((values > 0) & (values <= 1)).all()


def test_a_factor_for_axes_that_follow_the_rows():
    plain, wider = (table_of([5000, 50, 10], NOISE, factor) for factor in (1.0, 1.5))
    np.testing.assert_allclose((wider - 1e-6)[1:], 1.5 * (plain - 1e-6)[1:])
    rows = np.random.default_rng(0).normal(size=(5000, 4))
    kept = DPForest(1, features=(-6, 6), n_rows_hint=5000, target_fpr=0.05, tight_ranges=True).fit(rows).model_
    loose = DPForest(1, features=(-60, 60), n_rows_hint=5000, target_fpr=0.05).fit(rows).model_
    chosen = float(sum(charge.epsilon for charge in loose.charges if charge.purpose == "ranges"))
    assert chosen > 0
    for model, factor in ((kept, 1.0), (loose, np.exp(chosen))):
        np.testing.assert_allclose(model.p_values().values, p_values_of(model.score_histogram, factor).values)


def naive_alarms(p, fdr):
    order = sorted(range(len(p)), key=lambda i: p[i])
    largest = max((rank for rank, i in enumerate(order, 1) if p[i] <= fdr * rank / len(p)), default=0)
    cut = p[order[largest - 1]] if largest else -1
    return [one <= cut for one in p]


@given(st.lists(st.sampled_from([0.001, 0.01, 0.02, 0.03, 0.05, 0.1, 0.5, 1.0]), max_size=30), st.floats(0.01, 0.9))
def test_alarms_are_those_of_the_textbook(p, fdr):
    assert benjamini_hochberg(np.array(p), fdr).tolist() == naive_alarms(p, fdr)


ROWS = np.random.default_rng(1).normal(size=(20_000, 3))


@pytest.mark.parametrize(
    "detector",
    [
        DPForest(2, features=(-6, 6), n_rows_hint=20_000, target_fpr=0.05),
        DPMarginals(2, features=(-6, 6), n_rows_hint=20_000, target_fpr=0.05),
        DPGridKNN(2, features=(-6, 6), bins=8, target_fpr=0.05),
        DPGridKNN(2, features=(-6, 6), bins=40, counts="sparse", target_fpr=0.05),
        KNN((-6, 6), target_fpr=0.05),
        Forest((-6, 6), tight_ranges=True, target_fpr=0.05),
    ],
    ids=repr,
)
def test_fresh_points_have_valid_p_values_and_outliers_small_ones(detector):
    """The share of one model scatters around what is promised: by the noise, and by .0016 for 20,000 rows at .05."""
    detector.fit(ROWS)
    fresh = np.random.default_rng(2).normal(size=(50_000, 3))
    p = detector.p_values(fresh)
    for a in (0.01, 0.05, 0.2):
        assert (p <= a).mean() <= a + 6 * np.sqrt(a * (1 / 20_000 + 1 / 50_000)) + 0.005
    points = np.vstack([fresh[:90], np.full((10, 3), 5.5)])
    assert detector.alarms(points, fdr=0.2)[90:].all()
    assert (detector.alarms(points, fdr=0.2) == benjamini_hochberg(detector.p_values(points), 0.2)).all()


def test_models_without_a_proof_give_no_p_values():
    fits = {
        "never rises|rise when a row": DPGridKNN(1, features=(-6, 6), bins=8, weighted=True, target_fpr=0.05),
        "can rise when a row": DPGridKNN(1, features=(-6, 6), bins=8, distance="point", target_fpr=0.05),
        "taken from the reference rows": Forest((-600, 600), target_fpr=0.05),
        "spent no epsilon on a histogram": DPForest(1, features=(-6, 6), n_rows_hint=20_000),
    }
    for words, detector in fits.items():
        with pytest.raises((InvalidParameterError, ThresholdNotSetError), match=words):
            detector.fit(ROWS).p_values(ROWS[:2])
    with pytest.raises(ThresholdNotSetError, match="a merge has no histogram"):
        merge(
            [DPMarginals(1, features=(-6, 6), bins=8, target_fpr=0.05).fit(ROWS[half::2]) for half in (0, 1)],
            people="overlapping",
        ).alarms(ROWS[:2])


def test_wrong_arguments_are_named():
    fitted = DPMarginals(1, features=(-6, 6), bins=8, target_fpr=0.05).fit(ROWS)
    for fdr in (0, 1, -0.1, "a", True, None):
        with pytest.raises(InvalidParameterError, match="fdr must be a number between 0 and 1"):
            fitted.alarms(ROWS[:2], fdr=fdr)
    with pytest.raises(PointsError):
        fitted.p_values(ROWS[:2, :2])
    assert fitted.alarms(ROWS[:0]).shape == (0,)


def test_bounds_from_the_rows_give_none():
    with pytest.warns(UserWarning, match="NOT PRIVATE"):
        fitted = as_in_paper(ROWS, epsilon=1, k=10, bins=5)
    with pytest.raises(ThresholdNotSetError):
        fitted.p_values(ROWS[:2])


# What the proof needs of scores ----------------------------------------------------------------------------------------------

few = st.integers(0, 15)
position = st.tuples(few, few, few).map(lambda at: [(one + 0.5) / 16 for one in at])
EXACT = {
    "forest": Forest((0, 1), n_trees=3, depth=5),
    "marginals": Marginals((0, 1), bins=4),
    "grid": GridKNN((0, 1), bins=4, k=3),
    "deep grid": GridKNN((0, 1), bins=3, k=4, max_depth=None),
    "grid as printed": GridKNN((0, 1), bins=4, k=3, exhausted="as-printed"),
}


@pytest.mark.parametrize("make", EXACT.values(), ids=EXACT)
@given(st.lists(position, max_size=12), position, position)
def test_a_row_more_never_raises_a_score(make, rows, more, point):
    from dpoutlier.scoring.log_counts import ROUNDED

    before, after = (
        float(make.fit(np.array(own).reshape(-1, 3)).outlier_scores([point])[0]) for own in (rows, [*rows, more])
    )
    assert make.fit(np.array(rows).reshape(-1, 3)).model_.scorer.falls
    assert after <= before + ROUNDED


@pytest.mark.parametrize("make", EXACT.values(), ids=EXACT)
@given(st.lists(position, min_size=1, max_size=12))
def test_a_row_is_scored_as_if_it_had_not_been_counted(make, rows):
    from dpoutlier.scoring.log_counts import ROUNDED
    from dpoutlier.tables.rows import Rows

    rows = np.array(rows)
    model = make.fit(rows).model_
    own = model.own_scores(Rows(rows, model.domain))
    for i, row in enumerate(rows):
        without = make.fit(np.delete(rows, i, axis=0)).outlier_scores([row])[0]
        assert own[i] == pytest.approx(without, abs=2 * ROUNDED)


@pytest.mark.parametrize("epsilon", [0.5, 3])
def test_a_row_of_a_sparse_cell_is_scored_without_it(epsilon):
    """The oracle: the same noise on the same cells, counted without the row."""
    rows = np.random.default_rng(3).uniform(size=(60, 2)).round(1)
    arguments = {"features": (0, 1), "bins": 5, "k": 3, "counts": "sparse", "tight_ranges": True, "unsafe_seed": 5}
    with pytest.warns(UserWarning, match="NOT PRIVATE"):
        model = DPGridKNN(epsilon, **arguments).fit(rows).model_
    from dataclasses import replace

    from dpoutlier.tables.rows import Rows

    own = model.own_scores(Rows(rows, model.domain))
    ids, counts = model.counts.listed()
    for i, row in enumerate(rows):
        home = model.partition.cells(Rows(rows[i : i + 1], model.domain)[:])[0, 0]
        less = counts - (ids == home).all(axis=1)
        left = less >= model.counts.tau
        without = replace(model, counts=replace(model.counts, ids=ids[left], noisy=less[left]))
        assert own[i] == without.outlier_scores(Rows(row[None], model.domain))[0]
