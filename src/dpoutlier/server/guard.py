"""Who asks: the key of a request, read again when its file changes."""

from __future__ import annotations

import os
from pathlib import Path

from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.server.keys import OPEN, Key, KeyRing, read_keys
from dpoutlier.server.refusals import Refusal

__all__ = ["Guard"]

REALM = ((b"www-authenticate", b"Bearer"),)
WHO = "this server needs a valid key: send the header 'Authorization: Bearer dpo_...'. Whoever runs the server makes keys."
LONGEST = 200


class Guard:
    """Checks keys. A file that cannot be read any more holds no valid key."""

    def __init__(self, path: str | None) -> None:
        self.path = None if path is None else Path(path)
        self.stamp = self._stamp()
        self.ring = KeyRing([] if self.path is None else read_keys(self.path))

    def _stamp(self) -> tuple[int, ...] | None:
        try:
            found = None if self.path is None else os.stat(self.path)  # noqa: PTH116 - called every second
        except OSError:
            return None
        return None if found is None else (found.st_ino, found.st_mtime_ns, found.st_size)

    def refresh(self) -> bool | None:
        """Read the file again if it has changed; False if it cannot be read, None if nothing has changed."""
        stamp = self._stamp()
        if self.path is None or stamp == self.stamp:
            return None
        self.stamp = stamp
        try:
            self.ring = KeyRing(read_keys(self.path))
        except (InvalidParameterError, OSError):
            self.ring = KeyRing([])
            return False
        return True

    def key_of(self, headers: list[tuple[bytes, bytes]]) -> Key:
        """The key of a request with these headers. What is wrong with it is not told."""
        if self.path is None:
            return OPEN
        given = [value for name, value in headers if name == b"authorization"]
        scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        usable = scheme.lower() == b"bearer" and len(token) <= LONGEST
        key = self.ring.check(token.strip().decode("latin-1") if usable else "")
        if key is None:
            raise Refusal("unauthorized", WHO, REALM)
        return key
