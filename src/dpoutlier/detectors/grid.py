"""The paper's detectors on a grid: the non-private grid modification, and its private version (Section 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dpoutlier._validate import at_least_one, bad, one_of
from dpoutlier.counts.sparse import MOST_SPARSE_SIZE, SparseCounts, least_size_for
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

__all__ = ["DPGridKNN", "GridKNN"]

COUNT_KINDS = ("auto", "dense", "keyed", "sparse")


class _OnGrid(WalksCells, PartitionedDetector):
    """What both grid detectors share."""

    k: Any
    bins: Any
    weighted: Any
    distance: Any
    max_depth: Any
    exhausted: Any

    def _make_scorer(self) -> NearestCells:
        return NearestCells(self.k, self.weighted, self.distance, self.max_depth, exhausted=self.exhausted)

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


class GridKNN(_OnGrid, ExactDetector):
    """k-NN over the cells of a grid with exact counts. **Not private**: the twin of :class:`DPGridKNN`.

    Parameters
    ----------
    features, categories, missing
        The public features, as for :class:`DPForest`.
    k, weighted, distance, max_depth, exhausted
        See :class:`DPGridKNN`.
    bins : int or sequence of int
        Bins per feature. Where a feature has levels, they are its bins, whatever is said here.
    target_fpr : float, optional
        Set the threshold so that about this share of the reference rows lies above it.
    n_jobs : int, optional
        Threads for scoring.

    Examples
    --------
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
        target_fpr: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.features = features
        self.categories = categories
        self.missing = missing
        self.k = k
        self.bins = bins
        self.weighted = weighted
        self.distance = distance
        self.max_depth = max_depth
        self.exhausted = exhausted
        self.target_fpr = target_fpr
        self.n_jobs = n_jobs


class DPGridKNN(_OnGrid, PrivateDetector):
    """k-NN outlier detection over a grid of noisy counts, under differential privacy (the paper's DP Grid k-NN).

    Fitting costs ``epsilon`` once. Scoring costs nothing, however often it is done.

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
        A *public* guess of the number of rows, for ``bins="auto"``; or buy one for 5 % of epsilon. Never the true number.
    k : int
        Noisy rows to gather.
    bins : int, sequence of int, or "auto"
        Bins per feature; "auto" takes them from ``n_rows_hint``, epsilon and the number of features. Where a feature has levels,
        they are its bins, whatever is said here. A value on the edge of two bins goes up or down, always the same way: of
        bounds (0, 4) and 4 bins the value 1 is in the second bin, of (0, 3) and 3 bins in the first. So give whole numbers from 0
        to 10 bounds halfway between, (-0.5, 10.5).
    weighted : bool
        Sum of count times distance, instead of the last distance.
    distance : {"cell", "point"}
        Between the centroids of the cell and of the home cell, as Algorithm 1 prints, or from the point. With "point" much of
        the score is about the point and not about the data: compare with the data-free control.
    max_depth : int or None
        Most grid steps from home.
    max_cells : int
        Most cells to visit where empty cells have noise: so not with sparse counts, nor at ``epsilon=inf``, where walks look
        at the occupied cells only.
    exhausted : {"outlying", "as-printed"}
        What a walk that did not gather k rows scores.
    counts : {"auto", "dense", "keyed", "sparse"}
        "dense" can be published; "keyed" takes any grid and is secret; "sparse" takes any grid and can be published, but keeps
        only cells whose noisy count reaches a threshold; "auto" is dense up to four million cells, and keyed beyond.
    sparse_size : int
        For sparse counts: how many empty cells may be expected among those that are kept. The threshold is the least, from 1,
        that gives no more: a larger number keeps smaller counts, in a larger file (24 bytes a cell).
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
        Threads for scoring.
    unsafe_seed : int, optional
        Predictable noise, for tests. Not private.
    unsafe_float_laplace : bool
        The paper's floating-point noise, for its reproduction. Not private.

    Attributes
    ----------
    model_ : Model
        What was released, and nothing else.
    offset_ : float
        Minus the threshold on the outlier score.

    Examples
    --------
    >>> import numpy as np
    >>> reference = np.random.default_rng(0).normal(size=(2613, 2))
    >>> detector = DPGridKNN(epsilon=1, features=(-8, 8), n_rows_hint=2000, k=30).fit(reference)
    >>> inlier, outlier = detector.outlier_scores([[0, 0], [7, -7]])
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
        k: int = 10,
        bins: Any = "auto",
        weighted: bool = False,
        distance: str = "cell",
        max_depth: int | None = 4,
        max_cells: int = 100_000,
        exhausted: str = "outlying",
        counts: str = "auto",
        sparse_size: int = 10_000,
        target_fpr: float | None = None,
        threshold_share: float = 0.05,
        ledger: Any = None,
        dataset: str | None = None,
        n_jobs: int | None = None,
        unsafe_seed: int | None = None,
        unsafe_float_laplace: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.features = features
        self.categories = categories
        self.missing = missing
        self.neighbours = neighbours
        self.rows_per_person = rows_per_person
        self.person = person
        self.n_rows_hint = n_rows_hint
        self.k = k
        self.bins = bins
        self.weighted = weighted
        self.distance = distance
        self.max_depth = max_depth
        self.max_cells = max_cells
        self.exhausted = exhausted
        self.counts = counts
        self.sparse_size = sparse_size
        self.target_fpr = target_fpr
        self.threshold_share = threshold_share
        self.ledger = ledger
        self.dataset = dataset
        self.n_jobs = n_jobs
        self.unsafe_seed = unsafe_seed
        self.unsafe_float_laplace = unsafe_float_laplace

    def _make_scorer(self) -> NearestCells:
        return replace(super()._make_scorer(), max_cells=self.max_cells)

    def _count_choices(self) -> dict[str, Any]:
        return {
            "counts": one_of(COUNT_KINDS, counts=self.counts),
            "sparse_size": at_least_one(MOST_SPARSE_SIZE, sparse_size=self.sparse_size),
        }

    def _by_rule(self) -> bool:
        if isinstance(self.bins, str) and self.bins != "auto":
            raise bad("bins", "'auto', a whole number, or one for each feature", self.bins)
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
            rate = next(charge.rate for charge in model.charges if charge.purpose == "counts")
            size = least_size_for(model.partition.n_cells, DiscreteLaplace(rate), model.counts.tau)
            arguments["sparse_size"] = size
        return {
            **arguments,
            "counts": model.counts.kind if model.counts.kind in {"dense", "keyed", "sparse"} else "auto",
            "unsafe_float_laplace": bool(model.counts.to_json().get("unsafe_float", False)),
        }
