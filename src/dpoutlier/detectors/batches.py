"""Scores for a batch of points, with the other columns that scoring adds. A scorer can be sent to where the points are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from dpoutlier.detectors.scores import labels_of
from dpoutlier.tables import convert
from dpoutlier.tables.rows import Rows

if TYPE_CHECKING:
    from dpoutlier.detectors.scores import ScoresPoints


SMALL = 1 << 16
"""Batches of at most this many values are checked as one array: faster than column by column, and larger ones would cost memory."""


class ScoredBatch(NamedTuple):
    """The columns that scoring adds to a batch of points, by name."""

    columns: dict[str, NDArray[Any]]
    known: NDArray[np.bool_] | None
    """Which points have a score; the others have no value in any column. None: all points have one."""


@dataclass(frozen=True, eq=False)
class BatchScorer:
    """Scores a batch of points: a table of the features, in the order of the fit.

    With ``features`` it can add its columns to a frame of an engine: ``engines.base.AddedColumns``.
    """

    detector: ScoresPoints
    score: str
    outside: str | None
    prediction: str | None
    nulls: bool
    """Whether a point with a missing value gets no score; otherwise it is an error."""
    features: list[Any] = field(default_factory=list)
    """The columns of a frame that are features."""
    token: str = field(default_factory=lambda: uuid4().hex)

    @property
    def names(self) -> list[str]:
        """The columns to add."""
        return [name for name in (self.score, self.outside, self.prediction) if name is not None]

    def __call__(self, features: Any, first: int | None = None, *, whole: bool = False) -> ScoredBatch:
        """Score the points.

        ``first`` and ``whole`` are for error messages: the number of the batch's first row, if known, and whether this is the only
        batch.
        """
        with np.errstate(all="ignore"):
            columns = convert.columns(features, self.detector._fitted_domain())
        scored = self.of_columns(columns)
        if scored is None:
            raise convert.missing_value(features, self.detector._fitted_domain(), first, whole=whole)
        return scored

    def of_columns(self, columns: Sequence[NDArray[np.float64]]) -> ScoredBatch | None:
        """Score points whose values are numbers already, as ``tables.convert.columns`` makes them.

        Returns None if a value is missing and that must be an error; the caller, who knows the table, raises it.
        """
        block = np.stack(columns) if len(columns) * len(columns[0]) <= SMALL else None
        known = None if block is not None and not np.isnan(block).any() else self._known(columns)
        if known is None:
            scores = self._scores(columns)
        elif self.nulls:
            scores = np.full(len(known), np.nan)
            scores[known] = self._scores([column[known] for column in columns])
        else:
            return None
        added: dict[str, NDArray[Any]] = {self.score: scores}
        if self.outside is not None:
            added[self.outside] = self.detector._fitted_domain().outside(columns if block is None else block)
        if self.prediction is not None:
            added[self.prediction] = labels_of(scores, self.detector.offset_)
        return ScoredBatch(added, known)

    def _scores(self, columns: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
        return self.detector._outlier_scores(Rows(columns, self.detector._fitted_domain()))

    def _known(self, columns: Sequence[NDArray[Any]]) -> NDArray[np.bool_] | None:
        """Which points can be scored: each missing value has a cell of its own. None: all points can."""
        domain, missing = self.detector._fitted_domain(), np.zeros(len(columns[0]), bool)
        for j, column in enumerate(columns):
            if not domain.has_missing_cell(j):
                missing |= np.isnan(column)
        return ~missing if missing.any() else None

    def arrays(self, features: Any, first: int | None = None, *, whole: bool = False) -> list[Any]:
        """The columns to add, as Arrow arrays."""
        import pyarrow as pa  # noqa: PLC0415 - slow to import, and only needed here

        scored = self(features, first, whole=whole)
        absent = None if scored.known is None else ~scored.known
        return [pa.array(values, mask=absent) for values in scored.columns.values()]

    def fields(self) -> list[Any]:
        """Names and types of the columns to add."""
        import pyarrow as pa  # noqa: PLC0415

        types = ((self.score, pa.float64()), (self.outside, pa.bool_()), (self.prediction, pa.int64()))
        return [pa.field(name, kind) for name, kind in types if name is not None]

    def pandas(self, frame: Any, *, whole: bool = False) -> Any:
        """A pandas frame with the added columns.

        Where there may be no score, its column holds NaN, and the others have pandas' types that know a missing value.
        """
        import pandas as pd  # noqa: PLC0415 - there is a frame of it

        scored = self(frame[self.features], 0 if whole else None, whole=whole)
        added = {name: pd.Series(values, frame.index) for name, values in scored.columns.items()}
        if self.nulls:
            for name in self.names[1:]:
                column = added[name].astype("boolean" if name == self.outside else "Int64")
                added[name] = column if scored.known is None else column.mask(~scored.known)
        return pd.concat([frame, pd.DataFrame(added, frame.index)], axis=1)

    def __dask_tokenize__(self) -> str:
        """A name for Dask, which would otherwise hash the whole model."""
        return self.token
