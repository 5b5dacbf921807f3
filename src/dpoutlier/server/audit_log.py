"""The audit log: lines of JSON, each with the hash of the one before. What was written cannot be changed unnoticed.

Records that a query came and who asked, never the points. All workers write to one file, one at a time.
"""

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from dpoutlier.exceptions import DpoutlierError
from dpoutlier.server.audit_mark import Known, Mark
from dpoutlier.server.logs import log, where

FIRST = "0" * 64
TAIL, LONGEST_TAIL = 1 << 14, 1 << 26
"""Bytes that are read to find the last entry: at first, and at most."""
OPENING = b'{"seq":'
FIELDS = ("request_id", "key", "model", "release", "route", "rows", "status")
MAX_ENTRIES = 1 << 63
DIGEST = re.compile("[0-9a-f]{64}")
FAULTS = (OSError, ValueError, KeyError, TypeError)
"""What ``append`` and ``check`` may raise."""
CANNOT = "the audit log cannot be written"
MOVED = "the audit log was moved, removed or replaced"
CUT = "the audit log was cut off or changed"
REMEDIES = {
    CANNOT: ". Check that the disk has space and that the server's user may write the file.",
    MOVED: " while the server was running. Put the file back, or stop the server, keep what there is, and start it again.",
    CUT: " while the server was running, for example by a log rotator. Stop the server, move the file away, and start it again. "
    "A head that you noted shows what is missing.",
}
"""How the sentence about each fault goes on in the log."""


class AuditError(DpoutlierError):
    """An audit log does not hold together. ``line`` is the first bad line, counted from 1."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}")
        self.line = line


class AuditChangedError(ValueError):
    """The file is not the one that this server has written, or not as it was left. ``fault`` is ``MOVED`` or ``CUT``."""

    def __init__(self, fault: str) -> None:
        super().__init__(fault)
        self.fault = fault


class Verified(NamedTuple):
    """A log that holds together."""

    entries: int
    first: str | None
    last: str | None
    head: str
    repairs: int
    refusals: int
    """Requests that were refused, those included that are only counted."""


def _hash(entry: dict[str, Any]) -> str:
    content = {name: value for name, value in entry.items() if name != "hash"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


class AuditLog:
    """Appends to a file. An entry is in the file before ``append`` returns.

    All workers of a server share a mark of the file and of its last entry: see ``Mark``.
    """

    def __init__(self, path: str | Path, shared: str | None = None) -> None:
        self.path, self.mark = str(path), Mark(shared)
        self.fault: str | None = None
        """Why the log does not work; anybody may read it."""
        self.file, self._alone = -1, Lock()
        if self.mark.read() is None:
            self._open(os.O_CREAT)

    def append(self, event: str, **fields: Any) -> None:
        with self._locked():
            self._write(self._last(), event, fields)

    def check(self) -> None:
        """Check that entries can be added to the file; ValueError, KeyError or TypeError if it is not a log."""
        with self._locked():
            self._last()

    def check_and_sync(self) -> None:
        """Check that the log still works, and force what was written to the disk."""
        if self.fault is None:
            self.check()
        else:
            self.append("resumed")  # only an entry shows that entries can be written again
        self.sync()

    def sync(self) -> None:
        """Force what was written to the disk. That may take long, and must not hold up others."""
        with self._alone:
            handle = os.dup(self.file)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def reasons(self) -> list[str]:
        """Why nothing is answered."""
        return [] if self.fault is None else [self.fault]

    def close(self) -> None:
        if self.file >= 0:
            os.close(self.file)
        self.file = -1

    def _open(self, more: int = 0) -> None:
        self.file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | more, 0o600)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the file, alone among threads and processes, and note whether all went well."""
        with self._alone:
            try:
                if self.file < 0:
                    self._open()
                fcntl.flock(self.file, fcntl.LOCK_EX)
                try:
                    yield
                finally:
                    fcntl.flock(self.file, fcntl.LOCK_UN)
            except FAULTS as error:
                self._failed(error)
                raise
            self.fault = None

    def _failed(self, error: Exception) -> None:
        known, self.fault = self.fault, CANNOT
        if isinstance(error, AuditChangedError):
            self.fault = error.fault
        elif isinstance(error, FileNotFoundError):
            self.fault = MOVED
        if self.fault == MOVED:
            self.close()  # the right file may be put back
        # Without a mark no server runs yet, and its start reports the error.
        if self.fault != known and self.mark.read() is not None:
            message = f"{self.path}: {self.fault}{REMEDIES[self.fault]} No query is answered meanwhile."
            log("audit-failed", "critical", message=message, **where(error))

    def _write(self, last: Known, event: str, fields: dict[str, Any]) -> Known:
        """Write the entry that follows the last one, which it becomes."""
        entry: dict[str, Any] = {
            "seq": last.seq + 1,
            "time": datetime.now(UTC).isoformat(timespec="microseconds"),
            "event": event,
        }
        entry |= {name: fields.get(name) for name in FIELDS}
        entry |= {name: value for name, value in fields.items() if name not in FIELDS}
        entry["previous"] = last.head
        entry["hash"] = _hash(entry)
        line = _line(entry)
        if os.write(self.file, line) != len(line):  # the disk is full: take the part back, and refuse
            os.ftruncate(self.file, last.size)
            raise OSError(28, "the audit log could not be written")
        return self.mark.write(last._replace(size=last.size + len(line), seq=last.seq + 1, head=entry["hash"]))

    def _last(self) -> Known:
        """The last entry; a torn line at the end, left by a crash, becomes an entry that says so."""
        found, there, known = os.fstat(self.file), os.stat(self.path), self.mark.read()  # noqa: PTH116 - for each query
        if not os.path.samestat(found, there) or (known is not None and known[:2] != (found.st_dev, found.st_ino)):
            raise AuditChangedError(MOVED)
        size = found.st_size
        if known is not None:
            if not self._holds(known, size):
                raise AuditChangedError(CUT)
            if size == known.size:
                return known
        whole, newline, torn = self._tail(size).rpartition(b"\n")
        if newline:
            seq, head = _seq_and_hash(whole.rpartition(b"\n")[2])
        elif OPENING.startswith(torn[: len(OPENING)]):
            seq, head = 0, FIRST
        else:
            raise ValueError("no entry")
        last = Known(found.st_dev, found.st_ino, size - len(torn), seq, head)
        if not torn:
            return self.mark.write(last)
        os.ftruncate(self.file, last.size)
        return self._write(last, "repair", {"torn": torn.decode("utf-8", "replace")})

    def _holds(self, known: Known, size: int) -> bool:
        """Whether the entry that was the last one is still in its place. Another server may have written what follows it."""
        end = _end_of_line(known.head) if known.seq else b""
        return size >= known.size and os.pread(self.file, len(end), known.size - len(end)) == end

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


