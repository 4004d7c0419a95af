"""Ports for servers of this machine that are to be known before the server runs."""

from __future__ import annotations

import random
import socket
from pathlib import Path

from penstock.errors import StorageError

_LEAST, _TRIES = 10_000, 1_000
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_USUAL_RANGE = 32_768


def free_port() -> int:
    """Return a port that nobody listens on. StorageError where none is found.

    It is below those that the system gives to connections: one of these could be taken before the server has come.
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
    """The least port that the system gives to connections."""
    try:
        return max(int(_RANGE.read_text().split()[0]), 2 * _LEAST)
    except OSError:
        return _USUAL_RANGE


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a server can listen there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: closed connections do not count
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError:
            return False
        return True
