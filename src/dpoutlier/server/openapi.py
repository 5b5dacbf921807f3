"""What the OpenAPI page says of the routes: bodies are read by hand, and so described by hand."""

from __future__ import annotations

from typing import Any

from dpoutlier.server.schemas import ErrorAnswer, Explanations, Health, ModelDetail, ModelList, PointsIn, Scores

__all__ = ["DESCRIPTIONS"]

ARROW = "application/vnd.apache.arrow.stream"
MODEL = {
    "name": "model",
    "in": "path",
    "required": True,
    "description": "The id of a model.",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
}
PARAMETERS = [
    {
        "name": "missing",
        "in": "query",
        "description": "Points that miss a value for which the model has no cell: an error, or no score.",
        "schema": {"type": "string", "enum": ["error", "null"], "default": "error"},
    },
    {
        "name": "target_fpr",
        "in": "query",
        "description": "The threshold for this false-positive rate, for this answer.",
        "schema": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    },
    {
        "name": "threshold",
        "in": "query",
        "description": "This outlier score as the threshold, for this answer.",
        "schema": {"type": "number"},
    },
]
POINTS = {
    "required": True,
    "content": {
        "application/json": {"schema": PointsIn.model_json_schema()},
        "text/csv": {"schema": {"type": "string", "description": "A header line that names the columns, and records."}},
        ARROW: {"schema": {"type": "string", "format": "binary", "description": "An Arrow IPC stream."}},
    },
}


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    words = {
        400: "The request cannot be used.",
        401: "No valid key.",
        403: "The key is not for this.",
        404: "No such model, or the key is not for it.",
        405: "Not with this method.",
        406: "No kind of answer that the client accepts.",
        408: "The body came too slowly.",
        413: "Too many bytes or points.",
        415: "A kind or encoding of body that is not known.",
        421: "Asked for under another name than localhost, without keys.",
        429: "Too many requests with this key.",
        431: "Headers too large.",
        503: "Stopping, overloaded or not ready.",
    }
    return {status: {"model": ErrorAnswer, "description": words[status]} for status in statuses}


def _described(summary: str, answer: Any, *statuses: int, **extra: Any) -> dict[str, Any]:
    responses: dict[int | str, dict[str, Any]] = {200: {"model": answer, "description": "The answer."}}
    return {"summary": summary, "responses": responses | _errors(*statuses, 421, 431, 503), "openapi_extra": extra}


BEARER: dict[str, Any] = {"security": [{"key": []}, {}]}
DESCRIPTIONS: dict[str, dict[str, Any]] = {
    "health": _described("Whether the process is there.", Health),
    "ready": _described("Whether it answers with all its models.", Health),
    "models": _described("The models that the key may use.", ModelList, 401, 429, **BEARER),
    "model": _described(
        "One model, with its privacy statement.", ModelDetail, 401, 404, 429, parameters=[MODEL], **BEARER
    ),
    "score": _described(
        "Outlier scores of points.",
        Scores,
        *(400, 401, 404, 406, 408, 413, 415, 429),
        parameters=[MODEL, *PARAMETERS],
        requestBody=POINTS,
        **BEARER,
    ),
    "explain": _described(
        "Why points score as they do.",
        Explanations,
        *(400, 401, 404, 406, 408, 413, 415, 429),
        parameters=[MODEL],
        requestBody=POINTS,
        **BEARER,
    ),
}
DESCRIPTIONS["metrics"] = _described("Metrics for Prometheus.", None, 401, 403, **BEARER)
DESCRIPTIONS["metrics"]["responses"][200] = {
    "description": "Prometheus' text.",
    "content": {"text/plain": {"schema": {"type": "string"}}},
}
for _name in ("text/csv", ARROW):
    DESCRIPTIONS["score"]["responses"][200].setdefault("content", {})[_name] = {"schema": {"type": "string"}}
