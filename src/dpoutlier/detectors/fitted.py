"""A fit as it is loaded from a file: it scores, and does not fit again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier.detectors.registry import class_named
from dpoutlier.detectors.scores import ScoresPoints
from dpoutlier.exceptions import ThresholdNotSetError
from dpoutlier.explain.contributions import contributions
from dpoutlier.explain.explanation import Explained, Explanation
from dpoutlier.explain.nearest_region import nearest_regions
from dpoutlier.features.bounds import Bounds
from dpoutlier.features.domain import Domain
from dpoutlier.model.drift import Drift, Seen
from dpoutlier.model.file import save_model
from dpoutlier.model.model import Model
from dpoutlier.model.statement import PrivacyStatement
from dpoutlier.partitions.grid import Grid
from dpoutlier.privacy.guarantee import Guarantee
from dpoutlier.scoring.false_alarms import FalseAlarms
from dpoutlier.scoring.intervals import CountIntervals, count_intervals
from dpoutlier.scoring.log_counts import LogCounts
from dpoutlier.scoring.nearest_cells import NearestCells, Walks
from dpoutlier.scoring.p_values import PValues
from dpoutlier.scoring.threads import thread_count
from dpoutlier.tables import convert
from dpoutlier.tables.rows import Positions, Rows

__all__ = ["FittedDetector", "HoldsModel", "Walks", "WalksCells"]


class HoldsModel(ScoresPoints):
    """Methods of everything that holds a released model, ``model_``."""

    model_: Model
    n_jobs: Any

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the model to a file.

        Parameters
        ----------
        path : str or Path
            File name. The suffix is added if it is absent: ``.dpo`` for a publishable model, ``.secret.dpo`` for a secret one,
            which only its owner can read (mode 0600).
        overwrite : bool, default=False
            Permit to replace an existing file.

        Returns
        -------
        Path
            The file that was written.

        Raises
        ------
        OutputExistsError
            If the file exists and ``overwrite`` is False.
        SecretError
            If the suffix says "publishable" and the model is secret, or the other way round.
        InvalidParameterError
            If there is no such folder, or it does not permit to write.

        See Also
        --------
        dpoutlier.load : Load the file.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import pyarrow as pa
        >>> from dpoutlier import DPForest
        >>> detector = DPForest(1, features={"age": (0, 120)}, n_trees=4, depth=3).fit(pa.table({"age": [20, 30, 40, 50]}))
        >>> detector.save(Path(tempfile.mkdtemp()) / "patients").name
        'patients.dpo'
        """
        self._check_fitted()
        return save_model(self.model_, path, overwrite=overwrite)

    def privacy_statement(self) -> PrivacyStatement:
        """State what the fit guarantees, as data and as a page to print.

        Returns
        -------
        PrivacyStatement
            ``print`` shows it as a page; ``to_dict()`` gives data.

        See Also
        --------
        dpoutlier.PrivacyStatement : All that a statement says.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from dpoutlier import DPForest
        >>> detector = DPForest(1, features={"age": (0, 120)}, n_trees=4, depth=3).fit(pa.table({"age": [20, 30, 40, 50]}))
        >>> statement = detector.privacy_statement()
        >>> statement.epsilon, statement.delta, statement.publishable
        ('1', '0', True)
        """
        self._check_fitted()
        return self.model_.privacy_statement()

    def false_alarms(self, *, level: float = 0.9) -> FalseAlarms:
        """How often the threshold flags normal points: an estimate, and an interval.

        The interval accounts for the noise of the release, whose law is known, and for the chance in which rows were there. It has
        no privacy cost. It speaks of points that are drawn as the reference rows were.

        Parameters
        ----------
        level : float, default=0.9
            How often such an interval contains the true share, above 0 and at most 0.999999.

        Returns
        -------
        FalseAlarms
            ``expected``, ``lower`` and ``upper``; ``trusted`` says whether the threshold can be relied on.

        Raises
        ------
        ThresholdNotSetError
            If there is no threshold, or no histogram of scores: fit with ``target_fpr``.
        InvalidParameterError
            If ``level`` is out of range.

        See Also
        --------
        set_threshold : Set the threshold.
        dpoutlier.FalseAlarms : The attributes of the result.

        Examples
        --------
        >>> import numpy as np
        >>> from dpoutlier import DPForest
        >>> rows = np.random.default_rng(0).normal(size=(20_000, 3))
        >>> detector = DPForest(1, features=(-6, 6), n_rows_hint=20_000, target_fpr=0.05).fit(rows)
        >>> detector.set_threshold(target_fpr=0.01).false_alarms().upper < 0.02
        True
        """
        self._check_fitted()
        found = self.model_.false_alarms(level)
        if found is None:
            merged = self.model_.merged is not None
            raise ThresholdNotSetError.no_histogram(merged=merged) if self._threshold() is not None else self._unset()
        return found

    def drift(self, X: Any, *, checks_per_month: int = 30) -> Drift:
        """Compare points with the released counts, to see whether they have drifted away from the reference rows.

        It has no privacy cost. For each feature, shares of points are compared with noisy shares of reference rows. So are the
        scores of a forest that was fitted with ``target_fpr``, if it has so many features that few rows share a score. Noise and
        chance are accounted for: on points that are drawn as the reference rows were, all checks of a month together say
        "drifted" with a probability of at most 1 %. Small drifts need many points to be seen, and a model of few rows sees
        large ones only.

        Parameters
        ----------
        X : array or data frame of shape (n_points, n_features), or iterator of them
            Points, as for ``outlier_scores``: for example all of a day. An iterator gives them part by part.
        checks_per_month : int, default=30
            Number of such checks in a month. The 1 % is divided over them.

        Returns
        -------
        Drift
            ``drifted``, and for each feature that does not fit, in what. ``print`` shows it.

        Raises
        ------
        PointsError
            If the points do not fit the model: see ``outlier_scores``.
        InvalidParameterError
            If ``checks_per_month`` is not a whole number from 1 to 100,000, or if the model has nothing to compare points with:
            keyed or sparse counts.

        See Also
        --------
        dpoutlier.Drift : The attributes of the result.

        Examples
        --------
        >>> import numpy as np
        >>> from dpoutlier import DPForest
        >>> rng = np.random.default_rng(0)
        >>> detector = DPForest(1, features=(-6, 6), n_rows_hint=20_000).fit(rng.normal(size=(20_000, 3)))
        >>> detector.drift(rng.normal(1, 1, size=(2_000, 3))).drifted
        True
        """
        seen = Seen(self._fitted_model())
        for part in X if isinstance(X, Iterator) else [X]:
            self._of_points(part, lambda positions: seen.add(positions[:], self._outlier_scores(positions)))
        return seen.compared(checks_per_month)

    def export_scores(
        self,
        path: str | Path,
        sql: str | Path | None = None,
        *,
        table: str = "points",
        overwrite: bool = False,
        secret: bool = False,
    ) -> str:
        """Write a table and a query with which a database scores points by itself.

        The database gives the same scores to the bit. Available for forests and marginals.

        Parameters
        ----------
        path : str or Path
            Parquet file to write: a row (member, cell, term) for each cell. The query reads the file under this name.
        sql : str or Path, default=None
            File to write the query to.
        table : str, default='points'
            Table of points that the query reads, with a column for each feature.
        overwrite : bool, default=False
            Permit to replace both files.
        secret : bool, default=False
            Confirm that the table of a secret model is secret as well. Otherwise only publishable models are exported.

        Returns
        -------
        str
            The query, without a semicolon, so that it can stand within another query.

        Raises
        ------
        SecretError
            If the model is secret and ``secret`` is False.
        OutputExistsError
            If one of the files exists and ``overwrite`` is False.
        InvalidParameterError
            If the model is one of a grid, which has no such table; if the suffixes are not ``.parquet`` and ``.sql``; or if SQL
            cannot use ``table`` or the name of a feature.

        See Also
        --------
        score_frame : Scores in Polars, DuckDB, Dask and Spark without SQL.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import duckdb
        >>> import pyarrow as pa
        >>> from dpoutlier import DPForest
        >>> detector = DPForest(1, features={"age": (0, 120)}, n_trees=4, depth=3).fit(pa.table({"age": [20, 30, 40, 50]}))
        >>> query = detector.export_scores(Path(tempfile.mkdtemp()) / "scores.parquet")
        >>> points = pa.table({"age": [35, 110]})
        >>> scored = duckdb.sql(f"SELECT outlier_score FROM ({query})").fetchall()
        >>> [score for (score,) in scored] == detector.outlier_scores(points).tolist()
        True
        """
        from dpoutlier.sql.export import export_scores  # noqa: PLC0415 - it imports pyarrow, which is slow

        self._check_fitted()
        to = None if sql is None else Path(sql)
        return export_scores(self.model_, Path(path), to, table=table, overwrite=overwrite, secret=secret)

    @property
    def bounds_(self) -> Bounds:
        """The bounds of the fit, as ``features`` takes them; with ``tight_ranges=True``, for fits that are to be merged.

        If nothing is guaranteed, they void the guarantee of a fit that takes them: that ranges were left as declared may also
        have been decided by the reference rows.
        """
        model = self._fitted_model()
        return Bounds._as_fitted(model.domain, leaked=not model.guarantee.private)  # noqa: SLF001 - nobody else needs it

    @property
    def guarantee_(self) -> Guarantee:
        """The privacy guarantee of the fit."""
        return self._fitted_model().guarantee

    @property
    def publishable(self) -> bool:
        """Whether the model may be published. If False, it is secret and stays with the custodian."""
        return self._fitted_model().publishable

    def _fitted_model(self) -> Model:
        """``model_``, after a check that there is one."""
        self._check_fitted()
        return self.model_

    def _walk(self, positions: Positions) -> Walks:
        scorer = self.model_.scorer
        assert isinstance(scorer, NearestCells)
        return scorer.walk(positions, self.model_.partition, self.model_.counts, thread_count(self.n_jobs))

    def explain(self, X: Any) -> Explanation:
        """Explain which features make each point outlying, and what would make it usual.

        It has no privacy cost. For grids it repeats the walk of each point, which takes some microseconds for each visited cell.

        Parameters
        ----------
        X : array or data frame of shape (n_points, n_features)
            Points to explain, as for ``outlier_scores``.

        Returns
        -------
        Explanation
            ``contributions`` has a row for each point; ``to_table()`` and ``counterfactual()`` describe one point.

        Raises
        ------
        PointsError
            If the points do not fit the model: see ``outlier_scores``.

        See Also
        --------
        dpoutlier.Explanation : What an explanation holds, and its methods.
        dpoutlier.explanation_figure : Draw the explanation of one point.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from dpoutlier import Forest
        >>> reference = pa.table({"age": [20, 30, 40, 50] * 25, "bmi": [21.0, 24.0, 27.0, 30.0] * 25})
        >>> detector = Forest({"age": (0, 120), "bmi": (10, 80)}, n_trees=4, depth=3).fit(reference)
        >>> found = detector.explain(pa.table({"age": [110], "bmi": [25.0]}))
        >>> [feature for feature, contribution, empty in found.ranking()]
        ['age', 'bmi']
        """
        self._check_fitted()
        return self._of_points(X, self._explain)

    def _explain(self, positions: Positions) -> Explanation:
        assert isinstance(positions, Rows)
        model, scorer, grid = self.model_, self.model_.scorer, self.model_.partition
        values = np.stack(positions.columns, axis=1).astype(np.float64, copy=False)
        if isinstance(scorer, NearestCells) and isinstance(grid, Grid):
            walks = self._walk(positions)
            near = nearest_regions(positions, grid, model.counts, scorer, walks)
            explained = Explained(model, positions[:], values, near.usual, scorer.k)
            empty = np.full(near.parts.shape, np.nan)
            return Explanation(model.domain.labels, near.parts, empty, walks.scores, 0.0, explained)
        assert isinstance(scorer, LogCounts)
        found = contributions(positions, model.partition, model.counts, scorer)
        scores, explained = self._outlier_scores(positions), Explained(model, positions[:], values)
        return Explanation(model.domain.labels, found.parts, found.empty, scores, found.typical, explained)

    def count_intervals(self, X: Any, level: float = 0.95, *, steps: int = 0) -> CountIntervals:
        """Compute intervals for the true numbers of reference rows in the cells around each point.

        It has no privacy cost. The distribution of the noise is public, so no assumption about the rows is needed: for a cell that
        was chosen without looking at the counts, the interval covers the true count with a probability of at least ``level``.

        Parameters
        ----------
        X : array or data frame of shape (n_points, n_features)
            Points, as for ``outlier_scores``.
        level : float, default=0.95
            Probability of coverage, above 0 and at most 0.999999.
        steps : int, default=0
            For grids: count all cells within this number of grid steps around the point's own cell together, at most 100,000 cells.

        Returns
        -------
        CountIntervals
            Noisy counts and the ends of their intervals.

        Raises
        ------
        PointsError
            If the points do not fit the model: see ``outlier_scores``.
        InvalidParameterError
            If ``level`` or ``steps`` is out of range. ``steps`` must be 0 for all but grids, and for sparse counts.
        TypeError
            If the distribution of the noise on single cells is not known: after a merge of sparse counts.

        See Also
        --------
        dpoutlier.CountIntervals : The attributes of the result, and the formula.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from dpoutlier import DPForest
        >>> reference = pa.table({"age": [20, 30, 40, 50] * 25})
        >>> detector = DPForest(1, features={"age": (0, 120)}, n_trees=4, depth=3).fit(reference)
        >>> found = detector.count_intervals(pa.table({"age": [35, 110]}))
        >>> found.lower.shape  # a row for each point, a column for each tree
        (2, 4)
        >>> found.coverage[0].round(3).tolist()  # noise consists of whole numbers, so it is more than 0.95
        [0.956, 0.956, 0.956, 0.956]
        """
        model = self._fitted_model()
        if model.counts.kind == "sparse" and model.merged is not None:
            raise TypeError(
                "count intervals are not available for merged sparse models: the limit on an unlisted cell holds for each part, "
                "not for their sum."
            )
        return self._of_points(
            X,
            lambda positions: count_intervals(
                positions, model.partition, model.counts, model.noise_laws, level=level, steps=steps
            ),
        )

    def _only_scoring(self) -> ScoresPoints:
        """A ``FittedDetector``, without the arguments of the fit."""
        return FittedDetector(self._fitted_model(), self.n_jobs)

    def _features_of(self, X: Any) -> Any:
        """The table without the column that identifies people: points may have it, and do not need it."""
        return convert.without_person(X, self.model_.guarantee.person if hasattr(self, "model_") else None)

    def _fitted_domain(self) -> Domain:
        return self.model_.domain

    def _outlier_scores(self, positions: Positions) -> NDArray[np.float64]:
        return self.model_.outlier_scores(positions, thread_count(self.n_jobs))

    def _threshold(self) -> float | None:
        return self.model_.threshold

    def _false_alarms(self) -> FalseAlarms | None:
        return self.model_.false_alarms()

    def _p_table(self) -> PValues:
        return self.model_.p_values()

    def _set_threshold(self, *, target_fpr: float | None, score: float | None) -> None:
        if target_fpr is not None:
            self.model_ = self.model_.with_target_fpr(target_fpr)
        elif score is not None:
            self.model_ = self.model_.with_threshold(score)


