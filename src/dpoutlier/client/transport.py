"""urllib3 with limits that it lacks: a time for all attempts together, a time for a whole answer, and a size."""

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from http.client import HTTPException, HTTPResponse
from typing import Any, Self

import urllib3
from urllib3.exceptions import HTTPError, InvalidHeader, MaxRetryError, NameResolutionError, ProtocolError
from urllib3.util import Retry, Timeout
from urllib3.util.response import assert_header_parsing

RETRIED = frozenset({429, 502, 503, 504})
MAX_RETRIES = 500
"""For one request. urllib3 calls itself for each retry, and Python allows a thousand calls within each other."""
FIRST_RETRIES = 3
"""While the server has never answered: the address may be wrong."""
LONGEST_CONNECT = 10.0

_most_bytes: ContextVar[int] = ContextVar("most bytes of the answer")


@contextmanager
def limited_to(most: int) -> Iterator[None]:
    """Limit answers to ``most`` bytes. It is a context, since urllib3 passes no argument of ours to the code that reads answers."""
    limit = _most_bytes.set(most)
    try:
        yield
    finally:
        _most_bytes.reset(limit)


class TooLargeError(HTTPError):
    """An answer is larger than any answer should be."""


class RetryUntil(Retry):
    """urllib3's retries, without a pause that ends after the moment ``until``.

    Lost connections and the statuses of ``RETRIED`` are retried, whatever the method: to ask twice changes nothing.
    """

    RETRY_AFTER_STATUS_CODES = frozenset()  # RETRIED is the whole list, also if the server asks to come back

    def __init__(self, until: float, *, found_before: bool = True, **state: Any) -> None:
        lost = None if found_before else FIRST_RETRIES
        policy = {
            "total": MAX_RETRIES,
            "connect": lost,
            "read": lost,
            "other": 0,
            "allowed_methods": None,
            "status_forcelist": RETRIED,
            "backoff_factor": 0.05,
            "backoff_max": 2,
            "backoff_jitter": 0.1,  # so that clients do not all come back at once
            "raise_on_status": False,
        }
        super().__init__(**policy | state)
        self.until = until

    def new(self, **state: Any) -> Self:
        """As urllib3 makes the next one, which calls the constructor with all its state."""
        return super().new(until=self.until, **state)

    def increment(self, *request: Any, **outcome: Any) -> Self:
        """The retries that are left, or ``MaxRetryError``."""
        left, response, error = super().increment(*request, **outcome), outcome.get("response"), outcome.get("error")
        pause = (response is not None and left.get_retry_after(response)) or left.get_backoff_time()
        if isinstance(error, NameResolutionError) or time.monotonic() + pause >= self.until:
            raise MaxRetryError(outcome["_pool"], None, error)
        return left

    def get_retry_after(self, response: Any) -> float | None:
        """None also for a header that cannot be read."""
        try:
            return super().get_retry_after(response)
        except (InvalidHeader, ValueError, OverflowError):
            return None


class TimeUntil(Timeout):
    """The time that is left until a moment. urllib3 clones it for each attempt."""

    def __init__(self, until: float) -> None:
        self.until = until
        left = max(until - time.monotonic(), 0.001)
        super().__init__(total=left, connect=min(left, LONGEST_CONNECT))

    def clone(self) -> Timeout:
        return TimeUntil(self.until)


class _Reader(io.RawIOBase):
    """What a socket receives, limited in bytes and in time. A socket's own timeout is for each piece, however small."""

    def __init__(self, connected: Any, stream: Any, most: int) -> None:
        self._socket, self._stream, self._bytes_left = connected, stream, most
        self._end = time.monotonic() + connected.gettimeout()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        found: int | None = self._stream.readinto(buffer)
        self._bytes_left -= found or 0
        if self._bytes_left < 0:
            raise TooLargeError
        return found

    def close(self) -> None:
        self._stream.close()
        super().close()


class _BoundedBuffer(io.BufferedReader):
    """Refuses to read a chunk of impossible size. Python would reserve its memory before a byte is there."""

    def __init__(self, raw: _Reader, most: int) -> None:
        super().__init__(raw)
        self._most = most

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size < -1:
            raise ProtocolError("an answer has a chunk of negative size")
        if size is not None and size > self._most:
            raise TooLargeError
        return super().read(size)


class _Response(HTTPResponse):
    """An answer whose head and body together have the connection's time for reading, and at most the bytes of ``limited_to``."""

    def __init__(self, sock: Any, *arguments: Any, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self._most = _most_bytes.get()
        self.fp = _BoundedBuffer(_Reader(sock, self.fp.detach(), self._most), self._most)

    def begin(self) -> None:
        """Read the head. urllib3 would log the text of one that cannot be read, and would use one that it cannot parse."""
        try:
            super().begin()
        except HTTPException:
            raise ProtocolError("the head of an answer cannot be read") from None
        assert_header_parsing(self.msg)
        if self.length is not None and self.length > self._most:  # Python would reserve the memory
            raise TooLargeError


class _HTTPConnection(urllib3.connection.HTTPConnection):
    response_class = _Response


class _HTTPSConnection(urllib3.connection.HTTPSConnection):
    response_class = _Response


class HTTPPool(urllib3.HTTPConnectionPool):
    """Connections to one server."""

    ConnectionCls = _HTTPConnection


class HTTPSPool(urllib3.HTTPSConnectionPool):
    """Connections to one server, with TLS."""

    ConnectionCls = _HTTPSConnection
