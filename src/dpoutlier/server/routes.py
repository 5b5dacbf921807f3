"""The routes. Each declares its parameters and its responses, from which the OpenAPI description follows.

Points are read, and scores are written, by our own bounded readers and writers: FastAPI has no bodies in CSV or Arrow.
"""

from mimetypes import guess_type
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from dpoutlier.detectors.alarms import with_alarms
from dpoutlier.detectors.frames import ADDED
from dpoutlier.exceptions import DpoutlierError
from dpoutlier.scoring.p_values import PValues
from dpoutlier.server import metrics
from dpoutlier.server.answers import CONTENT_TYPES, WRITERS
from dpoutlier.server.arrow_points import arrow_points
from dpoutlier.server.bodies import ARROW, answer_kind, body_kind
from dpoutlier.server.csv_points import csv_points
from dpoutlier.server.dependencies import ModelToQuery, ModelToShow, RequestKey, exchange_of, note_route
from dpoutlier.server.error_responses import Refusal
from dpoutlier.server.explanations import explanations_body
from dpoutlier.server.json_points import json_points
from dpoutlier.server.models import LoadedModel
from dpoutlier.server.parameters import ExplainQuery, ScoreQuery
from dpoutlier.server.points import Points, missing_value
from dpoutlier.server.schemas import ErrorResponse, Explanations, Health, ModelDetail, ModelList, PointsIn, Scores
from dpoutlier.server.worker import worker_of

SCORE = "/v1/models/{model}/score"
PAGE = {file.name: file.read_bytes() for file in (Path(__file__).parent / "page").iterdir()}
TEXT = {"schema": {"type": "string"}}
WORDS: dict[int | str, str] = {
    400: "The request cannot be used.",
    401: "No valid key.",
    403: "The key is not for this.",
    404: "No such model, or the key is not for it.",
    406: "No kind of response that the client accepts.",
    408: "The body came too slowly.",
    413: "Too many bytes or points.",
    415: "An unknown kind or encoding of body.",
    421: "Without keys, requests must use the host name localhost.",
    429: "Too many requests with this key.",
    431: "Headers too large.",
    "4XX": "The request cannot be answered.",
    503: "Stopping, overloaded or not ready.",
}
POINTS: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": PointsIn.model_json_schema()},
            "text/csv": {
                "schema": {"type": "string", "description": "A header line that names the columns, and records."}
            },
            ARROW: {"schema": {"type": "string", "format": "binary", "description": "An Arrow IPC stream."}},
        },
    }
}


def _errors(*statuses: int | str) -> dict[int | str, dict[str, Any]]:
    return {one: {"model": ErrorResponse, "description": WORDS[one]} for one in statuses}


OF_POINTS = _errors(401, 404, 406, 408, 413, 415, 429)

router = APIRouter(dependencies=[Depends(note_route)], responses=_errors(400, 421, 431, "4XX", 503))


# Open to all --------------------------------------------------------------------------------------------------------------


@router.get("/", include_in_schema=False)
async def page() -> Response:
    return await page_file("index.html")


# Not StaticFiles: it answers ranges, reads files in a thread, and stands outside of the router, whose dependency notes routes.
@router.get("/static/{name}", include_in_schema=False)
async def page_file(name: str) -> Response:
    if name not in PAGE:
        raise HTTPException(404)
    return Response(PAGE[name], media_type=guess_type(name)[0])


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    return JSONResponse(request.app.openapi())


@router.get("/healthz", summary="Whether the process is running.", response_model_exclude_none=True)
async def health() -> Health:
    return Health(status="ok")


@router.get(
    "/readyz",
    summary="Whether the server answers with all its models.",
    response_model_exclude_none=True,
    responses={503: {"model": Health | ErrorResponse, "description": WORDS[503]}},
)
async def ready(request: Request, response: Response) -> Health:
    reasons = worker_of(request).reasons()
    if reasons:
        response.status_code = 503
        return Health(status="not ready", reasons=reasons)
    return Health(status="ready")


# For keys -----------------------------------------------------------------------------------------------------------------


