"""Scores as they go out: JSON, CSV or Arrow. Floats are written so that they read back to the bit."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pydantic_core import to_json

from dpoutlier.detectors.alarms import ALARM, P_VALUE
from dpoutlier.detectors.batches import ScoredBatch
from dpoutlier.detectors.frames import ADDED
from dpoutlier.server.bodies import KINDS
from dpoutlier.server.models import LoadedModel, number

CONTENT_TYPES = {kind: name for name, kind in KINDS.items()}
END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
SCORE, OUTSIDE, PREDICTION = ADDED


def _lists(scored: ScoredBatch, names: tuple[str, ...] = ADDED) -> list[list[Any] | None]:
    """Scores, outside, predictions; None for a point without a score, and for predictions without a threshold."""
    found: list[list[Any] | None] = []
    for name in names:
        values = scored.columns.get(name)
        column = None if values is None else values.tolist()
        if column is not None and scored.known is not None:
            column = [value if known else None for value, known in zip(column, scored.known.tolist(), strict=True)]
        found.append(column)
    return found


def to_json_body(scored: ScoredBatch, served: LoadedModel, threshold: float | None) -> bytes:
    scores, outside, prediction = _lists(scored)
    content = {
        "model": served.name,
        "release": served.release,
        "n": len(scored.columns[SCORE]),
        "threshold": number(threshold),
        SCORE: scores,
        OUTSIDE: outside,
        PREDICTION: prediction,
    }
    if ALARM in scored.columns:
        content[P_VALUE], content[ALARM] = _lists(scored, (P_VALUE, ALARM))
    return to_json(content)


WORDS = {True: "true", False: "false"}
TEXT: dict[str, Callable[[Any], str]] = {
    SCORE: repr,
    OUTSIDE: WORDS.__getitem__,
    PREDICTION: str,
    P_VALUE: repr,
    ALARM: WORDS.__getitem__,
}
"""How CSV writes the values of each column."""


def to_csv_body(scored: ScoredBatch, served: LoadedModel, threshold: float | None) -> bytes:  # noqa: ARG001 - one form for all writers
    names, columns = tuple(scored.columns), list[list[str]]()
    for name, values in zip(names, _lists(scored, names), strict=True):
        text = TEXT[name]
        columns.append(["" if value is None else text(value) for value in values or []])
    lines = [",".join(names), *(",".join(row) for row in zip(*columns, strict=True))]
    return ("\n".join(lines) + "\n").encode()


def to_arrow_body(scored: ScoredBatch, served: LoadedModel, threshold: float | None) -> bytes:
    absent = None if scored.known is None else ~scored.known
    arrays = [pa.array(values, mask=absent) for values in scored.columns.values()]
    schema, head = _head(served.release, threshold, tuple(scored.columns))
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    return b"".join((head, batch.serialize(), END_OF_STREAM))


@lru_cache(maxsize=64)
def _head(release: str, threshold: float | None, names: tuple[str, ...]) -> tuple[Any, bytes]:
    """The schema, and the beginning of a stream that has it."""
    types = {SCORE: pa.float64(), OUTSIDE: pa.bool_(), PREDICTION: pa.int64(), P_VALUE: pa.float64(), ALARM: pa.bool_()}
    metadata = {"release": release} | ({} if threshold is None else {"threshold": repr(threshold)})
    schema = pa.schema([(name, types[name]) for name in names], metadata)
    return schema, schema.serialize().to_pybytes()


WRITERS: dict[str, Callable[[ScoredBatch, LoadedModel, float | None], bytes]] = {
    "json": to_json_body,
    "csv": to_csv_body,
    "arrow": to_arrow_body,
}
