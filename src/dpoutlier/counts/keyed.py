"""Keyed counts: exact counts and a secret key from which each cell's noise is computed. The noise never changes. Secret."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpoutlier.counts.base import empty_table, occupied_cells
from dpoutlier.counts.file_arrays import Arrays, expect, listed_cells, rational
from dpoutlier.exceptions import ModelFileError, SecretError
from dpoutlier.kernels.counts import KEYED, KEYED_BY_TABLE, CountTable
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.noise.laplace_table import DIGITS, guided_table, has_table
from dpoutlier.partitions.base import CellIds, Partition

KEY_BYTES, SALT_BYTES = 32, 16
# Versions of the sampler, which never change: the pseudo-random function and the way to draw that a file names.
SAMPLERS = {
    1: ("siphash-2-4-of-24-bytes/1", "canonne-kamath-steinke/1"),
    2: ("siphash-2-4-of-16-bytes-then-24/2", "guided-table/2"),
}
_PERSON = b"dpoutlier noise1"

_may_travel: ContextVar[bool] = ContextVar("secrets_may_travel", default=False)


@contextmanager
def secrets_may_travel() -> Iterator[None]:
    """Permit to pickle secret models inside a ``with`` block.

    A secret model holds exact counts and the key of their noise, so pickling it is refused elsewhere. Use the block only to send a
    model to another process of the data custodian.

    Yields
    ------
    None
        Nothing.

    See Also
    --------
    load : Load a model file; a secret one needs ``secret=True``.

    Examples
    --------
    >>> import pickle
    >>> import numpy as np
    >>> from dpoutlier import DPGridKNN, secrets_may_travel
    >>> detector = DPGridKNN(epsilon=1, features=(0, 1), bins=4, counts="keyed").fit(np.full((500, 2), 0.3))
    >>> with secrets_may_travel():
    ...     copy = pickle.loads(pickle.dumps(detector))
    >>> copy.score_one({0: 0.3, 1: 0.3}) == detector.score_one({0: 0.3, 1: 0.3})
    True
    """
    token = _may_travel.set(True)
    try:
        yield
    finally:
        _may_travel.reset(token)


def sampler_version_for(noise: DiscreteLaplace) -> int:
    """The version of the sampler for a new fit: version 1 if the noise is too wide for a table, else 2."""
    return 2 if has_table(noise.rate) else 1


def _sampler_version_of(prf: Any, sampler: Any) -> int:
    """The version of the sampler that a file names. A file always keeps its own."""
    named = [version for version, names in SAMPLERS.items() if names == (prf, sampler)]
    if not named:
        raise ModelFileError(
            f"the model file needs the noise of {prf} with {sampler}, which this dpoutlier does not have. Other noise on the same "
            "counts would be a second release: upgrade dpoutlier."
        )
    return named[0]


@dataclass(frozen=True, eq=False, repr=False)
class KeyedCounts:
    """Exact counts of the occupied cells plus what makes the noise of every cell.

    A cell's noise is a function of (key, salt, cell): the same for every query, thread, process and restart. The salt is
    fresh for every fit, since with the same key and salt the difference of two fits would be exact.
    """

    kind: ClassVar[str] = "keyed"
    publishable: ClassVar[bool] = False

    ids: CellIds
    exact: NDArray[np.int64]
    key: bytes
    salt: bytes
    noise: DiscreteLaplace
    sampler_version: int = 2
    """Version of the sampler. An old file keeps its own: other noise on the same counts would be a second release."""

    def subkey(self) -> NDArray[np.uint64]:
        digest = hashlib.blake2b(digest_size=16, key=self.key, salt=self.salt, person=_PERSON).digest()
        return np.frombuffer(digest, "<u8").astype(np.uint64)

    def table(self, digits: int = DIGITS) -> CountTable:
        exact = empty_table(KEYED)._replace(
            occupied=occupied_cells(self.ids, self.exact), subkey=self.subkey(), rate=np.uint64(self.noise.rate_units)
        )
        if self.sampler_version == 1:
            return exact
        return exact._replace(kind=KEYED_BY_TABLE, guided=guided_table(self.noise.rate, digits))

    def listed(self) -> None:
        return None  # noise lies on every cell, and which of them are occupied is secret

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "ids": self.ids,
            "exact": self.exact,
            "key": np.frombuffer(self.key, np.uint8),
            "salt": np.frombuffer(self.salt, np.uint8),
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "prf": SAMPLERS[self.sampler_version][0],
            "sampler": SAMPLERS[self.sampler_version][1],
            "rate": str(self.noise.rate),
            "unsafe_float": False,  # of a mode that is gone; version 1 of the format names it
        }

    @classmethod
    def from_file(cls, content: dict[str, Any], arrays: Arrays, partition: Partition) -> KeyedCounts:
        """Counts of the cells of this partition, every array checked."""
        version = _sampler_version_of(content["prf"], content["sampler"])
        ids, exact = listed_cells(arrays, partition, "exact")
        key = expect(arrays, "key", "u1", (KEY_BYTES,)).tobytes()
        salt = expect(arrays, "salt", "u1", (SALT_BYTES,)).tobytes()
        noise = DiscreteLaplace(rational(content["rate"]))
        if version > sampler_version_for(noise):
            raise ModelFileError("the model file has noise too wide for the table that it names.")
        return cls(ids, exact, key, salt, noise, version)

    def __copy__(self) -> KeyedCounts:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> KeyedCounts:
        return self  # frozen, and a copy in the same process is not a leak

    def __reduce__(self) -> tuple[Any, ...]:
        if not _may_travel.get():
            raise SecretError(
                "this model is secret: it holds exact counts and the key of their noise, and a pickle would carry both. "
                "Publish a dense model instead (counts='dense'), or, for a process that is the custodian's own, pickle "
                "inside 'with dpoutlier.secrets_may_travel():'."
            )
        return (KeyedCounts, (self.ids, self.exact, self.key, self.salt, self.noise, self.sampler_version))
