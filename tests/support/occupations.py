"""What the services of a cluster do at this moment, for the message of a test whose wait times out."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.cli.cluster.local_cluster import LocalCluster

_WRITTEN_S = 2.0  # for each service to write its stacks
_EVENTS, _FRAMES, _WIDTH = 4, 8, 240


def occupations(cluster: LocalCluster) -> str:
    """Return the last events that each service has logged, and the innermost calls of its main thread."""
    running = [service for service in cluster.services.values() if service.running and service.process is not None]
    begins = {service.name: cluster.supervisor.log_path(service).stat().st_size for service in running}
    for service in running:
        if service.process is not None:
            service.process.send_signal(signal.SIGUSR1)
    time.sleep(_WRITTEN_S)
    lines: list[str] = []
    for service in cluster.services.values():
        text = cluster.supervisor.log_path(service).read_bytes()
        begin = begins.get(service.name, len(text))
        events = text[:begin].decode(errors="replace").splitlines()[-_EVENTS:]
        stacks = text[begin:].decode(errors="replace").partition("Current thread")[2]  # the main thread handles signals
        lines += [f"{service.name}: {service.starts} starts", *events, *stacks.splitlines()[: _FRAMES + 1]]
    return "\n".join(line[:_WIDTH] for line in lines)
