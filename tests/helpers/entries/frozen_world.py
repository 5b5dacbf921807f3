"""A world in which only the reference rows vary: noise, names, clocks and folders are the same in every run, and all is seen."""

import logging
import os
import secrets
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock
from uuid import UUID

import pytest

from dpoutlier.detectors import batches
from dpoutlier.ledger import ledger
from dpoutlier.noise.sources import SystemBytes, UnsafeSeededBytes
from dpoutlier.server import audit_log, envelope, keys, logs

GIVEN = "given"
"""The folder of what a scenario is given: reference rows lie there, and it is not looked into."""
NOISY_LOGGERS = ("asyncio", "matplotlib", "PIL", "numba", "fsspec", "py4j", "urllib3")
MOMENT = datetime(2024, 2, 29, 12, tzinfo=UTC)


class Seen(NamedTuple):
    """All that a run showed."""

    value: Any
    """What it returned."""
    error: list[str]
    """What it raised, with all that is chained to it; as texts."""
    warnings: list[str]
    logged: list[str]
    printed: str
    """Standard output and error, of Python and of the process."""
    files: dict[str, tuple[int, bytes]]
    """Mode and content of every file that is there in the end, those for the moment included."""


class Clock(datetime):
    """Always the same moment."""

    @classmethod
    def now(cls, tz=None):
        return MOMENT if tz else MOMENT.replace(tzinfo=None)


@contextmanager
def frozen(folder: Path, seed: int):
    """Everything but the rows is fixed: noise and secrets come from a seed, clocks stand still."""
    bytes_of, names = UnsafeSeededBytes(seed), UnsafeSeededBytes(seed + 1)
    still = SimpleNamespace(**{**vars(time), "perf_counter": lambda: 1.0, "time": MOMENT.timestamp})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SystemBytes, "read", lambda _, n: bytes_of.read(n))
        patch.setattr(secrets, "token_hex", lambda n=16: names.read(n).hex())
        patch.setattr(secrets, "token_bytes", lambda n=32: names.read(n))
        patch.setattr(secrets, "choice", lambda among: among[names.read(1)[0] % len(among)])
        patch.setattr(batches, "uuid4", lambda: UUID(bytes=names.read(16)))
        for module in (ledger, logs, audit_log):
            patch.setattr(module, "datetime", Clock)
        for module in (envelope, keys):
            patch.setattr(module, "time", still)
        (folder / "tmp").mkdir(exist_ok=True)
        patch.setattr(tempfile, "tempdir", str(folder / "tmp"))
        patch.setenv("COLUMNS", "200")
        for name in ("DPOUTLIER_KEY", "PROMETHEUS_MULTIPROC_DIR"):
            patch.delenv(name, raising=False)
        patch.chdir(folder)
        yield


class Records(logging.Handler):
    def __init__(self):
        super().__init__(logging.DEBUG)
        self.found = []

    def emit(self, record):
        trace = "" if not record.exc_info else "".join(traceback.format_exception(*record.exc_info))
        self.found.append(f"{record.name} {record.levelname} {record.getMessage()} {trace}")


@contextmanager
def listening(folder: Path):
    """Collects what is printed, logged and warned of, also by code that knows nothing of Python's streams."""
    found = {"printed": "", "logged": [], "warnings": []}
    root, records = logging.getLogger(), Records()
    level, streams = root.level, (sys.stdout, sys.stderr)
    loud = [(name, logging.getLogger(name).level) for name in NOISY_LOGGERS]
    for stream in streams:
        stream.flush()
    with tempfile.TemporaryFile(dir=folder.parent) as file:
        kept = [os.dup(1), os.dup(2)]
        both = os.fdopen(os.dup(file.fileno()), "w", encoding="utf-8", errors="backslashreplace")
        root.addHandler(records)
        root.setLevel(logging.DEBUG)
        for name, _ in loud:
            logging.getLogger(name).setLevel(logging.WARNING)  # they log much about themselves
        try:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            with (
                warnings.catch_warnings(record=True) as caught,
                mock.patch.object(sys, "stdout", both),
                mock.patch.object(sys, "stderr", both),
            ):
                warnings.simplefilter("always")
                yield found
        finally:
            both.close()
            for number, old in zip((1, 2), kept, strict=True):
                os.dup2(old, number)
                os.close(old)
            root.removeHandler(records)
            root.setLevel(level)
            for name, old in loud:
                logging.getLogger(name).setLevel(old)
            file.seek(0)
            found["printed"] = file.read().decode("utf-8", "backslashreplace")
            found["logged"] = records.found
            found["warnings"] = [
                f"{one.category.__name__}: {one.message}"
                for one in caught
                if not issubclass(one.category, ResourceWarning)  # when garbage is collected is not fixed
            ]


def observed(run, folder: Path, seed: int = 11) -> Seen:
    """What ``run(folder)`` shows, in an empty folder of always the same name."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    value, error = None, []
    logs.flush()  # what waits is from earlier tests
    with frozen(folder, seed), listening(folder) as heard:
        try:
            value = run(folder)
        except Exception as raised:  # noqa: BLE001 - errors are part of what is seen
            error = texts_of(raised)
        logs.flush()
    files = {
        str(path.relative_to(folder)): (path.stat().st_mode, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.relative_to(folder).parts[0] != GIVEN
    }
    return Seen(value, error, heard["warnings"], heard["logged"], heard["printed"], files)


def texts_of(error: BaseException | None) -> list[str]:
    """An error and all that is chained to it, also what is not shown."""
    found, left, known = [], [error], set()
    while left:
        one = left.pop()
        if one is None or id(one) in known:
            continue
        known.add(id(one))
        found.append(f"{type(one).__name__}: {one} {one.args!r} {getattr(one, '__notes__', [])!r}")
        left += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
    return found
