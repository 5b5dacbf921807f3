"""The audit log: lines of JSON, each with the hash of the one before. What was written cannot be changed unnoticed.

Records that a query came and who asked, never the points. All workers write to one file, one at a time.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from dpoutlier.exceptions import DpoutlierError

__all__ = ["FIRST", "AuditError", "AuditLog", "Verified", "verify"]

FIRST = "0" * 64
TAIL, LONGEST_TAIL = 1 << 14, 1 << 26
"""Bytes that are read first to find the last entry, and at most."""
OPENING = b'{"seq":'
FIELDS = ("request_id", "key", "model", "release", "route", "rows", "status")


class AuditError(DpoutlierError):
    """An audit log does not hold together. ``line`` is the first bad line, counted from 1."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}")
        self.line = line


class Verified(NamedTuple):
    """A log that holds together."""

    entries: int
    first: str | None
    last: str | None
    head: str
    repairs: int


def _hash(entry: dict[str, Any]) -> str:
    content = {name: value for name, value in entry.items() if name != "hash"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


class AuditLog:
    """Appends to a file. An entry is in the file before ``append`` returns."""

    def __init__(self, path: str | Path) -> None:
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._known = (-1, 0, FIRST)

    def append(self, event: str, **fields: Any) -> None:
        fcntl.flock(self.file, fcntl.LOCK_EX)
        try:
            seq, previous = self._last()
            self._write(seq + 1, previous, event, fields)
        finally:
            fcntl.flock(self.file, fcntl.LOCK_UN)

    def _write(self, seq: int, previous: str, event: str, fields: dict[str, Any]) -> None:
        entry: dict[str, Any] = {
            "seq": seq,
            "time": datetime.now(UTC).isoformat(timespec="microseconds"),
            "event": event,
        }
        entry |= {name: fields.get(name) for name in FIELDS}
        entry |= {name: value for name, value in fields.items() if name not in FIELDS}
        entry["previous"] = previous
        entry["hash"] = _hash(entry)
        line = _line(entry)
        size = os.fstat(self.file).st_size
        if os.write(self.file, line) != len(line):  # the disk is full: take the part back, and refuse
            os.ftruncate(self.file, size)
            raise OSError(28, "the audit log could not be written")
        self._known = (size + len(line), seq, str(entry["hash"]))

    def _last(self) -> tuple[int, str]:
        """Number and hash of the last entry; a torn line at the end, left by a crash, becomes an entry that says so."""
        size = os.fstat(self.file).st_size
        if size == self._known[0]:
            return self._known[1:]
        whole, newline, torn = self._tail(size).rpartition(b"\n")
        last = whole.rpartition(b"\n")[2]
        if newline:
            try:
                entry = json.loads(last.decode())
                seq, head = int(entry["seq"]), str(entry["hash"])
            except (RecursionError, OverflowError):
                raise ValueError("no entry") from None
        elif OPENING.startswith(torn[: len(OPENING)]):
            seq, head = 0, FIRST
        else:
            raise ValueError("no entry")
        if torn:
            os.ftruncate(self.file, size - len(torn))
            self._write(seq + 1, head, "repair", {"torn": torn.decode("utf-8", "replace")})
            return self._known[1:]
        self._known = (size, seq, head)
        return seq, head

    def _tail(self, size: int) -> bytes:
        """The end of the file, from before its last whole line."""
        window = TAIL
        while True:
            tail = os.pread(self.file, min(size, window), max(0, size - window))
            if window >= size or tail.count(b"\n") > 1:
                return tail
            if window >= LONGEST_TAIL:
                raise ValueError("no entry")
            window *= 4

    def check(self) -> None:
        """See that the file is a log that can be gone on with; ValueError, KeyError or TypeError if it is none."""
        fcntl.flock(self.file, fcntl.LOCK_EX)
        try:
            self._last()
        finally:
            fcntl.flock(self.file, fcntl.LOCK_UN)

    def sync(self) -> None:
        """See that what was written is on the disk."""
        os.fsync(self.file)

    def close(self) -> None:
        os.close(self.file)


def verify(path: str | Path, head: str | None = None) -> Verified:
    """Check every entry of a log. ``head`` is a hash that was noted before: it must be that of one of the entries."""
    head = None if head is None else head.strip().lower()
    previous, first, last, number, repairs, met = FIRST, None, None, 0, 0, head is None
    with Path(path).open("rb") as stream:
        for number, line in enumerate(stream, 1):
            entry = _entry(line, number)
            if _line(entry) != line:  # a key twice, a blank: what was hashed is not what stands there
                raise AuditError(number, "it was changed: no server writes a line like this.")
            if entry["seq"] != number:
                raise AuditError(
                    number, f"it is entry {entry['seq']}, and entry {number} was due: lines were moved or left out."
                )
            if entry["previous"] != previous:
                raise AuditError(number, "it does not follow the entry before it: something was changed or left out.")
            if entry["hash"] != _hash(entry):
                raise AuditError(number, "it was changed: its hash is another's.")
            previous, last, first = entry["hash"], entry["time"], first or entry["time"]
            repairs += entry["event"] == "repair"
            met = met or previous == head
    if not met:
        raise AuditError(
            number + 1,
            f"no entry has the hash {str(head)[:64]}, which was noted before: the end was cut off, or the log is another.",
        )
    return Verified(number, first, last, previous, repairs)


def _entry(line: bytes, number: int) -> dict[str, Any]:
    if not line.endswith(b"\n"):
        raise AuditError(
            number, "it is torn: the writer was stopped. A server that starts with this log repairs and marks it."
        )
    try:
        entry = json.loads(line.decode())
        if {"seq", "time", "event", "previous", "hash"} <= entry.keys():
            return dict(entry)
    except (ValueError, AttributeError, RecursionError):
        pass
    raise AuditError(number, "it is no entry.")
