"""Where random bytes come from: the operating system in a fit, a seed in tests."""

import hashlib
import os
from typing import Protocol


class ByteSource(Protocol):
    """Anything that gives uniform random bytes."""

    def read(self, n: int) -> bytes: ...


class SystemBytes:
    """The operating system's cryptographic generator. Nothing is buffered here, so a fork shares nothing."""

    def read(self, n: int) -> bytes:
        return os.urandom(n)


class UnsafeSeededBytes:
    """Bytes that anyone who knows the seed can compute: SHAKE-256 of (seed, number of the read). Not private."""

    def __init__(self, seed: int) -> None:
        self._seed, self._reads = int(seed), 0

    def read(self, n: int) -> bytes:
        text = f"dpoutlier unsafe seed {self._seed}, read {self._reads}".encode()
        self._reads += 1
        return hashlib.shake_256(text).digest(n)


def byte_source(unsafe_seed: int | None) -> ByteSource:
    return SystemBytes() if unsafe_seed is None else UnsafeSeededBytes(unsafe_seed)
