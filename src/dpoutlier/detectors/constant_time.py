"""Models whose answers clients may time."""

from dataclasses import replace

from dpoutlier.counts.constant_time import ConstantTimeCounts, in_constant_time
from dpoutlier.counts.keyed import KeyedCounts
from dpoutlier.detectors.fitted import FittedDetector
from dpoutlier.exceptions import SecretError


def with_constant_time_counts(detector: FittedDetector) -> FittedDetector:
    """The same detector, whose answers take a time that depends on public and released values only.

    A publishable model is returned unchanged: everything in it may be known. A keyed model gets another form of its counts, with
    the same answers, to the bit. Call it when a model is loaded, before the first answer: it takes some time, which depends on the
    number of occupied cells.

    Parameters
    ----------
    detector : FittedDetector
        A loaded model.

    Returns
    -------
    FittedDetector
        The same object if its answers already take such a time; otherwise a new one with the same scores.

    Raises
    ------
    SecretError
        If the model promises nothing, or if its noise is that of the first sampler.
    """
    model = detector._fitted_model()
    if model.publishable or isinstance(model.counts, ConstantTimeCounts):
        return detector
    if not model.guarantee.private or not isinstance(model.counts, KeyedCounts):
        raise SecretError(
            "this model promises nothing (see its privacy statement), so no answer of it can be given to clients. Fit with a "
            "finite epsilon, and without anything unsafe."
        )
    return FittedDetector(replace(model, counts=in_constant_time(model.counts)), detector.n_jobs)
