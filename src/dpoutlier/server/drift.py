"""Whether the points of a day still come from where the reference rows came from: a number for each model, at no price."""

import threading
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

from numpy.typing import NDArray

from dpoutlier.detectors.batches import ScoredBatch
from dpoutlier.detectors.frames import ADDED
from dpoutlier.exceptions import DpoutlierError
from dpoutlier.model.drift import Seen
from dpoutlier.server.metrics import tally
from dpoutlier.server.models import LoadedModel
from dpoutlier.tables.rows import Rows

MOST_POINTS = 20_000
"""Points of a day that are counted: enough to see any drift that matters, at a few milliseconds."""
DAYS = 31
"""Days of a month: each worker compares its own points once a day."""


def _today() -> date:
    return datetime.now(UTC).date()


class DriftWatch:
    """The points of the present day, for each model. At midnight (UTC) they are compared with the released counts, and dropped."""

    def __init__(self, workers: int, today: Callable[[], date] = _today) -> None:
        self.checks_per_month, self._today = DAYS * workers, today
        self._lock, self._day = threading.Lock(), today()
        self._seen: dict[str, tuple[str, Seen]] = {}

    def add(self, served: LoadedModel, columns: list[NDArray[Any]], scored: ScoredBatch) -> None:
        """Count the points of a request, at most so many in a day. A new release of a model begins anew."""
        with self._lock:
            release, seen = self._seen.get(served.name, ("", None))
            if seen is None or release != served.release:
                try:
                    seen = Seen(served.model)
                except DpoutlierError:  # the model's counts are not those of all cells
                    return
                self._seen[served.name] = served.release, seen
            left = MOST_POINTS - seen.n
            if left > 0:
                positions, scores = Rows(columns, served.domain)[:left], scored.columns[ADDED[0]][:left]
                known = slice(None) if scored.known is None else scored.known[:left]
                seen.add(positions[known], scores[known])

    def refresh(self) -> None:
        """Compare the points of a day that is over."""
        with self._lock:
            today = self._today()
            if today == self._day:
                return
            self._day, over, self._seen = today, self._seen, {}
        for name, (_, seen) in over.items():
            tally.drifted[name] = seen.compared(self.checks_per_month).drifted
