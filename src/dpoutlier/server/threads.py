"""Where the work of a request is done: short work at once, long work in other threads."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from dpoutlier.server.error_responses import Refusal
from dpoutlier.server.models import LoadedModel

Work = Callable[[], tuple[bytes, int]]
"""Makes the body of a response, and says how many points it is about."""

SHORT = 0.002
"""Seconds of work that the thread which serves all requests does itself; longer work goes to another."""
OVERHEAD = 0.0003
LARGEST_SHORT = 10_000
"""Bytes of a body that may be short work, however fast those before it were: some 13 milliseconds with the slowest models."""
GUESSED = {"json": 5e-8, "csv": 5e-8, "arrow": 1e-8}
"""Seconds for a byte: the guess before any is measured, and the least value."""
DENSE = 32
"""Bytes for a value. Bodies that have more are padded, and their speed says nothing about other bodies."""
AT_ONCE = 2
MAX_EXPLAINS = 8
"""Requests for explanations that wait in a worker: each may take seconds, and one is worked on at a time."""


class WorkThreads:
    """The threads of a worker: some for scores, and one for explanations, so that scores need not wait for these."""

    def __init__(self) -> None:
        self.scorers = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="score")
        self.explaining, self.explainer = 0, ThreadPoolExecutor(1, thread_name_prefix="explain")

    async def score(self, work: Work, served: LoadedModel, kind: str, size: int) -> tuple[bytes, int]:
        """Do short work at once and long work in another thread. Size and the pace of the last such bodies decide."""
        pace = served.seconds_per_byte
        if size > LARGEST_SHORT or pace.get(kind, GUESSED[kind]) * size > SHORT:
            return await asyncio.get_running_loop().run_in_executor(self.scorers, _timed, work, served, kind, size)
        return _timed(work, served, kind, size)

    async def explain(self, work: Work) -> tuple[bytes, int]:
        if self.explaining > MAX_EXPLAINS:
            raise Refusal(
                "unavailable",
                f"{MAX_EXPLAINS} requests for explanations are waiting already; try again.",
                ((b"retry-after", b"5"),),
            )
        self.explaining += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.explainer, work)
        finally:
            self.explaining -= 1

    def close(self) -> None:
        """Wait for the work that has begun."""
        self.scorers.shutdown()
        self.explainer.shutdown()


def _timed(work: Work, served: LoadedModel, kind: str, size: int) -> tuple[bytes, int]:
    pace, begin = served.seconds_per_byte, time.thread_time()
    found = work()
    seconds = max((time.thread_time() - begin - OVERHEAD) / max(size, 1), GUESSED[kind])
    known = pace.get(kind, GUESSED[kind])
    if seconds > known or size <= DENSE * found[1] * served.domain.n_features:
        pace[kind] = known + (0.5 if seconds > known else 0.05) * (seconds - known)
    return found
