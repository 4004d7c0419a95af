"""Free ports for local servers whose port must be known before the server starts."""

from __future__ import annotations

import random
import socket
from pathlib import Path

from penstock.errors import StorageError

_LEAST, _TRIES = 10_000, 1_000
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_USUAL_RANGE = 32_768


def free_port() -> int:
    """Return a port without a listener. StorageError if no such port is found.

    The port is below the ephemeral range, because the system could assign an ephemeral port to a connection before the
    server binds the port.
    """
    chance, end = random.SystemRandom(), _given_to_connections()
    for _ in range(_TRIES):
        port = chance.randrange(_LEAST, end)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise StorageError(f"no port from {_LEAST} to {end} is free")


def _given_to_connections() -> int:
    """Return the first port of the system's ephemeral range."""
    try:
        return max(int(_RANGE.read_text().split()[0]), 2 * _LEAST)
    except OSError:
        return _USUAL_RANGE


def is_free(port: int) -> bool:
    """Return whether a server can listen on a port of the loopback interface."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: ignores connections in TIME_WAIT
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError:
            return False
        return True
