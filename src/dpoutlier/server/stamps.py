"""Detects that a file was replaced, or that other people may read it than before."""

import os
from pathlib import Path

Stamp = tuple[int, ...]


def stamp_of(path: str | Path) -> Stamp | None:
    """A value that changes with the content, the owner and the mode of a file; None if the file cannot be seen."""
    try:
        found = os.stat(path)  # noqa: PTH116 - called every half second
    except OSError:
        return None
    times = (found.st_mtime_ns, found.st_ctime_ns)
    return (found.st_dev, found.st_ino, found.st_size, *times, found.st_uid, found.st_gid, found.st_mode)
