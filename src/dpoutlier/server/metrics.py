"""Metrics for Prometheus, summed over all workers by files in a folder that they share."""

import os
from bisect import bisect_left
from collections import Counter as Counted
from collections.abc import Hashable, Iterator
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

Key = TypeVar("Key", bound=Hashable)
Amount = TypeVar("Amount", int, float)

_registry = CollectorRegistry()
REQUESTS = Counter("dpoutlier_requests", "Requests answered.", ["route", "status"], registry=_registry)
SECONDS = Histogram(
    "dpoutlier_request_seconds",
    "Time from the head of a request to its answer.",
    ["route"],
    buckets=BUCKETS,
    registry=_registry,
)
ROWS = Counter("dpoutlier_rows_scored", "Points scored.", ["model"], registry=_registry)
LOADS = Counter("dpoutlier_model_loads", "Model files loaded, or not.", ["model", "result"], registry=_registry)
MODEL_CURRENT = Gauge(
    "dpoutlier_model_current",
    "1 if the newest model file is in use, 0 if it could not be loaded and the one before is still in use.",
    ["model"],
    multiprocess_mode="livemin",
    registry=_registry,
)
DRIFTED = Gauge(
    "dpoutlier_model_drifted",
    "1 if the points of the day before scored otherwise than the reference rows did, by the released counts; else 0.",
    ["model"],
    multiprocess_mode="livemax",
    registry=_registry,
)
REJECTED = Counter("dpoutlier_rejected", "Requests refused, by reason.", ["reason"], registry=_registry)
IN_FLIGHT = Gauge(
    "dpoutlier_in_flight", "Requests that are being worked on.", multiprocess_mode="livesum", registry=_registry
)


class Tally:
    """What happened since it was last written to the files. No request writes there: that takes longer than to score a point."""

    def __init__(self) -> None:
        self.answers: Counted[tuple[str, int]] = Counted()
        self.seconds: dict[str, float] = {}
        self.buckets: Counted[tuple[str, int]] = Counted()
        self.rows: Counted[str] = Counted()
        self.rejected: Counted[str] = Counted()
        self.loads: list[tuple[str, str]] = []
        """A list, because models are loaded in another thread: to append to it is one step."""
        self.current: dict[str, bool] = {}
        self.drifted: dict[str, bool] = {}
        self.in_flight = 0

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Routes are templates, and few."""
        self.answers[route, status] += 1
        self.seconds[route] = self.seconds.get(route, 0.0) + seconds
        self.buckets[route, bisect_left(BUCKETS, seconds)] += 1

    def scored(self, model: str, rows: int) -> None:
        self.rows[model] += rows

    def refused(self, reason: str) -> None:
        self.rejected[reason] += 1

    def loaded(self, model: str, *, well: bool) -> None:
        """A model file was loaded, or could not be."""
        self.loads.append((model, "loaded" if well else "failed"))
        self.current[model] = well

    def write(self) -> None:
        """Add to the files. A file that cannot be opened is an error, and what was to be added stays for the next time."""
        for (route, status), many in _taken(self.answers):
            REQUESTS.labels(route, str(status)).inc(many)
        for route, seconds in _taken(self.seconds):
            SECONDS.labels(route)._sum.inc(seconds)  # noqa: SLF001 - there is no public way to add many at once
        for (route, bucket), many in _taken(self.buckets):
            SECONDS.labels(route)._buckets[bucket].inc(many)  # noqa: SLF001
        for model, many in _taken(self.rows):
            ROWS.labels(model).inc(many)
        for reason, many in _taken(self.rejected):
            REJECTED.labels(reason).inc(many)
        while self.loads:
            LOADS.labels(*self.loads[0]).inc()
            del self.loads[0]
        for model, current in [*self.current.items()]:
            MODEL_CURRENT.labels(model).set(current)
        for model, drifted in [*self.drifted.items()]:
            DRIFTED.labels(model).set(drifted)
        IN_FLIGHT.set(self.in_flight)


def _taken(counted: dict[Key, Amount]) -> Iterator[tuple[Key, Amount]]:
    """Each amount; it is removed when the caller has added it, and comes back for the next one."""
    for key in list(counted):
        yield key, counted[key]
        del counted[key]


tally = Tally()


def page() -> bytes:
    """All metrics as text. Those of other workers may be half a second old."""
    tally.write()
    registry = _registry
    if FOLDER in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return bytes(generate_latest(registry))
