"""Metrics for Prometheus, summed over all workers by files in a folder that they share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

__all__ = ["FOLDER", "IN_FLIGHT", "LOADS", "MODEL_CURRENT", "REJECTED", "ROWS", "done", "page"]

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

_children: dict[tuple[str, int], tuple[Any, Any]] = {}


def done(route: str, status: int, seconds: float) -> None:
    """Count an answer. Routes are templates, and few."""
    found = _children.get((route, status))
    if found is None:
        found = _children[route, status] = (REQUESTS.labels(route, str(status)), SECONDS.labels(route))
    found[0].inc()
    found[1].observe(seconds)


def page() -> bytes:
    """All metrics as text."""
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
