"""Forests of random trees: exact, and private. The trees never look at the data; only their leaves' counts do."""

from collections.abc import Callable
from typing import Any

from dpoutlier._validate import parameter_error
from dpoutlier.detectors.old_names import accept_old_names
from dpoutlier.detectors.partitioned import ExactDetector, PartitionedDetector, PrivateDetector
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.axes import Axes
from dpoutlier.model.model import Model
from dpoutlier.partitions.base import Partition
from dpoutlier.partitions.trees import Trees, trees_by_rule
from dpoutlier.scoring.log_counts import LogCounts


class _ForestDetector(PartitionedDetector):
    """What both forests share."""

    n_trees: Any
    depth: Any
    subspace: Any
    tree_seed: Any

    def _make_scorer(self) -> LogCounts:
        return LogCounts(soft=True)

    def _by_rule(self) -> bool:
        for name, value in (("n_trees", self.n_trees), ("depth", self.depth)):
            if isinstance(value, str) and value != "auto":
                raise parameter_error(name, "'auto' or a whole number", value)
        return isinstance(self.n_trees, str) or isinstance(self.depth, str)

    def _partition_maker(self, axes: Axes) -> Callable[[int | None, float], Partition]:
        def make(n_rows_hint: int | None, epsilon: float) -> Partition:
            n_trees, depth = self.n_trees, self.depth
            if self._by_rule():
                if n_rows_hint is None:
                    raise InvalidParameterError(
                        "n_trees='auto' and depth='auto' need n_rows_hint, a public guess of the number of rows such as "
                        "n_rows_hint=5000 (never the true number), or 'estimate' to spend 5 % of epsilon on it; or give "
                        "n_trees=16 and depth=9."
                    )
                by_rule = trees_by_rule(n_rows_hint, epsilon)
                depth = by_rule[1] if isinstance(depth, str) else depth
                n_trees = by_rule[0] if isinstance(n_trees, str) else n_trees
            return Trees.of(axes, n_trees, depth, self.subspace, self.tree_seed)

        return make

    @classmethod
    def _arguments_of(cls, model: Model) -> dict[str, Any]:
        trees = model.partition
        assert isinstance(trees, Trees)
        return {
            **super()._arguments_of(model),
            "n_trees": trees.n_trees,
            "depth": trees.depth,
            "subspace": trees.subspace[0] if len(trees.subspace) == 1 else trees.subspace,
            "tree_seed": trees.seed,
        }


class Forest(_ForestDetector, ExactDetector):
    """Outlier detection by exact counts in the leaves of public random trees. **Not private.**

    The non-private twin of :class:`DPForest`: it shows what the noise costs. Its model holds exact counts and must stay secret.

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
    n_trees : int or 'auto', default='auto'
        Number of trees. 'auto' takes it from the true number of rows: 2 to 32.
    depth : int or 'auto', default='auto'
        Largest number of levels of a tree, and at most three for each of its features. 'auto': 3 to 14.
    subspace : int or sequence of int, default=4
        Number of features of each tree. Several numbers are used in turn.
    tree_seed : int, default=0
        Public seed of the trees. Releases that are to be merged must share it.
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
    DPForest : The private detector.

    Examples
    --------
    >>> import numpy as np
    >>> from dpoutlier import Forest
    >>> reference = np.random.default_rng(0).normal(size=(500, 3))
    >>> inlier, outlier = Forest(features=(-6, 6)).fit(reference).outlier_scores([[0, 0, 0], [5, -5, 5]])
    >>> bool(inlier < outlier)
    True
    """

    @accept_old_names
    def __init__(
        self,
        features: Any = None,
        *,
        categories: Any = None,
        missing: Any = "error",
        n_trees: Any = "auto",
        depth: Any = "auto",
        subspace: Any = 4,
        tree_seed: int = 0,
        tight_ranges: Any = "auto",
        target_fpr: float | None = None,
        outlier_share: float = 0.0,
        n_jobs: int | None = None,
    ) -> None:
        self._keep_arguments(locals())


class DPForest(_ForestDetector, PrivateDetector):
    r"""Outlier detection by noisy counts in the leaves of public random trees, under differential privacy.

    The trees follow from a public seed and never depend on the data. Each tree counts every reference row in one leaf, so the noise
    has scale ``n_trees`` / epsilon: use fewer trees when rows or epsilon are small. A point scores high if its leaves are nearly
    empty: the score is the mean over the trees of :math:`\log(1 + 2 f / \max(q^*, f / 4))`, where :math:`q^*` is the noisy count of
    its leaf and f the scale of the noise (at least 1), plus half the mean of the same term over its leaf with each feature left out
    in turn. It is near 0 in crowded leaves and largest where all leaves are empty.

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
        A *public* guess of the number of rows, needed where ``n_trees`` or ``depth`` is 'auto'. 'estimate' spends 5 % of epsilon
        on a private estimate, if it is needed. Never pass ``len(X)``: the model holds this number, and the true one is private.
        A guess of a third or three times the true number costs about .01 of AUROC.
    n_trees : int or 'auto', default='auto'
        Number of trees. 'auto' takes it from ``n_rows_hint`` and epsilon: 2 to 32.
    depth : int or 'auto', default='auto'
        Largest number of levels of a tree, and at most three for each of its features. 'auto': 3 to 14.
    subspace : int or sequence of int, default=4
        Number of features of each tree. Several numbers are used in turn.
    tree_seed : int, default=0
        Public seed of the trees. Releases that are to be merged must share it.
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
    Forest : The non-private twin, with exact counts.
    DPGridKNN : The paper's detector, on a grid of noisy counts.
    DPMarginals : One noisy histogram for each feature.
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
    >>> from dpoutlier import DPForest
    >>> reference = np.random.default_rng(0).normal(size=(2613, 20))
    >>> detector = DPForest(epsilon=1, features=(-8, 8), n_rows_hint=2000).fit(reference)
    >>> inlier, outlier = detector.outlier_scores([[0] * 20, [4, -4] * 10])
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
        n_trees: Any = "auto",
        depth: Any = "auto",
        subspace: Any = 4,
        tree_seed: int = 0,
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
