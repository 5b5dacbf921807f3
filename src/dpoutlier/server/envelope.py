"""What stands around every request: its id, headers, errors, metrics, log line and entry in the audit log."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.exceptions import HTTPException

from dpoutlier.server.auditlog import AuditLog
from dpoutlier.server.bodies import Gone
from dpoutlier.server.logs import log, where
from dpoutlier.server.metrics import tally
from dpoutlier.server.refusals import Refusal, error_body

__all__ = ["NO_ROUTE", "SECURITY", "Envelope", "Exchange", "Reply"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

NO_ROUTE = "other"
SECURITY: tuple[tuple[bytes, bytes], ...] = (
    (
        b"content-security-policy",
        (
            b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
            b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
JSON = (b"content-type", b"application/json")
OTHERS = {
    404: ("not-found", "there is no such route. See /openapi.json."),
    405: ("method-not-allowed", "this route does not take that method. See /openapi.json."),
}
FAILED = "the server failed at this request. Its operator finds the request id in the log."


class Exchange:
    """What is known of a request so far. Nothing that it said itself, but its size."""

    __slots__ = ("audited", "begin", "id", "key", "model", "release", "route", "rows", "status")

    def __init__(self) -> None:
        self.id = secrets.token_hex(8)
        self.begin = time.perf_counter()
        self.route = NO_ROUTE
        self.key: str | None = None
        self.model: str | None = None
        self.release: str | None = None
        self.rows: int | None = None
        self.status = 0
        self.audited = False


class Reply:
    """An answer."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, body: bytes, headers: tuple[tuple[bytes, bytes], ...] = (JSON,), status: int = 200) -> None:
        self.body, self.headers, self.status = body, headers, status


class Envelope:
    """An ASGI app around another. No exception leaves it."""

    def __init__(self, app: App, audit: AuditLog | None) -> None:
        self.app, self.audit = app, audit
        self.audit_works = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = scope["exchange"] = Exchange()
        tally.in_flight += 1
        started = False

        async def sending(message: MutableMapping[str, Any]) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                self._record(exchange)
                message["headers"] = [*message.get("headers", ()), *_own_headers(exchange)]
                started = True
            elif scope["method"] == "HEAD":
                message["body"] = b""
            await send(message)

        refusal: Refusal | None = None
        try:
            await self.app(scope, receive, sending)
        except Refusal as error:
            refusal = error.forgetful()
        except HTTPException as error:
            refusal = Refusal(*OTHERS.get(error.status_code, OTHERS[404]))
            refusal.headers = tuple((k.lower().encode(), v.encode()) for k, v in (error.headers or {}).items())
        except Gone:
            exchange.status = 499
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told by its type only
            log("failed", "error", request_id=exchange.id, route=exchange.route, **where(error))
            refusal = Refusal("failed", FAILED)
        finally:
            tally.in_flight -= 1
        if refusal is not None and not started:
            await self._refuse(refusal, exchange, scope, send)
        self._done(exchange, refusal)

    async def _refuse(self, refusal: Refusal, exchange: Exchange, scope: Scope, send: Send) -> None:
        exchange.status = refusal.status
        try:
            self._record(exchange)
        except Refusal as error:
            refusal = error.forgetful()
            exchange.status = refusal.status
        body = error_body(refusal.code, refusal.message)
        headers = [JSON, (b"content-length", str(len(body)).encode()), *refusal.headers, *_own_headers(exchange)]
        await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def _record(self, exchange: Exchange) -> None:
        """The entry in the audit log, before anything is answered. Without it nothing is."""
        if self.audit is None or not exchange.audited:
            return
        exchange.audited = False
        try:
            self.audit.append(
                "query",
                request_id=exchange.id,
                key=exchange.key,
                model=exchange.model,
                release=exchange.release,
                route=exchange.route,
                rows=exchange.rows,
                status=exchange.status,
            )
            self.audit_works = True
        except (OSError, ValueError, KeyError, TypeError) as error:
            self.audit_works = False
            log("audit-failed", "critical", request_id=exchange.id, **where(error))
            raise Refusal("unavailable", "the audit log cannot be written, so nothing is answered.") from None

    def _done(self, exchange: Exchange, refusal: Refusal | None) -> None:
        seconds = time.perf_counter() - exchange.begin
        tally.answered(exchange.route, exchange.status, seconds)
        if refusal is not None:
            tally.refused(refusal.code)
        if exchange.rows and exchange.model and exchange.status == 200:
            tally.scored(exchange.model, exchange.rows)
        log(
            "request",
            request_id=exchange.id,
            route=exchange.route,
            status=exchange.status,
            rows=exchange.rows,
            milliseconds=round(1000 * seconds, 3),
            key=exchange.key,
            model=exchange.model,
            at_once=False,
        )


def _own_headers(exchange: Exchange) -> list[tuple[bytes, bytes]]:
    own = [(b"x-request-id", exchange.id.encode()), *SECURITY]
    if exchange.release is not None:
        own.append((b"x-model-release", exchange.release.encode()))
    return own
