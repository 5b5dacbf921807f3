"""Files that are there as a whole or not at all."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> Path:
    """Write aside and rename. A kill leaves no more than ``.name.*.part`` behind."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with aside.open("wb") as stream:
            write(stream)
        return aside.replace(path)
    except OSError as error:  # with the name that is meant
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
    finally:
        aside.unlink(missing_ok=True)
