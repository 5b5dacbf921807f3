"""Write aside, then rename: a reader sees the old file or the whole new one, never a part."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

__all__ = ["write_aside"]


def write_aside(path: Path, write: Callable[[IO[bytes]], None], *, overwrite: bool = False, mode: int = 0o644) -> Path:
    """Call ``write`` on a new file beside ``path`` and rename it when it is complete and on disk.

    Raises FileExistsError if ``path`` exists and ``overwrite`` is false, also when it appears in the meantime.
    """
    if not overwrite and path.exists():
        raise FileExistsError(f"{path} exists. Choose another name, or say that it may be replaced.")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    aside = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        aside.chmod(mode)
        if overwrite:
            aside.replace(path)
        else:
            _link(aside, path)
    finally:
        aside.unlink(missing_ok=True)
    return path


def _link(aside: Path, path: Path) -> None:
    try:
        os.link(aside, path)  # unlike a rename, fails if the name has been taken
    except FileExistsError:
        raise FileExistsError(f"{path} exists. Choose another name, or say that it may be replaced.") from None
    except OSError:  # a file system without hard links
        aside.replace(path)
