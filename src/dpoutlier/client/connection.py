"""Requests to one server: bounded in time and size, tried again where that can help, and never sent on to another host."""

from __future__ import annotations

import io
import json
import os
import random
import ssl
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    LocationParseError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
    SSLError,
)
from urllib3.util import Timeout, parse_url
from urllib3.util.response import assert_header_parsing

from dpoutlier._validate import bad
from dpoutlier.exceptions import InvalidParameterError, ServerError, UnsafeWarning

__all__ = ["ARROW", "JSON", "Answer", "Connection"]

JSON, ARROW = "application/json", "application/vnd.apache.arrow.stream"
VARIABLE = "DPOUTLIER_KEY"
UNAUTHORIZED, CERTIFICATE = "unauthorized", "certificate"
NO_KEY = f"the server needs a valid key: give it as key=..., or in the variable {VARIABLE}. Whoever runs the server makes keys."
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
CONNECTIONS, PIECE = 16, 2**18
MOST_BYTES = 2**25
"""Of an answer, unless whoever asks knows better: what is told of a model with thousands of features is smaller."""
FIRST_WAIT, LONGEST_WAIT, FIRST_TRIES = 0.05, 2.0, 4
LONGEST_MESSAGE = 2000


class Answer(NamedTuple):
    """What a server answered with status 200."""

    body: bytes
    headers: Mapping[str, str]

    def json(self) -> dict[str, Any]:
        """The body as a JSON object."""
        content = _object(self.body)
        if content is None:
            raise ServerError("the server answered with something else than a JSON object; is it a dpoutlier server?")
        return content


class Connection:
    """One server. May be shared by threads; a process that was forked opens connections of its own.

    A request is tried again when the connection is lost and when the server is busy (503) or asks to wait (429), until ``timeout``
    seconds have gone: to score is free of privacy cost, and the same however often it is done. A server that never answered is
    given up much earlier.
    """

    def __init__(self, url: str, *, key: str | None, ca: str | Path | None, timeout: float) -> None:
        self.url, self._scheme, self._host, self._port, self._prefix = _parts(url)
        self.timeout = _seconds(timeout)
        self._headers = {"User-Agent": "dpoutlier"}
        key = os.environ.get(VARIABLE) if key is None else key
        if key is not None:
            self._headers["Authorization"] = f"Bearer {_checked(key)}"
        if self._scheme == "http" and self._host not in LOOPBACK:
            warnings.warn(
                f"{self.url} is not encrypted: the points and the key can be read on the way. Use https.",
                UnsafeWarning,
                stacklevel=3,
            )
        self._ca = None if ca is None else _ca_file(ca)
        if self._ca is not None and self._scheme == "http":
            raise bad("ca", "left out with http", str(ca), "Certificates belong to https.")
        self._answered, self._lock, self._made_in = False, threading.Lock(), -1
        self._pool: Any = None

    def __repr__(self) -> str:
        return f"<connection to {self.url}>"

    def close(self) -> None:
        """Close the connections that are idle; the next request opens one again."""
        with self._lock:
            if self._pool is not None and self._made_in == os.getpid():
                self._pool.close()
            self._pool = None

    def get(self, path: str) -> Answer:
        """What is found there, as JSON."""
        return self._ask("GET", path, None, {"Accept": JSON})

    def post(
        self,
        path: str,
        body: bytes,
        kind: str,
        accept: str,
        query: Mapping[str, Any] | None = None,
        *,
        most: int = MOST_BYTES,
    ) -> Answer:
        """The answer to a body, of at most so many bytes."""
        target = f"{path}?{urlencode(query)}" if query else path
        return self._ask("POST", target, body, {"Content-Type": kind, "Accept": accept}, most)

    def _ask(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], most: int = MOST_BYTES
    ) -> Answer:
        start, wait, tries = time.monotonic(), FIRST_WAIT, 0
        while True:
            left = self.timeout - (time.monotonic() - start)
            problem, told = self._once(method, path, body, headers, max(left, 0.001), most)
            if not isinstance(problem, ServerError):
                return problem
            tries += 1
            left = self.timeout - (time.monotonic() - start)
            pause = wait * random.uniform(0.5, 1) if told is None else told  # noqa: S311 - so that clients do not come all at once
            if not problem.again or pause >= left or (not self._answered and tries >= FIRST_TRIES):
                raise problem
            time.sleep(pause)
            wait = min(2 * wait, LONGEST_WAIT)

    def _once(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], left: float, most: int
    ) -> tuple[Answer | ServerError, float | None]:
        """The answer or what went wrong, and for how many seconds the server asks to wait."""
        try:
            status, found, content = self._exchange(method, path, body, headers, left, most)
        except (HTTPError, OSError) as error:
            return self._lost(error), None
        self._answered = True
        if status == 200:
            return Answer(content, found), None
        return _refusal(status, content), _wait(found) if status in {429, 503} else None

    def _exchange(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], left: float, most: int
    ) -> tuple[int, Mapping[str, str], bytes]:
        response = self._connections().urlopen(
            method,
            self._prefix + path,
            body=body,
            headers=self._headers | headers,
            timeout=Timeout(total=left, connect=min(left, 10)),
            retries=False,
            redirect=False,
            preload_content=False,
            decode_content=False,
        )
        try:
            content = b"".join(_pieces(response, most))
        except BaseException:
            response.close()
            raise
        response.release_conn()
        return response.status, response.headers, content

    def _connections(self) -> Any:
        with self._lock:
            if self._pool is None or self._made_in != os.getpid():
                self._pool, self._made_in = self._opened(), os.getpid()
            return self._pool

    def _opened(self) -> Any:
        if self._scheme == "http":
            return _Pool(self._host, self._port, maxsize=CONNECTIONS)
        context = ssl.create_default_context(cafile=self._ca)
        return _SafePool(self._host, self._port, maxsize=CONNECTIONS, ssl_context=context)

    def _lost(self, error: Exception) -> ServerError:
        """What to say of a request without an answer. What urllib3 says may hold headers, and is not shown."""
        where = f"the server {self.url}"
        if isinstance(error, SSLError):
            cause = getattr(error.args[0], "verify_message", "") if error.args else ""
            why = f" ({cause})" if cause else ""
            return ServerError(
                f"{where} could not prove who it is{why}. Give the file of the authority that signed its "
                "certificate as ca=, and the name that stands in the certificate in the url.",
                code=CERTIFICATE,
            )
        if isinstance(error, NameResolutionError):
            return ServerError(f"{where} was not found: no address is known for {self._host!r}.")
        if isinstance(error, _TooLargeError):
            return ServerError("the server's answer cannot be used: it is too large. Is it a dpoutlier server?")
        if isinstance(error, ReadTimeoutError):
            return ServerError(f"{where} did not answer within {self.timeout:g} seconds, or not in full.")
        if isinstance(error, NewConnectionError | ConnectTimeoutError):
            return ServerError(f"{where} cannot be reached. Is it running, and is the port right?", again=True)
        lost = isinstance(error, ProtocolError | OSError)
        return ServerError(f"the connection to {where} was lost before it had answered.", again=lost)


