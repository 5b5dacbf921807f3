"""The one numba policy: no GIL, no allocation, no fast-math on anything that rounds, a disk cache that notices every edit."""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")

config: Any = numba.config


def _digest_of_kernels() -> str:
    digest = hashlib.blake2b(digest_size=12)
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def cache_folder() -> Path | None:
    """Folder for compiled kernels, named by the content of all kernel files; None: no folder can be written.

    numba looks only at the file of the outermost kernel, so an edit in a kernel that it calls would go unseen. With the
    digest of all files in the folder's name an edit anywhere starts an empty cache.
    """
    if os.environ.get("DPOUTLIER_KERNEL_CACHE") == "0":
        return None
    given = [Path(config.CACHE_DIR)] if config.CACHE_DIR else []
    user = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "dpoutlier"  # noqa: PTH111 - never raises
    name = f"kernels-{_digest_of_kernels()}"
    for root in (*given, Path(__file__).parent / "__pycache__", user):
        if root.is_absolute() and _writable(root / name):
            return root / name
    return None


_FOLDER = cache_folder()
# Kernels allocate nothing, so they need no counts of references, which in a short walk would cost more than the walk. Whole numbers
# are never divided by zero here, so no division looks for one.
_POLICY: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}


def compiled_before() -> bool:
    """Whether the cache holds anything. If not, the first score takes about twenty seconds."""
    return _FOLDER is not None and any(_FOLDER.rglob("*.nbi"))


def _compiled(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    before = config.CACHE_DIR
    # numba asks for the folder while it decorates, and only then.
    config.CACHE_DIR = str(_FOLDER or before)
    try:
        compiled: Callable[P, R] = numba.njit(**_POLICY, cache=_FOLDER is not None, **options)(function)
    finally:
        config.CACHE_DIR = before
    return compiled


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` at its first call; the types are those of the call."""
    return _compiled(function)


def summing_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel whose own float sums are of whole numbers below 2**53: exact, so that the compiler may choose their order."""
    return _compiled(function, fastmath={"contract", "reassoc"})


def shared(function: Callable[P, R]) -> Callable[P, R]:
    """A part of several kernels, compiled with each of them and kept in their caches alone.

    Were it cached on its own, a kernel compiled in a later process would be linked with its finished code and could not look
    into it: a walk would take half as long again, depending on what was used first after an installation.
    """
    compiled: Callable[P, R] = numba.njit(**_POLICY)(function)
    return compiled


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A part of a kernel that becomes part of its caller: a call with many arrays would cost more than a short walk."""
    compiled: Callable[P, R] = numba.njit(**_POLICY, forceinline=True)(function)
    return compiled
