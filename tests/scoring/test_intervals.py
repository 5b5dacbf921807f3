"""Intervals for true counts, by simulation: many releases, each interval against the truth that it is for."""

import numpy as np
import pytest
from scipy import stats

from dpoutlier import DPForest, DPGridKNN, DPMarginals, Forest, GridKNN, load, merge
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.tables.rows import Rows

# A right interval fails one of these ten tests with at most this probability, and seeds are fixed besides.
FALSE_ALARM = 1e-8
N = 1500
CENTRES = ((np.arange(N) + 0.5) / N)[:, np.newaxis]
TRUTH = 1 + np.arange(N) % 7  # at least one row in every cell: there coverage is what it says, not more
ROWS = np.repeat(CENTRES, TRUTH, axis=0)
TWO = np.repeat(CENTRES, 2, axis=1)


def grid(epsilon, **kw):
    return DPGridKNN(epsilon, features=(0, 1), bins=N, **kw).fit(ROWS)


def in_regions(values):
    """Sums over the cell and its two neighbours, at every third cell from the second: regions that share no cell."""
    return values.reshape(-1, 3).sum(axis=1)[:, np.newaxis]


# Each makes a release and returns (intervals that do not share any noise, true counts).
RELEASES = {
    "grid": lambda: (grid("0.1").count_intervals(CENTRES), TRUTH[:, np.newaxis]),
    "keyed": lambda: (grid("0.1", counts="keyed").count_intervals(CENTRES, 0.9), TRUTH[:, np.newaxis]),
    "replace-one": lambda: (grid("0.1", neighbours="replace-one").count_intervals(CENTRES), TRUTH[:, np.newaxis]),
    "regions": lambda: (grid("0.1").count_intervals(CENTRES[1::3], steps=1), in_regions(TRUTH)),
    "marginals": lambda: (
        DPMarginals("0.2", features=(0, 1), bins=N).fit(np.repeat(TWO, TRUTH, axis=0)).count_intervals(TWO),
        np.repeat(TRUTH[:, np.newaxis], 2, axis=1),
    ),
    "merge": lambda: (
        merge([grid("0.1"), grid("0.2"), grid("0.1", target_fpr=0.1)], people="overlapping").count_intervals(CENTRES),
        3 * TRUTH[:, np.newaxis],
    ),
    "regions of a merge": lambda: (
        merge([grid("0.1"), grid("0.2")], people="disjoint").count_intervals(CENTRES[1::3], 0.8, steps=1),
        2 * in_regions(TRUTH),
    ),
}


@pytest.mark.parametrize("name", RELEASES)
def test_truth_is_covered_as_often_as_is_said(name):
    n, n_covered = 0, 0
    for _ in range(25):
        found, truth = RELEASES[name]()
        assert found.noisy.shape == truth.shape == found.cells.shape
        coverage = found.coverage[0, 0]
        assert (found.coverage == coverage).all()
        assert found.level <= coverage < found.level + 0.012
        assert (found.cells == (3 if "regions" in name else 1)).all()
        n += truth.size
        n_covered += np.count_nonzero((found.lower <= truth) & (truth <= found.upper))
    assert stats.binomtest(n_covered, n, coverage).pvalue > FALSE_ALARM


@pytest.mark.parametrize("off", [0.9, 1.1])
def test_a_scale_ten_percent_off_would_be_found_out(off):
    """Intervals of one epsilon around counts of another: the test above has the power to see it."""
    n, n_covered = 0, 0
    for _ in range(25):
        claimed, truth = grid("0.1").count_intervals(CENTRES), TRUTH[:, np.newaxis]
        width = int((claimed.upper - claimed.noisy).max())
        noisy = grid(str(0.1 / off)).count_intervals(CENTRES).noisy
        n, n_covered = n + truth.size, n_covered + np.count_nonzero(np.abs(noisy - truth) <= width)
    assert stats.binomtest(n_covered, n, claimed.coverage[0, 0]).pvalue < FALSE_ALARM


