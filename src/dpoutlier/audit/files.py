"""What a published file reveals: its counts, and anything else in it that is not the same in both worlds."""

import hashlib
import io
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpoutlier.audit.evidence import LookUp
from dpoutlier.partitions.base import CellIds

MEMORY = Path("/dev/shm")  # noqa: S108 - a folder with a random name is made in it

RELEASED = ("arrays", "checksum")
"""Parts of a manifest that follow from the arrays."""


class Opened(NamedTuple):
    """A file as an attacker reads it, without this library."""

    look_up: LookUp
    rest: int
    """A label for everything except counts: manifest, names, sizes, and when and how it was written."""


def folder_in_memory() -> tempfile.TemporaryDirectory[str]:
    """A folder for many short-lived files: in memory if the system has such a place, so that none is forced to a disk."""
    return tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) else None)


def open_file(path: Path) -> Opened:
    content = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [
            (info.filename, info.file_size, info.date_time, info.extra, info.comment) for info in archive.infolist()
        ]
        arrays = {
            name.removesuffix(".npy"): np.load(io.BytesIO(archive.read(name)), allow_pickle=False)
            for name, *_ in members
            if name.endswith(".npy")
        }
        manifest = json.loads(archive.read("manifest.json"))
        comment = archive.comment
    rest = {key: value for key, value in manifest.items() if key not in RELEASED}
    seen = repr((members, comment, len(content), path.name, sorted(rest.items())))
    label = int.from_bytes(hashlib.blake2b(seen.encode(), digest_size=7).digest())
    return Opened(_look_up(arrays), label)


def _look_up(arrays: dict[str, NDArray[Any]]) -> LookUp:
    if "noisy" not in arrays:
        return lambda ids: np.asarray(arrays["counts"][ids[:, 1].astype(np.int64)])
    listed = {
        tuple(cell): int(count) for cell, count in zip(arrays["ids"].tolist(), arrays["noisy"].tolist(), strict=True)
    }

    def look_up(ids: CellIds) -> NDArray[Any]:
        return np.array([listed.get(tuple(cell), 0) for cell in ids.tolist()])

    return look_up