class WalksCells(HoldsModel):
    """A model that may be one of a grid, so that points walk from cell to cell."""

    def walk(self, X: Any) -> Walks:
        """Score each point, and record the walk over the cells around it.

        Available for grids.

        Parameters
        ----------
        X : array or data frame of shape (n_points, n_features)
            Points to score, as for ``outlier_scores``.

        Returns
        -------
        Walks
            Arrays of shape (n_points,): ``scores``; ``gathered``, the noisy rows gathered; ``visited``, the cells visited; and
            ``status``: 0 if k rows were gathered, 1 if no cells were left within ``max_depth``, 2 if ``max_cells`` ended the walk.

        Raises
        ------
        PointsError
            If the points do not fit the model: see ``outlier_scores``.
        TypeError
            If the model is not one of a grid.

        See Also
        --------
        outlier_scores : The scores alone.
        explain : Why each point has its score.

        References
        ----------
        .. [1] J. Rauch, I. E. Olatunji and M. Khosla, "Achieving differential privacy for k-nearest neighbors based outlier
           detection by data partitioning", arXiv:2104.07938, Algorithm 1.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from dpoutlier import GridKNN
        >>> twin = GridKNN({"age": (0, 100)}, k=2, bins=10).fit(pa.table({"age": [33, 35, 47]}))
        >>> walks = twin.walk(pa.table({"age": [35, 45, 97]}))
        >>> walks.scores.tolist(), walks.gathered.tolist(), walks.status.tolist()
        ([0.0, 0.1, 1.0], [2.0, 3.0, 0.0], [0, 0, 1])
        """
        self._check_fitted()
        if not isinstance(self.model_.scorer, NearestCells):
            raise TypeError(f"a {self.model_.detector} does not walk from cell to cell.")
        return self._of_points(X, self._walk)


