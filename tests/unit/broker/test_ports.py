"""Ports that are given out before their server runs."""

from __future__ import annotations

import socket
from pathlib import Path

from penstock.broker.ports import free_port


def test_a_free_port_can_be_bound_and_no_connection_will_be_given_it():
    given = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    for _ in range(20):
        port = free_port()
        assert port < int(given[0])
        with socket.create_server(("127.0.0.1", port)) as server:
            assert server.getsockname()[1] == port
