"""What ``explain`` returns: contributions of the features, and changes that would make a point usual."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import is_whole, parameter_error
from dpoutlier.explain.alternatives import nearest_alternative
from dpoutlier.explain.nearest_region import middle_of
from dpoutlier.explain.segment import Segment
from dpoutlier.explain.wording import Place, place_of, value_text
from dpoutlier.model.model import Model
from dpoutlier.partitions.grid import Grid
from dpoutlier.partitions.region import home_bins
from dpoutlier.scoring.nearest_cells import NearestCells

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Counterfactual:
    """Changes that would make a point usual.

    The method ``counterfactual`` of an :class:`Explanation` returns it. ``str`` makes a sentence of it.

    Attributes
    ----------
    changes : dict of str to Place
        Where these features would have to lie, with all others as they are. Empty if nothing has to change, or nothing helps.
    values : dict of str to str
        The values that these features have.
    before : float
        The outlier score of the point.
    score : float
        The outlier score after the changes. Forests and marginals: the largest in the changed range. Grids: that of its middle.
    reached : bool
        Whether the changed point is usual: its score is at most the typical score or, for grids, its region gathers k rows by
        itself.

    See Also
    --------
    Explanation : Explain points.

    References
    ----------
    .. [1] S. Wachter, B. Mittelstadt and C. Russell, "Counterfactual explanations without opening the black box", Harvard
       Journal of Law & Technology 31(2), 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from dpoutlier import DPMarginals
    >>> reference = np.random.default_rng(0).normal(size=(5000, 2))
    >>> found = DPMarginals(epsilon=1, features=(-8, 8)).fit(reference).explain([[0, 6]])
    >>> list(found.counterfactual().changes)
    ['feature 1']
    """

    changes: dict[str, Place]
    values: dict[str, str]
    before: float
    score: float
    reached: bool

    def __str__(self) -> str:
        if not self.changes:
            return "as usual" if self.reached else "nothing that would lower the score"
        said = ", ".join(f"{name} {place} instead of {self.values[name]}" for name, place in self.changes.items())
        return f"{said} would bring the score from {self.before:.3g} to {self.score:.3g}"


@dataclass(frozen=True, eq=False)
class Explained:
    """What an explanation looks things up in: the model, and the points on the lattice and in their units."""

    model: Model
    positions: NDArray[np.uint32]
    values: NDArray[np.float64]
    """Level i of a category is ``i + 1/2``."""
    cells: NDArray[np.int64] | None = None
    """Grid: the cells of the nearest usual regions; -1 if there is none."""
    k: int | None = None


@dataclass(frozen=True)
class Explanation:
    """Explain why each point has its outlier score.

    The method ``explain`` of a fitted detector returns it. It reads the released model only and has no privacy cost.

    Attributes
    ----------
    features : tuple of str
        Names of the features.
    contributions : ndarray of shape (n_points, n_features)
        How much each feature adds to the point's outlier score, beyond what it adds for a typical row. Each row sums to
        ``scores - typical_score``. Grids: the distance along the feature to the nearest region that gathers k rows or, if weighted,
        the sum of count times distance over all cells on the way. If no region within reach gathers k rows, and missing rows count
        at the diameter of the unit cube, each feature adds one edge of the cube.
    empty : ndarray of shape (n_points, n_features)
        Share of the cells around the point that use the feature and are empty, from 0 to 1. NaN if no cell uses it, and for grids.
    scores : ndarray of shape (n_points,)
        The outlier scores.
    typical_score : float
        The outlier score of a typical row. Grids: 0, the score of a point whose own cell gathers k rows.
    explained : object or None
        What the methods read: the model and the points. None after a pickle, which carries no model.

    See Also
    --------
    DPForest.explain : Explain points.
    explanation_figure : Draw the explanation of one point.

    Examples
    --------
    >>> import numpy as np
    >>> from dpoutlier import DPMarginals
    >>> reference = np.random.default_rng(0).normal(size=(5000, 2))
    >>> found = DPMarginals(epsilon=1, features=(-8, 8)).fit(reference).explain([[0, 6]])
    >>> [name for name, contribution, empty in found.ranking()]
    ['feature 1', 'feature 0']
    """

    features: tuple[str, ...]
    contributions: NDArray[np.float64]
    empty: NDArray[np.float64]
    scores: NDArray[np.float64]
    typical_score: float
    explained: Explained | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.scores)

    def __getstate__(self) -> dict[str, Any]:
        """Without the model: a pickle of an explanation may go where no secret may."""
        return {**self.__dict__, "explained": None}

    def _check_point(self, point: int) -> None:
        if not is_whole(point) or not 0 <= point < len(self):
            raise parameter_error("point", f"the number of a point, from 0 to {len(self) - 1}", point)

    def _number_of(self, feature: str) -> int:
        if feature not in self.features:
            raise parameter_error("feature", f"one of {list(self.features)}", feature)
        return self.features.index(feature)

    def ranking(self, point: int = 0) -> list[tuple[str, float, float]]:
        """Sort the features of one point by their contribution, the largest first.

        Parameters
        ----------
        point : int, default=0
            Number of the point.

        Returns
        -------
        list of tuple (str, float, float)
            Feature, contribution and share of empty cells.

        Raises
        ------
        InvalidParameterError
            If there is no such point.
        """
        self._check_point(point)
        order = np.argsort(-self.contributions[point], kind="stable")
        return [
            (self.features[j], float(self.contributions[point, j]), float(self.empty[point, j])) for j in order.tolist()
        ]

    # Regions -------------------------------------------------------------------------------------------------------------

    @property
    def k(self) -> int | None:
        """Grids: the number of rows that a usual region gathers. None for forests and marginals."""
        return None if self.explained is None else self.explained.k

    @property
    def found(self) -> NDArray[np.bool_] | None:
        """Grids: for which points a region within reach, maybe their own, is more usual. None for forests and marginals."""
        return None if self._cells is None else np.asarray(self._cells[:, 0] >= 0)

    @property
    def regions(self) -> tuple[tuple[Place, ...] | None, ...] | None:
        """Grids: what ``region`` returns for each point. None for forests and marginals."""
        return None if self._cells is None else tuple(self.region(point) for point in range(len(self)))

    def region(self, point: int = 0) -> tuple[Place, ...] | None:
        """Grids: find the nearest region in which the point would be usual.

        It is the nearest of the thousand regions within reach that gathers k rows by itself. If none does, it is the nearest of
        those with the smallest score.

        Parameters
        ----------
        point : int, default=0
            Number of the point.

        Returns
        -------
        tuple of Place or None
            The region, feature by feature. None if the point would not score less anywhere, and for forests and marginals.

        Raises
        ------
        InvalidParameterError
            If there is no such point.

        See Also
        --------
        counterfactual : The features in which the region differs, as a sentence.
        """
        self._check_point(point)
        if self._cells is None or self._cells[point, 0] < 0:
            return None
        source, grid = self._source, self._grid
        homes = home_bins(grid, source.positions[point]).tolist()
        return tuple(
            place_of(Segment.of_cell(cell, bins), source.model.domain, j, differs=cell != home)
            for j, (cell, bins, home) in enumerate(zip(self._cells[point].tolist(), grid.bins, homes, strict=True))
        )

    def counterfactual(self, point: int = 0, feature: str | None = None) -> Counterfactual | None:
        """Find changes that would make a point usual.

        Grids: the features in which the nearest usual region differs from the point. Forests and marginals: the nearest values
        of one feature at which the score is at most the typical one, with all other features as they are; if there are none,
        the values with the lowest score.

        Parameters
        ----------
        point : int, default=0
            Number of the point.
        feature : str, default=None
            The one feature to change. None: the one that contributes most; for grids, all.

        Returns
        -------
        Counterfactual or None
            The changes. None for grids if no region within reach is more usual.

        Raises
        ------
        InvalidParameterError
            If there is no such point or feature.
        TypeError
            If the explanation was pickled, which drops the model: call ``explain`` again.

        See Also
        --------
        to_table : The same for each feature, as a table.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from dpoutlier import Marginals
        >>> reference = pa.table({"age": [20, 30, 40, 50] * 25, "bmi": [21.0, 24.0, 27.0, 30.0] * 25})
        >>> detector = Marginals({"age": (0, 100), "bmi": (10, 60)}, bins=5).fit(reference)
        >>> found = detector.explain(pa.table({"age": [35], "bmi": [55.0]})).counterfactual()
        >>> for feature, place in found.changes.items():
        ...     print(feature, place.lower, place.upper)
        bmi 20.0 30.0
        """
        name = self.ranking(point)[0][0] if feature is None else feature
        j = self._number_of(name)
        if self._cells is not None:
            return self._of_region(point, feature)
        source = self._source
        model, before = source.model, float(self.scores[point])
        other = nearest_alternative(
            source.positions[point], j, model.partition, model.counts, model.scorer, self.typical_score
        )
        if other is None:
            return Counterfactual({}, {}, before, before, before <= self.typical_score)
        place = place_of(other.segment, model.domain, j, differs=True)
        values = {name: self.value(name, point)}
        return Counterfactual({name: place}, values, before, other.score, other.score <= self.typical_score)

    def _of_region(self, point: int, feature: str | None) -> Counterfactual | None:
        places, before = self.region(point), float(self.scores[point])
        if places is None:
            return None
        differ = {name: place for name, place in zip(self.features, places, strict=True) if place.differs}
        changes = {name: place for name, place in differ.items() if feature in {None, name}}
        assert self._cells is not None
        cells, position = self._cells, self._source.positions[point : point + 1].copy()
        for name in changes:
            j = self.features.index(name)
            position[0, j] = middle_of(int(cells[point, j]), self._grid.bins[j])
        model = self._source.model
        assert isinstance(model.scorer, NearestCells)
        (score,) = model.scorer.outlier_scores(position, self._grid, model.counts)
        (own,) = model.scorer.gathers_at_home(position, self._grid, model.counts)
        values = {name: self.value(name, point) for name in changes}
        return Counterfactual(changes, values, before, float(score), bool(own))

    # In words ------------------------------------------------------------------------------------------------------------

    def value(self, feature: str, point: int = 0, given: Any = None) -> str:
        """Put a point's value of a feature into words.

        Parameters
        ----------
        feature : str
            Name of the feature.
        point : int, default=0
            Number of the point.
        given : object, default=None
            The value as it was written. It is shown if the value is not a declared level.

        Returns
        -------
        str
            The value.

        Raises
        ------
        InvalidParameterError
            If there is no such point or feature.
        TypeError
            If the explanation was pickled, which drops the model: call ``explain`` again.
        """
        self._check_point(point)
        source = self._source
        return value_text(source.model.domain, self._number_of(feature), source.values[point], given)

    def to_table(
        self, point: int = 0, *, top: int = 10, name: str | None = None, given: Mapping[str, Any] | None = None
    ) -> Table:
        """Make a table of one point to print with rich, the features that contribute most first.

        Parameters
        ----------
        point : int, default=0
            Number of the point.
        top : int, default=10
            Number of features to show.
        name : str, default=None
            Name of the point in the title. None: its number.
        given : dict, default=None
            The point's values as they were written, by feature.

        Returns
        -------
        rich.table.Table
            The table.

        Raises
        ------
        InvalidParameterError
            If there is no such point.
        TypeError
            If the explanation was pickled, which drops the model: call ``explain`` again.

        See Also
        --------
        dpoutlier.explanation_figure : The same as a picture.
        counterfactual : What would make the point usual.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from dpoutlier import GridKNN
        >>> twin = GridKNN({"age": (0, 100)}, k=2, bins=10).fit(pa.table({"age": [33, 35, 47]}))
        >>> table = twin.explain(pa.table({"age": [97]})).to_table(name="patient 7")
        >>> table.row_count  # a row for each feature; rich.print(table) shows them
        1
        """
        from rich.table import Table  # noqa: PLC0415 - not everybody prints
        from rich.text import Text  # noqa: PLC0415

        self._check_point(point)
        called = f"point {point}" if name is None else name
        typical = "" if self._of_grid else f", where a typical row has {self.typical_score:.4g}"
        table = Table(title=f"{called}: outlier score {self.scores[point]:.4g}{typical}", title_justify="left")
        table.caption, table.caption_justify = self.note(point, top), "left"
        names = ["feature", "value", "adds", "instead"]
        for column in names if self._of_grid else [*names, "then", "empty"]:
            words = column in {"feature", "value", "instead"}
            table.add_column(
                column,
                justify="left" if column in {"feature", "instead"} else "right",
                overflow="fold",
                no_wrap=not words,
            )
        for feature, contribution, empty in self.ranking(point)[:top]:
            value = self.value(feature, point, (given or {}).get(feature))
            cells = [feature, value, f"{contribution:+.3f}", *self.instead(feature, point)]
            if not self._of_grid:
                cells.append("unseen" if math.isnan(empty) else f"{100 * empty:.0f} %")
            table.add_row(*map(Text, cells))
        return table

    def instead(self, feature: str, point: int = 0) -> tuple[str, ...]:
        """Say where one feature would have to lie, as the table does.

        Parameters
        ----------
        feature : str
            Name of the feature.
        point : int, default=0
            Number of the point.

        Returns
        -------
        tuple of str
            The range or level, empty if there is none. For forests and marginals also the score there.

        Raises
        ------
        InvalidParameterError
            If there is no such point or feature.
        TypeError
            If the explanation was pickled, which drops the model: call ``explain`` again.
        """
        if self._cells is not None:
            places = self.region(point)
            place = None if places is None else places[self._number_of(feature)]
            return ("" if place is None or not place.differs else place.text,)
        other = self.counterfactual(point, feature)
        if other is None or not other.changes:
            return "", ""
        return other.changes[feature].text, f"{other.score:.4g}"

    def note(self, point: int = 0, top: int | None = None) -> str:
        """Explain the columns of the table: the text below it.

        Parameters
        ----------
        point : int, default=0
            Number of the point.
        top : int, default=None
            Number of features that the table shows. None: all.

        Returns
        -------
        str
            The text.

        Raises
        ------
        InvalidParameterError
            If there is no such point.
        TypeError
            If the explanation was pickled, which drops the model: call ``explain`` again.
        """
        ranking = self.ranking(point)
        left = ranking[len(ranking) if top is None else top :]
        others = f" ({len(left)} other features: {sum(part for _, part, _ in left):+.3f})" if left else ""
        if not self._of_grid:
            return (
                f"The contributions add up to the score minus the typical score{others}. 'Instead' shows the nearest values of one "
                "feature that make the score typical while the others stay; if there are none, the values with the lowest score. "
                "'Then' is the highest score in that range. 'Empty' is the share of the feature's cells around the point that "
                "hold no more than noise."
            )
        return f"The contributions add up to the score{others}. {self._region_note(point)}"

    def _region_note(self, point: int) -> str:
        whole = self._of_region(point, None)
        if whole is None:
            return "No region within reach is more usual."
        if not whole.changes:
            return f"The point's own region gathers {self.k} rows."
        if whole.reached:
            return (
                f"'Instead' shows where the nearest region that gathers {self.k} rows by itself differs from the point."
            )
        return (
            f"No near region gathers {self.k} rows by itself. 'Instead' shows where the region with the lowest score (the "
            f"nearest of them) differs from the point. Its middle scores {whole.score:.4g}."
        )

    # ----------------------------------------------------------------------------------------------------------------------

    @property
    def _source(self) -> Explained:
        if self.explained is None:
            raise TypeError("this explanation does not hold its model, as after a pickle; call explain again.")
        return self.explained

    @property
    def _of_grid(self) -> bool:
        return self._source.cells is not None

    @property
    def _cells(self) -> NDArray[np.int64] | None:
        return None if self.explained is None else self.explained.cells

    @property
    def _grid(self) -> Grid:
        grid = self._source.model.partition
        assert isinstance(grid, Grid)
        return grid
