"""What no input may do: run code, open other files, take memory or time past its limit. Each breach is a ``Finding``."""

import os
import resource
import sys
import time
import tracemalloc
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

MEGABYTE = 1 << 20
HEADROOM = 1 << 30
"""Bytes of addresses that a child may take beyond those that it has when everything is imported and compiled."""
FORBIDDEN = (
    *("exec", "compile", "code.__new__", "marshal.", "pickle.", "import", "ctypes.", "cpython.run_"),
    *("os.system", "os.exec", "os.spawn", "os.posix_spawn", "os.fork", "os.putenv", "os.startfile", "pty."),
    *("subprocess.", "socket.", "ssl.", "urllib.", "ftplib.", "smtplib.", "webbrowser.", "shutil."),
)
FILES = ("open", "os.remove", "os.rename", "os.link", "os.chmod", "os.truncate", "os.mkdir", "sqlite3.connect")
EVERYTHING = object()
"""Instead of files: any may be opened."""
OWN_BUSINESS = ("numba/core/dispatcher.py", "importlib/metadata/__init__.py")


class Finding(Exception):  # noqa: N818 - it is a result
    """A promise that an input broke."""


class Forbidden(BaseException):
    """Raised within what must not happen, so that it does not."""


_armed: list = []
_off: list = []
_kernels: list = []
_seen: list[str] = []


def _hook(event, arguments):
    if event == "open" and str(arguments[0]).endswith((".nbi", ".nbc")):  # of numba's cache
        _kernels.append(arguments[0])
    if not _armed or _off:
        return
    allowed = _armed[-1]
    bad = event.startswith(FORBIDDEN)
    if event == "import":
        bad = arguments[0] not in sys.modules
    elif event in FILES:
        bad = not isinstance(arguments[0], int) and not _within(os.fsdecode(arguments[0]), allowed)
    if bad and not _own_business():
        _seen.append(f"{event} {str(arguments)[:200]}")
        raise Forbidden(_seen[-1])


def _own_business():
    """Whether numba is fetching a compiled kernel, at its first call, or a statement looks up the versions that it names."""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.endswith(OWN_BUSINESS):
            return True
        frame = frame.f_back
    return False


def _within(given, allowed):
    if EVERYTHING in allowed:
        return True
    path = given.removeprefix("file:").partition("?mode=")[0]
    return any(path == one or path.startswith(one + "/") for one in map(str, allowed))


sys.addaudithook(_hook)


@contextmanager
def reading(*allowed):
    """Within this, only these files and folders may be opened, and no code may be run or imported."""
    _armed.append(allowed)
    try:
        yield
    finally:
        _armed.pop()


@contextmanager
def unwatched():
    """Within this everything may be imported: for a first run."""
    _off.append(True)
    try:
        yield
    finally:
        _off.pop()


def _status(name):
    """A line of /proc/self/status in bytes."""
    text = Path("/proc/self/status").read_text()
    return int(text.partition(f"{name}:")[2].split()[0]) << 10


def _reset_peak():
    with open("/proc/self/clear_refs", "w") as stream:  # noqa: PTH123 - called for every input
        stream.write("5")


def guarded(target, data, *, traced=False):
    """The outcome of an input. Raises a ``Finding`` where a limit is passed, and whatever the target raises.

    ``traced`` counts what Python and numpy allocate and what Arrow does, touched or not; it is slower. Without it the peak of the
    resident memory is what is looked at. What passes a limit is tried again if a kernel was fetched or compiled meanwhile.
    """
    most = target.base + target.per_byte * len(data)
    slow = target.seconds * (4 if traced else 1) * (1 + len(data) / (1 << 18))
    _kernels.clear()
    outcome, took, peak = _measured(target, data, traced=traced)
    if _kernels and (took > slow or peak > most):
        outcome, took, peak = _measured(target, data, traced=traced)
    if took > slow:
        raise Finding(f"took {took:.1f} s of at most {slow:.3g}")
    if peak > most:
        raise Finding(f"took {peak / MEGABYTE:.0f} MB of at most {most / MEGABYTE:.0f} MB for {len(data)} bytes")
    if "MemoryError" in outcome:
        raise Finding(f"ran out of memory: {outcome[:200]}")
    return outcome


def _measured(target, data, *, traced):
    """The outcome, the seconds of this thread, and the most bytes."""
    _seen.clear()
    pool = pa.default_memory_pool()
    counting = pa.proxy_memory_pool(pool) if traced else None
    if traced:
        pa.set_memory_pool(counting)
        tracemalloc.start()
    before = _status("VmRSS")
    _reset_peak()
    begin = time.thread_time()
    try:
        outcome = target.run(data)
        took = time.thread_time() - begin
        peak = _status("VmHWM") - before
        if traced:
            peak = max(peak, tracemalloc.get_traced_memory()[1], counting.max_memory() or 0)
    except Forbidden as error:
        raise Finding(f"forbidden: {error}") from error
    finally:
        _armed.clear()
        if traced:
            tracemalloc.stop()
            pa.set_memory_pool(pool)
    if _seen:
        raise Finding(f"forbidden: {_seen[0]}")
    return outcome, took, peak


def limited_address_space():
    """From now on this process may take only this number of bytes more, whatever allocates them."""
    most = _status("VmSize") + HEADROOM
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ["MALLOC_ARENA_MAX"] = "2"
