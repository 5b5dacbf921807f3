"""What a threshold does: the estimate, the interval, and when neither is to be trusted."""

import warnings
from fractions import Fraction

import numpy as np
import pytest

from dpoutlier import KNN, DPForest, DPGridKNN, DPMarginals, FalseAlarms, load, merge
from dpoutlier.exceptions import InvalidParameterError, ThresholdNotSetError, ThresholdWarning
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.scoring.false_alarms import false_alarms
from dpoutlier.scoring.threshold import ScoreHistogram

LEVELS = np.linspace(0.0, 4.0, 13)


def histogram_of(n, noise, rng, *, outliers=0.0):
    """Scores of a known law: P(score > x) = exp(-x), and outliers above all of it."""
    scores = np.append(rng.exponential(size=n - int(outliers * n)), np.full(int(outliers * n), 3.9))
    counts = np.bincount(np.minimum(np.searchsorted(LEVELS, scores), 12), minlength=13)
    if noise is not None:
        q = 1 - np.exp(-float(noise.rate))
        counts = counts + rng.geometric(q, 13) - rng.geometric(q, 13)
    return ScoreHistogram(LEVELS, counts, noise, 0.05, continuous=True, left_out=True, outlier_share=outliers)


@pytest.mark.parametrize("target", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("rate", [None, "1/8", "1/32"])
def test_the_interval_contains_the_true_rate_as_often_as_it_says(rate, target):
    """2,000 histograms at 90 %: fewer than 85.5 % would be below the mean by 6.7 standard deviations."""
    rng, noise = np.random.default_rng(0), None if rate is None else DiscreteLaplace(Fraction(rate))
    hits = widths = 0
    for _ in range(2000):
        histogram = histogram_of(2000, noise, rng)
        found = false_alarms(histogram, histogram.threshold(target))
        hits += found.lower <= np.exp(-found.threshold) <= found.upper
        widths += found.upper - found.lower
    assert hits >= 0.855 * 2000
    assert widths / 2000 < {None: 0.05, "1/8": 0.1, "1/32": 0.4}[rate]


def test_what_is_expected_is_what_was_asked():
    histogram = histogram_of(100_000, DiscreteLaplace(Fraction(1)), np.random.default_rng(1))
    for target in (0.3, 0.1, 0.05, 0.03):
        found = false_alarms(histogram, histogram.threshold(target))
        assert found.expected == pytest.approx(target, rel=1e-6)
        assert found.trusted


def test_declared_outliers_are_taken_out():
    """A tenth of the rows are outliers. The threshold passes 5 % of the others, and the interval leaves open where outliers lie."""
    histogram = histogram_of(100_000, None, np.random.default_rng(2), outliers=0.1)
    threshold = histogram.threshold(0.05)
    assert np.exp(-threshold) == pytest.approx(0.05, rel=0.1)
    found = false_alarms(histogram, threshold)
    assert found.expected == pytest.approx(0.05, rel=0.01)
    assert found.lower < np.exp(-threshold) < found.upper
    assert found.upper > 0.15
    plain = ScoreHistogram(LEVELS, histogram.counts, None, 0.05, continuous=True, left_out=True)
    assert np.exp(-plain.threshold(0.05)) < 0.03 or plain.threshold(0.05) > threshold


def test_a_threshold_above_every_score_flags_nothing_and_is_not_trusted():
    histogram = histogram_of(1000, None, np.random.default_rng(3))
    for threshold in (4.0, 5.0, np.inf):
        found = false_alarms(histogram, threshold)
        assert (found.expected, found.lower, found.upper, found.trusted) == (0, 0, 0, False)
        assert "no point is ever flagged" in str(found)
    swamped = ScoreHistogram(LEVELS, np.full(13, 3), DiscreteLaplace(Fraction(1, 1024)), 0.05, left_out=True)
    assert swamped.threshold(0.05) == 4.0
    assert false_alarms(swamped, 1.0).upper == 1.0


def test_below_every_level_anything_is_possible():
    found = false_alarms(histogram_of(1000, None, np.random.default_rng(4)), -1.0)
    assert found.upper == 1.0


ROWS = np.random.default_rng(5).normal(size=(20_000, 3))


def test_a_fitted_detector_says_it_and_a_file_keeps_it(tmp_path):
    detector = DPForest(1, features=(-6, 6), n_rows_hint=20_000, target_fpr=0.05).fit(ROWS)
    found = detector.false_alarms()
    assert isinstance(found, FalseAlarms)
    assert found.lower < found.expected < found.upper
    assert type(found.trusted) is bool
    assert load(detector.save(tmp_path / "m")).false_alarms() == found
    assert detector.false_alarms(level=0.5).upper < found.upper < detector.false_alarms(level=0.999).upper
    assert detector.set_threshold(score=-detector.offset_).false_alarms() == found
    declared = detector.set_params(outlier_share=0.02).fit(ROWS)
    assert load(declared.save(tmp_path / "n")).estimator().outlier_share == 0.02
    assert declared.false_alarms().upper > found.upper


def test_small_tables_are_not_trusted():
    detector = DPForest(0.5, features=(-6, 6), n_rows_hint=100, target_fpr=0.05)
    with pytest.warns(ThresholdWarning, match="cannot be trusted"):
        detector.fit(ROWS[:100])
    assert not detector.false_alarms().trusted
    assert "THE THRESHOLD CANNOT BE TRUSTED" in str(detector.privacy_statement())
    assert detector.privacy_statement().false_alarms == detector.false_alarms().to_dict()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ThresholdWarning)
        large = DPForest(1, features=(-6, 6), n_rows_hint=20_000, target_fpr=0.05).fit(ROWS)
    assert "TRUSTED" not in str(large.privacy_statement())


