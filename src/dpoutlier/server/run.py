"""Start a server: everything is checked first, then uvicorn takes over, with as many workers as wanted."""

import errno
import fcntl
import os
import shutil
import signal
import socket
import ssl
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpoutlier._validate import parameter_error
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.server.audit_log import FAULTS, AuditLog
from dpoutlier.server.hosts import is_loopback
from dpoutlier.server.keys import read_keys
from dpoutlier.server.logs import UVICORN_LOGS, log, where
from dpoutlier.server.models import LoadedModels
from dpoutlier.server.settings import VARIABLE, Settings

HEALTH_SECONDS = 60
FOLDER = "dpoutlier-serve-"
METRICS = "PROMETHEUS_MULTIPROC_DIR"
"""What Prometheus' client reads when it is first imported."""


def serve(settings: Settings) -> None:
    """Check, start, and return when the server has stopped."""
    _check(settings)
    listening = _bind(settings.host, settings.port)
    _sweep()
    shared = tempfile.mkdtemp(prefix=FOLDER)
    lock = _lock(Path(shared))
    try:
        settings = replace(settings, shared=shared, port=listening.getsockname()[1])
        os.environ[VARIABLE], os.environ[METRICS] = settings.to_json(), shared
        _run(settings, listening)
    finally:
        listening.close()
        shutil.rmtree(shared, ignore_errors=True)
        os.close(lock)


def _lock(folder: Path) -> int:
    """A file that is locked while this process runs."""
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle


def _sweep() -> None:
    """Remove the folders of servers of this user that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER}*"):
        with suppress(OSError):
            if folder.stat().st_uid == os.geteuid() and (folder / "lock").exists():
                os.close(_lock(folder))
                shutil.rmtree(folder, ignore_errors=True)


def _check(settings: Settings) -> None:
    if settings.keys is not None:
        read_keys(Path(settings.keys))
    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise InvalidParameterError("--tls-cert and --tls-key go together: give both, or none.")
    for option, path in (("--tls-cert", settings.tls_cert), ("--tls-key", settings.tls_key)):
        if path is not None and not os.access(path, os.R_OK):
            raise InvalidParameterError(f"{option} {path}: there is no such file, or this user may not read it.")
    if settings.tls_cert is not None:
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(settings.tls_cert, settings.tls_key)
        except (ssl.SSLError, OSError) as error:
            raise parameter_error("--tls-cert and --tls-key", "a certificate and its key, in PEM", str(error)) from None
    if settings.audit is not None:
        _audit(settings.audit).close()
    log("starting", models=len(settings.models), message="loading models; the first time, kernels are compiled.")
    LoadedModels(settings).load_all()


def _audit(path: str, shared: str | None = None, event: str | None = None, **fields: Any) -> AuditLog:
    """The audit log, with an entry if one is given."""
    try:
        audit = AuditLog(path, shared)
        audit.check()
        if event is not None:
            audit.append(event, **fields)
    except OSError as error:
        what = (
            f"cannot be written: {error.strerror}. Give a file in a folder that exists, that has space left, and where this user "
            "may write."
        )
    except (ValueError, KeyError, TypeError):
        what = "is not an audit log: its last line is not an entry. Give a new file, or one that a server has written."
    else:
        return audit
    raise InvalidParameterError(f"--audit {path} {what}")


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as error:
        listening.close()
        what = getattr(error, "strerror", None) or str(error)
        about_port = isinstance(error, OverflowError) or error.errno in {errno.EADDRINUSE, errno.EACCES}
        remedy = (
            "Choose another port with --port."
            if about_port
            else "Give an address of this machine with --host, as 127.0.0.1."
        )
        raise InvalidParameterError(f"cannot listen on {host}, port {port}: {what}. {remedy}") from None
    listening.set_inheritable(True)
    return listening


def _run(settings: Settings, listening: socket.socket) -> None:
    from uvicorn import Config, Server  # noqa: PLC0415 - the environment must be set before metrics are made

    from dpoutlier.server.supervisor import Supervisor  # noqa: PLC0415

    config = Config(
        "dpoutlier.server.app:app_from_environment",
        factory=True,
        http="dpoutlier.server.protocol:BoundedProtocol",
        ws="none",
        workers=settings.workers,
        log_config=UVICORN_LOGS,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=settings.stop_seconds,
        timeout_worker_healthcheck=HEALTH_SECONDS,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
    described: dict[str, Any] = {"workers": settings.workers, "models": len(settings.models)}
    audit = None if settings.audit is None else _audit(settings.audit, settings.shared, "start", **described)
    if audit is None:
        log("no-audit-log", "warning", message="there is no audit log; --audit FILE makes one.")
    if settings.tls_cert is None and not is_loopback(settings.host):
        log(
            "not-encrypted",
            "warning",
            host=settings.host,
            message="other machines can reach this server, and what they send is not encrypted; give --tls-cert and --tls-key, or "
            "listen on 127.0.0.1 behind a proxy that speaks TLS.",
        )
    scheme = "https" if settings.tls_cert else "http"
    log("listening", host=settings.host, port=settings.port, scheme=scheme, **described)
    try:
        if settings.workers > 1:
            Supervisor(config, sockets=[listening]).run()
        else:
            for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises them again when it has stopped
                signal.signal(number, lambda *_: None)
            Server(config).run(sockets=[listening])
    finally:
        if audit is not None:
            _stopped(audit)


def _stopped(audit: AuditLog) -> None:
    try:
        audit.append("stop")
        audit.sync()
        audit.close()
    except FAULTS as error:
        log("audit-failed", "critical", **where(error))
