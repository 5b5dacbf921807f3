"""One histogram for each feature: exact, and private."""

from collections.abc import Callable
from typing import Any

from dpoutlier._validate import parameter_error
from dpoutlier.detectors.old_names import accept_old_names
from dpoutlier.detectors.partitioned import ExactDetector, PartitionedDetector, PrivateDetector
from dpoutlier.features.axes import Axes
from dpoutlier.model.model import Model
from dpoutlier.partitions.base import Partition
from dpoutlier.partitions.marginals import Margins
from dpoutlier.scoring.log_counts import LogCounts

BINS = 10


class _MarginalsDetector(PartitionedDetector):
    """What both share."""

    bins: Any
    _rule_needs_rows = False

    def _make_scorer(self) -> LogCounts:
        return LogCounts()

    def _by_rule(self) -> bool:
        if isinstance(self.bins, str) and self.bins != "auto":
            raise parameter_error("bins", "'auto', a whole number, or one for each feature", self.bins)
        return isinstance(self.bins, str)

    def _partition_maker(self, axes: Axes) -> Callable[[int | None, float], Partition]:
        margins = Margins.of(BINS if self._by_rule() else self.bins, axes)
        return lambda _n_rows_hint, _epsilon: margins

    @classmethod
    def _arguments_of(cls, model: Model) -> dict[str, Any]:
        assert isinstance(model.partition, Margins)
        return {**super()._arguments_of(model), "bins": list(model.partition.bins)}


