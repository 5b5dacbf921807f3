"""A server behind TLS, with a certificate of its own."""

import socket
import subprocess
import threading


def certificate(folder, name="127.0.0.1"):
    """A key and a certificate for this machine, signed by itself."""
    paths = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "2", "-keyout", paths[0], "-out", paths[1], "-subj", "/CN=test"),
            *("-addext", f"subjectAltName=DNS:localhost,IP:{name}"),
        ],
        check=True,
        capture_output=True,
    )
    return paths


class BehindTLS:
    """Before a port of this machine, another one that speaks TLS."""

    def __init__(self, port, context):
        self.port, self.context = port, context

    def __enter__(self):
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()
        return f"https://127.0.0.1:{self.listening.getsockname()[1]}"

    def __exit__(self, *_):
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        self.thread.join()

    def _serve(self):
        while True:
            try:
                peer, _ = self.listening.accept()
            except OSError:
                return
            try:
                with (
                    self.context.wrap_socket(peer, server_side=True) as inner,
                    socket.create_connection(("127.0.0.1", self.port)) as plain,
                ):
                    plain.sendall(inner.recv(65536).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
                    while piece := plain.recv(65536):
                        inner.sendall(piece)
            except OSError:
                peer.close()
