"""Score the rows of a frame where they are: a frame in, the same kind of frame out, with columns more.

Everywhere it is the same kernel that scores, so equal rows have equal scores to the bit.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dpoutlier._validate import one_of, parameter_error
from dpoutlier.detectors.batches import BatchScorer
from dpoutlier.detectors.scores import ScoresPoints
from dpoutlier.engines.registry import ENGINES, engine_of
from dpoutlier.exceptions import PointsError
from dpoutlier.tables import convert

ADDED = ("outlier_score", "outside_bounds", "prediction")
"""What scoring adds to a table; the last only where there is a threshold."""


def batch_scorer(
    detector: ScoresPoints,
    *,
    column: str = ADDED[0],
    outside: str | None = ADDED[1],
    prediction: str | None = ADDED[2],
    missing: str = "error",
) -> BatchScorer:
    """The function of a batch of points; it keeps the threshold of this moment."""
    for name, value in (("column", column), ("outside", outside), ("prediction", prediction)):
        if not isinstance(value, str) and (value is not None or name == "column"):
            raise parameter_error(name, "the name of a column" + ("" if name == "column" else ", or None"), value)
    names = [name for name in (column, outside, prediction) if name is not None]
    if len(set(names)) < len(names):
        raise parameter_error("column, outside and prediction", "different names", names)
    nulls = one_of(("error", "null"), missing=missing) == "null"
    detector = detector._only_scoring()
    return BatchScorer(detector, column, outside, prediction if detector._threshold() is not None else None, nulls)


def score_frame(frame: Any, scorer: BatchScorer) -> Any:
    """The frame with the columns that the scorer adds."""
    engine = engine_of(frame)
    if engine is None:
        if not convert.is_frame(frame):
            known = ", ".join(["pandas", *(one.name for one in ENGINES)])
            raise TypeError(
                f"score_frame takes a frame of one of {known}; got {type(frame).__name__}. outlier_scores takes arrays."
            )
        return _in_memory(frame, scorer)
    features = feature_columns(engine.column_names(frame), scorer, ignores_case=engine.ignores_case)
    convert.check_types(engine.schema(frame, features).items())
    return engine.with_columns(frame, replace(scorer, features=features))


def feature_columns(
    found: list[Any],
    scorer: BatchScorer,
    *,
    more: Sequence[str] = (),
    ignores_case: bool = False,
    where: str = "the frame",
) -> list[Any]:
    """The columns that are features, in the order of the fit. Refuses a table that lacks one, or has one that would be added.

    ``more`` would be added too. ``ignores_case`` says that names which differ in case only are one name.
    """
    domain = scorer.detector._fitted_domain()
    spelled = [str(name).lower() for name in found] if ignores_case else found
    known, times = dict(zip(spelled, found, strict=True)), Counter(spelled)
    for name, own in zip(found, spelled, strict=True):
        if times[own] > 1:
            raise PointsError(f"{where} has more than one column named {name!r}.")
    for name in (*scorer.names, *more):
        own = name.lower() if ignores_case else name
        if own in known:
            raise PointsError(
                f"{where} has a column {known[own]!r}, which scoring would add. Rename it, or leave it out."
            )
    if domain.names is None:
        if len(found) != domain.n_features:
            raise PointsError(
                f"{where} has {len(found)} columns, but the model has {domain.n_features} features without names. Pass a frame of "
                "the features alone."
            )
        return list(found)
    there = set(found)
    absent = [name for name in domain.names if name not in there]
    if absent:
        raise PointsError(
            f"{where} has no column {', '.join(map(repr, absent))}, which the model needs. Its columns are: "
            f"{', '.join(map(repr, found))}."
        )
    return list(domain.names)


def _in_memory(frame: Any, scorer: BatchScorer) -> Any:
    import narwhals.stable.v2 as nw  # noqa: PLC0415 - slow to import, and only needed here

    features = feature_columns(list(frame.column_names if hasattr(frame, "column_names") else frame.columns), scorer)
    given: Any = nw.from_native(frame)
    convert.check_types(given[:0].select(nw.col(*features)).collect_schema().items())
    if nw.dependencies.is_pandas_dataframe(frame):
        return replace(scorer, features=features).pandas(frame, whole=True)
    chosen = nw.to_native(nw.from_native(frame, eager_only=True).select(nw.col(*features)))
    if nw.dependencies.is_pyarrow_table(frame):
        for field, values in zip(scorer.fields(), scorer.arrays(chosen, 0, whole=True), strict=True):
            frame = frame.append_column(field, [values])
        return frame
    if nw.dependencies.is_polars_dataframe(frame):
        import polars as pl  # noqa: PLC0415 - there is a frame of it

        added = zip(scorer.names, scorer.arrays(chosen, 0, whole=True), strict=True)
        return frame.with_columns(pl.Series(name, values) for name, values in added)
    raise TypeError(
        f"a frame of {type(frame).__module__} is not supported; supported: pandas, Polars and Arrow. Convert it to one of them."
    )
