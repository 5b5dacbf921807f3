"""Names of the machine itself. A request without a key must be addressed to one of them.

A page of somebody else, in a browser on this machine, can have its own name point here, and then read what the server answers. It
cannot make the browser send another Host header than that name.
"""

import ipaddress
import re

from dpoutlier.server.error_responses import Refusal, cut

OWN = re.compile(rb"(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:[0-9]{0,5})?", re.IGNORECASE)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def check_host(headers: list[tuple[bytes, bytes]]) -> None:
    """Refuse a request for a name that is not the machine's own. Browsers always send one."""
    for name, value in headers:
        if name == b"host" and not OWN.fullmatch(value):
            raise Refusal(
                "wrong-host",
                "this server answers only this machine, so requests must use the host name localhost, got Host: "
                f"{cut(value.decode('latin-1'))}. Start it with --keys to answer under other names.",
            )
