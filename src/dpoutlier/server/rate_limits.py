"""How often a key may ask, over all workers: buckets of tokens in a table that they share."""

import fcntl
import hashlib
import mmap
import os
import time
from pathlib import Path
from struct import Struct

from dpoutlier.server.error_responses import Refusal

SLOTS = 1 << 14
SLOT = Struct("<16sdd")


class RateLimit:
    """At most ``rate`` requests a second, and as many at once. Each key has a slot, found by a hash of its id."""

    def __init__(self, rate: float, folder: str | None) -> None:
        self.rate, self.burst = rate, max(1.0, rate)
        path = None if folder is None else Path(folder) / "rates"
        self.file = -1 if path is None else os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if path is not None:
            os.ftruncate(self.file, SLOTS * SLOT.size)
        self.table = mmap.mmap(self.file, SLOTS * SLOT.size)

    def take(self, key: str) -> None:
        """Take a token of the key's bucket, or refuse until there is one."""
        if self.rate <= 0:
            return
        if self.file >= 0:
            fcntl.flock(self.file, fcntl.LOCK_EX)
        try:
            wait = self._take(key.encode())
        finally:
            if self.file >= 0:
                fcntl.flock(self.file, fcntl.LOCK_UN)
        if wait > 0:
            seconds = str(max(1, -int(-wait // 1)))
            raise Refusal(
                "too-many-requests",
                f"this key may send {self.rate:g} requests a second. Wait {seconds} seconds.",
                ((b"retry-after", seconds.encode()),),
            )

    def _take(self, key: bytes) -> float:
        """0, or the seconds to wait."""
        now, place = time.monotonic(), self._place(key)
        _, tokens, before = SLOT.unpack_from(self.table, place)
        tokens = min(self.burst, tokens + (now - before) * self.rate) if before else self.burst
        wait = 0.0 if tokens >= 1 else (1 - tokens) / self.rate
        SLOT.pack_into(self.table, place, key, tokens - (wait == 0), now)
        return wait

    def _place(self, key: bytes) -> int:
        first = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little") % SLOTS
        for step in range(SLOTS):
            place = (first + step) % SLOTS * SLOT.size
            known = self.table[place : place + 16].rstrip(b"\0")
            if known in {key, b""}:
                return place
        return first * SLOT.size
