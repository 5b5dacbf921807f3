"""uvicorn's supervisor of workers. It notices a dead worker at once, even if the worker died during a check."""

import pickle
import time
from collections.abc import Sequence

from prometheus_client.multiprocess import mark_process_dead
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from dpoutlier.server.logs import log, where

STEP = 0.2


class Supervisor(Multiprocess):
    """Starts dead workers again, and kills those that hang."""

    _known: Sequence[Process] = ()
    """The workers when they were last looked after."""

    def init_processes(self) -> None:
        super().init_processes()
        self.processes = [self._watched(process) for process in self.processes]
        self._known = [*self.processes]

    def keep_subprocess_alive(self) -> None:
        for process in self._known:
            if process not in self.processes:  # a signal has ended it since the last time
                _forget_gauges(process)
        before = [] if self.should_exit.is_set() else [*self.processes]
        try:
            super().keep_subprocess_alive()
        except OSError as error:  # too many processes or files: the next time may succeed
            log("worker-not-started", "error", **where(error))
        for process in before:
            if process.exitcode is not None and (process not in self.processes or self.should_exit.is_set()):
                log("worker-died", "error", worker=process.pid, exit_code=process.exitcode)
                _forget_gauges(process)
        self.processes = [self._watched(process) for process in self.processes]
        self._known = [*self.processes]

    def _watched(self, process: Process) -> Process:
        """The worker, with a check of ours: uvicorn's own waits for a dead worker until its time is up, and ignores signals."""

        def answers(timeout: float = 5) -> bool:
            try:
                process.parent_conn.send(b"ping")
                until = time.monotonic() + timeout
                while time.monotonic() < until and process.process.is_alive() and not self.signal_queue:
                    if process.parent_conn.poll(STEP):
                        process.parent_conn.recv()
                        return True
            except (OSError, EOFError, pickle.UnpicklingError):
                return False
            return bool(self.signal_queue)  # a signal comes first; a worker that hangs is found at the next ping

        process.ping = answers  # type: ignore[method-assign] # the supervisor makes its processes itself
        return process


def _forget_gauges(process: Process) -> None:
    """The gauges of a worker that is gone. What it counted stays."""
    mark_process_dead(process.pid)  # type: ignore[no-untyped-call]
