"""Entries of refused requests in the audit log. Anybody can cause them, so a flood is counted, and must not fill the disk."""

import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from dpoutlier.server.audit_log import FAULTS, AuditLog

MAX_REFUSED, REFUSED_SECONDS = 20, 60.0
"""Each worker writes entries for MAX_REFUSED refused requests in REFUSED_SECONDS. One entry counts the rest."""


@dataclass
class Window:
    """The refused requests of some seconds."""

    begin: float = -REFUSED_SECONDS
    entered: int = 0
    more: int = 0
    keys: set[str] = field(default_factory=set)
    """Ids of keys among those that are only counted; some, if they are many."""


class RefusedEntries:
    """Writes or counts refused requests. Requests without a valid key cannot use up the entries of those with one."""

    def __init__(self, audit: AuditLog) -> None:
        self.audit = audit
        self.windows = {True: Window(), False: Window()}

    def enter(self, *, valid: bool, key: str | None, **fields: Any) -> None:
        """Enter, or count, a request that was refused. If that fails, the log has said so; the request is refused in any case."""
        with suppress(*FAULTS):
            self._settle(valid, time.monotonic())
        window = self.windows[valid]
        if window.entered >= MAX_REFUSED:
            window.more += 1
            if key is not None and len(window.keys) < MAX_REFUSED:
                window.keys.add(key)
            return
        window.entered += 1
        with suppress(*FAULTS):
            self.audit.append("refused", key=key, **fields)

    def write_counts(self) -> None:
        """Enter what was counted, if its time is over."""
        for valid in self.windows:
            self._settle(valid, time.monotonic())

    def close(self) -> None:
        """Enter all that was counted."""
        for valid in self.windows:
            self._settle(valid, float("inf"))

    def _settle(self, valid: bool, now: float) -> None:
        window = self.windows[valid]
        if now - window.begin < REFUSED_SECONDS:
            return
        if window.more:
            self.audit.append("refused-more", count=window.more, keys=sorted(window.keys))
        self.windows[valid] = Window(time.monotonic())
