"""A server that says what a test tells it to say, and remembers what it was asked."""

import json
import socket
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from dpoutlier import DPMarginals

KEY = "dpo_abcdefghij_" + "S" * 43


class Asked(NamedTuple):
    method: str
    path: str
    headers: dict
    body: bytes


class Lost:
    """Instead of an answer: the connection is closed."""


@contextmanager
def faked(*answers, always=None):
    """(url, requests): each answer (status, headers, content) is given once, in this order, then ``always``.

    An answer may be a function of the request. Content that is not bytes is sent as JSON.
    """
    left, asked, peers, lock = list(answers), [], [], threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self):
            super().setup()
            peers.append(self.connection)

        def log_message(self, *_):
            pass

        def _answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Asked(self.command, self.path, dict(self.headers), body)
            with lock:
                asked.append(request)
                answer = left.pop(0) if left else always
            answer = answer(request) if callable(answer) and answer is not Lost else answer
            if answer is Lost:
                self.close_connection = True
                return
            status, headers, content = answer
            content = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _answer  # noqa: N815 - their names are the library's

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        for peer in peers:  # a server that is gone answers on no connection
            with suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)
        thread.join()


def refusal(status, code="unavailable", message="come back later", **headers):
    return (
        status,
        {name.replace("_", "-"): value for name, value in headers.items()},
        {"error": {"code": code, "message": message}},
    )


def described(release, rows=3, **changes):
    """A server's description of marginals of one feature, with a limit on rows."""
    detector = DPMarginals(1, features={"age": (0, 100)}, bins=3).fit([[3.0]])
    statement = detector.privacy_statement()
    feature = {"name": "age", "kind": "number", "lower": 0.0, "upper": 100.0, "levels": None, "ordered": None}
    return {
        "id": "m",
        "release": release,
        "detector": "DPMarginals",
        "publishable": True,
        "named": True,
        "threshold": 5.0,
        "target_fpr": None,
        "features": [feature | {"missing": False, "numeric": None, "other": None}],
        "person": None,
        "limits": {"rows": rows, "bytes": 10**6, "explain_rows": 2},
        "statement": statement.to_dict(),
        "statement_text": str(statement),
    } | changes
