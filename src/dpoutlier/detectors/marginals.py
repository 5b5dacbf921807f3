"""One histogram for each feature: exact, and private."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpoutlier.detectors.old_names import accept_old_names
from dpoutlier.detectors.partitioned import ExactDetector, PartitionedDetector, PrivateDetector
from dpoutlier.features.axes import Axes
from dpoutlier.model.model import Model
from dpoutlier.partitions.base import Partition
from dpoutlier.partitions.marginals import Margins
from dpoutlier.scoring.log_counts import LogCounts

__all__ = ["DPMarginals", "Marginals"]


class _OfMargins(PartitionedDetector):
    """What both share."""

    bins: Any

    def _make_scorer(self) -> LogCounts:
        return LogCounts()

    def _partition_maker(self, axes: Axes) -> Callable[[int | None, float], Partition]:
        margins = Margins.of(self.bins, axes)
        return lambda _n_rows_hint, _epsilon: margins

    @classmethod
    def _arguments_of(cls, model: Model) -> dict[str, Any]:
        assert isinstance(model.partition, Margins)
        return {**super()._arguments_of(model), "bins": list(model.partition.bins)}


class Marginals(_OfMargins, ExactDetector):
    """Mean logarithm of the exact counts in each feature's histogram. **Not private**: the twin of :class:`DPMarginals`.

    Parameters
    ----------
    features, categories, missing
        The public features, as for :class:`DPForest`.
    bins : int or sequence of int
        Bins per feature. Where a feature has levels, they are its bins, whatever is said here.
    target_fpr : float, optional
        Set the threshold so that about this share of the reference rows lies above it.
    n_jobs : int, optional
        Threads.

    Examples
    --------
    >>> twin = Marginals(features=(0, 10), bins=5).fit([[1.0, 1.0], [1.5, 1.0], [1.0, 9.0]])
    >>> twin.outlier_scores([[1.0, 1.0], [9.0, 9.0]]).round(3).tolist()
    [-0.896, 0.347]
    """

    @accept_old_names
    def __init__(
        self,
        features: Any = None,
        *,
        categories: Any = None,
        missing: Any = "error",
        bins: Any = 10,
        target_fpr: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.features = features
        self.categories = categories
        self.missing = missing
        self.bins = bins
        self.target_fpr = target_fpr
        self.n_jobs = n_jobs


class DPMarginals(_OfMargins, PrivateDetector):
    r"""Outlier detection by one noisy histogram for each feature, under differential privacy.

    The score of a point y is :math:`-\frac{1}{d} \sum_j \log \max(q^*_j(y), f)`, where :math:`q^*_j(y)` is the noisy count of its
    bin in feature j and the floor f half the scale of the noise, at least 1/2. A row lies in one bin of each of the d
    features, so the noise has scale d / epsilon. Simple and easy to explain; blind to what only several features together show.

    Fitting costs ``epsilon`` once. Scoring costs nothing, however often it is done, and the model may be published.

    Parameters
    ----------
    epsilon : number, Fraction or str
        The total privacy loss of the fit. No default: it is the custodian's choice. ``inf`` means not private.
    features : Bounds, dict, pair, path or PrivateBounds
        The public range of each feature; values outside are clipped. See :class:`~dpoutlier.Bounds`. Where nobody knows it, a
        :class:`~dpoutlier.PrivateBounds` buys it.
    categories : dict, optional
        Levels of features that have some, by name or number: a list, or a :class:`~dpoutlier.Category`.
    missing : {"error", "cell"} or list of features
        Which features have a cell for missing values. Elsewhere a missing value is an error in points to be scored and falls, in
        silence, into the first bin in reference rows.
    neighbours : {"add-or-remove-one", "replace-one"}
        Which two data sets must be hard to tell apart. replace-one needs twice the noise.
    rows_per_person : int
        The most rows that one person has; multiplies the noise.
    person : str, optional
        The column that tells people apart. At most ``rows_per_person`` rows of each stay, by a public rule, and none without an id.
        Without it nobody may have more rows than declared.
    n_rows_hint : int or "estimate", optional
        Not needed: no rule here uses the number of rows, and nothing is bought.
    bins : int or sequence of int
        Bins per feature. Where a feature has levels, they are its bins, whatever is said here.
    target_fpr : float, optional
        Buy a histogram of the reference rows' scores, and set the threshold to this false-positive rate.
    threshold_share : float
        Share of epsilon that the threshold costs.
    ledger : Ledger or path, optional
        Where epsilon is charged before any row is read; see :class:`~dpoutlier.Ledger`. A fit that its budget does not cover is
        refused.
    dataset : str, optional
        The name that the ledger has a budget for.
    n_jobs : int, optional
        Threads.
    unsafe_seed : int, optional
        Predictable noise, for tests. Not private.

    Attributes
    ----------
    model_ : Model
        What was released, and nothing else.
    offset_ : float
        Minus the threshold on the outlier score.

    Examples
    --------
    >>> import numpy as np
    >>> reference = np.random.default_rng(0).normal(size=(2613, 5))
    >>> detector = DPMarginals(epsilon=1, features=(-8, 8)).fit(reference)
    >>> inlier, outlier = detector.outlier_scores([[0] * 5, [6] * 5])
    >>> bool(inlier < outlier)
    True
    """

    @accept_old_names
    def __init__(
        self,
        epsilon: Any,
        *,
        features: Any = None,
        categories: Any = None,
        missing: Any = "error",
        neighbours: str = "add-or-remove-one",
        rows_per_person: int = 1,
        person: str | None = None,
        n_rows_hint: Any = "estimate",
        bins: Any = 10,
        target_fpr: float | None = None,
        threshold_share: float = 0.05,
        ledger: Any = None,
        dataset: str | None = None,
        n_jobs: int | None = None,
        unsafe_seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.features = features
        self.categories = categories
        self.missing = missing
        self.neighbours = neighbours
        self.rows_per_person = rows_per_person
        self.person = person
        self.n_rows_hint = n_rows_hint
        self.bins = bins
        self.target_fpr = target_fpr
        self.threshold_share = threshold_share
        self.ledger = ledger
        self.dataset = dataset
        self.n_jobs = n_jobs
        self.unsafe_seed = unsafe_seed