class _TooLargeError(HTTPError):
    """An answer is larger than any answer should be."""


def _pieces(response: Any, most: int) -> Iterator[bytes]:
    """The body of an answer, if it is not too large."""
    size = 0
    while piece := response.read1(PIECE):
        size += len(piece)
        if size > most:
            raise _TooLargeError
        yield piece


class _Reading(io.RawIOBase):
    """What a socket receives until its timeout is over in all, however slowly bytes come; a socket's own is for each piece."""

    def __init__(self, connected: Any, stream: Any) -> None:
        self._socket, self._stream = connected, stream
        self._end = time.monotonic() + connected.gettimeout()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        found: int | None = self._stream.readinto(buffer)
        return found

    def close(self) -> None:
        self._stream.close()
        super().close()


class _TimedResponse(HTTPResponse):
    """An answer whose head and body together have the time that the connection has for reading."""

    def __init__(self, sock: Any, *arguments: Any, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp = io.BufferedReader(_Reading(sock, self.fp.detach()))

    def begin(self) -> None:
        """Read the head, and refuse one that cannot be parsed: urllib3 would log it as it stands, and go on."""
        super().begin()
        assert_header_parsing(self.msg)


class _Connection(urllib3.connection.HTTPConnection):
    response_class = _TimedResponse


class _SafeConnection(urllib3.connection.HTTPSConnection):
    response_class = _TimedResponse


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _SafePool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _SafeConnection


def _parts(url: Any) -> tuple[str, str, str, int, str]:
    """The url as it is shown, its scheme, host, port, and what stands before each path."""
    wanted = "the address of a server, such as https://host:8765"
    if not isinstance(url, str):
        raise bad("url", wanted, url)
    try:
        found = parse_url(url)
    except LocationParseError:
        found = None
    if found is None or found.scheme not in {"http", "https"} or not found.host:
        raise bad("url", wanted, url)
    if found.auth or found.query or found.fragment:
        raise InvalidParameterError(
            f"url must be {wanted}, without a password, a question mark or a #."
        )  # may be a secret
    prefix = (found.path or "").rstrip("/")
    port = found.port or (443 if found.scheme == "https" else 80)
    return f"{found.scheme}://{found.host}:{port}{prefix}", found.scheme, found.host, port, prefix


def _seconds(timeout: Any) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= 86400:
        raise bad("timeout", "a number of seconds above 0, and at most a day", timeout)
    return float(timeout)


def _checked(key: Any) -> str:
    """The key; the error does not show it."""
    if not isinstance(key, str) or not key.strip() or not key.strip().isascii() or not key.strip().isprintable():
        raise InvalidParameterError(
            f"key must be one line of text as `dpoutlier keys create` prints it; give it as key=, or in {VARIABLE}."
        )
    return key.strip()


def _ca_file(ca: Any) -> str:
    if not isinstance(ca, str | Path) or not Path(ca).is_file():
        raise bad("ca", "the file of the authority that signed the server's certificate", str(ca))
    try:
        ssl.create_default_context(cafile=ca)
    except (ssl.SSLError, OSError):
        raise bad("ca", "a file of certificates in PEM", str(ca)) from None
    return str(ca)


def _wait(headers: Mapping[str, str]) -> float | None:
    """The seconds that the server asks to wait, if it does."""
    told = headers.get("Retry-After", "")
    return float(told) if told.isascii() and told.isdigit() and len(told) < 9 else None


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        content = json.loads(body.decode())  # of bytes it would guess the encoding
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _refusal(status: int, body: bytes) -> ServerError:
    """The error that a status means, with the server's own words."""
    if 300 <= status < 400:
        return ServerError(
            "the server sends its callers to another address, and no key goes there. Give the right url.", status=status
        )
    error = (_object(body) or {}).get("error")
    told = error if isinstance(error, dict) else {}
    code, message = told.get("code"), told.get("message")
    text = message if isinstance(message, str) else f"the server answered with status {status}, and did not say why."
    if status == 401 and code == UNAUTHORIZED:  # the server speaks of the header, which is ours to write
        text = NO_KEY
    shown = "".join(letter if letter.isprintable() else " " for letter in text[:LONGEST_MESSAGE])
    return ServerError(
        shown, status=status, code=code if isinstance(code, str) else None, again=status in {429, 502, 503, 504}
    )
