"""Metrics for Prometheus, summed over all workers by files in a folder that they share."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import Counter as Counted
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

__all__ = ["FOLDER", "LOADS", "MODEL_CURRENT", "page", "tally"]

MOST_WAITING = 1000
FOLDER = "PROMETHEUS_MULTIPROC_DIR"

_registry = CollectorRegistry()
REQUESTS = Counter("dpoutlier_requests", "Requests answered.", ["route", "status"], registry=_registry)
SECONDS = Histogram(
    "dpoutlier_request_seconds",
    "Time from the head of a request to its answer.",
    ["route"],
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
    registry=_registry,
)
ROWS = Counter("dpoutlier_rows_scored", "Points scored.", ["model"], registry=_registry)
LOADS = Counter("dpoutlier_model_loads", "Model files loaded, or not.", ["model", "result"], registry=_registry)
MODEL_CURRENT = Gauge(
    "dpoutlier_model_current",
    "1 if the model's newest file answers, 0 if that failed to load and the one before goes on.",
    ["model"],
    multiprocess_mode="livemin",
    registry=_registry,
)
REJECTED = Counter("dpoutlier_rejected", "Requests refused, by reason.", ["reason"], registry=_registry)
IN_FLIGHT = Gauge(
    "dpoutlier_in_flight", "Requests that are being worked on.", multiprocess_mode="livesum", registry=_registry
)


class Tally:
    """What happened since the last time that it was written to the files, which takes longer than to score a point."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, int, float]] = []
        self.rows: dict[str, int] = {}
        self.rejected: dict[str, int] = {}
        self.in_flight = 0

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Routes are templates, and few."""
        self.answers.append((route, status, seconds))
        if len(self.answers) >= MOST_WAITING:
            self.write()

    def scored(self, model: str, rows: int) -> None:
        self.rows[model] = self.rows.get(model, 0) + rows

    def refused(self, reason: str) -> None:
        self.rejected[reason] = self.rejected.get(reason, 0) + 1

    def write(self) -> None:
        answers, self.answers = self.answers, []
        rows, self.rows = self.rows, {}
        rejected, self.rejected = self.rejected, {}
        for (route, status), many in Counted((route, status) for route, status, _ in answers).items():
            REQUESTS.labels(route, str(status)).inc(many)
        for route in {route for route, _, _ in answers}:
            _observe(SECONDS.labels(route), [seconds for known, _, seconds in answers if known == route])
        for model, many in rows.items():
            ROWS.labels(model).inc(many)
        for reason, many in rejected.items():
            REJECTED.labels(reason).inc(many)
        IN_FLIGHT.set(self.in_flight)


def _observe(histogram: Histogram, values: list[float]) -> None:
    """All values at once; one by one they would take as long as some requests do."""
    histogram._sum.inc(sum(values))  # noqa: SLF001 - there is no public way
    for bucket, many in Counted(bisect_left(histogram._upper_bounds, value) for value in values).items():  # noqa: SLF001
        histogram._buckets[bucket].inc(many)  # noqa: SLF001


tally = Tally()


def page() -> bytes:
    """All metrics as text; of other workers those of half a second ago."""
    tally.write()
    folder = os.environ.get(FOLDER)
    if folder is None:
        return bytes(generate_latest(_registry))
    _forget_the_dead(Path(folder))
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return bytes(generate_latest(registry))


def _forget_the_dead(folder: Path) -> None:
    """Gauges of workers that are gone. What they counted stays."""
    for file in folder.glob("gauge_live*_*.db"):
        pid = file.stem.rpartition("_")[2]
        if pid.isdigit() and not _alive(int(pid)):
            file.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