@router.get(
    "/metrics",
    summary="Metrics for Prometheus.",
    response_class=Response,
    responses=_errors(401, 403) | {200: {"content": {"text/plain": TEXT}, "description": "Prometheus' text."}},
)
async def metrics_text(key: RequestKey) -> Response:
    if not key.metrics:
        raise Refusal("not-for-metrics", "this key is not for metrics; make one with: dpoutlier keys create --metrics.")
    return Response(metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/v1/models", summary="The models that the key may use.", responses=_errors(401, 429))
async def models(request: Request, key: RequestKey) -> ModelList:
    worker = worker_of(request)
    worker.rate.take(key.id)
    return ModelList(models=[one.summary for name, one in worker.models.served.items() if key.may_use(name)])


@router.get(
    "/v1/models/{model}",  # noqa: FAST003 - a parameter of ModelToShow
    summary="One model, with its privacy statement.",
    response_model=ModelDetail,
    responses=_errors(401, 404, 429),
)
async def model(served: ModelToShow) -> Response:
    return Response(served.detail, media_type="application/json")


@router.post(
    SCORE,
    summary="Outlier scores of points.",
    response_model=Scores,
    responses=OF_POINTS | {200: {"content": {"text/csv": TEXT, ARROW: TEXT}}},
    openapi_extra=POINTS,
)
async def score(request: Request, served: ModelToQuery, query: Annotated[ScoreQuery, Query()]) -> Response:
    worker, headers = worker_of(request), request.scope["headers"]
    kind = body_kind(headers)
    out = answer_kind(headers, kind)
    threshold = query.threshold if query.target_fpr is None else _threshold_for(served, query.target_fpr)
    table = None if query.fdr is None else _p_table_for(served)
    body = await worker.bodies.read(headers, request.receive, complete="complete" in request.scope)

    def work() -> tuple[bytes, int]:
        points = _points(kind, body, served, worker.settings.max_rows, worker.settings.max_bytes)
        scored = served.scorer(nulls=query.missing == "null", threshold=threshold).of_columns(points.columns)
        if scored is None:
            raise missing_value(points, served.domain)
        worker.drift.add(served, points.columns, scored)
        if table is not None and query.fdr is not None:
            scored = with_alarms(scored, ADDED[0], table, query.fdr)
        used = served.model.threshold if threshold is None else threshold
        return WRITERS[out](scored, served, used), len(points)

    try:
        content, exchange_of(request).rows = await worker.threads.score(work, served, kind, len(body))
    finally:
        worker.bodies.release(body)
    return Response(content, media_type=CONTENT_TYPES[out])


@router.post(
    "/v1/models/{model}/explain",  # noqa: FAST003 - a parameter of ModelToQuery
    summary="Why points score as they do.",
    response_model=Explanations,
    responses=OF_POINTS,
    openapi_extra=POINTS,
)
async def explain(request: Request, served: ModelToQuery, query: Annotated[ExplainQuery, Query()]) -> Response:  # noqa: ARG001 - its parameters are checked
    worker, headers = worker_of(request), request.scope["headers"]
    kind = body_kind(headers)
    answer_kind(headers, "json", ("json",))
    body = await worker.bodies.read(headers, request.receive, complete="complete" in request.scope)

    def work() -> tuple[bytes, int]:
        points = _points(kind, body, served, worker.settings.explain_rows, worker.settings.max_bytes)
        if served.scorer().of_columns(points.columns) is None:
            raise missing_value(points, served.domain)
        values = np.empty((len(points), served.domain.n_features), object)
        for j in range(served.domain.n_features):
            values[:, j] = [points.value(row, j) for row in range(len(points))]
        if sum(len(value) for value in values.flat if isinstance(value, str)) > worker.settings.max_bytes:
            raise worker.bodies.too_large()  # by a dictionary of long texts
        return explanations_body(served, points, values), len(points)

    try:
        content, exchange_of(request).rows = await worker.threads.explain(work)
    finally:
        worker.bodies.release(body)
    return Response(content, media_type="application/json")


def _points(kind: str, body: bytes, served: LoadedModel, most_rows: int, most_bytes: int) -> Points:
    if kind == "arrow":
        return arrow_points(body, served, most_rows, most_bytes)
    if kind == "csv":
        return csv_points(body, served.domain, served.person, most_rows)
    return json_points(body, served.domain, most_rows)


def _threshold_for(served: LoadedModel, target_fpr: float) -> float | None:
    try:
        return served.model.with_target_fpr(target_fpr).threshold
    except DpoutlierError as error:
        problem = error.problem
    raise Refusal("bad-parameter", f"{problem} Leave out target_fpr, or give an outlier score as threshold.")


def _p_table_for(served: LoadedModel) -> PValues:
    if served.p_table is None:
        raise Refusal("bad-parameter", f"{served.no_p_values} Leave out fdr.")
    return served.p_table
