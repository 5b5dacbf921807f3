"""The paper's detectors on a grid: the non-private grid modification, and its private version (Section 4)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dpoutlier._validate import one_of, parameter_error, positive_int
from dpoutlier.counts.sparse import MAX_SPARSE_SIZE, SparseCounts, least_size_for
from dpoutlier.detectors.fitted import WalksCells
from dpoutlier.detectors.old_names import accept_old_names
from dpoutlier.detectors.partitioned import ExactDetector, PartitionedDetector, PrivateDetector
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.axes import Axes
from dpoutlier.model.model import Model
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.partitions.base import Partition
from dpoutlier.partitions.grid import Grid, bins_by_rule
from dpoutlier.scoring.nearest_cells import NearestCells, check_last_cell

COUNT_KINDS = ("auto", "dense", "keyed", "sparse")


class _GridDetector(WalksCells, PartitionedDetector):
    """What both grid detectors share."""

    k: Any
    bins: Any
    weighted: Any
    distance: Any
    max_depth: Any
    exhausted: Any

    def _make_scorer(self) -> NearestCells:
        return NearestCells(self.k, self.weighted, self.distance, self.max_depth, exhausted=self.exhausted)

    def _by_rule(self) -> bool:
        return False

    def _partition_maker(self, axes: Axes) -> Callable[[int | None, float], Partition]:
        grid = self._usable(Grid.of(self.bins, axes))
        return lambda _n_rows_hint, _epsilon: grid

    def _usable(self, grid: Grid) -> Grid:
        """Refuse a grid on which walks over stored cells would take too long: before any row is read."""
        check_last_cell(self._make_scorer(), grid)
        return grid

    @classmethod
    def _arguments_of(cls, model: Model) -> dict[str, Any]:
        assert isinstance(model.partition, Grid)
        scorer = {key: value for key, value in model.scorer.to_json().items() if key not in {"name", "max_cells"}}
        return {**super()._arguments_of(model), **scorer, "bins": list(model.partition.bins)}


class GridKNN(_GridDetector, ExactDetector):
    """k-NN outlier detection over a grid of exact counts: the paper's grid modification. **Not private.**

    The non-private twin of :class:`DPGridKNN`: it shows what the noise costs. Its model holds exact counts and must stay secret.

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
    k : int, default=10
        Rows to gather around a point.
    bins : int or sequence of int, default=5
        Bins of each feature. A feature with levels has one bin for each level instead. A value on the edge of two bins always
        goes to the same one, which depends on the bounds: with (0, 4) and 4 bins the value 1 is in the second bin, with (0, 3)
        and 3 bins in the first. So give whole numbers from 0 to 10 the bounds (-0.5, 10.5).
    weighted : bool, default=False
        Score with the sum of count times distance (DP Grid wk-NN) instead of the last distance.
    distance : {'cell', 'point'}, default='cell'
        Distance from the centroid of the point's own cell, as Algorithm 1 prints it, or from the point. With 'point', much of the
        score depends on the point alone and not on the data.
    max_depth : int or None, default=4
        Largest number of grid steps from the point's own cell. None means no limit.
    exhausted : {'outlying', 'as-printed'}, default='outlying'
        Score of a walk that gathers fewer than k rows: missing rows count at the diameter of the unit cube, or the score of the
        last cell, as Algorithm 1 prints it.
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
    DPGridKNN : The private detector.
    KNN : Plain k-NN without a grid.

    References
    ----------
    .. [1] J. Rauch, I. E. Olatunji and M. Khosla, "Achieving differential privacy for k-nearest neighbors based outlier detection
       by data partitioning", arXiv:2104.07938, Section 4.2 and Algorithm 1.

    Examples
    --------
    >>> from dpoutlier import GridKNN
    >>> twin = GridKNN(features=(0, 10), bins=10, k=2).fit([[1.5], [1.7], [2.5]])
    >>> twin.outlier_scores([[1.5], [4.5]]).tolist()
    [0.0, 0.3]
    """

    @accept_old_names
    def __init__(
        self,
        features: Any = None,
        *,
        categories: Any = None,
        missing: Any = "error",
        k: int = 10,
        bins: Any = 5,
        weighted: bool = False,
        distance: str = "cell",
        max_depth: int | None = 4,
        exhausted: str = "outlying",
        tight_ranges: Any = "auto",
        target_fpr: float | None = None,
        outlier_share: float = 0.0,
        n_jobs: int | None = None,
    ) -> None:
        self._keep_arguments(locals())


class DPGridKNN(_GridDetector, PrivateDetector):
    """k-NN outlier detection over a grid of noisy counts, under differential privacy: the paper's DP Grid k-NN.

    Every feature is split into bins of equal width, and all rows of a cell count as if they lay in its centre. The score of a point
    is the distance to the cell in which a walk over the nearest cells has gathered k noisy rows. A row lies in one cell, so the
    noise has scale 1 / epsilon, or 2 / epsilon under 'replace-one', which is the paper's relation.

    Fitting costs ``epsilon`` once. Scoring has no privacy cost, however often it is done. With dense or sparse counts the model may
    be published.

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
        A *public* guess of the number of rows, needed where ``bins`` is 'auto'. 'estimate' spends 5 % of epsilon
        on a private estimate, if it is needed. Never pass ``len(X)``: the model holds this number, and the true one is private.
    k : int, default=10
        Noisy rows to gather around a point.
    bins : int, sequence of int, or 'auto', default='auto'
        Bins of each feature; 'auto' takes the number from ``n_rows_hint``, epsilon and the number of features. A feature with
        levels has one bin for each level instead. A value on the edge of two bins always goes to the same one, which depends on
        the bounds: with (0, 4) and 4 bins the value 1 is in the second bin, with (0, 3) and 3 bins in the first. So give whole
        numbers from 0 to 10 the bounds (-0.5, 10.5).
    weighted : bool, default=False
        Score with the sum of count times distance (DP Grid wk-NN) instead of the last distance.
    distance : {'cell', 'point'}, default='cell'
        Distance from the centroid of the point's own cell, as Algorithm 1 prints it, or from the point. With 'point', much of the
        score depends on the point alone and not on the data.
    max_depth : int or None, default=4
        Largest number of grid steps from the point's own cell. None means no limit.
    max_cells : int, default=100000
        Largest number of cells to visit for one point. It matters where empty cells have noise; with sparse counts and with
        ``epsilon=inf`` walks look at the listed cells only.
    exhausted : {'outlying', 'as-printed'}, default='outlying'
        Score of a walk that gathers fewer than k rows: missing rows count at the diameter of the unit cube, or the score of the
        last cell, as Algorithm 1 prints it.
    counts : {'auto', 'dense', 'keyed', 'sparse'}, default='auto'
        How the counts are held. 'dense': all cells; publishable. 'keyed': any grid; secret. 'sparse': any grid, only cells whose
        noisy count reaches a threshold; publishable. 'auto': dense up to four million cells, else keyed.
    sparse_size : int, default=10000
        For sparse counts: how many empty cells may be expected among the listed ones. The threshold is the smallest, from 1, that
        allows no more. A larger number keeps smaller counts, in a larger file (24 bytes for each cell).
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
    GridKNN : The non-private twin: the grid modification with exact counts.
    KNN : Plain k-NN without a grid. Not private.
    DPForest : The default detector, which needs no distance.
    detector : Make a private detector by name.
    as_in_paper : The detector with the paper's preprocessing. Not private.

    References
    ----------
    .. [1] J. Rauch, I. E. Olatunji and M. Khosla, "Achieving differential privacy for k-nearest neighbors based outlier detection
       by data partitioning", arXiv:2104.07938, Algorithm 1, eq. 8 and Theorem 2.
    .. [2] C. Dwork, F. McSherry, K. Nissim and A. Smith, "Calibrating noise to sensitivity in private data analysis", TCC 2006.
    .. [3] C. Canonne, G. Kamath and T. Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020, Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from dpoutlier import DPGridKNN
    >>> reference = np.random.default_rng(0).normal(size=(2613, 2))
    >>> detector = DPGridKNN(epsilon=1, features=(-8, 8), n_rows_hint=2000, k=30).fit(reference)
    >>> inlier, outlier = detector.outlier_scores([[0, 0], [7, -7]])
    >>> bool(inlier < outlier)
    True
    """

    max_cells: Any
    counts: Any
    sparse_size: Any

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
        k: int = 10,
        bins: Any = "auto",
        weighted: bool = False,
        distance: str = "cell",
        max_depth: int | None = 4,
        max_cells: int = 100_000,
        exhausted: str = "outlying",
        counts: str = "auto",
        sparse_size: int = 10_000,
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

    def _make_scorer(self) -> NearestCells:
        return replace(super()._make_scorer(), max_cells=self.max_cells)

    def _count_choices(self) -> dict[str, Any]:
        return {
            "counts": one_of(COUNT_KINDS, counts=self.counts),
            "sparse_size": positive_int(MAX_SPARSE_SIZE, sparse_size=self.sparse_size),
        }

    def _by_rule(self) -> bool:
        if isinstance(self.bins, str) and self.bins != "auto":
            raise parameter_error("bins", "'auto', a whole number, or one for each feature", self.bins)
        return isinstance(self.bins, str)

    def _partition_maker(self, axes: Axes) -> Callable[[int | None, float], Partition]:
        if not self._by_rule():
            return super()._partition_maker(axes)

        def by_rule(n_rows_hint: int | None, epsilon: float) -> Partition:
            if n_rows_hint is None or epsilon == float("inf"):
                raise InvalidParameterError(
                    "bins='auto' needs n_rows_hint, a public guess of the number of rows such as n_rows_hint=5000 (never the true "
                    "number), or n_rows_hint='estimate' to spend 5 % of a finite epsilon on it; or give bins=5."
                )
            bins = bins_by_rule(n_rows_hint, epsilon, len(axes), [a.levels for a in axes if a.levels])
            return self._usable(Grid.of(bins, axes))

        return by_rule

    def _usable(self, grid: Grid) -> Grid:
        return super()._usable(grid) if self.counts == "sparse" else grid

    @classmethod
    def _arguments_of(cls, model: Model) -> dict[str, Any]:
        assert isinstance(model.scorer, NearestCells)
        arguments = {**super()._arguments_of(model), "max_cells": model.scorer.max_cells}
        if isinstance(
            model.counts, SparseCounts
        ):  # the size itself is not kept: the least that gives the same threshold
            law = model.noise_laws[0]
            assert isinstance(law, DiscreteLaplace)
            size = least_size_for(model.partition.n_cells, law, model.counts.tau)
            arguments["sparse_size"] = size
        return {
            **arguments,
            "counts": model.counts.kind if model.counts.kind in {"dense", "keyed", "sparse"} else "auto",
        }
