"""Start-up without garbage collection: imports make objects by the hundred thousand that stay, and to look for garbage among
them takes a tenth of a second.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["first_without_collection", "without_collection"]

_done: set[str] = set()


@contextmanager
def without_collection() -> Iterator[None]:
    """Collect no garbage meanwhile, and then go on as before."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def first_without_collection(what: str) -> Iterator[None]:
    """The same, for the first time that this is done in a process."""
    if what in _done:
        yield
        return
    with without_collection():
        yield
    _done.add(what)