class Marginals(_MarginalsDetector, ExactDetector):
    """Outlier detection by one exact histogram for each feature. **Not private.**

    The non-private twin of :class:`DPMarginals`: it shows what the noise costs. Its model holds exact counts and must stay secret.

    Parameters
    ----------
    features : dict, Bounds, PrivateBounds, pair or path, default=None
        Public range of each feature, such as ``{"age": (0, 120)}``; a pair means the same range for all features, and a path is
        a features file. Values outside count as the nearest bound. Never take the ranges from the reference rows; where nobody
        knows them, :class:`PrivateBounds` takes them from the rows here. Required, unless ``categories`` names all features.
    categories : dict, default=None
        Public levels of categorical features, by name or column number: a list of levels, or a :class:`Category`.
    missing : {'error', 'cell'} or list of features, default='error'
        Features that have a cell for missing values; 'cell' means all of them. For any other feature, a missing value is an
        error in a point to score. In a reference row it counts as the lower bound or the first level, without a message, which
        would reveal something.
    bins : int, sequence of int or 'auto', default='auto'
        Bins of each feature; 'auto' is 10. A feature with levels has one bin for each level instead. A value on the edge of two
        bins always goes to the same one, which depends on the bounds: with (0, 4) and 4 bins the value 1 is in the second bin, with
        (0, 3) and 3 bins in the first. So give whole numbers from 0 to 10 the bounds (-0.5, 10.5).
    tight_ranges : bool or 'auto', default='auto'
        True: the ranges in ``features`` are taken as declared. False: the fit looks where in them the rows lie, and makes them
        narrower. 'auto': True if the cells are given in numbers (``bins``, or ``n_trees`` and ``depth``), else False.
    target_fpr : float, default=None
        Set the threshold so that about this share of the reference rows lies above it, above 0 and below 1. None: no threshold.
    outlier_share : float, default=0
        Declared share of outliers among the reference rows, below 0.5: public, never counted in the rows. The threshold then takes
        them for the rows with the largest scores.
    n_jobs : int, default=None
        Number of threads. None means 1, and -1 means all cores.

    Attributes
    ----------
    model_ : Model
        Exact counts of the reference rows, and how to score with them. Secret.
    n_features_in_ : int
        Number of features of the fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Present only if the features have names.
    offset_ : float
        Threshold on ``score_samples``. Present only with a threshold: from ``target_fpr`` or ``set_threshold``.
    guarantee_ : Guarantee
        It says that nothing is guaranteed.
    publishable : bool
        Always False.

    See Also
    --------
    DPMarginals : The private detector.

    Examples
    --------
    >>> from dpoutlier import Marginals
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
        bins: Any = "auto",
        tight_ranges: Any = "auto",
        target_fpr: float | None = None,
        outlier_share: float = 0.0,
        n_jobs: int | None = None,
    ) -> None:
        self._keep_arguments(locals())


class DPMarginals(_MarginalsDetector, PrivateDetector):
    r"""Outlier detection by one noisy histogram for each feature, under differential privacy.

    The score of a point y is :math:`-\frac{1}{d} \sum_j \log \max(q^*_j(y), f)`, where :math:`q^*_j(y)` is the noisy count of
    its bin in feature j, d the number of features, and the floor f half the scale of the noise (at least 1/2). A row is counted
    once for each feature, so the noise has scale d / epsilon. The detector is simple and easy to explain, but it does not see
    outliers that only several features together show.

    Fitting costs ``epsilon`` once. Scoring has no privacy cost, however often it is done, and the model may be published.

    Parameters
    ----------
    epsilon : float, Fraction or str
        Total privacy loss of the fit; smaller is more private. There is no default: the data custodian chooses it. A float
        means the decimal that it prints as. ``inf`` means no noise and no privacy.
    features : dict, Bounds, PrivateBounds, pair or path, default=None
        Public range of each feature, such as ``{"age": (0, 120)}``; a pair means the same range for all features, and a path is
        a features file. Values outside count as the nearest bound. Never take the ranges from the reference rows; where nobody
        knows them, :class:`PrivateBounds` estimates them with a part of epsilon. Required, unless ``categories`` names all
        features.
    categories : dict, default=None
        Public levels of categorical features, by name or column number: a list of levels, or a :class:`Category`.
    missing : {'error', 'cell'} or list of features, default='error'
        Features that have a cell for missing values; 'cell' means all of them. For any other feature, a missing value is an
        error in a point to score. In a reference row it counts as the lower bound or the first level, without a message, which
        would reveal something.
    neighbours : {'add-or-remove-one', 'replace-one'}, default='add-or-remove-one'
        Which two data sets must be hard to distinguish: those that differ by one person more or less, or by the data of one person.
        'replace-one' needs twice the noise.
    rows_per_person : int, default=1
        Largest number of reference rows of one person. The noise grows in proportion to it.
    person : str, default=None
        Column that identifies people. At most ``rows_per_person`` rows of each person are counted, chosen by a public rule; rows
        without an id are not counted. None: the custodian guarantees that nobody has more rows than ``rows_per_person``.
    n_rows_hint : int, 'estimate' or None, default='estimate'
        A *public* guess of the number of rows, used to look where in the declared ranges the rows lie. 'estimate' spends 5 % of
        epsilon on a private estimate, unless the ranges are tight. None: the ranges are taken as declared. Never pass ``len(X)``:
        the model holds this number, and the true one is private.
    bins : int, sequence of int or 'auto', default='auto'
        Bins of each feature; 'auto' is 10. A feature with levels has one bin for each level instead. A value on the edge of two
        bins always goes to the same one, which depends on the bounds: with (0, 4) and 4 bins the value 1 is in the second bin, with
        (0, 3) and 3 bins in the first. So give whole numbers from 0 to 10 the bounds (-0.5, 10.5).
    tight_ranges : bool or 'auto', default='auto'
        True: the ranges in ``features`` are taken as declared, at no cost. False: the fit spends a share of epsilon to look where
        in them the rows lie, and makes them narrower (docs/ranges.md). 'auto': True if the cells are given in numbers (``bins``, or
        ``n_trees`` and ``depth``), else False.
    target_fpr : float, default=None
        Expected share of inliers that ``predict`` labels as outliers, above 0 and below 1. The fit then spends
        ``threshold_share`` of epsilon on a private histogram of the scores of the reference rows. None: no threshold, which
        scores do not need.
    outlier_share : float, default=0
        Declared share of outliers among the reference rows, below 0.5: public, never counted in the rows. The threshold then takes
        them for the rows with the largest scores.
    threshold_share : float or 'auto', default='auto'
        Share of epsilon for the threshold, above 0 and below 1. 'auto': 0.05 to 0.25 by a rule from ``n_rows_hint``, epsilon and
        ``target_fpr``; 0.2 without a public number of rows. Used only with ``target_fpr``.
    ledger : Ledger, str or Path, default=None
        Ledger that is charged before any row is read; it refuses a fit that its budget does not cover. Needs ``dataset``.
    dataset : str, default=None
        Name of the data set whose budget in the ledger is charged. Needs ``ledger``.
    n_jobs : int, default=None
        Number of threads. None means 1, and -1 means all cores.
    unsafe_seed : int, default=None
        Seed of predictable noise, for tests. **Not private.** None: noise from the operating system's generator.

    Attributes
    ----------
    model_ : Model
        The released model, and nothing else.
    n_features_in_ : int
        Number of features of the fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Present only if the features have names.
    offset_ : float
        Threshold on ``score_samples``. Present only with a threshold: from ``target_fpr`` or ``set_threshold``.
    guarantee_ : Guarantee
        The privacy guarantee of the fit.
    publishable : bool
        Whether the model may be published.

    See Also
    --------
    Marginals : The non-private twin, with exact counts.
    DPForest : The default detector, which sees several features together.
    detector : Make a private detector by name.

    References
    ----------
    .. [1] J. Rauch, I. E. Olatunji and M. Khosla, "Achieving differential privacy for k-nearest neighbors based outlier detection
       by data partitioning", arXiv:2104.07938, Section 3.1 (the task and the outlier score).
    .. [2] C. Dwork, F. McSherry, K. Nissim and A. Smith, "Calibrating noise to sensitivity in private data analysis", TCC 2006.
    .. [3] C. Canonne, G. Kamath and T. Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020, Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from dpoutlier import DPMarginals
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
        bins: Any = "auto",
        tight_ranges: Any = "auto",
        target_fpr: float | None = None,
        outlier_share: float = 0.0,
        threshold_share: Any = "auto",
        ledger: Any = None,
        dataset: str | None = None,
        n_jobs: int | None = None,
        unsafe_seed: int | None = None,
    ) -> None:
        self._keep_arguments(locals())
