"""Logs: lines of JSON on standard error. They record that a request came, and nothing of its content."""

import logging
import os
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from pydantic_core import to_json

WHOLE = 4096
"""Bytes that a pipe takes in one piece."""
MAX_WAITING = 100
INSIDE = f"{Path(__file__).parents[1]}{os.sep}"


_waiting: list[bytes] = []
_lock = Lock()


def log(event: str, level: str = "info", *, at_once: bool = True, **fields: Any) -> None:
    """One line. It is written at once with all that wait, or waits for half a second at most, until ``flush``. Never raises."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    _waiting.append(_line({"time": now, "level": level, "event": event, **fields, "pid": _pid()}))
    if at_once or len(_waiting) >= MAX_WAITING:
        flush()


def _line(content: dict[str, Any]) -> bytes:
    try:
        return to_json(content)
    except Exception as error:  # noqa: BLE001 - such as a file name that is not text: the other fields are logged
        known = {name: content[name] for name in ("time", "level", "event", "pid")}
        return to_json({**known, "left_out": type(error).__name__})


def flush() -> None:
    """Write what waits, in whole lines and pieces that lines of other workers do not mix with."""
    with _lock, suppress(OSError):  # the reader has gone
        while _waiting:
            piece = _waiting.pop(0) + b"\n"
            while _waiting and len(piece) + len(_waiting[0]) < WHOLE:
                piece += _waiting.pop(0) + b"\n"
            os.write(2, piece)


@cache
def _pid() -> int:
    return os.getpid()


def where(error: BaseException) -> dict[str, Any]:
    """The type of an error and where in this package it came from. Its text may quote a value, and is left out."""
    walked = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    own = [f"{name.removeprefix(INSIDE)}:{line}" for name, line in walked if name.startswith(INSIDE)]
    return {"error": type(error).__name__, "at": own[-1] if own else "elsewhere"}


class Lines(logging.Handler):
    """Records of other packages, as lines like ours. Only the fixed part of a message is logged, and no stack trace."""

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = {"logger": record.name, "at": f"{record.module}:{record.lineno}"}
        if record.name.startswith("uvicorn") and isinstance(record.msg, str) and not record.exc_info:
            fields["message"] = record.msg[:200]
        if record.exc_info and record.exc_info[0] is not None:
            fields["error"] = record.exc_info[0].__name__
        log("library", record.levelname.lower(), **fields)


UVICORN_LOGS: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"lines": {"()": "dpoutlier.server.logs.Lines"}},
    "root": {"handlers": ["lines"], "level": "WARNING"},
    "loggers": {"uvicorn.access": {"handlers": [], "level": "CRITICAL", "propagate": False}},
}
