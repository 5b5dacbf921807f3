"""What a worker looks after while it answers. Each part is looked at by itself, so that none can hold up another."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from dpoutlier.server.guard import MOST_AGE
from dpoutlier.server.logs import log, where
from dpoutlier.server.metrics import tally
from dpoutlier.server.models import LOADED, MISSING, Shelf

__all__ = ["LOADING", "LOOK", "Part", "Watch", "look_at_models", "parent_look"]

LOOK = 0.5
"""Seconds between two looks."""
LOADING = 300.0
"""Seconds that a look at the models may take: large ones take long to load, and kernels to compile."""
LONGEST_MESSAGE = 1000


@dataclass
class Part:
    """One thing that is looked after, for as long as the worker is there."""

    name: str
    look: Callable[[], None]
    in_thread: bool = True
    """Whether a look may take long."""
    most_age: float = MOST_AGE
    """Seconds without a look that succeeded, after which this worker is not ready."""
    at_end: Callable[[], None] | None = None
    """What is still to be done when the worker stops."""
    looked: float = field(default_factory=time.monotonic)
    failed: str | None = None
    """The type of the error of the last look."""

    async def look_for_ever(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                if self.in_thread:
                    await loop.run_in_executor(None, self.look)
                else:
                    self.look()
            except Exception as error:  # noqa: BLE001 - the next look may succeed
                self._tell(error)
            else:
                self.looked, self.failed = time.monotonic(), None
            await asyncio.sleep(LOOK)

    def end(self) -> None:
        try:
            if self.at_end is not None:
                self.at_end()
        except Exception as error:  # noqa: BLE001 - the others have their end as well
            self._tell(error)

    def _tell(self, error: Exception) -> None:
        """Once for each kind of error, and not twice a second."""
        known, self.failed = self.failed, type(error).__name__
        if self.failed != known:
            log("look-failed", "error", part=self.name, **where(error))

    def reason(self) -> str | None:
        age = time.monotonic() - self.looked
        if self.failed is not None:
            return f"the look at the {self.name} failed ({self.failed})"
        return f"nobody has looked at the {self.name} for {age:.0f} seconds" if age > self.most_age else None


class Watch:
    """All parts of a worker. If one of them is no longer looked after, the worker ends: it must not answer with what is old."""

    def __init__(self, parts: list[Part]) -> None:
        self.parts = parts
        self.tasks: list[asyncio.Task[None]] = []
        self.stopping = False

    def start(self) -> None:
        for part in self.parts:
            part.looked = time.monotonic()
            task = asyncio.create_task(part.look_for_ever(), name=part.name)
            task.add_done_callback(self._ended)
            self.tasks.append(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not self.stopping:
            error = asyncio.CancelledError() if task.cancelled() else task.exception() or RuntimeError()
            log("watch-ended", "critical", part=task.get_name(), message="this worker ends as well.", **where(error))
            os._exit(1)

    async def stop(self) -> None:
        self.stopping = True
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for part in self.parts:
            part.end()

    def reasons(self) -> list[str]:
        """Why the worker is not ready."""
        return [] if not self.tasks else [why for why in (part.reason() for part in self.parts) if why is not None]


def look_at_models(shelf: Shelf) -> None:
    """Load models whose files were replaced."""
    for name, path in shelf.settings.models:
        news = shelf.refresh(name, path)
        if news is None:
            continue
        if news == LOADED:
            tally.loaded(name, well=True)
            log("model-loaded", model=name)
        elif news == MISSING:
            tally.current[name] = False
            gone = "its file is gone; the model as it was goes on answering."
            log("model-file-missing", "warning", model=name, message=gone)
        elif isinstance(news, Exception):  # its text is about a file of the custodian's, and no query
            tally.loaded(name, well=False)
            log("model-failed", "error", model=name, message=str(news)[:LONGEST_MESSAGE], **where(news))


def parent_look(shared: str | None) -> Callable[[], None]:
    """A look at the process that started this worker: without it the worker stops."""
    parent, gone = multiprocessing.parent_process(), False

    def look() -> None:
        nonlocal gone
        if parent is None or gone or os.getppid() == parent.pid:
            return
        gone = True
        log("parent-gone", "error")
        os.kill(os.getpid(), signal.SIGTERM)
        shutil.rmtree(shared or "", ignore_errors=True)  # which the parent would have done

    return look
