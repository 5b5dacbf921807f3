"""The page for people: a few files, read once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from dpoutlier.server.envelope import Reply
from dpoutlier.server.refusals import Refusal

__all__ = ["page_file"]

FOLDER = Path(__file__).parent / "page"
TYPES = {
    ".html": b"text/html; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".png": b"image/png",
    ".ico": b"image/x-icon",
}


@cache
def _files() -> dict[str, tuple[bytes, bytes]]:
    return {
        file.name: (TYPES[file.suffix], file.read_bytes())
        for file in FOLDER.iterdir()
        if file.is_file() and file.suffix in TYPES
    }


def page_file(name: str) -> Reply:
    """A file of the page by its name; only those that are there are ever looked up."""
    if name not in _files():
        raise Refusal("not-found", "the page has no such file.")
    kind, content = _files()[name]
    return Reply(content, ((b"content-type", kind),))
