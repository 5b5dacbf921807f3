"""Bodies of requests: their kind, and their bytes, bounded in number and time."""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from dpoutlier.server.error_responses import Refusal, cut

ARROW = "application/vnd.apache.arrow.stream"
KINDS = {
    "application/json": "json",
    "text/csv": "csv",
    ARROW: "arrow",
}
KNOWN = ", ".join(KINDS)
PIECE = 1 << 16
DRAINED, DRAIN_SECONDS = 4, 2.0
LONGEST_HEADER = 1000

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Headers = list[tuple[bytes, bytes]]


class Gone(Exception):  # noqa: N818 - no client is left to answer
    """The client has left."""


class Unread(Exception):  # noqa: N818 - not yet an answer
    """The body is too large, and more of it comes."""


def header(headers: Headers, name: bytes) -> bytes | None:
    return next((value for known, value in headers if known == name), None)


def body_kind(headers: Headers) -> str:
    """json, csv or arrow."""
    given = header(headers, b"content-type") or b""
    kind = _kind(given[:LONGEST_HEADER])
    if kind is None:
        raise Refusal("unsupported-type", f"Content-Type must be one of {KNOWN}, got {cut(given.decode('latin-1'))}.")
    return kind


@lru_cache(maxsize=64)
def _kind(given: bytes) -> str | None:
    name, *more = given.decode("latin-1").lower().split(";")
    charset = [part.strip() for part in more if part.strip().startswith("charset")]
    if any(one.partition("=")[2].strip(' "') not in {"utf-8", "utf8", "us-ascii"} for one in charset):
        return None
    return KINDS.get(name.strip())


def answer_kind(headers: Headers, body: str, possible: tuple[str, ...] = ("json", "csv", "arrow")) -> str:
    """The kind of the answer that the client prefers. Among equally preferred ones, the kind of the body."""
    given = header(headers, b"accept")
    if given is None or given == b"*/*":
        return body if body in possible else possible[0]
    kind = _accepted(given[:LONGEST_HEADER], body, possible)
    if kind is None:
        names = ", ".join(name for name, one in KINDS.items() if one in possible)
        raise Refusal("not-acceptable", f"Accept must permit one of {names}, got {cut(given.decode('latin-1'))}.")
    return kind


@lru_cache(maxsize=64)
def _accepted(given: bytes, body: str, possible: tuple[str, ...]) -> str | None:
    wishes: dict[str, float] = {}
    for part in given.decode("latin-1").lower().split(","):
        name, *more = (piece.strip() for piece in part.split(";"))
        quality = next((piece[2:] for piece in more if piece.startswith("q=")), "1")
        try:
            wishes[name] = float(quality)
        except ValueError:
            wishes[name] = 0.0

    def wish(kind: str) -> float:
        name = next(one for one, known in KINDS.items() if known == kind)
        return next((wishes[n] for n in (name, f"{name.partition('/')[0]}/*", "*/*") if n in wishes), 0.0)

    best = max(possible, key=lambda kind: (wish(kind), kind == body))
    return best if wish(best) > 0 else None


class BodyReader:
    """Reads bodies. One bound holds for all bodies that are being read or worked on; ``release`` ends the work on one."""

    def __init__(self, most: int, seconds: float, together: int) -> None:
        self.most, self.seconds, self.together, self.held = most, seconds, together, 0

    async def read(self, headers: Headers, receive: Receive, *, complete: bool = False) -> bytes:
        """The body, inflated if it came compressed. ``complete`` says that all of it is there."""
        inflate = self._inflater(header(headers, b"content-encoding"))
        declared = header(headers, b"content-length")
        if declared is not None and (not declared.isdigit() or len(declared) > 18 or int(declared) > self.most):
            if not complete and header(headers, b"expect") is None:
                await self._drain(receive)
            raise self.too_large()
        if complete:
            return await self._body(receive, inflate)
        try:
            async with asyncio.timeout(self.seconds):
                return await self._body(receive, inflate)
        except TimeoutError:
            unread = False
        except Unread:
            unread = True
        if unread:
            await self._drain(receive)
            raise self.too_large()
        raise Refusal(
            "too-slow", f"the body must arrive within {self.seconds:g} seconds.", ((b"connection", b"close"),)
        )

    async def _body(self, receive: Receive, inflate: Any) -> bytes:
        message = await receive()
        if message["type"] == "http.request" and not message.get("more_body") and inflate is None:
            body: bytes = message.get("body", b"")
            if len(body) > self.most:
                raise self.too_large()
            self._hold(len(body))
            return body
        return await self._rest(message, receive, inflate)

    def _hold(self, size: int) -> None:
        if self.held + size > self.together:
            raise Refusal("unavailable", "too many bodies at once; try again.", ((b"retry-after", b"1"),))
        self.held += size

    def release(self, body: bytes) -> None:
        self.held -= len(body)

    async def _rest(self, message: MutableMapping[str, Any], receive: Receive, inflate: Any) -> bytes:
        pieces, size, whole = [], 0, False
        try:
            while True:
                if message["type"] != "http.request":
                    raise Gone
                piece = message.get("body", b"")
                for part in (piece,) if inflate is None else self._inflated(inflate, piece):
                    if size + len(part) > self.most:
                        raise Unread if message.get("more_body") else self.too_large()
                    self._hold(len(part))
                    size += len(part)
                    pieces.append(part)
                if not message.get("more_body"):
                    break
                message = await receive()
            if inflate is not None and not inflate.eof:
                raise Refusal("malformed-body", "the body is not a complete gzip stream.")
            whole = True
            return b"".join(pieces)
        finally:
            if not whole:
                self.held -= size

    async def _drain(self, receive: Receive) -> None:
        """Read and drop some of the rest: a client that is cut off while it sends does not see the answer."""
        left = DRAINED * self.most
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while left > 0:
                    message = await receive()
                    if message["type"] != "http.request" or not message.get("more_body"):
                        return
                    left -= len(message.get("body", b""))

    def _inflater(self, encoding: bytes | None) -> Any:
        if encoding is None or encoding.lower() == b"identity":
            return None
        if encoding.lower() in {b"gzip", b"x-gzip"}:
            return zlib.decompressobj(wbits=31)
        text = cut(encoding.decode("latin-1"))
        raise Refusal("unsupported-type", f"Content-Encoding must be gzip, or nothing, got {text}.")

    @staticmethod
    def _inflated(inflate: Any, piece: bytes) -> Any:
        """Inflate in pieces of bounded size, so that a small body cannot become large in one step."""
        full = True
        try:
            while piece or full:
                if inflate.eof and piece:
                    raise Refusal("malformed-body", "the body has extra bytes after the gzip stream.")
                part = inflate.decompress(piece, PIECE)
                yield part
                piece, full = inflate.unconsumed_tail or inflate.unused_data, len(part) == PIECE
        except zlib.error:
            piece = b""
        else:
            return
        raise Refusal("malformed-body", "Content-Encoding says gzip, but the body is not gzip.")

    def too_large(self) -> Refusal:
        """What to say of a body that has too many bytes."""
        return Refusal(
            "too-large",
            f"the body must have at most {self.most} bytes, also after inflation. Send the points in several requests.",
            ((b"connection", b"close"),),
        )