def test_an_interval_one_row_narrower_would_be_found_out():
    n, n_covered = 0, 0
    for _ in range(25):
        found = grid("0.5").count_intervals(CENTRES)
        width = int((found.upper - found.noisy).max()) - 1
        n, n_covered = n + N, n_covered + np.count_nonzero(np.abs(found.noisy[:, 0] - TRUTH) <= width)
    assert stats.binomtest(n_covered, n, found.coverage[0, 0]).pvalue < FALSE_ALARM


def test_an_empty_cell_is_covered_at_least_as_often():
    empty = [DPGridKNN("0.1", features=(0, 1), bins=N).fit(ROWS[:0]).count_intervals(CENTRES) for _ in range(10)]
    n_covered = sum(int(np.count_nonzero(found.lower == 0)) for found in empty)
    one_sided = (1 + empty[0].coverage[0, 0]) / 2  # above the truth only noise can carry the interval away
    assert stats.binomtest(n_covered, 10 * N, one_sided).pvalue > FALSE_ALARM
    assert all((found.upper >= found.lower).all() and (found.lower >= 0).all() for found in empty)


def test_columns_of_a_forest_are_its_trees():
    rows = np.random.default_rng(0).uniform(size=(3000, 2))
    forest = DPForest(2, features=(0, 1), n_trees=5, depth=3, subspace=2).fit(rows)
    points = rows[:40]
    found = forest.count_intervals(points)
    model = forest.model_
    ids = model.partition.cells(Rows(points, model.domain)[:])[..., 1].astype(int)
    assert found.noisy.shape == (40, 5)
    assert (found.noisy == model.counts.counts[ids]).all()
    exact = Forest((0, 1), n_trees=5, depth=3, subspace=2).fit(rows).count_intervals(points)
    assert (exact.lower == exact.noisy).all()
    assert (exact.upper == exact.noisy).all()
    assert (exact.coverage == 1).all()
    assert np.abs(exact.noisy - found.noisy).max() < 60  # scale 2.5: past 60 lies less than 1e-8 of 200


def test_exact_counts_have_no_width_also_over_regions():
    twin = GridKNN((0, 1), bins=N).fit(ROWS)
    found = twin.count_intervals(CENTRES[1::3], 0.99, steps=1)
    assert (found.lower == in_regions(TRUTH)).all()
    assert (found.upper == in_regions(TRUTH)).all()
    edge = twin.count_intervals(CENTRES[:1], steps=1)
    assert (edge.cells.item(), edge.noisy.item()) == (2, TRUTH[:2].sum())


def test_regions_at_the_border_have_fewer_cells_and_narrower_intervals():
    found = (
        DPGridKNN("0.1", features=(0, 1), bins=9).fit(np.zeros((5, 2))).count_intervals([[0.5, 0.5], [0, 0]], steps=2)
    )
    assert found.cells[:, 0].tolist() == [13, 6]
    width = (found.upper - found.noisy)[:, 0]
    assert width[0] > width[1] > 0


def test_a_loaded_model_gives_the_same_and_no_points_give_none(tmp_path):
    fitted = grid("0.1")
    loaded = load(fitted.save(tmp_path / "m"))
    assert (loaded.count_intervals(CENTRES).lower == fitted.count_intervals(CENTRES).lower).all()
    none = loaded.count_intervals(CENTRES[:0], steps=1)
    assert len(none) == 0
    assert none.upper.shape == (0, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": 1}, "level must be"),
        ({"steps": -1}, "steps must be a whole number of at least 0"),
        ({"steps": 1.0}, "steps must be a whole number of at least 0"),
    ],
)
def test_impossible_arguments_are_refused(arguments, message):
    with pytest.raises(InvalidParameterError, match=message):
        grid(1).count_intervals(CENTRES, **arguments)


def test_what_has_no_intervals_says_why():
    with pytest.raises(InvalidParameterError, match="steps must be 0 for marginals"):
        DPMarginals(1, features=(0, 1)).fit(ROWS).count_intervals(CENTRES, steps=1)
    with pytest.raises(InvalidParameterError, match="small enough for a region"):
        DPGridKNN(1, features=(0, 1), bins=400).fit(np.zeros((3, 2))).count_intervals([[0, 0]], steps=1000)
