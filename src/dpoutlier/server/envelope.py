"""What every request gets: its id, headers, error responses, metrics, log line and entry in the audit log."""

import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from dpoutlier.server.audit_log import FAULTS
from dpoutlier.server.authentication import Guard
from dpoutlier.server.bodies import Gone
from dpoutlier.server.error_responses import Refusal, error_body
from dpoutlier.server.hosts import check_host, is_loopback
from dpoutlier.server.keys import Key
from dpoutlier.server.logs import log, where
from dpoutlier.server.metrics import tally
from dpoutlier.server.worker import Worker

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
TURNED_AWAY = {"unauthorized", "not-for-metrics"}
MAX_PARAMETERS = 100
FAILED = "the server failed at this request. Its operator finds the request id in the log."


class Exchange:
    """What is known of a request so far. It holds nothing that the client sent, except known ids and the number of points."""

    __slots__ = ("audited", "begin", "id", "key", "model", "refused_key", "release", "route", "rows", "status")

    def __init__(self) -> None:
        self.id = secrets.token_hex(8)
        self.begin = time.perf_counter()
        self.route = NO_ROUTE
        self.key: str | None = None
        self.refused_key: str | None = None
        """The id of the key that was refused, if there is such a key."""
        self.model: str | None = None
        self.release: str | None = None
        self.rows: int | None = None
        self.status = 0
        self.audited = False

    def identify(self, guard: Guard, headers: list[tuple[bytes, bytes]]) -> Key:
        """The key of the request, for the log and the audit log too."""
        try:
            key = guard.key_of(headers)
        except Refusal:
            self.refused_key = guard.known_id(headers)
            raise
        self.key = key.id
        return key


class Envelope:
    """The outermost layer around the routes. No exception leaves it."""

    def __init__(self, app: App, worker: Worker) -> None:
        self.app, self.audit, self.refused = app, worker.audit, worker.refused
        self.guard, self.rate = worker.guard, worker.rate
        self.local = worker.settings.keys is None and is_loopback(worker.settings.host)

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
            self._check(scope)
            await self.app({**scope, "method": "GET"} if scope["method"] == "HEAD" else scope, receive, sending)
        except Refusal as error:
            refusal = error.without_traceback()
        except Gone:
            exchange.status = 499
        except Exception as error:  # noqa: BLE001 - only its type is logged, whatever it is
            log("failed", "error", request_id=exchange.id, route=exchange.route, **where(error))
            refusal = Refusal("failed", FAILED)
        finally:
            tally.in_flight -= 1
        if refusal is not None and not started:
            await self._refuse(refusal, exchange, scope, send)
        self._done(exchange, refusal)

    def _check(self, scope: Scope) -> None:
        if self.local:
            check_host(scope["headers"])
        if scope["query_string"].count(b"&") >= MAX_PARAMETERS:  # before the framework makes objects of them
            if scope["path"].startswith("/v1/"):
                exchange: Exchange = scope["exchange"]
                self.rate.take(exchange.identify(self.guard, scope["headers"]).id)
                exchange.audited = scope["method"] == "POST"  # points may have come with it
            raise Refusal("bad-parameter", f"a request must have at most {MAX_PARAMETERS} parameters.")

    async def _refuse(self, refusal: Refusal, exchange: Exchange, scope: Scope, send: Send) -> None:
        exchange.status = refusal.status
        try:
            if not self._record(exchange):
                self._record_refused(refusal, exchange)
        except Refusal as error:
            refusal = error.without_traceback()
            exchange.status = refusal.status
        body = error_body(refusal.code, refusal.message, refusal.place)
        headers = [JSON, (b"content-length", str(len(body)).encode()), *refusal.headers, *_own_headers(exchange)]
        await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def _record(self, exchange: Exchange) -> bool:
        """Write the entry of a query to the audit log; only then it is answered. Returns False for other requests."""
        if self.audit is None or not exchange.audited:
            return False
        exchange.audited = False
        try:
            self.audit.append("query", key=exchange.key, rows=exchange.rows, **_audited(exchange))
        except FAULTS:  # the log has said so
            raise Refusal("unavailable", "the audit log cannot be written, so nothing is answered.") from None
        return True

    def _record_refused(self, refusal: Refusal, exchange: Exchange) -> None:
        """The entry of a request without a valid key, or with a key that is for something else."""
        forbidden = refusal.code == "unknown-model" and exchange.model is not None
        if self.refused is None or not (forbidden or refusal.code in TURNED_AWAY):
            return
        valid = exchange.key is not None
        self.refused.enter(valid=valid, key=exchange.key if valid else exchange.refused_key, **_audited(exchange))

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


def _audited(exchange: Exchange) -> dict[str, Any]:
    """What entries of the audit log have in common."""
    return {
        "request_id": exchange.id,
        "model": exchange.model,
        "release": exchange.release,
        "route": exchange.route,
        "status": exchange.status,
    }


def _own_headers(exchange: Exchange) -> list[tuple[bytes, bytes]]:
    own = [(b"x-request-id", exchange.id.encode()), *SECURITY]
    if exchange.release is not None:
        own.append((b"x-model-release", exchange.release.encode()))
    return own
