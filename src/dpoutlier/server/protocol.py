"""uvicorn's HTTP protocol with bounds on headers, in bytes and time, and on the number of connections.

uvicorn has no public interface for this: ``tests/server/test_uvicorn.py`` lists what is used of it, for which versions.
"""

import asyncio
from asyncio.events import TimerHandle
from functools import cache
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dpoutlier.server.envelope import JSON, SECURITY
from dpoutlier.server.error_responses import CODES, error_body
from dpoutlier.server.metrics import tally
from dpoutlier.server.settings import Settings

MAX_HEADERS = 100
LINGER = 30.0
"""Seconds that a client may take to fetch an answer that waits for it, after the last byte."""
FAREWELL = 1.0
"""Seconds that an idle client may take to close, when the server stops."""


@cache
def _limits() -> Settings:
    return Settings.from_environment()


class OneWrite:
    """A transport that sends the head of an answer together with its body: one call of the system instead of two."""

    def __init__(self, transport: Any) -> None:
        self.transport, self.head = transport, b""

    def write(self, data: bytes) -> None:
        if not self.head and data.startswith(b"HTTP/1.1 ") and not data.startswith(b"HTTP/1.1 100"):
            self.head = data
            return
        self.transport.write(self.head + data)
        self.head = b""

    def flush(self) -> None:
        """Send a head that no body followed."""
        if self.head:
            self.write(b"")

    def close(self) -> None:
        self.flush()
        self.transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.limits = _limits()
        self.timer: TimerHandle | None = None
        self.in_head, self.head_bytes, self.refused, self.begun = True, 0, False, False
        self.idle_bytes, self.trailer_bytes, self.trailers, self.got_body = 0, 0, 0, False
        self.began, self.ending = False, list[TimerHandle]()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(OneWrite(transport))  # type: ignore[arg-type] # has all that is asked of it
        if len(self.connections) > self.limits.connections:
            self._refuse("unavailable", "too many connections; try again.")
            return
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        for timer in self.ending:
            timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.refused or self.transport.is_closing():
            return
        self.got_body = self.began = False
        super().data_received(data)
        if self.refused or self.transport.is_closing():
            return
        if self.in_head:  # a head may begin in the middle of what came, after the request before it
            self.head_bytes += 0 if self.began else len(data)
        else:  # what is neither body nor a whole trailer is kept by the parser until its line ends
            self.idle_bytes = 0 if self.got_body else self.idle_bytes + len(data)
        if max(self.head_bytes if self.in_head else 0, self.idle_bytes) > self.limits.header_bytes:
            self._too_large()
            return
        if self.timer is None and (self.in_head or self.cycle is None or self.cycle.response_complete):
            self._start_timer()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.in_head, self.head_bytes, self.begun, self.began = True, 0, False, self.got_body
        self.idle_bytes, self.trailer_bytes, self.trailers = 0, 0, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.in_head:
            super().on_header(name, value)
            return
        self.trailer_bytes += len(name) + len(value) + 4  # one that follows the body: nothing here means anything
        self.trailers += 1
        if self.trailer_bytes > self.limits.header_bytes or self.trailers > MAX_HEADERS:
            self._too_large()

    def on_headers_complete(self) -> None:
        self._stop_timer()
        self.in_head = False
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self.limits.header_bytes or len(self.headers) > MAX_HEADERS:
            self._too_large()
            return
        if sum(name == b"host" for name, _ in self.headers) > 1:
            self._refuse("malformed-request", "a request must have one Host header.")
            return
        super().on_headers_complete()
        self.begun = True

    def on_body(self, body: bytes) -> None:
        self.got_body = True
        if not self.refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self.got_body = True
        if not self.refused:
            self.scope["complete"] = True  # type: ignore[typeddict-unknown-key] # the body need not be waited for
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        if not self.refused:
            self._refuse("malformed-request", msg)

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        if self.transport.get_write_buffer_size():  # a close would wait until all is sent, without a limit
            self._end_after(LINGER)

    def shutdown(self) -> None:
        super().shutdown()
        if self.transport.is_closing():  # TLS would wait for the client to say good-bye as well
            self._end_after(FAREWELL)

    def _end_after(self, seconds: float) -> None:
        """Abort after some seconds: a close waits until all is sent, and the other side may never read it."""
        self.ending.append(self.loop.call_later(seconds, self.transport.abort))

    def _start_timer(self) -> None:
        self.timer = self.loop.call_later(self.limits.header_seconds, self._too_slow)

    def _stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _too_slow(self) -> None:
        self.timer = None
        if not self.transport.is_closing():
            self._refuse("too-slow", f"headers must arrive within {self.limits.header_seconds:g} seconds.")

    def _too_large(self) -> None:
        if not self.refused:
            most = self.limits.header_bytes
            self._refuse(
                "headers-too-large",
                f"headers must have at most {most} bytes together, and be at most {MAX_HEADERS}; so must trailers.",
            )

    def _refuse(self, code: str, message: str) -> None:
        """Answer and close, without a request. One that has begun is ended as if its client had left."""
        self.refused = True
        self._stop_timer()
        tally.refused(code)
        if self.begun and self.cycle is not None:
            if self.cycle.response_started:
                self.transport.close()
                self._end_after(LINGER)
                return
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        body = error_body(code, message)
        own = [JSON, (b"content-length", str(len(body)).encode()), (b"connection", b"close"), *SECURITY]
        head = b"".join(b"%s: %s\r\n" % pair for pair in own)
        status = HTTPStatus(CODES[code])
        self.transport.write(f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() + head + b"\r\n" + body)
        self.transport.close()
        self._end_after(LINGER)

    def on_response_complete(self) -> None:
        self.transport.flush()  # type: ignore[attr-defined] # to HEAD there is no body
        super().on_response_complete()
