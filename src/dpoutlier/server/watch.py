"""What a worker checks while it answers. Each check runs by itself, so that none can hold up another."""

import asyncio
import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from dpoutlier.server.authentication import MAX_AGE
from dpoutlier.server.logs import log, where
from dpoutlier.server.metrics import tally
from dpoutlier.server.models import LOADED, MISSING, LoadedModels

INTERVAL = 0.5
"""Seconds between two checks."""
LOADING = 300.0
"""Seconds that a check of the models may take: large ones take long to load, and kernels to compile."""
LONGEST_MESSAGE = 1000


@dataclass
class PeriodicCheck:
    """Something that a worker does twice a second as long as it runs."""

    name: str
    check: Callable[[], None]
    in_thread: bool = True
    """Whether a check may take long."""
    most_age: float = MAX_AGE
    """Seconds without a successful check, after which this worker is not ready."""
    at_end: Callable[[], None] | None = None
    """What is still to be done when the worker stops."""
    checked: float = field(default_factory=time.monotonic)
    failed: str | None = None
    """The type of the error of the last check."""

    async def run_forever(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                if self.in_thread:
                    await loop.run_in_executor(None, self.check)
                else:
                    self.check()
            except Exception as error:  # noqa: BLE001 - the next check may succeed
                self._report(error)
            else:
                self.checked, self.failed = time.monotonic(), None
            await asyncio.sleep(INTERVAL)

    def end(self) -> None:
        try:
            if self.at_end is not None:
                self.at_end()
        except Exception as error:  # noqa: BLE001 - the others have their end as well
            self._report(error)

    def _report(self, error: Exception) -> None:
        """Log an error once for each kind, and not twice a second."""
        known, self.failed = self.failed, type(error).__name__
        if self.failed != known:
            log("check-failed", "error", check=self.name, **where(error))

    def reason(self) -> str | None:
        age = time.monotonic() - self.checked
        if self.failed is not None:
            return f"checking the {self.name} failed ({self.failed})"
        return f"the last check of the {self.name} was {age:.0f} seconds ago" if age > self.most_age else None


class Watch:
    """All checks of a worker. If one of them ends, the worker ends: it must not answer from an outdated state."""

    def __init__(self, checks: list[PeriodicCheck]) -> None:
        self.checks = checks
        self.tasks: list[asyncio.Task[None]] = []
        self.stopping = False

    def start(self) -> None:
        for check in self.checks:
            check.checked = time.monotonic()
            task = asyncio.create_task(check.run_forever(), name=check.name)
            task.add_done_callback(self._ended)
            self.tasks.append(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not self.stopping:
            error = asyncio.CancelledError() if task.cancelled() else task.exception() or RuntimeError()
            log("watch-ended", "critical", check=task.get_name(), message="this worker ends as well.", **where(error))
            os._exit(1)

    async def stop(self) -> None:
        self.stopping = True
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for check in self.checks:
            check.end()

    def reasons(self) -> list[str]:
        """Why the worker is not ready."""
        return [] if not self.tasks else [why for why in (check.reason() for check in self.checks) if why is not None]


def check_models(models: LoadedModels) -> None:
    """Load models whose files were replaced."""
    for name, path in models.settings.models:
        news = models.refresh(name, path)
        if news is None:
            continue
        if news == LOADED:
            tally.loaded(name, well=True)
            log("model-loaded", model=name)
        elif news == MISSING:
            tally.current[name] = False
            gone = "its file is gone; the model that was loaded still answers."
            log("model-file-missing", "warning", model=name, message=gone)
        elif isinstance(news, Exception):  # its text is about a file of the custodian's, and no query
            tally.loaded(name, well=False)
            log("model-failed", "error", model=name, message=str(news)[:LONGEST_MESSAGE], **where(news))


def parent_check(shared: str | None) -> Callable[[], None]:
    """A check of the process that started this worker: without it the worker stops."""
    parent, gone = multiprocessing.parent_process(), False

    def check() -> None:
        nonlocal gone
        if parent is None or gone or os.getppid() == parent.pid:
            return
        gone = True
        log("parent-gone", "error")
        os.kill(os.getpid(), signal.SIGTERM)
        shutil.rmtree(shared or "", ignore_errors=True)  # which the parent would have done

    return check
