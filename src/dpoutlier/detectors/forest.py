"""Forests of random trees: exact, and private. The trees never look at the data; only their leaves' counts do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpoutlier._validate import bad
from dpoutlier.detectors.old_names import accept_old_names
from dpoutlier.detectors.partitioned import ExactDetector, PartitionedDetector, PrivateDetector
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.axes import Axes
from dpoutlier.model.model import Model
from dpoutlier.partitions.base import Partition
from dpoutlier.partitions.trees import Trees, trees_by_rule
from dpoutlier.scoring.log_counts import LogCounts

__all__ = ["DPForest", "Forest"]


class _OfTrees(PartitionedDetector):
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
                raise bad(name, "'auto' or a whole number", value)
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


class Forest(_OfTrees, ExactDetector):
    """The soft mean logarithm of the exact counts in the leaves of random trees. **Not private**: the twin of :class:`DPForest`.

    Parameters
    ----------
    features, categories, missing
        The public features, as for :class:`DPForest`.
    n_trees, depth, subspace, tree_seed
        See :class:`DPForest`; "auto" follows the same rule with the true number of rows, as for an infinite epsilon.
    target_fpr : float, optional
        Set the threshold so that about this share of the reference rows lies above it.
    n_jobs : int, optional
        Threads.

    Examples
    --------
    >>> import numpy as np
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
        target_fpr: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.features = features
        self.categories = categories
        self.missing = missing
        self.n_trees = n_trees
        self.depth = depth
        self.subspace = subspace
        self.tree_seed = tree_seed
        self.target_fpr = target_fpr
        self.n_jobs = n_jobs


class DPForest(_OfTrees, PrivateDetector):
    r"""Outlier detection by the noisy counts in the leaves of public random trees, under differential privacy.

    The trees come from a public seed and never look at the data. A point's score is the mean over the trees of
    :math:`\log(1 + 2 f / \max(q^*, f / 4))`, where :math:`q^*` is the noisy count of its leaf and f the scale of the noise, at
    least 1, and of half as much for its leaf with one feature left out; see :class:`~dpoutlier.scoring.log_counts.LogCounts`.
    It is near 0 in crowded leaves and largest where all leaves are empty. A row lies in one leaf of each tree, so the noise has
    scale T / epsilon: few trees, where rows and epsilon are few.

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
        A *public* guess of the number of rows, for "auto"; or buy one for 5 % of epsilon. Never ``len(X)``: it would stand in the
        model, and the number of rows is private. Three times too many or too few costs about .01 of AUROC.
    n_trees : int or "auto"
        "auto" takes the number from ``n_rows_hint`` and epsilon: 2 to 32.
    depth : int or "auto"
        Most levels of a tree, and never more than three for each of its features. "auto": 3 to 14.
    subspace : int or sequence of int
        Features of a tree; several numbers are taken in turn.
    tree_seed : int
        Public: the trees follow from it. Fits that are to be merged must share it.
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
        self.n_trees = n_trees
        self.depth = depth
        self.subspace = subspace
        self.tree_seed = tree_seed
        self.target_fpr = target_fpr
        self.threshold_share = threshold_share
        self.ledger = ledger
        self.dataset = dataset
        self.n_jobs = n_jobs
        self.unsafe_seed = unsafe_seed
