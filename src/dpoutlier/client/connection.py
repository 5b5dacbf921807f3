"""Requests to one server: bounded in time and size, retried where that can help, and never sent to another host."""

import json
import os
import ssl
import threading
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    LocationParseError,
    MaxRetryError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
    SSLError,
)
from urllib3.util import parse_url

from dpoutlier._validate import parameter_error
from dpoutlier.client.transport import RETRIED, HTTPPool, HTTPSPool, RetryUntil, TimeUntil, TooLargeError, limited_to
from dpoutlier.exceptions import InvalidParameterError, ServerError, UnsafeWarning

JSON, ARROW = "application/json", "application/vnd.apache.arrow.stream"
VARIABLE = "DPOUTLIER_KEY"
UNAUTHORIZED, CERTIFICATE, INVALID_KEY = "unauthorized", "certificate", "invalid-key"
KEY_COMES_FROM = f"Give it as key=..., or in the variable {VARIABLE}."
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
CONNECTIONS = 16
MAX_BYTES = 2**25
"""Largest size of an answer, unless the caller gives another. The description of a model with thousands of features is smaller."""
LONGEST_MESSAGE = 2000


class Answer(NamedTuple):
    """The server's answer, with status 200."""

    body: bytes
    headers: Mapping[str, str]

    def json(self) -> dict[str, Any]:
        """The body as a JSON object."""
        content = _object(self.body)
        if content is None:
            raise ServerError("the server's answer is not a JSON object.", remedy="Is it a dpoutlier server?")
        return content


class Connection:
    """One server. Threads may share it; a forked process opens its own connections.

    urllib3 retries a request when the connection is lost and when the server is busy (503) or asks to wait (429), until ``timeout``
    seconds have passed: scoring is free of privacy cost, and repeating it changes nothing. It gives up much earlier on a server
    that never answered.
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
                f"{self.url} is not encrypted: others can read the points and the key on the way. Use https.",
                UnsafeWarning,
                stacklevel=3,
            )
        self._ca = None if ca is None else _ca_file(ca)
        if self._ca is not None and self._scheme == "http":
            raise parameter_error("ca", "left out with http", str(ca), "Certificates belong to https.")
        self._answered, self._lock, self._made_in = False, threading.Lock(), -1
        self._pool: Any = None

    def __repr__(self) -> str:
        return f"<connection to {self.url}>"

    def close(self) -> None:
        """Close idle connections. The next request opens a new one."""
        with self._lock:
            if self._pool is not None and self._made_in == os.getpid():
                self._pool.close()
            self._pool = None

    def get(self, path: str) -> Answer:
        """The answer to a GET of JSON."""
        return self._ask("GET", path, None, {"Accept": JSON})

    def post(
        self,
        path: str,
        body: bytes,
        kind: str,
        accept: str,
        query: Mapping[str, Any] | None = None,
        *,
        most: int = MAX_BYTES,
    ) -> Answer:
        """The answer to a POST; it may have at most ``most`` bytes."""
        target = f"{path}?{urlencode(query)}" if query else path
        return self._ask("POST", target, body, {"Content-Type": kind, "Accept": accept}, most)

    def _ask(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], most: int = MAX_BYTES
    ) -> Answer:
        until = time.monotonic() + self.timeout
        try:
            with limited_to(most):
                response = self._connections().urlopen(
                    method,
                    self._prefix + path,
                    body=body,
                    headers=self._headers | headers,
                    timeout=TimeUntil(until),
                    retries=RetryUntil(until, found_before=self._answered),
                    redirect=False,
                    decode_content=False,
                )
        except (HTTPError, OSError) as error:
            problem = self._lost(error.reason if isinstance(error, MaxRetryError) else error)
        else:
            self._answered = True
            if response.status == 200:
                return Answer(response.data, response.headers)
            problem = _refusal(response.status, response.data)
        raise problem

    def _connections(self) -> Any:
        with self._lock:
            if self._pool is None or self._made_in != os.getpid():
                self._pool, self._made_in = self._opened(), os.getpid()
            return self._pool

    def _opened(self) -> Any:
        if self._scheme == "http":
            return HTTPPool(self._host, self._port, maxsize=CONNECTIONS)
        context = ssl.create_default_context(cafile=self._ca)
        return HTTPSPool(self._host, self._port, maxsize=CONNECTIONS, ssl_context=context)

    def _lost(self, error: Exception | None) -> ServerError:
        """The error for a request without an answer. The text of urllib3's error may contain headers, so it is not shown."""
        where = f"the server {self.url}"
        if isinstance(error, SSLError):
            cause = getattr(error.args[0], "verify_message", "") if error.args else ""
            return ServerError(
                f"{where} could not prove its identity{f' ({cause})' if cause else ''}.",
                remedy="Give the file of the authority that signed its certificate as ca=, and use the name of the certificate in "
                "the url.",
                code=CERTIFICATE,
            )
        if isinstance(error, NameResolutionError):
            return ServerError(f"{where} was not found: no address is known for {self._host!r}.")
        if isinstance(error, TooLargeError):
            return ServerError(
                "the server's answer cannot be used: it is too large.", remedy="Is it a dpoutlier server?"
            )
        if isinstance(error, ReadTimeoutError):
            return ServerError(f"{where} did not send a complete answer within {self.timeout:g} seconds.")
        if isinstance(error, NewConnectionError | ConnectTimeoutError):
            return ServerError(
                f"{where} cannot be reached.", remedy="Is it running, and is the port right?", again=True
            )
        lost = isinstance(error, ProtocolError | OSError)
        return ServerError(f"the connection to {where} was lost before the answer was complete.", again=lost)


