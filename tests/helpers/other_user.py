"""Commands as another user, in a mount namespace of their own in which that user can reach Python and the sources."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import dpoutlier

NOBODY = 65534
HOLD = "/mnt"
SETPRIV = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]


def _closed(path):
    """The outermost folder on the way to a path that others may not pass, or None."""
    return next((str(one) for one in reversed(Path(path).parents) if not one.stat().st_mode & 0o001), None)


def as_nobody(command, *paths):
    """The command line that runs a command as nobody, who can reach these paths as far as their own modes permit."""
    wanted = {
        os.path.realpath(one) for one in (sys.base_prefix, sys.prefix, Path(dpoutlier.__file__).parents[1], *paths)
    }
    hidden = sorted(path for path in wanted if _closed(path) is not None)
    script = ["set -e", f"mount -t tmpfs tmpfs {HOLD}"]
    script += [f"mkdir {HOLD}/{i}; mount --bind {path} {HOLD}/{i}" for i, path in enumerate(hidden)]
    script += [f"mount -t tmpfs -o mode=755 tmpfs {one}" for one in sorted({_closed(path) for path in hidden})]
    script += [f"mkdir -p {path}; mount --bind {HOLD}/{i} {path}" for i, path in enumerate(hidden)]
    script += ['exec "$@"']
    return ["unshare", "--mount", "sh", "-c", "\n".join(script), "sh", *SETPRIV, *map(str, command)]


@cache
def _why_not():
    if os.geteuid() != 0:
        return "only root can start a server as another user"
    if shutil.which("unshare") is None or shutil.which("setpriv") is None:
        return "unshare and setpriv (util-linux) are not installed"
    tried = subprocess.run(
        as_nobody([sys.executable, "-c", "import dpoutlier, os; print(os.geteuid())"]),
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if tried.stdout.strip() == str(NOBODY) else f"no other user can run Python here: {tried.stderr[-300:]}"


@pytest.fixture
def needs_another_user():
    """Skips where no other user can be had."""
    if _why_not():
        pytest.skip(_why_not())
