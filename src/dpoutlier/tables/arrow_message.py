"""The head of an Arrow message, as far as its rows, buffers and compression go. Bounds of every look are checked."""

from __future__ import annotations

from struct import Struct
from typing import Any, NamedTuple

import pyarrow as pa

RECORD_BATCH, DICTIONARY_BATCH = 3, 2
MAX_BUFFERS = 1 << 18
DAMAGED = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError, NotImplementedError, EOFError)
"""What Arrow, and the checks here, raise at a stream that is damaged."""

_i32, _u16, _i64, _u8, _buffer = (Struct(code) for code in ("<i", "<H", "<q", "<B", "<qq"))


class Batch(NamedTuple):
    """What a batch declares."""

    rows: int
    compressed: bool
    buffers: list[tuple[int, int]]
    """Offset and length of each."""
    dictionary: int | None
    """The id of the dictionary, if it is a batch of one."""
    delta: bool
    """Whether it is to be added to the dictionary as it was."""


class _Table:
    """A table of a flatbuffer; ``field`` gives where a field stands, or 0."""

    def __init__(self, data: memoryview, place: int) -> None:
        self.data, self.place = data, place
        self.names = place - self._read(_i32, place)
        self.size = self._read(_u16, self.names)

    def _read(self, kind: Struct, place: int) -> int:
        if place < 0 or place + kind.size > len(self.data):
            raise ValueError
        return int(kind.unpack_from(self.data, place)[0])

    def field(self, number: int) -> int:
        entry = 4 + 2 * number
        offset = self._read(_u16, self.names + entry) if entry + 2 <= self.size else 0
        return self.place + offset if offset else 0

    def number(self, number: int, kind: Struct) -> int:
        place = self.field(number)
        return self._read(kind, place) if place else 0

    def table(self, number: int) -> _Table | None:
        place = self.field(number)
        return _Table(self.data, place + self._read(_i32, place)) if place else None

    def pairs(self, number: int) -> list[tuple[int, int]]:
        """A vector of pairs of whole numbers."""
        place = self.field(number)
        if not place:
            return []
        start = place + self._read(_i32, place)
        length = self._read(_i32, start)
        if not 0 <= length <= MAX_BUFFERS or start + 4 + 16 * length > len(self.data) or start < 0:
            raise ValueError
        return [(a, b) for a, b in _buffer.iter_unpack(self.data[start + 4 : start + 4 + 16 * length])]


def batch_of(metadata: Any) -> Batch:
    """What the head of a message declares of its batch; ValueError if it is not one."""
    data = memoryview(metadata)
    if len(data) < 4:
        raise ValueError
    message = _Table(data, _i32.unpack_from(data)[0])
    kind, batch = message.number(1, _u8), message.table(2)
    dictionary, delta = None, False
    if kind == DICTIONARY_BATCH and batch is not None:
        dictionary, delta = batch.number(0, _i64), batch.number(2, _u8) != 0
        batch = batch.table(1)
    if batch is None or kind not in {RECORD_BATCH, DICTIONARY_BATCH}:
        raise ValueError
    rows = batch.number(0, _i64)
    if rows < 0:
        raise ValueError
    return Batch(rows, batch.field(3) != 0, batch.pairs(2), dictionary, delta)