class FittedDetector(WalksCells):
    """A loaded or merged model: it does all that a fitted detector does, except fitting.

    :func:`~dpoutlier.load` and :func:`~dpoutlier.merge` return it; there is no need to construct it. It does not import
    scikit-learn, which would take longer than loading a model and scoring a million points.

    Parameters
    ----------
    model : Model
        The released model.
    n_jobs : int, default=None
        Number of threads for scoring. None means 1, and -1 means all cores.

    Attributes
    ----------
    model_ : Model
        The released model, and nothing else.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Present only if the features have names.
    n_jobs : int or None
        Number of threads for scoring.

    See Also
    --------
    load : Load a model file.
    merge : Add up several releases.
    Client : The same methods, answered by a server.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from dpoutlier import DPForest, load
    >>> reference = np.random.default_rng(0).normal(size=(2613, 4))
    >>> path = DPForest(epsilon=1, features=(-8, 8), n_rows_hint=2000).fit(reference).save(Path(tempfile.mkdtemp()) / "model")
    >>> fitted = load(path)
    >>> fitted
    <fitted DPForest: <publishable DPForest model, 4 features, dense counts>>
    >>> fitted.outlier_scores([[0, 0, 0, 0], [6, -6, 6, -6]]).shape
    (2,)
    """

    def __init__(self, model: Model, n_jobs: int | None = None) -> None:
        self.model_, self.n_jobs = model, n_jobs
        self._keep_schema(model.domain)

    def __repr__(self) -> str:
        return f"<fitted {self.model_.detector}: {self.model_!r}>"

    def __dir__(self) -> list[str]:
        walks = isinstance(self.model_.scorer, NearestCells)
        return [name for name in self._usable_names() if name != "walk" or walks]

    def _estimator_like(self) -> Any:
        return self.estimator()

    def _name(self) -> str:
        return self.model_.detector

    def estimator(self) -> Any:
        """Make the fitted detector itself, a scikit-learn estimator.

        Use it in a pipeline, or to fit again with the same arguments.

        Returns
        -------
        DPForest, DPGridKNN, DPMarginals or a non-private twin
            The fitted detector, with the arguments that it was fitted with. ``unsafe_seed`` and ``ledger`` are not kept.
        """
        return class_named(self.model_.detector)._of_model(self.model_).set_params(n_jobs=self.n_jobs)