def _end_of_line(head: str) -> bytes:
    """How a line ends whose entry has this hash."""
    return b'"hash":"%s"}\n' % head.encode()


def _seq_and_hash(line: bytes) -> tuple[int, str]:
    try:
        entry = json.loads(line.decode())
        seq, head = int(entry["seq"]), str(entry["hash"])
    except (RecursionError, OverflowError):
        raise ValueError("no entry") from None
    if not 1 <= seq < MAX_ENTRIES or not DIGEST.fullmatch(head) or not (line + b"\n").endswith(_end_of_line(head)):
        raise ValueError("no entry")
    return seq, head


def verify(path: str | Path, head: str | None = None) -> Verified:
    """Check every entry of a log. ``head`` is a hash that was noted before: it must be that of one of the entries."""
    head = None if head is None else head.strip().lower()
    previous, first, last, number, met = FIRST, None, None, 0, head is None
    repairs = refusals = 0
    with Path(path).open("rb") as stream:
        for number, line in enumerate(stream, 1):
            entry = _entry(line, number)
            if _line(entry) != line:  # a key twice, a blank: what was hashed is not what stands there
                raise AuditError(number, "it was changed: no server writes a line like this.")
            if entry["seq"] != number:
                raise AuditError(
                    number,
                    f"this is entry {entry['seq']}, but entry {number} was expected: lines were moved or left out.",
                )
            if entry["previous"] != previous:
                raise AuditError(number, "it does not follow the entry before it: something was changed or left out.")
            if entry["hash"] != _hash(entry):
                raise AuditError(number, "it was changed: its hash does not match.")
            previous, last, first = entry["hash"], entry["time"], first or entry["time"]
            repairs += entry["event"] == "repair"
            refusals += _refusals(entry)
            met = met or previous == head
    if not met:
        raise AuditError(
            number + 1,
            f"no entry has the hash {str(head)[:64]}, which was noted before: the end was cut off, or this is another log.",
        )
    return Verified(number, first, last, previous, repairs, refusals)


def _refusals(entry: dict[str, Any]) -> int:
    """How many refused requests an entry records."""
    if entry["event"] == "refused":
        return 1
    count = entry.get("count") if entry["event"] == "refused-more" else 0
    return max(count, 0) if isinstance(count, int) else 0


def _entry(line: bytes, number: int) -> dict[str, Any]:
    if not line.endswith(b"\n"):
        raise AuditError(
            number, "it is incomplete: the writer was stopped. A server that starts with this log repairs and marks it."
        )
    try:
        entry = json.loads(line.decode())
        if {"seq", "time", "event", "previous", "hash"} <= entry.keys():
            return dict(entry)
    except (ValueError, AttributeError, RecursionError):
        pass
    raise AuditError(number, "it is not an entry.")