def _parts(url: Any) -> tuple[str, str, str, int, str]:
    """The url as it is shown; its scheme, host, port, and the prefix of each path."""
    wanted = "the address of a server, such as https://host:8765"
    if not isinstance(url, str):
        raise parameter_error("url", wanted, url)
    try:
        found = parse_url(url)
    except LocationParseError:
        found = None
    if found is None or found.scheme not in {"http", "https"} or not found.host:
        raise parameter_error("url", wanted, url)
    if found.auth or found.query or found.fragment:
        raise InvalidParameterError(  # without the value, which may be a secret
            name="url", must=f"{wanted}, without a password, a question mark or a #"
        )
    prefix = (found.path or "").rstrip("/")
    port = found.port or (443 if found.scheme == "https" else 80)
    return f"{found.scheme}://{found.host}:{port}{prefix}", found.scheme, found.host, port, prefix


def _seconds(timeout: Any) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= 86400:
        raise parameter_error("timeout", "a number of seconds above 0, and at most a day", timeout)
    return float(timeout)


def _checked(key: Any) -> str:
    """The key. The error does not show it."""
    if not isinstance(key, str) or not key.strip() or not key.strip().isascii() or not key.strip().isprintable():
        raise InvalidParameterError(
            name="key",
            must="one line of text as `dpoutlier keys create` prints it",
            remedy=KEY_COMES_FROM,
            code=INVALID_KEY,
        )
    return key.strip()


def _ca_file(ca: Any) -> str:
    if not isinstance(ca, str | Path) or not Path(ca).is_file():
        raise parameter_error("ca", "the file of the authority that signed the server's certificate", str(ca))
    try:
        ssl.create_default_context(cafile=ca)
    except (ssl.SSLError, OSError):
        raise parameter_error("ca", "a file of certificates in PEM", str(ca)) from None
    return str(ca)


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        content = json.loads(body.decode())  # from bytes it would guess the encoding
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _refusal(status: int, body: bytes) -> ServerError:
    """The error that a status means, in the server's own words."""
    if 300 <= status < 400:
        return ServerError(
            "the server redirects to another address, and the key is not sent there.",
            remedy="Give the right url.",
            status=status,
        )
    error = (_object(body) or {}).get("error")
    fields = error if isinstance(error, dict) else {}
    code, message = fields.get("code"), fields.get("message")
    if status == 401 and code == UNAUTHORIZED:  # the server's words are about the header, which we write
        return ServerError(
            "the server needs a valid key.",
            remedy=f"{KEY_COMES_FROM} The operator of the server makes keys.",
            code=code,
            status=status,
        )
    text = message if isinstance(message, str) else f"the server answered with status {status} and gave no reason."
    shown = "".join(letter if letter.isprintable() else " " for letter in text[:LONGEST_MESSAGE])
    return ServerError(shown, code=code if isinstance(code, str) else None, status=status, again=status in RETRIED)
