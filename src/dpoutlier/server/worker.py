"""What one worker process answers with: its models, keys, limits, threads and periodic checks."""

from fastapi import Request

from dpoutlier.server.audit_log import AuditLog
from dpoutlier.server.authentication import Guard
from dpoutlier.server.bodies import BodyReader
from dpoutlier.server.drift import DriftWatch
from dpoutlier.server.logs import flush
from dpoutlier.server.metrics import tally
from dpoutlier.server.models import LoadedModels
from dpoutlier.server.rate_limits import RateLimit
from dpoutlier.server.refused_entries import RefusedEntries
from dpoutlier.server.settings import Settings
from dpoutlier.server.threads import WorkThreads
from dpoutlier.server.watch import LOADING, PeriodicCheck, Watch, check_models, parent_check


class Worker:
    """The state behind the routes of one process. Models are loaded when the application starts."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.models, self.guard = LoadedModels(settings), Guard(settings.keys)
        self.audit = None if settings.audit is None else AuditLog(settings.audit, settings.shared)
        self.refused = None if self.audit is None else RefusedEntries(self.audit)
        self.bodies = BodyReader(settings.max_bytes, settings.body_seconds, 8 * settings.max_bytes)
        self.rate = RateLimit(settings.rate, settings.shared)
        self.threads = WorkThreads()
        self.drift = DriftWatch(settings.workers)
        self.watch = Watch(self._checks())
        self.started = False

    def reasons(self) -> list[str]:
        """Why this worker is not ready; empty if it is."""
        starting = [] if self.started else ["starting"]
        audit = [] if self.audit is None else self.audit.reasons()
        return [*starting, *self.guard.reasons(), *audit, *self.watch.reasons()]

    def _checks(self) -> list[PeriodicCheck]:
        """What a worker checks while it answers; keys first."""
        checks = [
            PeriodicCheck("keys", self.guard.refresh),
            PeriodicCheck("models", lambda: check_models(self.models), most_age=LOADING),
            PeriodicCheck("drift", self.drift.refresh),
        ]
        if self.audit is not None and self.refused is not None:
            refused, audit = self.refused, self.audit
            checks.append(
                PeriodicCheck("refused requests", refused.write_counts, in_thread=False, at_end=refused.close)
            )
            checks.append(PeriodicCheck("audit log", audit.check_and_sync, at_end=audit.check_and_sync))
        checks.append(PeriodicCheck("metrics", tally.write, in_thread=False, at_end=tally.write))
        checks.append(PeriodicCheck("lines of the log", flush, in_thread=False))
        checks.append(PeriodicCheck("parent process", parent_check(self.settings.shared), in_thread=False))
        return checks


def worker_of(request: Request) -> Worker:
    """The worker that answers a request."""
    worker: Worker = request.app.state.worker
    return worker
