"""The application of one worker: the routes, within the envelope. Models are loaded before it is ready."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NoReturn

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from dpoutlier.server.direct import DirectScores
from dpoutlier.server.envelope import Envelope
from dpoutlier.server.error_responses import Refusal
from dpoutlier.server.logs import log, where
from dpoutlier.server.metrics import tally
from dpoutlier.server.models import LoadedModels
from dpoutlier.server.parameters import refusal_of
from dpoutlier.server.routes import router
from dpoutlier.server.settings import Settings
from dpoutlier.server.worker import Worker

RETRY = 1.0
"""Seconds before a worker that cannot start gives up."""
OTHERS = {
    404: ("not-found", "there is no such route. See /openapi.json."),
    405: ("method-not-allowed", "this route does not take that method. See /openapi.json."),
}


def create_app(settings: Settings) -> FastAPI:
    """The application of one worker. Its models are loaded when it starts."""
    worker = Worker(settings)
    app = FastAPI(
        title="dpoutlier",
        version="1",
        description="Outlier scores from models that were fitted under differential privacy. Queries cost no budget.",
        openapi_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
        middleware=[Middleware(Envelope, worker), Middleware(DirectScores)],
        exception_handlers={HTTPException: _refuse_route, RequestValidationError: _refuse_parameter},
    )
    app.state.worker = worker
    app.include_router(router)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    worker: Worker = app.state.worker
    await asyncio.get_running_loop().run_in_executor(None, _load, worker.models)
    worker.watch.start()
    worker.started = True
    log("ready", models=len(worker.models.served))
    try:
        yield
    finally:
        worker.threads.close()
        await worker.watch.stop()
        log("stopped")


def _load(models: LoadedModels) -> None:
    try:
        models.load_all()
    except BaseException as error:  # noqa: BLE001 - whatever it is, this worker cannot answer
        log("start-failed", "critical", **where(error))
        time.sleep(RETRY)
        # Not as uvicorn ends: others may still answer with what the file held before, and must not be stopped.
        os._exit(1)
    for name in models.served:
        tally.loaded(name, well=True)


async def _refuse_route(_: Request, error: Any) -> NoReturn:
    """The framework's own errors in our form; the envelope answers."""
    headers = tuple((name.lower().encode(), value.encode()) for name, value in (error.headers or {}).items())
    raise Refusal(*OTHERS.get(error.status_code, OTHERS[404]), headers) from None


async def _refuse_parameter(_: Request, error: Any) -> NoReturn:
    raise refusal_of(error.errors()) from None


def app_from_environment() -> FastAPI:
    """The application of a worker process, as the settings in its environment say."""
    return create_app(Settings.from_environment())
