"""Error responses, which all have the same form."""

from typing import Any, Self

from pydantic_core import to_json

SHOWN = 80
CODES = {
    "bad-parameter": 400,
    "malformed-body": 400,
    "malformed-request": 400,
    "missing-value": 400,
    "no-such-column": 400,
    "unauthorized": 401,
    "not-for-metrics": 403,
    "unknown-model": 404,
    "not-found": 404,
    "method-not-allowed": 405,
    "not-acceptable": 406,
    "too-slow": 408,
    "too-large": 413,
    "too-many-rows": 413,
    "unsupported-type": 415,
    "wrong-host": 421,
    "too-many-requests": 429,
    "headers-too-large": 431,
    "failed": 500,
    "unavailable": 503,
}


class Refusal(Exception):  # noqa: N818 - it is an answer
    """An error that becomes an answer."""

    def __init__(
        self,
        code: str,
        message: str,
        headers: tuple[tuple[bytes, bytes], ...] = (),
        *,
        place: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(code)  # and not the message, which may hold a value
        self.code, self.message, self.headers, self.place = code, message, headers, place

    @property
    def status(self) -> int:
        return CODES[self.code]

    def without_traceback(self) -> Self:
        """The same without its traceback, which would keep the body in memory."""
        self.__context__ = None
        return self.with_traceback(None)


def cut(value: object, most: int = SHOWN) -> str:
    """A value for a message, of bounded length whatever it is."""
    text = repr(value[: most + 1] if isinstance(value, str | bytes) else value)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def error_body(code: str, message: str, place: dict[str, Any] | None = None) -> bytes:
    """The same in JSON; ``place`` has the other fields of ``schemas.ErrorText``."""
    return to_json({"error": {"code": code, "message": message, **(place or {})}})
