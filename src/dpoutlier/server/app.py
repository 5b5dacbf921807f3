"""The application: routes with their OpenAPI description, inside the envelope; models are loaded before it is ready."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic_core import to_json

from dpoutlier.server import metrics
from dpoutlier.server.auditlog import AuditLog
from dpoutlier.server.envelope import Envelope, Receive, Reply, Scope, Send
from dpoutlier.server.guard import Guard
from dpoutlier.server.hosts import check_host, is_loopback
from dpoutlier.server.logs import flush, log, where
from dpoutlier.server.openapi import DESCRIPTIONS
from dpoutlier.server.routes import Handler, Routes
from dpoutlier.server.settings import Settings
from dpoutlier.server.shelf import Shelf

__all__ = ["app_from_environment", "create_app"]

LOOK, RETRY = 0.5, 1.0
"""Seconds between looks at files that may have been replaced, and before a worker that cannot start gives up."""

LONGEST_MESSAGE = 1000


class Lean(APIRoute):
    """A route that FastAPI matches and describes, and whose handler is called without its help: that takes longer than to score."""

    def __init__(self, path: str, handler: Handler, methods: list[str], **described: Any) -> None:
        super().__init__(path, _described, methods=methods, response_model=None, description=" ", **described)
        self.handler, self.app = handler, self._answer

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["exchange"].route = self.path
        await send_reply(await self.handler(scope, receive), send)


def _described() -> None:
    """Stands for a handler whose parameters are described by hand."""


async def send_reply(reply: Reply, send: Send) -> None:
    headers = [*reply.headers, (b"content-length", str(len(reply.body)).encode())]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


def create_app(settings: Settings) -> Envelope:
    """The application of one worker. Its models are loaded when it starts."""
    shelf, guard = Shelf(settings), Guard(settings.keys)
    routes = Routes(settings, shelf, guard)
    audit = None if settings.audit is None else AuditLog(settings.audit)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        await asyncio.get_running_loop().run_in_executor(None, _start, shelf)
        gc.collect()
        gc.freeze()  # what is there now stays, and need not be looked through
        watching = asyncio.create_task(_watch(shelf, guard, audit))
        routes.reasons = []
        log("ready", models=len(shelf.served))
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            routes.close()
            if audit is not None:
                audit.sync()
            metrics.tally.write()
            log("stopped")

    app = FastAPI(
        title="dpoutlier",
        version="1",
        description="Outlier scores from models that were fitted under differential privacy. Queries cost no budget.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )

    async def openapi(_scope: Scope, _: Receive) -> Reply:
        return Reply(to_json(_described_with_keys(app)))

    table: list[tuple[str, Handler, list[str], str]] = [
        ("/v1/models/{model}/score", routes.score, ["POST"], "score"),
        ("/v1/models/{model}/explain", routes.explain, ["POST"], "explain"),
        ("/v1/models/{model}", routes.model, ["GET"], "model"),
        ("/v1/models", routes.models, ["GET"], "models"),
        ("/healthz", routes.health, ["GET"], "health"),
        ("/readyz", routes.ready, ["GET"], "ready"),
        ("/metrics", routes.metrics, ["GET"], "metrics"),
        ("/openapi.json", openapi, ["GET"], "openapi"),
        ("/static/{name}", routes.page, ["GET"], "static"),
        ("/", routes.page, ["GET"], "page"),
    ]
    app.router.routes[:] = [
        Lean(path, handler, methods, name=name, **DESCRIPTIONS.get(name, {"include_in_schema": False}))
        for path, handler, methods, name in table
    ]

    score = app.router.routes[0]
    assert isinstance(score, Lean)

    local = settings.keys is None and is_loopback(settings.host)

    async def routed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            if local:
                check_host(scope["headers"])
            asked, place = scope["method"], scope["path"].split("/")
            if asked == "POST" and len(place) == 5 and place[:3] == ["", "v1", "models"] and place[4] == "score":
                scope["path_params"] = {"model": place[3]}  # the way that most requests go, without a search
                await score.app(scope, receive, send)
                return
            scope = {
                **scope,
                "app": app,
                "method": "GET" if asked == "HEAD" else asked,
            }  # app: so that no match is an exception
        await app.router(scope, receive, send)

    envelope = Envelope(routed, audit)
    envelope.routes = routes  # type: ignore[attr-defined] # for tests
    routes.extra_reasons = lambda: [] if envelope.audit_works else ["the audit log cannot be written"]
    return envelope


def _described_with_keys(app: FastAPI) -> dict[str, Any]:
    """FastAPI's description, with how a key is sent."""
    content = app.openapi()
    content.setdefault("components", {})["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    return content


def _start(shelf: Shelf) -> None:
    try:
        shelf.load_all()
    except BaseException as error:  # noqa: BLE001 - whatever it is, this worker cannot answer
        log("start-failed", "critical", **where(error))
        time.sleep(RETRY)
        os._exit(
            1
        )  # and not as uvicorn ends: others may still answer with what the file held before, and must not be stopped
    for name in shelf.served:
        metrics.LOADS.labels(name, "loaded").inc()
        metrics.MODEL_CURRENT.labels(name).set(1)


async def _watch(shelf: Shelf, guard: Guard, audit: AuditLog | None) -> None:
    """Look after files that are replaced, and after the parent process."""
    loop, parent = asyncio.get_running_loop(), multiprocessing.parent_process()
    while True:
        await asyncio.sleep(LOOK)
        if parent is not None and os.getppid() != parent.pid:
            log("parent-gone", "error")
            shutil.rmtree(shelf.settings.shared or "", ignore_errors=True)  # which the parent would have done
            os.kill(os.getpid(), signal.SIGTERM)
            return
        metrics.tally.write()
        flush()
        try:
            await loop.run_in_executor(None, _look, shelf, guard, audit)
        except Exception as error:  # noqa: BLE001 - the next look may succeed
            log("look-failed", "error", **where(error))


def _look(shelf: Shelf, guard: Guard, audit: AuditLog | None) -> None:
    """What may take long: in a thread of its own."""
    keys = guard.refresh()
    if keys is not None:
        log("keys-read" if keys else "keys-unreadable", "info" if keys else "error")
    for name in shelf.vanished():
        metrics.MODEL_CURRENT.labels(name).set(0)
        log(
            "model-file-missing",
            "warning",
            model=name,
            message="its file is gone; the model as it was goes on answering.",
        )
    for name, path in shelf.changed():
        error = shelf.reload(name, path)
        result = "loaded" if error is None else "failed"
        metrics.LOADS.labels(name, result).inc()
        metrics.MODEL_CURRENT.labels(name).set(error is None)
        if error is None:
            log("model-loaded", model=name)
        else:  # its text is about a file of the custodian's, and no query
            log("model-failed", "error", model=name, message=str(error)[:LONGEST_MESSAGE], **where(error))
    if audit is not None:
        audit.sync()


def app_from_environment() -> Envelope:
    """The application of a worker process, as the settings in its environment say."""
    return create_app(Settings.from_environment())
