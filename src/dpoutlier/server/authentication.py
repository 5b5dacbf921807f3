"""Checks the key of a request. The key file is read again when it changes."""

import math
import os
import time
from pathlib import Path

from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.server.error_responses import Refusal
from dpoutlier.server.keys import OPEN, Key, KeyRing, read_keys
from dpoutlier.server.logs import log
from dpoutlier.server.stamps import Stamp, stamp_of

REALM = ((b"www-authenticate", b"Bearer"),)
WHO = "this server needs a valid key: send the header 'Authorization: Bearer dpo_...'. The operator of the server makes keys."
LONGEST = 200
MAX_AGE = 5.0
"""Seconds without a check of the key file after which no key is accepted: one of them may have been revoked."""


class Guard:
    """Checks keys. While the key file cannot be read, no key is valid; every check tries the file again."""

    def __init__(self, path: str | None) -> None:
        self.path = None if path is None else Path(path)
        self.ring = KeyRing([])
        self.problem: str | None = None
        """Why the file cannot be used, and what helps."""
        self.checked = math.inf
        """When the file was last checked. Before the first check nothing is too old."""
        self.stamp = None if self.path is None else self._read(self.path)

    def refresh(self) -> None:
        """Read the file again if it has changed, or could not be read before."""
        if self.path is None:
            return
        if self.problem is not None or stamp_of(self.path) != self.stamp:
            self.stamp = self._read(self.path)
            if self.problem is None:
                log("keys-read")
        self.checked = time.monotonic()

    def _read(self, path: Path) -> Stamp | None:
        """Take the keys of the file, or none. Return the stamp from before, so that a file replaced meanwhile is read again."""
        stamp, known = stamp_of(path), self.problem
        try:
            self.ring, self.problem = KeyRing(read_keys(path)), None
        except Exception as error:  # noqa: BLE001 - whatever it is, keys that may have been revoked must not be used
            self.ring, self.problem = KeyRing([]), _problem(path, error)
        if self.problem is not None and self.problem != known:
            log("keys-unreadable", "error", message=self.problem)
        return stamp

    def reasons(self) -> list[str]:
        """Why no key is accepted at the moment."""
        return [] if self.problem is None else ["the key file cannot be read"]

    def key_of(self, headers: list[tuple[bytes, bytes]]) -> Key:
        """The key of a request with these headers. The error does not say what is wrong with it."""
        if self.path is None:
            return OPEN
        if time.monotonic() - self.checked > MAX_AGE:
            raise Refusal("unavailable", "the server cannot check its keys at the moment; try again.")
        key = self.ring.check(_token(headers))
        if key is None:
            raise Refusal("unauthorized", WHO, REALM)
        return key

    def known_id(self, headers: list[tuple[bytes, bytes]]) -> str | None:
        """The id in the key of a request that was refused, if the file has such an id. Nothing else of it is logged."""
        return self.ring.known_id(_token(headers))


def _token(headers: list[tuple[bytes, bytes]]) -> str:
    given = [value for name, value in headers if name == b"authorization"]
    scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
    return token.strip().decode("latin-1") if scheme.lower() == b"bearer" and len(token) <= LONGEST else ""


def _problem(path: Path, error: Exception) -> str:
    """What is wrong with a key file, for the log: its text is about a file of the custodian's, and about no request."""
    if isinstance(error, PermissionError):
        return (
            f"{path} cannot be read by this server, so no key is valid. It runs as user {os.geteuid()}: give the file to that "
            f"user (chown {os.geteuid()} {path}), or let its group read it. The server tries again by itself."
        )
    what = str(error) if isinstance(error, InvalidParameterError) else f"{path} cannot be read: {error}."
    return f"No key is valid: {what} The server tries again by itself."