def test_the_share_of_epsilon_follows_a_public_rule():
    def share(**arguments):
        fitted = DPMarginals(1, features=(-6, 6), target_fpr=0.05, tight_ranges=True, **arguments).fit(ROWS[:500])
        return next(float(one.epsilon) for one in fitted.model_.charges if one.purpose == "threshold")

    assert [share(n_rows_hint=n) for n in (100, 1000, 1_000_000)] == [0.062, 0.25, 0.05]
    assert share(n_rows_hint=1000, threshold_share=0.3) == 0.3
    assert share(n_rows_hint=None, bins=5) == 0.2
    assert share(n_rows_hint=1000, rows_per_person=10) == share(n_rows_hint=100)
    with pytest.raises(InvalidParameterError, match="threshold_share must be 'auto' or a number"):
        share(n_rows_hint=1000, threshold_share="a lot")


def test_wrong_arguments_are_named():
    fitted = DPGridKNN(1, features=(-6, 6), bins=4).fit(ROWS)
    with pytest.raises(ThresholdNotSetError, match="no threshold is set"):
        fitted.false_alarms()
    with pytest.raises(ThresholdNotSetError, match="no epsilon on a histogram"):
        fitted.set_threshold(score=1).false_alarms()
    parts = [DPGridKNN(1, features=(-6, 6), bins=4, target_fpr=0.1).fit(ROWS[half::2]) for half in (0, 1)]
    with pytest.raises(ThresholdNotSetError, match="merged"):
        merge(parts, people="overlapping").set_threshold(score=1).false_alarms()
    for share in (-0.1, 0.5, 1, "a", True, None, np.nan):
        with pytest.raises(InvalidParameterError, match=r"outlier_share must be a number of at least 0 and below 0\.5"):
            DPGridKNN(1, features=(-6, 6), bins=4, target_fpr=0.1, outlier_share=share).fit(ROWS)
        with pytest.raises(InvalidParameterError, match="outlier_share"):
            KNN((-6, 6), target_fpr=0.1, outlier_share=share).fit(ROWS[:10])
