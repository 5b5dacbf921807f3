"""A fit as it is loaded from a file: it scores, and does not fit again."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier.detectors.scores import ScoresPoints
from dpoutlier.explain.contributions import contributions
from dpoutlier.explain.explanation import Explained, Explanation
from dpoutlier.explain.nearest_region import nearest_regions
from dpoutlier.features.domain import Domain
from dpoutlier.model.file import save_model
from dpoutlier.model.model import Model
from dpoutlier.model.statement import PrivacyStatement
from dpoutlier.partitions.grid import Grid
from dpoutlier.privacy.guarantee import Guarantee
from dpoutlier.scoring.intervals import CountIntervals, count_intervals
from dpoutlier.scoring.log_counts import LogCounts
from dpoutlier.scoring.nearest_cells import NearestCells, Walks
from dpoutlier.scoring.threads import thread_count
from dpoutlier.sql.export import export_scores
from dpoutlier.tables import convert as tables
from dpoutlier.tables.rows import Positions, Rows

__all__ = ["FittedDetector", "HoldsModel", "Walks"]


class HoldsModel(ScoresPoints):
    """Whose fitted state is one ``model_``."""

    model_: Model
    n_jobs: Any

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the model to a file: ``.dpo`` if it may be published, ``.secret.dpo`` (mode 0600) if it must not."""
        self._check_fitted()
        return save_model(self.model_, path, overwrite=overwrite)

    def privacy_statement(self) -> PrivacyStatement:
        """What the fit promises, as data; print it for the page."""
        self._check_fitted()
        return self.model_.privacy_statement()

    def export_scores(
        self,
        path: str | Path,
        sql: str | Path | None = None,
        *,
        table: str = "points",
        overwrite: bool = False,
        secret: bool = False,
    ) -> str:
        """Write a table from which a database scores points by itself, to the bit as here; for forests and marginals.

        Parameters
        ----------
        path : str or Path
            A Parquet file: a row (member, cell, term) for each cell. The SQL looks for it under this name.
        sql : str or Path, optional
            Where to write the SQL.
        table : str
            The table of points that the SQL reads: a column for each feature, by its name.
        overwrite : bool
            Permit to replace both files.
        secret : bool
            Say that you know that the table of a secret model is secret as well. Without it only publishable models are exported.

        Returns
        -------
        str
            The SQL, without a semicolon: it may stand in another query.
        """
        self._check_fitted()
        to = None if sql is None else Path(sql)
        return export_scores(self.model_, Path(path), to, table=table, overwrite=overwrite, secret=secret)

    @property
    def guarantee_(self) -> Guarantee:
        return self.fitted_model().guarantee

    @property
    def publishable(self) -> bool:
        """Whether the model may be published; else it is secret."""
        return self.fitted_model().publishable

    def fitted_model(self) -> Model:
        """``model_``, after a check that there is one."""
        self._check_fitted()
        return self.model_

    def walk(self, X: Any) -> Walks:
        """Scores with what happened on the way: rows gathered, cells visited, how the walk ended."""
        self._check_fitted()
        if not isinstance(self.model_.scorer, NearestCells):
            raise TypeError(f"a {self.model_.detector} does not walk from cell to cell.")
        return self._of_points(X, self._walk)

    def _walk(self, positions: Positions) -> Walks:
        scorer = self.model_.scorer
        assert isinstance(scorer, NearestCells)
        return scorer.walk(positions, self.model_.partition, self.model_.counts, thread_count(self.n_jobs))

    def explain(self, X: Any) -> Explanation:
        """Which features make each point outlying, and what would have to be otherwise. Free of privacy cost.

        For grids it makes the walk of each point again: cell by cell, which takes some microseconds for each cell visited, or by
        sorting the occupied cells where empty cells have no noise.

        Parameters
        ----------
        X : table of shape (n_points, n_features)

        Returns
        -------
        Explanation
            ``contributions`` is an array; ``to_table()`` and ``counterfactual()`` tell one point.
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
        """Intervals for the true numbers of reference rows in the cells around each point. Free of privacy cost.

        The law of the noise is known, so no assumption about the rows is made: whatever they are, an interval for a cell that was
        chosen without looking at the counts covers the truth with a probability of at least ``level``.

        Parameters
        ----------
        X : table of shape (n_points, n_features)
        level : float
            Above 0 and at most 0.999999.
        steps : int
            For grids: count all cells within so many grid steps of the point's own together, up to 100,000 cells.
        """
        model = self.fitted_model()
        if model.counts.kind == "sparse" and model.merged is not None:
            raise TypeError(
                "what merged sparse releases do not list is known of each part only, so there are no intervals."
            )
        return self._of_points(
            X,
            lambda positions: count_intervals(
                positions, model.partition, model.counts, model.noise_laws, level=level, steps=steps
            ),
        )

    def only_scoring(self) -> ScoresPoints:
        """A ``FittedDetector``, which no argument of the fit goes with."""
        return FittedDetector(self.fitted_model(), "", self.n_jobs)

    def _features_of(self, X: Any) -> Any:
        """The table without the column that tells people apart: points need none, and may have it."""
        person = self.model_.guarantee.person if hasattr(self, "model_") else None
        names = None if person is None else tables.column_names(X)
        return X if names is None or person not in names else tables.without(X, str(person))

    def _fitted_domain(self) -> Domain:
        return self.model_.domain

    def _outlier_scores(self, positions: Positions) -> NDArray[np.float64]:
        return self.model_.outlier_scores(positions, thread_count(self.n_jobs))

    def _threshold(self) -> float | None:
        return self.model_.threshold

    def _set_threshold(self, *, target_fpr: float | None, score: float | None) -> None:
        if target_fpr is not None:
            self.model_ = self.model_.with_target_fpr(target_fpr)
        elif score is not None:
            self.model_ = self.model_.with_threshold(score)


class FittedDetector(HoldsModel):
    """What ``load`` returns: all that a fitted detector does but fitting.

    It starts without scikit-learn, whose import alone takes longer than to load a model and score a million points.
    ``estimator()`` gives the detector itself, for a pipeline or to fit again with the same arguments.

    Attributes
    ----------
    n_jobs : int or None
        Threads for scoring; -1 for all cores.
    """

    def __init__(self, model: Model, estimator: str, n_jobs: int | None = None) -> None:
        self.model_, self._estimator, self.n_jobs = model, estimator, n_jobs
        self._keep_schema(model.domain)

    def __repr__(self) -> str:
        return f"<fitted {self.model_.detector}: {self.model_!r}>"

    def with_model(self, model: Model) -> FittedDetector:
        """The same detector with another model, as one whose counts are held in another way."""
        return FittedDetector(model, self._estimator, self.n_jobs)

    def _estimator_like(self) -> Any:
        return self.estimator()

    def _name(self) -> str:
        return self.model_.detector

    def estimator(self) -> Any:
        """The fitted detector as scikit-learn's estimator, with the arguments that it was fitted with."""
        module, name = self._estimator.rsplit(".", 1)
        detector = getattr(import_module(module), name)._of_model(self.model_)  # noqa: SLF001 - its sister module
        return detector.set_params(n_jobs=self.n_jobs)
