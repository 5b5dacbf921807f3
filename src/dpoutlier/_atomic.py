"""Write aside, then rename: a reader sees the old file or the whole new one, never a part."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from dpoutlier.exceptions import InvalidParameterError, OutputExistsError

BLOCK = 4096


def check_output(path: Path, *, overwrite: bool) -> None:
    """Refuse a name that cannot be written to, before any work is done for it."""
    if not path.name:
        raise InvalidParameterError("an output file needs a name.")
    if not path.parent.is_dir():
        raise InvalidParameterError(f"{path} cannot be written: there is no folder {path.parent}.")
    if path.is_dir():
        raise InvalidParameterError(f"{path} cannot be written: it is a folder.")
    if not os.access(path.parent, os.W_OK):
        raise InvalidParameterError(f"{path} cannot be written: the folder {path.parent} does not permit it.")
    if path.exists() and not overwrite:
        raise _exists(path)


def write_aside(
    path: Path, write: Callable[[IO[bytes]], object], *, overwrite: bool = False, mode: int = 0o644
) -> Path:
    """Call ``write`` on a new file beside ``path`` and rename it when it is complete and on disk.

    Raises OutputExistsError if ``path`` exists and ``overwrite`` is false, also when it appears in the meantime.
    """
    check_output(path, overwrite=overwrite)
    with _written_aside(path, write, mode) as aside:
        if overwrite:
            aside.replace(path)
        else:
            _link(aside, path)
    return path


def try_output(path: Path, size: int) -> None:
    """Write a file of ``size`` bytes beside ``path`` and remove it: only this shows whether the disk and the folder permit it."""

    def write(stream: IO[bytes]) -> None:
        # The quick way, which not every system has; if it fails, the long one tells why.
        with suppress(AttributeError, OSError):
            os.posix_fallocate(stream.fileno(), 0, size)
            stream.write(bytes(BLOCK))
            return
        stream.write(bytes(size))

    with _written_aside(path, write, 0o600):
        pass


@contextmanager
def _written_aside(path: Path, write: Callable[[IO[bytes]], object], mode: int) -> Iterator[Path]:
    """A complete file beside ``path``, on disk; removed at the end if it is still there."""
    aside = None
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        aside = Path(name)
        with os.fdopen(handle, "wb") as stream:
            write(stream)
            stream.flush()
            # By its name only where there is no other way: in a folder of somebody else that may be another file by now.
            os.chmod(stream.fileno() if os.chmod in os.supports_fd else aside, mode)  # noqa: PTH101
            os.fsync(stream.fileno())
        yield aside
    except OutputExistsError:
        raise
    except OSError as error:  # with the name that was asked for, not that of the file aside
        raise OSError(error.errno, f"{error.strerror}; it was not written", str(path)) from None
    finally:
        if aside is not None:
            aside.unlink(missing_ok=True)


def _link(aside: Path, path: Path) -> None:
    try:
        os.link(aside, path)  # unlike a rename, fails if the name has been taken
    except FileExistsError:
        raise _exists(path) from None
    except OSError:  # a file system without hard links
        aside.replace(path)


def _exists(path: Path) -> OutputExistsError:
    return OutputExistsError(f"{path} exists. Choose another name, or allow replacing it (--force, overwrite=True).")
