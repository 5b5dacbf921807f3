"""The application: routes with their OpenAPI description, inside the envelope; models are loaded before it is ready."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic_core import to_json

from dpoutlier.server.audit_log import AuditLog
from dpoutlier.server.envelope import Envelope, Receive, Reply, Scope, Send
from dpoutlier.server.guard import Guard
from dpoutlier.server.hosts import check_host, is_loopback
from dpoutlier.server.logs import flush, log, where
from dpoutlier.server.metrics import tally
from dpoutlier.server.models import Shelf
from dpoutlier.server.openapi import DESCRIPTIONS
from dpoutlier.server.routes import Handler, Routes
from dpoutlier.server.settings import Settings
from dpoutlier.server.watch import LOADING, Part, Watch, look_at_models, parent_look

__all__ = ["app_from_environment", "create_app"]

RETRY = 1.0
"""Seconds before a worker that cannot start gives up."""


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
    audit = None if settings.audit is None else AuditLog(settings.audit, settings.shared)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        await asyncio.get_running_loop().run_in_executor(None, _start, shelf)
        gc.collect()
        gc.freeze()  # what is there now stays, and need not be looked through
        watch.start()
        routes.reasons = []
        log("ready", models=len(shelf.served))
        try:
            yield
        finally:
            routes.close()
            await watch.stop()
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
    watch = envelope.watch = Watch(_parts(shelf, guard, envelope))  # type: ignore[attr-defined]
    routes.extra_reasons = lambda: [*guard.reasons(), *([] if audit is None else audit.reasons()), *watch.reasons()]
    return envelope


def _parts(shelf: Shelf, guard: Guard, envelope: Envelope) -> list[Part]:
    """What a worker looks after; keys first."""
    parts = [Part("keys", guard.refresh), Part("models", lambda: look_at_models(shelf), most_age=LOADING)]
    if envelope.audit is not None and envelope.refused is not None:
        parts.append(Part("refused requests", envelope.refused.look, in_thread=False, at_end=envelope.refused.close))
        parts.append(Part("audit log", envelope.audit.look, at_end=envelope.audit.look))
    parts.append(Part("metrics", tally.write, in_thread=False, at_end=tally.write))
    parts.append(Part("lines of the log", flush, in_thread=False))
    parts.append(Part("parent process", parent_look(shelf.settings.shared), in_thread=False))
    return parts


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
        tally.loaded(name, well=True)


def app_from_environment() -> Envelope:
    """The application of a worker process, as the settings in its environment say."""
    return create_app(Settings.from_environment())
