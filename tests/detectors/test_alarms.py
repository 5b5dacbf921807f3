"""Alarms from counts of bins are Benjamini and Hochberg's on all points at once, whatever the batches."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpoutlier.detectors.alarms import ALARM, P_VALUE, Alarms, Tally, with_alarms
from dpoutlier.detectors.batches import ScoredBatch
from dpoutlier.scoring.p_values import PValues, benjamini_hochberg

shares = st.floats(1e-6, 1, exclude_max=True)
nans = st.just(np.nan)


@st.composite
def tables(draw):
    """Levels, and p-values that fall; several bins may have the same one."""
    n = draw(st.integers(1, 8))
    values = sorted(draw(st.lists(st.one_of(shares, st.sampled_from([0.01, 0.5, 1.0])), min_size=n, max_size=n)))
    return PValues(np.arange(n, dtype=float), np.array(values[::-1]))


@given(tables(), st.lists(st.one_of(st.floats(-1, 9), nans), max_size=60), st.integers(1, 7), shares)
def test_counting_bins_gives_the_same_alarms(table, scores, size, fdr):
    scores, tally = np.array(scores, float), Tally(table)
    for first in range(0, len(scores), size):
        tally.add(scores[first : first + size])
    known = ~np.isnan(scores)
    wanted = benjamini_hochberg(table.of(scores[known]), fdr)
    cutoff = tally.cutoff(fdr)
    found = Alarms(table, cutoff).columns(scores[known])
    assert found[ALARM].tolist() == wanted.tolist()
    assert found[P_VALUE].tolist() == table.of(scores[known]).tolist()
    assert (tally.n, tally.flagged(cutoff)) == (known.sum(), wanted.sum())
    scored = with_alarms(ScoredBatch({"s": scores}, None if known.all() else known), "s", table, fdr)
    assert scored.columns[ALARM][known].tolist() == wanted.tolist()
    assert list(scored.columns) == ["s", P_VALUE, ALARM]


def test_a_tie_with_the_bound_is_flagged_and_no_points_are_not():
    table = PValues(np.array([0.0, 1.0]), np.array([1.0, 0.05]))
    tally = Tally(table)
    assert tally.flagged(tally.cutoff(0.1)) == 0
    tally.add(np.array([0.0, 2.0]))
    assert tally.cutoff(0.1) == 0.05  # one of two points: 0.05 <= 0.1 * 1 / 2
    tally.add(np.array([0.0]))
    assert tally.flagged(tally.cutoff(0.1)) == 0
